"""`Lake.create`, `append`, `overwrite` and `upsert` take what people have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


def events(table: vl.Table) -> list[tuple[Any, ...]]:
    rows = vl.Table.of(table).refresh().scan("id, event, day").to_pylist()
    shown = ((row["id"], json.dumps(row["event"]), row["day"]) for row in rows)
    return sorted(shown, key=str)


def new(path: Path, lake: vl.spark.Lake) -> vl.Table:
    table = lake.create(str(path), "id BIGINT, event VARIANT, day STRING", exist_ok=True)
    lake.append(
        table, [{"id": n, "event": {"n": n % 3, "who": f"u{n}"}, "day": "a"} for n in range(6)]
    )
    return table


def test_rows_of_python_go_into_a_table_that_is_there(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = new(tmp_path / "t", lake)
    assert lake.append(table, pa.table({"id": [7], "event": ['{"n": 1}']})).rows_written == 1
    assert events(table)[-1] == (7, '{"n": 1}', None)
    lake.overwrite(table, [{"id": 1, "event": None, "day": "b"}])
    assert events(table) == [(1, "null", "b")]
    with pytest.raises(vl.InvalidValue, match="shredding= is for a table that is made here"):
        lake.append(table, [{"id": 1}], shredding="n BIGINT")
    with pytest.raises(vl.NotADeltaTable):
        lake.append(str(tmp_path / "none"), [{"id": 1}])


def test_files_are_loaded_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    path, table = str(tmp_path / "a.jsonl"), str(tmp_path / "t")
    done = lake.append(table, path, shredding="n BIGINT", properties={"delta.appendOnly": "false"})
    assert (done.version, done.rows_written) == (0, 2)
    assert vl.Table.open(table).properties["variantlake.shredding.event"] == "n BIGINT"
    assert lake.append(table, [path], load_id="x").rows_written == 2
    assert lake.overwrite(table, vl.ndjson(path)).rows_written == 2
    vl.Table.open(table).scan().export(tmp_path / "rows.parquet")
    lake.append(table, str(tmp_path / "rows.parquet"))
    assert sorted(vl.Table.open(table).scan("event:n::int").to_arrow()[0].to_pylist(), key=str) == [
        *(1, 1, 2, 2)
    ]


@pytest.mark.parametrize("key", ["id", "event:who::string", ["id", "event:n::int"]])
def test_an_upsert_of_a_frame_is_that_of_its_rows(
    spark: SparkSession, tmp_path: Path, key: str | list[str]
) -> None:
    lake = vl.spark.connect(spark)
    rows: list[dict[str, Any]] = [
        {"id": 2, "event": {"n": 2, "who": "u4"}, "day": "x"},
        {"id": 4, "event": {"n": 7, "who": None}, "day": "y"},
        {"id": None, "event": {"n": 9, "who": "u9"}, "day": None},
    ]
    texts = [{**row, "event": json.dumps(row["event"])} for row in rows]
    frame = spark.createDataFrame(texts, "id BIGINT, event STRING, day STRING")
    one, other = new(tmp_path / "one", lake), new(tmp_path / "other", lake)
    done = lake.upsert(one, frame, key)
    here = lake.upsert(other, rows, key)
    assert (done.rows_updated, done.rows_inserted) == (here.rows_updated, here.rows_inserted)
    assert events(one) == events(other)
    dry = lake.upsert(one, frame, "id", json_columns="event", dry_run=True)
    assert dry.dry_run
    assert one.refresh().version == done.version


def test_an_upsert_refuses_what_is_not_clear(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = new(tmp_path / "t", lake)
    frame = spark.sql("SELECT 50 AS id, parse_json('{}') AS event, 'a' AS day FROM range(2)")
    for rows in (frame, [{"id": 50, "event": {}, "day": "a"}] * 2):
        with pytest.raises(vl.InvalidQuery, match="two rows of an upsert have the same key"):
            lake.upsert(table, rows, "id")
        with pytest.raises(vl.InvalidQuery, match="it is a Variant"):
            lake.upsert(table, rows, "event")
        with pytest.raises(vl.InvalidQuery, match="needs a key"):
            lake.upsert(table, rows, [])
    short = frame.select("id", "event").limit(1)
    with pytest.raises(vl.InvalidQuery, match="do not have the column 'day'"):
        lake.upsert(table, short, "id")
    assert lake.upsert(table, short, "id", merge_schema=True).rows_inserted == 1


def test_columns_by_other_names_in_the_files(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = new(tmp_path / "t", lake)
    table.rename_column("event", "what was said", enable_column_mapping=True)
    frame = spark.sql(
        "SELECT 3 AS id, parse_json('{\"who\": \"u2\"}') AS `what was said`, 'z' AS day"
    )
    done = lake.upsert(table, frame, "`what was said`:who::string")
    assert (done.rows_updated, done.rows_inserted) == (1, 0)


def test_verbs_of_a_table_are_named(spark: SparkSession) -> None:
    lake: Any = vl.spark.connect(spark)
    with pytest.raises(AttributeError, match=r"lake\.open\(table\)\.add_column has it"):
        lake.add_column("t", "x INT")
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        lake.frobnicate()
