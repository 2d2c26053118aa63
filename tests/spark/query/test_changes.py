"""`lake.changes` and `Table.changes` against Delta Spark's own reader of the same log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, new_table
from variantlake.errors import InvalidQuery, InvalidValue, MissingSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


def rows(frame: DataFrame) -> list[str]:
    columns = [f"to_json({name})" if name == "event" else name for name in frame.columns]
    return sorted(map(repr, (tuple(row) for row in frame.selectExpr(*columns).collect())))


def local_rows(table: vl.Table, *versions: int) -> list[str]:
    found = []
    for row in table.changes(*versions).to_arrow().to_pylist():
        event = row["event"]
        row["event"] = event and vl.Variant(event["metadata"], event["value"]).to_json()
        row["_commit_timestamp"] = row["_commit_timestamp"].replace(tzinfo=None)
        found.append(tuple(row.values()))
    return sorted(map(repr, found))


def by_delta_spark(spark: SparkSession, location: str, first: int, last: int) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    return reader.option("startingVersion", first).option("endingVersion", last).load(location)


def same(spark: SparkSession, table: vl.Table, *versions: int) -> list[str]:
    theirs = by_delta_spark(spark, table.uri, versions[0], versions[1])
    ours = vl.spark.connect(spark).changes(table.uri, *versions)
    assert ours.columns == theirs.columns
    expected = rows(theirs)
    assert rows(ours) == expected
    assert local_rows(table, *versions) == expected
    return expected


def test_what_delta_spark_changed(spark: SparkSession, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    spark.sql(f"""CREATE TABLE {name} (id INT, day STRING, event VARIANT) USING delta
        PARTITIONED BY (day) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true',
        'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')""")
    spark.sql(f"""INSERT INTO {name} SELECT /*+ COALESCE(1) */ CAST(id AS INT),
        CAST(id % 2 AS STRING), parse_json(concat('{{"k":', id, '}}')) FROM range(20)""")
    spark.sql(f"DELETE FROM {name} WHERE id IN (3, 4)")
    spark.sql(f"""MERGE INTO {name} t USING (SELECT CAST(id AS INT) id FROM range(18, 22)) s
        ON t.id = s.id WHEN MATCHED THEN UPDATE SET event = parse_json('7')
        WHEN NOT MATCHED THEN INSERT (id, day, event) VALUES (s.id, '9', NULL)""")
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 1")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra INT")
    table = vl.Table.open(tmp_path / "t")
    assert len(same(spark, table, 0, table.version)) > 20
    same(spark, table, 2, 3)


def test_columns_that_are_found_by_their_ids(spark: SparkSession, tmp_path: Path) -> None:
    """Change files of Delta Spark's and of ours; `_change_type` has no id in them."""
    by_id = {**FEED, "delta.columnMapping.mode": "id"}
    table = new_table(tmp_path / "t", rows=6, properties=by_id)
    table.delete("id = 2")
    spark.sql(f"DELETE FROM delta.`{table.uri}` WHERE id = 3")
    assert len(same(spark, table.refresh(), 2, 3)) == 2
    found = vl.spark.connect(spark).changes(
        table.uri, 1, select="id", where="_change_type = 'delete'"
    )
    assert sorted(row["id"] for row in found.collect()) == [2, 3]


def test_what_we_changed(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=12, per_file=6, properties={**FEED, **VECTORS})
    table.delete("event:n::int IN (2, 3)")
    table.delete("id < 6")
    table = table.refresh()
    assert len(same(spark, table, 0, 3)) == 18
    assert len(same(spark, table, 2, 2)) == 2


def test_conditions_and_times(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=12, per_file=6, properties={**FEED, **VECTORS})
    table.delete("id = 7")
    lake = vl.spark.connect(spark)
    found = lake.changes(
        table.uri,
        starting_timestamp="2000-01-01",
        select=["event:n::int AS n", "_change_type AS kind"],
        where="event:n::int = 7",
    )
    assert sorted(tuple(row) for row in found.collect()) == [(7, "delete"), (7, "insert")]
    grouped = lake.changes(table.uri, 1).groupBy("_commit_version").count()
    assert sorted(tuple(row) for row in grouped.collect()) == [(1, 12), (2, 1)]
    with pytest.raises(MissingSource):
        lake.changes(table.uri, 9)
    with pytest.raises(InvalidQuery):
        lake.changes(table.uri, 0, where="nothing = 1")
    unknown: Any = "no time"
    with pytest.raises(InvalidValue, match="is not a time"):
        lake.changes(table.uri, starting_timestamp=unknown)
