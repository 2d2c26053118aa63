"""Statements about a whole table, and INSERT, as their parts."""

from __future__ import annotations

import pytest

from variantlake.delta.transaction.manifests import MODE
from variantlake.errors import InvalidQuery
from variantlake.sql import upkeep as parts
from variantlake.sql.inserts import InsertText, parse_insert, with_defaults
from variantlake.sql.upkeep import Moment, Upkeep, parse_upkeep

STATEMENTS: list[tuple[str, Upkeep]] = [
    ("DESCRIBE HISTORY a.b LIMIT 3", parts.DescribeHistory("a.b", 3)),
    ("-- why\ndesc history delta.`/x y`;", parts.DescribeHistory("delta.`/x y`")),
    ("DESCRIBE history", parts.DescribeColumns("history", False)),
    ("DESCRIBE TABLE EXTENDED t", parts.DescribeColumns("t", True)),
    ("DESCRIBE TABLE EXTENDED a.t `b c`", parts.DescribeColumn("a.t", "b c")),
    ("DESCRIBE DETAIL t", parts.DescribeDetail("t")),
    ("SHOW COLUMNS FROM t", parts.ShowColumns("t")),
    ("SHOW PARTITIONS t", parts.ShowPartitions("t")),
    ("SHOW TBLPROPERTIES t ('a.b')", parts.ShowProperties("t", "a.b")),
    ("SHOW TBLPROPERTIES t (a.b)", parts.ShowProperties("t", "a.b")),
    ("OPTIMIZE t WHERE a = 1 AND b > 2", parts.OptimizeTable("t", "a = 1 AND b > 2")),
    ("OPTIMIZE t FULL", parts.OptimizeTable("t", full=True)),
    ("REORG TABLE t WHERE p = 1 APPLY (PURGE)", parts.OptimizeTable("t", "p = 1", purges=True)),
    ("VACUUM t RETAIN 1.5 HOURS DRY RUN", parts.VacuumTable("t", 1.5, False, True)),
    ("VACUUM t LITE", parts.VacuumTable("t", None, True, False)),
    ("VACUUM t FULL", parts.VacuumTable("t", None, False, False)),
    ("RESTORE t TO VERSION AS OF 3", parts.RestoreTable("t", Moment(version=3))),
    (
        "RESTORE t TO VERSION AS OF 9007199254740993",
        parts.RestoreTable("t", Moment(version=2**53 + 1)),
    ),
    ("RESTORE TABLE t VERSION AS OF 3", parts.RestoreTable("t", Moment(version=3))),
    (
        "RESTORE TABLE t TO TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY",
        parts.RestoreTable("t", Moment(timestamp="current_timestamp() - INTERVAL 1 DAY")),
    ),
    (
        "CREATE TABLE u SHALLOW CLONE t TIMESTAMP AS OF '2026-01-01' TBLPROPERTIES ('a' = 'b')",
        parts.CloneTable(
            "u", "t", Moment(timestamp="'2026-01-01'"), False, False, False, {"a": "b"}
        ),
    ),
    ("CONVERT TO DELTA parquet.`/x y`", parts.ConvertToDelta("parquet.`/x y`")),
    (
        "CONVERT TO DELTA parquet.`/x` NO STATISTICS PARTITIONED BY (p STRING, `d` DATE)",
        parts.ConvertToDelta("parquet.`/x`", "p STRING, `d` DATE"),
    ),
    (
        "CREATE OR REPLACE TABLE u DEEP CLONE t VERSION AS OF 2",
        parts.CloneTable("u", "t", Moment(version=2), True, True, False),
    ),
    (
        "CREATE TABLE IF NOT EXISTS u SHALLOW CLONE t",
        parts.CloneTable("u", "t", Moment(), False, False, True),
    ),
    ("OPTIMIZE t ZORDER BY (a, s.b)", parts.OptimizeTable("t", z_order=("a", "s.b"))),
    (
        "OPTIMIZE t WHERE p = 1 ZORDER BY a, b",
        parts.OptimizeTable("t", "p = 1", z_order=("a", "b")),
    ),
    ("GENERATE symlink_format_manifest FOR TABLE t", parts.GenerateManifest("t", MODE)),
    ("DROP TABLE IF EXISTS a.b PURGE", parts.DropTable("a.b", True)),
    ("DROP TABLE t", parts.DropTable("t", False)),
    ("TRUNCATE TABLE t", parts.TruncateTable("t")),
    ("ANALYZE TABLE t COMPUTE DELTA STATISTICS", parts.AnalyzeTable("t")),
]

OTHERS = [
    "SELECT 1",
    "OPTIMIZE t ZORDER BY ()",
    "DROP VIEW t",
    "GENERATE FOR TABLE t",
    "VACUUM t RETAIN many HOURS",
    "VACUUM t INVENTORY x",
    "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
    "CREATE TABLE t (clone INT)",
    "SHOW TABLES",
    "SHOW CREATE TABLE t",
    "RESTORE TABLE t",
    "RESTORE TABLE t TO VERSION AS OF 1.5",
    "CREATE TABLE u SHALLOW CLONE t VERSION AS OF 2.9",
    "DESCRIBE HISTORY t LIMIT 1.5",
    "VACUUM t RETAIN " + "9" * 5000 + " HOURS",
    "TRUNCATE TABLE t PARTITION (p = 1)",
    "INSERT INTO t VALUES (1)",
    "",
]

INSERTS = [
    ("INSERT INTO t VALUES (1)", InsertText("t", "VALUES (1)")),
    (
        "INSERT INTO TABLE a.b (x, `y y`) SELECT 1, 2",
        InsertText("a.b", "SELECT 1, 2", ("x", "y y")),
    ),
    ("INSERT INTO t (SELECT 1)", InsertText("t", "(SELECT 1)")),
    ("INSERT INTO t BY NAME FROM u", InsertText("t", "FROM u", by_name=True)),
    (
        "insert overwrite t partition (p = 'x', q) TABLE u",
        InsertText("t", "TABLE u", overwrites=True, partition={"p": "'x'", "q": None}),
    ),
    (
        "INSERT INTO t REPLACE WHERE p = (1) SELECT 1",
        InsertText("t", "SELECT 1", where="p = (1)"),
    ),
]


@pytest.mark.parametrize(("text", "wanted"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_a_statement_has_these_parts(text: str, wanted: Upkeep) -> None:
    assert parse_upkeep(text) == wanted


@pytest.mark.parametrize("text", OTHERS)
def test_other_statements_are_left_alone(text: str) -> None:
    assert parse_upkeep(text) is None


@pytest.mark.parametrize(("text", "wanted"), INSERTS, ids=[text for text, _ in INSERTS])
def test_an_insert_has_these_parts(text: str, wanted: InsertText) -> None:
    assert parse_insert(text) == wanted


@pytest.mark.parametrize("text", ["INSERT t VALUES (1)", "INSERT INTO t", "SELECT 1", ""])
def test_other_texts_are_no_insert(text: str) -> None:
    assert parse_insert(text) is None


def test_defaults_stand_for_what_the_column_has() -> None:
    def default(at: int) -> str:
        return f"d{at}"

    given = "VALUES (1, default), (DEFAULT, f(DEFAULT, 'DEFAULT'))"
    assert with_defaults(given, default) == "VALUES (1, d1), (d0, f(DEFAULT, 'DEFAULT'))"
    for other in ("VALUES 1, 2", "SELECT DEFAULT", "VALUES (1) AS t(a)"):
        assert with_defaults(other, default) == other


def test_tables_before_an_insert_belong_to_its_query() -> None:
    found = parse_insert("WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a) INSERT INTO t SELECT 1")
    tables = "WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a)"
    assert found == InsertText("t", f"{tables} SELECT 1")
    assert parse_insert("WITH a AS (SELECT 1) SELECT * FROM a") is None
    assert parse_insert("WITH a AS (SELECT 1) INSERT INTO t WITH b AS (SELECT 2) SELECT 1") is None


def test_tables_behind_from_belong_to_the_query_of_an_insert() -> None:
    found = parse_insert("FROM a JOIN b USING (x) INSERT INTO t (y) SELECT 1 WHERE x = 2")
    assert found == InsertText("t", "FROM a JOIN b USING (x) SELECT 1 WHERE x = 2", ("y",))
    assert parse_insert("FROM insert_log SELECT *") is None
    found = parse_insert("FROM a INSERT INTO t SELECT 1 WHERE x = 1 INSERT OVERWRITE u SELECT 2")
    also = InsertText("u", "FROM a SELECT 2", overwrites=True)
    assert found == InsertText("t", "FROM a SELECT 1 WHERE x = 1", also=(also,))
    assert parse_insert("FROM a INSERT INTO t SELECT 1 INSERT INTO u VALUES (2)") is None


def test_what_replaces_rows_by_keys_is_told_apart() -> None:
    for by in ("USING (p)", "ON t.p = s.p"):
        found = parse_insert(f"INSERT INTO t REPLACE {by} SELECT 1")
        assert found == InsertText("t", "SELECT 1", replaces_by=by.split(" ")[0])
    with pytest.raises(InvalidQuery, match="BY NAME stands"):
        parse_insert("INSERT INTO t REPLACE WHERE p = 1 BY NAME SELECT 1 AS p")
