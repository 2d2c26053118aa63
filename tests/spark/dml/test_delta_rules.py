"""Statements that change rows, by Delta Spark's rules: it gave what is expected here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import variantlake as vl
from variantlake.errors import (
    DuplicateKey,
    InvalidQuery,
    InvalidValue,
    UnsupportedFeature,
    VariantLakeError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

ROWS = [(1, 10, "a"), (2, 20, "b"), (3, 30, "c")]
TWICE = "(SELECT * FROM VALUES (1, 100, 'x'), (1, 101, 'y'), (9, 900, 'z') AS q(id, n, v)) AS s"
ONCE = "(SELECT * FROM VALUES (1, 100, 'x'), (9, 900, 'z') AS q(id, n, v)) AS s"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> vl.spark.Lake:
    """A lake that calls a table of three rows `db.t` and, in Spark's catalog, `rules`."""
    lake = vl.spark.connect(spark)
    table = vl.Table.create(
        tmp_path, "id INT, n INT, v STRING", properties={"delta.enableDeletionVectors": "true"}
    )
    lake.append(table.uri, spark.createDataFrame(ROWS, "id INT, n INT, v STRING"))
    lake.register("db.t", table.uri)
    return lake


def rows(lake: vl.spark.Lake) -> list[tuple[int | None, int | None, str | None]]:
    found = lake.read("db.t").collect()
    return sorted((tuple(row) for row in found), key=lambda row: (row[0] is None, row))


@pytest.mark.parametrize(
    ("clauses", "counts"),
    [
        ("WHEN NOT MATCHED THEN INSERT *", (1, 0, 0, 1)),
        ("WHEN NOT MATCHED AND s.n > 1000 THEN INSERT *", (0, 0, 0, 0)),
        ("WHEN MATCHED THEN DELETE", (1, 0, 1, 0)),
        ("WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *", (2, 0, 1, 1)),
        ("WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE", (3, 0, 3, 0)),
        # A condition on the table alone decides which rows may be matched twice, if there are
        # no other kinds of clauses.
        ("WHEN MATCHED AND t.n > 15 AND s.v = 'x' THEN UPDATE SET n = s.n", (0, 0, 0, 0)),
        ("WHEN MATCHED AND s.v = 'x' THEN UPDATE SET n = s.n", None),
        ("WHEN MATCHED AND (t.n > 15 OR s.v = 'x') THEN DELETE", None),
        ("WHEN MATCHED AND t.n > 15 THEN DELETE WHEN NOT MATCHED THEN INSERT *", None),
        ("WHEN MATCHED AND s.v = 'no' THEN DELETE", None),
        ("WHEN NOT MATCHED BY SOURCE THEN DELETE", None),
        ("WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE", None),
    ],
)
def test_a_row_matched_twice(
    lake: vl.spark.Lake, clauses: str, counts: tuple[int, ...] | None
) -> None:
    text = f"MERGE INTO db.t USING {TWICE} ON t.id = s.id {clauses}"
    if counts is not None:
        assert tuple(lake.sql(text).collect()[0]) == counts
        return
    with pytest.raises(InvalidQuery, match="MULTIPLE_SOURCE_ROW"):
        lake.sql(text)
    assert rows(lake) == ROWS


def test_each_clause_of_a_merge_has_its_side(lake: vl.spark.Lake) -> None:
    merge = f"MERGE INTO db.t USING {ONCE} ON t.id = s.id "
    for clause in (
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, t.n)",
        "WHEN NOT MATCHED AND t.n > 1 THEN INSERT *",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = s.n",
        "WHEN NOT MATCHED BY SOURCE AND s.n > 1 THEN DELETE",
    ):
        with pytest.raises(InvalidQuery, match="UNRESOLVED_COLUMN"):
            lake.sql(merge + clause)
    with pytest.raises(InvalidQuery, match="AMBIGUOUS_REFERENCE"):
        lake.sql(f"{merge} WHEN MATCHED THEN UPDATE SET n = n + 1")
    lake.sql(
        f"""{merge} WHEN MATCHED THEN UPDATE SET v = concat(s.v, t.v)
        WHEN NOT MATCHED AND n > 3 THEN INSERT (id, n) VALUES (id, n)
        WHEN NOT MATCHED BY SOURCE AND n > 20 THEN UPDATE SET n = n + 1"""
    )
    assert rows(lake) == [(1, 10, "xa"), (2, 20, "b"), (3, 31, "c"), (9, 900, None)]


def test_names_with_their_schema(lake: vl.spark.Lake, spark: SparkSession) -> None:
    lake.sql("DELETE FROM db.t WHERE db.t.id + 0 = 2")
    lake.sql("UPDATE db.t SET db.t.n = db.t.n + 1 WHERE db.t.id = 3")
    assert rows(lake) == [(1, 10, "a"), (3, 31, "c")]
    lake.register("db.s", str(lake._session.written_to("db.t")))
    lake.sql(
        """MERGE INTO db.t USING db.s ON db.t.id = db.s.id + 2
        WHEN MATCHED THEN UPDATE SET db.t.v = db.s.v
        WHEN NOT MATCHED THEN INSERT (id, db.t.n) VALUES (db.s.id + 10, s.n)
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = db.t.n * 2"""
    )
    assert rows(lake) == [(1, 20, "a"), (3, 31, "a"), (13, 31, None)]
    location = lake._session.written_to("db.t")
    spark.sql(f"CREATE TABLE default.rules USING delta LOCATION '{location}'")
    try:
        lake.sql("DELETE FROM rules WHERE spark_catalog.default.rules.id = 13 AND rules.n < 99")
        lake.sql("UPDATE default.rules SET default.rules.n = DEFAULT WHERE rules.id = 3")
    finally:
        spark.sql("DROP TABLE default.rules")
    assert rows(lake) == [(1, 20, "a"), (3, None, "a")]


def test_what_gives_another_value_each_time_decides_nothing(lake: vl.spark.Lake) -> None:
    merge = f"MERGE INTO db.t USING {ONCE} ON t.id = s.id "
    for text in (
        "DELETE FROM db.t WHERE rand() > 2",
        "UPDATE db.t SET n = 1 WHERE uuid() = 'x'",
        "UPDATE db.t SET n = CAST(rand() AS INT)",
        f"{merge} AND rand() > 2 WHEN MATCHED THEN DELETE",
        f"{merge} WHEN MATCHED AND rand() > 2 THEN DELETE",
        f"{merge} WHEN NOT MATCHED AND rand() > 2 THEN INSERT *",
        f"{merge} WHEN NOT MATCHED BY SOURCE AND rand() > 2 THEN DELETE",
    ):
        with pytest.raises(InvalidQuery, match="NON_DETERMINISTIC"):
            lake.sql(text)
    for text in (
        "UPDATE db.t SET n = sum(n) OVER ()",
        f"{merge} WHEN MATCHED THEN UPDATE SET n = sum(s.n) OVER ()",
        f"{merge} WHEN NOT MATCHED THEN INSERT (n) VALUES (sum(s.n) OVER ())",
        "UPDATE db.t SET n = explode(array(1, 2))",
    ):
        with pytest.raises(InvalidQuery, match="UNSUPPORTED"):
            lake.sql(text)
    for text in (
        "UPDATE db.t SET v = to_json(struct(*))",
        "DELETE FROM db.t WHERE hash(t.*) = 5",
        f"{merge} WHEN NOT MATCHED THEN INSERT (v) VALUES (to_json(struct(*)))",
    ):
        with pytest.raises((UnsupportedFeature, InvalidQuery), match="star"):
            lake.sql(text)
    assert rows(lake) == ROWS
    lake.sql(f"{merge} WHEN MATCHED THEN UPDATE SET n = CAST(rand() AS INT)")
    assert rows(lake)[0] == (1, 0, "a")


def test_defaults_by_name(lake: vl.spark.Lake, tmp_path: Path, spark: SparkSession) -> None:
    name = f"delta.`{tmp_path / 'd'}`"
    spark.sql(
        f"""CREATE TABLE {name} (id INT, n INT DEFAULT 7, v STRING) USING delta
        TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"""
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 1, 'a'), (2, 2, 'b')")
    lake.sql(f"UPDATE {name} SET n = default, v = DEFAULT WHERE id = 1")
    with pytest.raises(VariantLakeError, match="DEFAULT"):
        lake.sql(f"UPDATE {name} SET n = DEFAULT + 1")
    lake.sql(
        f"""MERGE INTO {name} t USING {ONCE} ON t.id = s.id
        WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, DEFAULT)
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = DEFAULT"""
    )
    found = sorted(tuple(row) for row in lake.read(name).collect())
    assert found == [(1, 7, None), (2, 7, "b"), (9, 7, None)]


def test_a_broken_rule_shows_the_row(lake: vl.spark.Lake, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "k", "id INT, ts TIMESTAMP, event VARIANT")
    row = "1 AS id, TIMESTAMP'2020-01-01' AS ts, parse_json('{\"x\":1}') AS event"
    lake.append(table.uri, lake.sql(f"SELECT {row}"))
    lake.add_constraint(table.uri, "small", "variant_get(event, '$.x', 'int') < 5")
    shown = '{"event":{"x":7},"id":1,"ts":"2020-01-01T00:00:00.000Z"}'
    with pytest.raises(InvalidValue, match="'small'") as caught:
        lake.update(table.uri, {"event": vl.expr("variant_set(event, '$.x', 7)")})
    assert caught.value.message.endswith(shown)
    with pytest.raises(InvalidValue, match="'small'") as caught:
        lake.merge(
            table.uri,
            "(SELECT 1 AS id)",
            "t.id = s.id",
            "WHEN MATCHED THEN UPDATE SET event = variant_set(t.event, '$.x', 7)",
        )
    assert caught.value.message.endswith(shown)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_column_with_the_name_of_spark_for_places(
    spark: SparkSession, tmp_path: Path, vectors: str
) -> None:
    lake = vl.spark.connect(spark)
    properties = {"delta.enableDeletionVectors": vectors}
    table = vl.Table.create(tmp_path, "id INT, _metadata INT", properties=properties)
    lake.append(table.uri, spark.createDataFrame([(1, 10), (2, 20)], "id INT, _metadata INT"))
    name = f"delta.`{table.uri}`"
    texts = (
        f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"UPDATE {name} SET _metadata = _metadata + 1 WHERE id + 0 = 2",
        f"DELETE FROM {name} WHERE _metadata + 0 = 21",
    )
    if vectors == "false":  # Delta Spark copies files, for which it needs no such name
        for text in texts:
            assert lake.sql(text).collect()[0][0] == 1
        assert lake.read(table.uri).collect() == []
        return
    for text in texts:
        with pytest.raises(UnsupportedFeature, match="a column _metadata"):
            lake.sql(text)
    assert lake.read(table.uri).count() == 2


def test_what_a_function_raises_in_a_task(lake: vl.spark.Lake, tmp_path: Path) -> None:
    call = "variant_insert(t.event, '$.x', 1)"
    table = vl.Table.create(tmp_path / "k", "id INT, event VARIANT")
    lake.append(table.uri, lake.sql("SELECT 1 AS id, parse_json('{\"x\":1}') AS event"))
    target = f"delta.`{table.uri}` AS t"
    source = "(SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN"
    for text in (
        f"UPDATE {target} SET event = {call}",
        f"MERGE INTO {target} USING {source} UPDATE SET event = {call}",
    ):
        with pytest.raises(DuplicateKey) as caught:
            lake.sql(text)
        assert caught.value.message.startswith("at $['x']: the field 'x' is there")
        assert "\n" not in caught.value.message
        assert caught.value.hint
        assert caught.value.__suppress_context__
    assert table.refresh().version == 1
