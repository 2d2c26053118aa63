"""Staged loads by Spark: written by its tasks, checked by its rules, published without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import variantlake as vl
from tests.spark.layouts import rows
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession) -> Lake:
    return connect(delta_spark)


@pytest.fixture
def table(tmp_path: Path, delta_spark: SparkSession) -> Path:
    """A table of Delta Spark whose rows pass a constraint and a generated column."""
    place = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE delta.`{place}` (n INT, twice INT GENERATED ALWAYS AS (n * 2),"
        " event VARIANT) USING delta"
    )
    delta_spark.sql(f"ALTER TABLE delta.`{place}` ADD CONSTRAINT small CHECK (n < 10)")
    return place


def _frame(spark: SparkSession, *numbers: int) -> DataFrame:
    frame = spark.createDataFrame([(n,) for n in numbers], "n INT")
    return frame.selectExpr("n", "parse_json(concat('{\"a\": ', n, '}')) AS event")


def test_rows_of_a_frame_are_seen_once_they_are_published(
    delta_spark: SparkSession, lake: Lake, table: Path
) -> None:
    query = f"SELECT n, twice, event:a::int AS a FROM delta.`{table}`"
    stage = lake.stage(table, _frame(delta_spark, 1, 2), load_id="monday")
    assert (stage.rows, lake.stages(table)) == (2, [stage])
    assert lake.sql(query).collect() == delta_spark.sql(query).collect() == []
    assert stage.check("twice = event:a::int * 2", "n > 0") == 2
    lake.append(table, _frame(delta_spark, 3))
    assert stage.publish().rows_written == 2
    wanted = [(1, 2, 1), (2, 4, 2), (3, 6, 3)]
    assert sorted(map(tuple, delta_spark.sql(query).collect())) == wanted
    assert rows(lake.sql(query)) == rows(delta_spark.sql(query))
    with pytest.raises(vl.InvalidValue, match="was published as version 3"):
        lake.stage(table, _frame(delta_spark, 5), load_id="monday")


def test_rows_that_break_a_constraint_are_not_staged(
    delta_spark: SparkSession, lake: Lake, table: Path
) -> None:
    with pytest.raises(vl.InvalidValue, match="small"):
        lake.stage(table, _frame(delta_spark, 1, 10))
    assert lake.stages(table) == []
    assert not list(table.rglob("*.parquet"))


def test_a_constraint_that_came_later_stops_the_load(
    delta_spark: SparkSession, lake: Lake, table: Path
) -> None:
    stage = lake.stage(table, _frame(delta_spark, 1, 2))
    delta_spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT smaller CHECK (n < 2)")
    with pytest.raises(vl.CommitConflict, match="the constraints of the table changed"):
        stage.publish()
    assert stage.drop() > 0


def test_documents_are_staged_by_tasks(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "rows.ndjson").write_text('{"a": 1}\n{"a": 2}\n')
    place = tmp_path / "t"
    with pytest.raises(vl.NotADeltaTable):
        lake.stage(place, vl.ndjson(tmp_path / "rows.ndjson"))
    vl.Table.create(place, "event VARIANT")
    stage = lake.stage(place, vl.ndjson(tmp_path / "rows.ndjson"))
    assert stage.scan("event:a::int AS a").to_pylist() == [{"a": 1}, {"a": 2}]
    stage.publish()
    assert lake.table(place).count() == 2


@pytest.mark.parametrize("options", [{"unique_by": "n"}, {"merge_schema": True}])
def test_what_only_a_commit_decides_is_refused(
    delta_spark: SparkSession, lake: Lake, table: Path, options: dict[str, object]
) -> None:
    with pytest.raises(vl.InvalidValue):
        lake.stage(table, _frame(delta_spark, 1), **options)  # type: ignore[arg-type]  # of both


def test_rows_of_python_and_files_are_staged_like_those_of_append(
    lake: Lake, tmp_path: Path
) -> None:
    table = vl.Table.create(tmp_path / "t", "n INT, event VARIANT")
    (tmp_path / "a.ndjson").write_text('{"a": 2}\n')
    lake.stage(table, [{"n": 1, "event": {"a": 1}}]).publish()
    lake.stage(table, tmp_path / "*.ndjson").publish()
    found = lake.sql(f"SELECT n, event:a::int AS a FROM delta.`{table.uri}` ORDER BY a").collect()
    assert list(map(tuple, found)) == [(1, 1), (None, 2)]
