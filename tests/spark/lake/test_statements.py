"""Statements of Delta on tables that Spark's catalog does not know, as without Delta's jar.

The same statements run on a twin by Delta Spark, which judges rows, schemas and history.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from tests.spark.layouts import UNADAPTED, changed, rows
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.errors import (
    CommitConflict,
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    MissingSource,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.ingest.conversion.folders import convert_folder
from variantlake.spark.lake import Lake, connect
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.lake.upkeep import TableStatements
from variantlake.spark.query import catalyst_query
from variantlake.sql.upkeep import ConvertToDelta

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COLUMNS = (
    "(id BIGINT NOT NULL, n INT, s STRING, d DATE, f FLOAT, st STRUCT<x: INT, y: STRING>,"
    " v VARIANT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES"
    " ('delta.feature.allowColumnDefaults'='supported', 'delta.enableDeletionVectors'='true')"
)
ROW = "DATE'2024-01-01', 1.5, named_struct('q', 1, 'r', 'p'), parse_json('[1]')"


@dataclass
class Twins:
    """A name that only the lake knows, and the same table for Delta Spark."""

    spark: SparkSession
    lake: Lake
    folder: Path

    def theirs(self, text: str) -> DataFrame:
        with changed(self.spark, UNADAPTED):
            return self.spark.sql(text.format(t=f"delta.`{self.folder / 'theirs'}`"))

    def ours(self, text: str) -> DataFrame:
        return self.lake.sql(text.format(t="own.t"))

    def both(self, text: str) -> tuple[DataFrame, DataFrame]:
        return self.ours(text), self.theirs(text)

    def told(self, name: str) -> list[Any]:
        """What the last lines of the histories tell by a name."""
        both = (vl.Table.open(self.folder / each) for each in ("ours", "theirs"))
        return [table.history(1)[0].info.get(name) for table in both]

    def newest(self) -> tuple[Any, Any]:
        """The last lines of the histories."""
        found = [vl.Table.open(self.folder / each).history(1)[0] for each in ("ours", "theirs")]
        return tuple(  # type: ignore[return-value]  # of two
            (each.version, each.operation, each.info.get("operationParameters")) for each in found
        )

    def stored(self) -> list[Counter[str]]:
        """The rows of both, by what we read."""
        both = (vl.Table.open(self.folder / each) for each in ("ours", "theirs"))
        return [Counter(map(repr, each.scan().as_json().to_arrow().to_pylist())) for each in both]


@pytest.fixture(scope="module")
def empty(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table without rows that Delta Spark made."""
    folder = tmp_path_factory.mktemp("empty") / "t"
    delta_spark.sql(f"CREATE TABLE delta.`{folder}` {COLUMNS}")
    delta_spark.sql(f"ALTER TABLE delta.`{folder}` ALTER COLUMN s SET DEFAULT 'dflt'")
    return folder


@pytest.fixture
def twins(delta_spark: SparkSession, empty: Path, tmp_path: Path) -> Twins:
    for name in ("ours", "theirs"):
        shutil.copytree(empty, tmp_path / name)
    lake = connect(delta_spark)
    lake.register("own.t", tmp_path / "ours")
    return Twins(delta_spark, lake, tmp_path)


INSERTS = [
    f"INSERT INTO {{t}} VALUES (1, 10, 'a', {ROW}, 'x'), (2, 20, 'b', {ROW}, NULL)",
    f"INSERT INTO {{t}} VALUES ('0', '20', 3, {ROW}, 1)",
    "INSERT INTO {t} (id, n) VALUES (3, 30)",
    "INSERT INTO {t} (p, ID, s) VALUES ('x', 4, DEFAULT), (DEFAULT, 5, 'five')",
    "INSERT INTO {t} BY NAME SELECT 'y' AS p, 6 AS id, named_struct('y', 1, 'x', 'p') AS st",
    "INSERT INTO {t} BY NAME SELECT 62L AS id, named_struct('y', 'by name', 'x', 7) AS st",
    "INSERT INTO {t} BY NAME SELECT 63 AS id, named_struct('y', '7', 'x', 8) AS st",
    "INSERT INTO {t} (id, st) SELECT 61, named_struct('y', 1, 'x', 'by place')",
    "INSERT INTO {t} SELECT id + 10, n, s, d, f, st, v, p FROM {t} WHERE id < 3",
    "INSERT INTO {t} TABLE {t}",
    "WITH few AS (SELECT 71 AS id, 'w' AS p) INSERT INTO {t} (id, p) SELECT id, p FROM few",
    "FROM {t} INSERT INTO {t} (id) SELECT 72 WHERE id = 71 INSERT INTO {t} (id) SELECT 73",
    f"INSERT INTO {{t}} PARTITION (p = 'z') VALUES (7, 1, 's', {ROW})",
    f"INSERT INTO {{t}} PARTITION (p) VALUES (8, 1, 's', {ROW}, 'w')",
    f"INSERT OVERWRITE {{t}} PARTITION (p = 'z') VALUES (9, 1, 's', {ROW})",
    "INSERT INTO {t} REPLACE WHERE p = 'y' SELECT 10, n, s, d, f, st, v, p FROM {t} WHERE p = 'y'",
    "INSERT INTO {t} REPLACE WHERE id > 5 AND n <=> 1 SELECT 60, 1, s, d, f, st, v, 'z' FROM {t}",
    "INSERT INTO {t} BY NAME REPLACE WHERE id IN (2, 60) SELECT 99 AS n, 2 AS id",
    "INSERT INTO {t} REPLACE WHERE id = -1 SELECT * FROM {t} WHERE false",
    "INSERT OVERWRITE {t} BY NAME SELECT id, p FROM {t} WHERE id = 1",
    "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 12 AS id, 'n' AS newcol, 3 AS N",
    "INSERT WITH SCHEMA EVOLUTION INTO {t} SELECT *, 1.5BD AS dec FROM {t} WHERE id = 12",
]


def test_inserts_bring_the_rows_that_delta_spark_brings(twins: Twins) -> None:
    for statement in INSERTS:
        for made in twins.both(statement):
            assert (made.collect(), made.columns) == ([], [])
        ours, theirs = twins.stored()  # Spark reads them at the end
        assert ours == theirs, statement
        (version, operation, mine), other = twins.newest()
        names = "mode", "partitionBy"
        assert (version, operation) == other[:2]
        assert [mine[name] for name in names] == [other[2][name] for name in names]
        assert mine.keys() == other[2].keys(), statement
        blind = twins.told("isBlindAppend")
        assert blind[0] == blind[1], statement
    ours, theirs = (rows(each) for each in twins.both("SELECT * FROM {t}"))
    assert ours == theirs
    dynamic = "INSERT OVERWRITE {t} BY NAME SELECT 1 AS id, 'new' AS p"
    with changed(twins.spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        twins.both(dynamic)
    assert twins.newest()[0] == twins.newest()[1]
    ours, theirs = (rows(each) for each in twins.both("SELECT * FROM {t}"))
    assert ours == theirs
    read = rows(twins.spark.read.format("delta").load(str(twins.folder / "ours")))
    assert read == theirs


def test_other_statements_leave_the_history_of_delta_spark(twins: Twins) -> None:
    for statement in (
        INSERTS[0],
        "UPDATE {t} SET n = 1",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('nope')",
        "DELETE FROM {t}",
    ):
        twins.both(statement)
        ours, theirs = (each[:2] for each in twins.newest())
        assert ours == theirs, statement
        if statement.startswith(("UPDATE", "DELETE")):
            assert twins.newest()[0][2] == twins.newest()[1][2], statement
    for same in twins.both(f"RESTORE {{t}} VERSION AS OF {twins.newest()[0][0]}"):
        assert same.collect() == []
    assert twins.newest()[0][:2] == twins.newest()[1][:2]
    twins.both("RESTORE {t} VERSION AS OF 2")
    ours_rows, theirs_rows = (rows(each) for each in twins.both("SELECT * FROM {t}"))
    assert ours_rows == theirs_rows
    assert len(ours_rows) == 2


def test_a_merge_has_the_metrics_of_delta_spark(twins: Twins) -> None:
    source = "(SELECT explode(array(1L, 2L, 7L)) AS id)"
    clauses = (
        "WHEN MATCHED AND t.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 5",
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 6)",
    )
    by_source = "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 0"
    for more in ("", by_source):
        twins.both(f"INSERT OVERWRITE {INSERTS[0].removeprefix('INSERT INTO')}")
        twins.both(f"MERGE INTO {{t}} t USING {source} s ON t.id = s.id {' '.join(clauses)} {more}")
        tables = (vl.Table.open(twins.folder / each) for each in ("ours", "theirs"))
        ours, theirs = (table.history(1)[0].info["operationMetrics"] for table in tables)
        unknown = {"numSourceRows", "materializeSourceTimeMs"}
        if more:
            unknown |= {name for name in theirs if "RowsMatched" in name or "BySource" in name}
        assert theirs.keys() - ours.keys() == unknown
        assert not ours.keys() - theirs.keys()
        counts = [name for name in ours if "Rows" in name or "Vectors" in name]
        assert {name: ours[name] for name in counts} == {name: theirs[name] for name in counts}


def test_optimize_joins_small_files_that_are_in_order(twins: Twins) -> None:
    table = vl.Table.create(twins.folder / "clustered", "id INT", cluster_by="id")
    for first in (0, 10):
        table.append([{"id": first}, {"id": first + 1}])
    twins.lake.register("own.clustered", table.uri)
    (done,) = twins.lake.sql("OPTIMIZE own.clustered").collect()
    assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (1, 2)
    assert table.refresh().files().num_rows == 1


REFUSED: list[tuple[str, type[Exception], str]] = [
    ("INSERT INTO {t} VALUES (5)", InvalidQuery, "1 columns, and go into 8"),
    ("INSERT INTO {t} (id, id) VALUES (5, 6)", InvalidQuery, "named twice"),
    ("INSERT INTO {t} (id, nope) VALUES (5, 1)", InvalidSchema, "no column 'nope'"),
    ("INSERT INTO {t} BY NAME SELECT 5 AS id, 1 AS nope", InvalidSchema, "no column 'nope'"),
    ("INSERT INTO {t} (n) VALUES (5)", InvalidSchema, "NOT NULL"),
    ("INSERT INTO {t} (id) VALUES (NULL)", VariantLakeError, "NULL"),
    ("INSERT INTO {t} PARTITION (n = 1) VALUES (5)", InvalidSchema, "'n' is not a partition"),
    ("INSERT INTO {t} (id) REPLACE WHERE id > 9 VALUES (5)", InvalidValue, "REPLACE WHERE"),
    ("INSERT INTO {t} (id) REPLACE WHERE rand() > 1 VALUES (5)", InvalidQuery, "which rows change"),
    ("INSERT INTO {t} (id) REPLACE WHERE nope > 1 VALUES (5)", InvalidQuery, "nope"),
    ("INSERT INTO {t} SELECT * FROM nowhere", InvalidQuery, "nowhere"),
    ("ALTER TABLE {t} ALTER COLUMN n SET DEFAULT (SELECT 1)", InvalidQuery, "subquery"),
    ("RESTORE TABLE {t} TO VERSION AS OF 99", VariantLakeError, "99"),
    ("RESTORE TABLE {t} TO TIMESTAMP AS OF 'soon'", InvalidQuery, "not a timestamp"),
    ("BEGIN INSERT INTO {t} (id) VALUES (5); END", UnsupportedFeature, "BEGIN is not supported"),
    ("MSCK REPAIR TABLE {t}", UnsupportedFeature, "MSCK is not supported"),
    ("ALTER TABLE {t} DROP PARTITION (p = 'a')", UnsupportedFeature, "in this form"),
    ("ALTER TABLE {t} RECOVER PARTITIONS", UnsupportedFeature, "in this form"),
    ("VACUUM {t} RETAIN 0 HOURS", InvalidValue, "retention"),
    ("OPTIMIZE {t} FULL", InvalidQuery, "is for clustered tables"),
    ("CREATE TABLE {t} SHALLOW CLONE {t}", CommitConflict, "a table already"),
    ("ALTER TABLE {t} DROP FEATURE nope", InvalidValue, "does not have the feature"),
    ("TRUNCATE TABLE {t} PARTITION (p = 'a')", UnsupportedFeature, "not supported in this form"),
    ("ALTER TABLE {t} ADD PARTITION (p = 'a')", UnsupportedFeature, "partitions come with"),
    ("ALTER TABLE {t} REPLACE COLUMNS (a INT)", UnsupportedFeature, "which may mean new names"),
    (
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 1 day')",
        InvalidValue,
        "is shorter than delta.deletedFileRetentionDuration",
    ),
    ("UPDATE {t} SET n = 1 FROM {t} AS u", UnsupportedFeature, "not supported in this form"),
    ("UPDATE __view SET n = 1", UnsupportedFeature, "is a view, and rows of a view"),
    ("DELETE FROM __view WHERE n = 1", UnsupportedFeature, "is a view, and rows of a view"),
]


def test_what_cannot_be_is_refused_and_changes_nothing(twins: Twins) -> None:
    twins.ours("SELECT * FROM {t}").createOrReplaceTempView("__view")
    for statement, error, words in REFUSED:
        with pytest.raises(error, match=words):
            twins.ours(statement)
    assert vl.Table.open(twins.folder / "ours").version == 1


def test_a_view_of_a_whole_table_stands_for_it(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without Delta's jar, where views read what we publish."""
    monkeypatch.setattr(catalyst_query, "_with_names_of_delta", lambda text, _: text)
    twins.both(INSERTS[0])
    named = "id, s, n, d, f, st, v, p"  # two of them in each other's place
    views = {
        "__whole": "AS SELECT * FROM own.t",
        "__part": "AS SELECT id, n FROM own.t",
        "__other": f"({named}) AS SELECT * FROM own.t",
    }
    merge = (
        "WITH one AS (SELECT 9 AS id, 'x' AS p) MERGE INTO {t} t USING one s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, s.p)"
    )
    for view, query in views.items():
        twins.lake.sql(f"CREATE TEMP VIEW {view} {query}")
    try:
        for statement in (
            "UPDATE {t} AS x SET x.n = n + (SELECT max(n) FROM {t}) WHERE x.id = 1",
            "DELETE FROM {t} WHERE id = 2",
            merge,
        ):
            if "max" not in statement:  # Delta Spark takes no subquery there
                twins.theirs(statement)
            twins.lake.sql(statement.format(t="__whole"))
        twins.theirs("UPDATE {t} SET n = 30 WHERE id = 1")
        wanted = rows(twins.theirs("SELECT * FROM {t}"))
        assert rows(twins.lake.sql("SELECT * FROM __whole")) == wanted
        assert rows(twins.ours("SELECT * FROM {t}")) == wanted
        for view in ("__part", "__other"):
            with pytest.raises(UnsupportedFeature, match=f"{view} is a view"):
                twins.lake.sql(f"UPDATE {view} SET n = 1")
        twins.both("DELETE FROM {t} WHERE id = 9")  # which a view shows, too
        wanted = rows(twins.theirs("SELECT * FROM {t}"))
        assert rows(twins.lake.sql("SELECT * FROM __whole")) == wanted
    finally:
        for view in views:
            twins.spark.catalog.dropTempView(view)


def test_a_null_of_a_struct_with_a_field_that_is_not_null(twins: Twins) -> None:
    """Rows may hold one and keep it; a new value is none, as in Delta Spark."""
    schema = "id INT, n INT, s STRUCT<a: INT NOT NULL, b: STRING>"
    table = vl.Table.create(twins.folder / "strict", schema)
    table.append([{"id": 1, "s": {"a": 1, "b": "x"}}, {"id": 2, "s": None}])
    twins.lake.register("own.strict", table.uri)
    twins.lake.sql("UPDATE own.strict SET n = id + 5 WHERE n IS NULL")
    for refused in (
        "UPDATE own.strict SET s = NULL WHERE id = 1",
        "UPDATE own.strict SET s.b = 'q' WHERE n = 7",
        "INSERT INTO own.strict VALUES (3, 3, NULL)",
    ):
        with pytest.raises(InvalidValue, match=r"column 's\.a' is NOT NULL"):
            twins.lake.sql(refused)
    found = twins.spark.read.format("delta").load(table.uri).orderBy("id").collect()
    assert [(row.n, row.s and tuple(row.s)) for row in found] == [(6, (1, "x")), (7, None)]


def test_parquet_files_become_a_table_where_they_are(twins: Twins, tmp_path: Path) -> None:
    for name in ("plain", "parts"):
        files = twins.spark.range(4).selectExpr("id", "id % 2 AS p").write
        (files.partitionBy("p") if name == "parts" else files).parquet(f"{tmp_path / name}")
    for _ in range(2):  # what is a table already stays as it is
        assert twins.lake.sql(f"CONVERT TO DELTA parquet.`{tmp_path / 'plain'}`").collect() == []
    made = vl.Table.open(tmp_path / "plain")
    assert (made.version, made.scan().count()) == (0, 4)


def test_folders_become_a_table_with_partitions(twins: Twins, tmp_path: Path) -> None:
    values = (
        "array('a b', '%', 'x=y', NULL)[id % 4] AS p",
        "date_add(DATE'2026-01-01', int(id)) AS Dd",
    )
    tables = []
    for name in ("by_us", "by_them"):
        rows_of = twins.spark.range(6).selectExpr("id", "id * 2 AS n", *values)
        rows_of.write.partitionBy("p", "Dd").parquet(f"{tmp_path / name}")
    convert_folder(str(tmp_path / "by_us"), parse_table_ddl("p STRING, Dd DATE"))
    text = f"CONVERT TO DELTA parquet.`{tmp_path / 'by_them'}`"
    twins.spark.sql(f"{text} PARTITIONED BY (p STRING, Dd DATE)")
    for name in ("by_us", "by_them"):
        table = vl.Table.open(tmp_path / name)
        read = rows(twins.spark.read.format("delta").load(table.uri))
        texts = table.files()["partition_values"].to_pylist()
        tables.append((table.schema, sorted(map(str, texts)), read, table.version))
        assert table.scan(where="p = 'x=y'").count() == 1
    assert tables[0] == tables[1]
    own = f"CONVERT TO DELTA parquet.`{tmp_path / 'parts'}` PARTITIONED BY (p INT)"
    twins.spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(
        f"{tmp_path / 'parts'}"
    )
    assert twins.lake.sql(own).collect() == []
    assert vl.Table.open(tmp_path / "parts").scan(where="p = 1").count() == 2


def test_old_times_stay_in_folders_of_times(twins: Twins, tmp_path: Path) -> None:
    own = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.session.timeZone": "Europe/Berlin",
    }
    moments = "timestamp_seconds(array(0, 1767222000, 1782864000, NULL)[int(id)]) AS moment"
    tables = []
    with changed(twins.spark, own):
        for name in ("by_us", "by_them"):
            rows_of = twins.spark.range(4).selectExpr("timestamp_micros(id) AS t", moments)
            rows_of.write.partitionBy("moment").parquet(f"{tmp_path / name}")
        text = ConvertToDelta(f"parquet.`{tmp_path / 'by_us'}`", "moment TIMESTAMP")
        TableStatements(LakeSession(twins.spark)).run(str(tmp_path / "by_us"), text, None)
        by_them = f"CONVERT TO DELTA parquet.`{tmp_path / 'by_them'}`"
        twins.spark.sql(f"{by_them} PARTITIONED BY (moment `TIMESTAMP`)")
        for name in ("by_us", "by_them"):
            table = vl.Table.open(tmp_path / name)
            read = rows(twins.spark.read.format("delta").load(table.uri))
            tables.append((table.schema, read, rows(twins.lake.read(table.uri)), table.version))
    made = vl.Table.open(tmp_path / "by_us")
    assert made.scan(where="moment = TIMESTAMP'2025-12-31 23:00:00'").count() == 1
    assert [row["t"].microsecond for row in made.scan("t").to_pylist()] == [0, 1, 2, 3]
    assert tables[0] == tables[1]


def test_tables_are_described_as_by_delta_spark(twins: Twins) -> None:
    for statement in (INSERTS[0], "ALTER TABLE {t} ALTER COLUMN n COMMENT 'number'"):
        twins.both(statement)
    for text in ("DESCRIBE {t}", "SHOW COLUMNS IN {t}", "SHOW PARTITIONS {t}"):
        ours, theirs = twins.both(text)
        found = [tuple(each or "" for each in row) for row in ours.collect()]
        wanted = [tuple(each or "" for each in row) for row in theirs.collect()]
        assert ours.columns == theirs.columns
        if "PARTITIONS" in text:
            found, wanted = sorted(found), sorted(wanted)
        assert found == wanted, text
    properties = [
        {row["key"]: row["value"] for row in each.collect()}
        for each in twins.both("SHOW TBLPROPERTIES {t}")
    ]
    assert properties[0] == properties[1]
    key = "SHOW TBLPROPERTIES {t} ('delta.minReaderVersion')"
    assert rows(twins.ours(key)) == rows(twins.theirs(key))
    ours, theirs = twins.both("DESCRIBE DETAIL {t}")
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    mine, other = ours.collect()[0].asDict(), theirs.collect()[0].asDict()
    for name in ("format", "partitionColumns", "numFiles", "minReaderVersion", "tableFeatures"):
        assert mine[name] == other[name], name
    ours, theirs = twins.both("DESCRIBE HISTORY {t} LIMIT 2")
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    for column in ("n", "S"):
        left, right = twins.both(f"DESCRIBE TABLE EXTENDED {{t}} {column}")
        assert (left.columns, left.collect()) == (right.columns, right.collect()[:3])
    assert [row.operation for row in ours.collect()] == [row.operation for row in theirs.collect()]
    on_ours = twins.spark.sql(f"DESCRIBE HISTORY delta.`{twins.folder / 'ours'}` LIMIT 2")
    assert ours.collect() == on_ours.collect()


def test_upkeep_without_the_jar(twins: Twins) -> None:
    for number in range(3):
        few = f"range({number * 10}, {number * 10 + 2}, 1, 1)"
        twins.both(f"INSERT INTO {{t}} (id, p) SELECT id, 'x' FROM {few}")
    twins.both("DELETE FROM {t} WHERE id = 1")
    ours, theirs = (each.collect()[0] for each in twins.both("REORG TABLE {t} APPLY (PURGE)"))
    assert ours.metrics.numFilesRemoved == theirs.metrics.numFilesRemoved == 1
    assert twins.newest()[0][1:] == twins.newest()[1][1:]
    answers = twins.both("OPTIMIZE {t} WHERE p = 'x'")
    assert answers[0].schema.simpleString() == answers[1].schema.simpleString()
    ours, theirs = (each.collect()[0] for each in answers)
    assert ours.metrics.numFilesRemoved == theirs.metrics.numFilesRemoved == 3
    for name in ("partitionsOptimized", "totalConsideredFiles", "totalFilesSkipped", "numBatches"):
        assert ours.metrics[name] == theirs.metrics[name], name
    assert ours.metrics.filesAdded.min == ours.metrics.filesAdded.totalSize
    assert ours.metrics.filesRemoved.totalFiles == 3
    assert [each[1] for each in twins.newest()] == ["OPTIMIZE", "OPTIMIZE"]
    found = twins.ours("VACUUM {t} RETAIN 1000 HOURS DRY RUN")
    assert (found.columns, found.collect()) == (["path"], [])
    assert twins.ours("VACUUM {t}").columns == ["path"]
    twins.ours("VACUUM {t} RETAIN 200 HOURS")
    said = vl.Table.open(twins.folder / "ours").history(2)[1].info["operationParameters"]
    assert int(said["specifiedRetentionMillis"]) == 200 * 3_600_000
    restored = [each.collect()[0] for each in twins.both("RESTORE TABLE {t} TO VERSION AS OF 3")]
    assert restored[0].num_restored_files == restored[1].num_restored_files == 2
    assert restored[0].asDict().keys() == restored[1].asDict().keys()
    assert twins.newest()[0][1:] == twins.newest()[1][1:]
    left, right = (rows(each) for each in twins.both("SELECT * FROM {t}"))
    assert left == right
    shallow = f"CREATE TABLE delta.`{twins.folder / 'shallow'}` SHALLOW CLONE {{t}}"
    twins.ours(f"{shallow} TBLPROPERTIES ('owner' = 'me')")
    assert vl.Table.open(twins.folder / "shallow").properties["owner"] == "me"
    clone = f"CREATE TABLE delta.`{twins.folder / 'clone'}` DEEP CLONE {{t}} VERSION AS OF 4"
    assert twins.ours(clone).collect()[0].num_copied_files == 3
    assert twins.ours(clone.replace("TABLE", "TABLE IF NOT EXISTS")).collect() == []
    assert vl.Table.open(twins.folder / "clone").scan().count() == 6
    for made in twins.both("TRUNCATE TABLE {t}"):
        assert made.collect() == []
    assert twins.newest()[0][1:] == twins.newest()[1][1:]
    assert twins.told("operationMetrics")[0].keys() == twins.told("operationMetrics")[1].keys()
    assert twins.ours("SELECT * FROM {t}").collect() == []


def test_manifests_are_those_of_delta_spark(twins: Twins) -> None:
    for each in (
        "INSERT INTO {t} (id, p) VALUES (1, 'a b/c%=d'), (2, NULL), (3, 'é')",
        "GENERATE symlink_format_manifest FOR TABLE {t}",
    ):
        twins.both(each)
    _assert_manifests(twins.folder, 3)
    twins.both("DELETE FROM {t} WHERE id = 3")
    twins.both("GENERATE SYMLINK_FORMAT_MANIFEST FOR TABLE {t}")
    _assert_manifests(twins.folder, 2)
    with pytest.raises(InvalidQuery, match="no mode 'other'"):
        twins.ours("GENERATE other FOR TABLE {t}")
    twins.ours("INSERT INTO {t} (id) SELECT id FROM range(5, 9, 1, 1)")
    twins.ours("DELETE FROM {t} WHERE id = 5")
    with pytest.raises(UnsupportedFeature, match="deletion vectors"):
        twins.ours("GENERATE symlink_format_manifest FOR TABLE {t}")


def _assert_manifests(folder: Path, count: int) -> None:
    ours, theirs = (
        {
            str(path.relative_to(folder / name)): path.read_text().splitlines()
            for path in (folder / name).glob("_symlink_format_manifest/**/manifest")
        }
        for name in ("ours", "theirs")
    )
    assert ours.keys() == theirs.keys()
    assert len(ours) == count
    for lines in ours.values():
        assert all(Path(line.removeprefix("file:")).exists() for line in lines)


def test_optimize_orders_rows_by_columns(twins: Twins) -> None:
    for _ in range(2):
        twins.both("INSERT INTO {t} (id, n, p) SELECT id, id * 7 % 10, 'x' FROM range(0, 10, 1, 1)")
    twins.both("OPTIMIZE {t} ZORDER BY (n, id)")
    (mine, other) = (each[2] for each in twins.newest())
    assert mine["zOrderBy"] == other["zOrderBy"] == '["n","id"]'
    left, right = (rows(each) for each in twins.both("SELECT id, n, p FROM {t}"))
    assert left == right
    refused = {"(p)": "partition column", "(nope)": "no column", "(st)": "cannot cluster"}
    for columns, why in refused.items():
        with pytest.raises(InvalidSchema, match=why):
            twins.ours(f"OPTIMIZE {{t}} ZORDER BY {columns}")
    clustered = twins.folder / "clustered"
    vl.Table.create(clustered, "a INT", cluster_by="a")
    twins.lake.register("own.c", clustered)
    with pytest.raises(UnsupportedFeature, match="is clustered"):
        twins.lake.sql("OPTIMIZE own.c ZORDER BY (a)")


def test_changes_are_a_table_of_queries(twins: Twins) -> None:
    feed = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    for each in (
        feed,
        INSERTS[0],
        "UPDATE {t} SET n = 1 WHERE id = 1",
        "DELETE FROM {t} WHERE id = 2",
    ):
        twins.both(each)
    path = twins.folder / "theirs"
    query = "SELECT c._change_type, c.id, c.n FROM table_changes('{t}', 2, 5) AS c WHERE id > 0"
    found = rows(twins.lake.sql(query.format(t="own.t")))
    assert found == rows(twins.spark.sql(query.format(t=f"delta.`{path}`")))
    assert len(found) == 5
    computed = query.replace("2, 5", "1 + 1, 5L")
    assert rows(twins.lake.sql(computed.format(t="own.t"))) == found
    first = vl.Table.open(path, version=2).history(1)[0].time
    since = query.replace("2, 5", f"TIMESTAMP'{first:%Y-%m-%d %H:%M:%S}' + INTERVAL 0 DAY")
    assert len(rows(twins.ours(since))) == 5
    with pytest.raises(InvalidQuery, match="not a version or a time"):
        twins.ours("SELECT * FROM table_changes('{t}', current_date())")
    assert twins.spark.sql("SHOW VIEWS LIKE '__vl*'").collect() == []


def test_a_default_has_the_type_of_its_column(twins: Twins) -> None:
    default = "named_struct('a', NULL, 'b', 'd')"
    twins.both(f"ALTER TABLE {{t}} ALTER COLUMN st SET DEFAULT {default}")
    twins.both("INSERT INTO {t} (id) VALUES (1)")
    ours, theirs = (rows(each) for each in twins.both("SELECT * FROM {t}"))
    assert ours == theirs


def test_a_setting_lets_vacuum_take_any_retention(twins: Twins) -> None:
    twins.ours(INSERTS[0])
    twins.ours("DELETE FROM {t}")
    with changed(twins.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        twins.ours("VACUUM {t} RETAIN 0 HOURS")
    assert not list((twins.folder / "ours").rglob("*.parquet"))


def test_dropping_a_table_drops_its_name(twins: Twins) -> None:
    name = f"delta.`{twins.folder / 'ours'}`"
    assert twins.lake.sql(f"DROP TABLE {name}").collect() == []
    assert twins.lake.sql(f"DROP TABLE IF EXISTS delta.`{twins.folder / 'nope'}`").collect() == []
    with pytest.raises(InvalidQuery, match="of this statement alone"):
        twins.lake.sql("DROP TABLE u", tables={"u": twins.folder / "ours"})
    assert twins.lake.sql("DROP TABLE `OWN`.t").collect() == []
    with pytest.raises(InvalidQuery, match="TABLE_OR_VIEW_NOT_FOUND"):
        twins.lake.sql("SELECT * FROM own.t")
    assert twins.lake.sql("DROP TABLE IF EXISTS own.t").collect() == []
    assert twins.lake.read(twins.folder / "ours").columns[0] == "id"


def test_an_identity_column_goes_on_behind_its_rows(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """Delta Spark does not count the numbers that rows bring."""
    lake, marks = connect(delta_spark), []
    for name, run in (("ours", lake.sql), ("theirs", delta_spark.sql)):
        table = f"delta.`{tmp_path / name}`"
        delta_spark.sql(
            f"CREATE TABLE {table} (id BIGINT GENERATED BY DEFAULT AS IDENTITY"
            " (START WITH 3 INCREMENT BY 4), x INT) USING delta"
        )
        delta_spark.sql(f"INSERT INTO {table} VALUES (50, 1), (9, 2)")
        run(f"ALTER TABLE {table} ALTER COLUMN id SYNC IDENTITY")
        delta_spark.sql(f"INSERT INTO {table} (x) VALUES (3)")
        log = vl.Table.open(tmp_path / name)
        marks.append([entry.info["operationParameters"] for entry in log.history()[1:2]])
        marks.append(sorted(row["id"] for row in log.scan("id").to_pylist()))
    assert marks[:2] == marks[2:]
    assert marks[1][-1] > 50
    with pytest.raises(InvalidSchema, match="no identity column"):
        lake.alter(tmp_path / "ours", "ALTER COLUMN x SYNC IDENTITY")


def test_a_tag_stands_for_the_number_of_its_version(spark: SparkSession, tmp_path: Path) -> None:
    lake = connect(spark)
    table = vl.Table.create(tmp_path / "t", "id INT")
    table.append([{"id": 1}])
    table.tag("one")
    table.append([{"id": 2}])
    lake.register("own.tagged", table.uri)
    for name in ("own.tagged", f"delta.`{table.uri}`", "given"):
        text = f"SELECT id FROM {name} VERSION AS OF 'one' x WHERE x.id > 0"
        tables = {"given": table.uri} if name == "given" else None
        assert lake.sql(text, tables=tables).collect() == [(1,)]
        assert lake.explain(text, tables=tables).tables[0].version == 1
    for frame in (lake.table("own.tagged", "one"), lake.read("own.tagged", "one")):
        assert frame.collect() == [(1,)]
    copy = tmp_path / "copy"
    lake.sql(f"CREATE TABLE delta.`{copy}` SHALLOW CLONE own.tagged VERSION AS OF 'one'")
    assert vl.Table.open(copy).scan().to_pylist() == [{"id": 1}]
    with pytest.raises(MissingSource, match="no version of the table has the name 'two'"):
        lake.sql("SELECT id FROM own.tagged VERSION AS OF 'two'")
    with pytest.raises(InvalidValue, match="cannot be the name of a version"):
        lake.table("own.tagged", "1")
    lake.sql("RESTORE TABLE own.tagged TO VERSION AS OF 'one'")
    assert table.refresh().scan().to_pylist() == [{"id": 1}]
