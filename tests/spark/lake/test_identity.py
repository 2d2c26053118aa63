"""Tables that are removed, made again and restored while a Lake lives: it answers what is there."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import variantlake as vl
from tests.delta.remade import Place
from variantlake.errors import VariantLakeError
from variantlake.spark.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


def numbers(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.collect())


def answers(spark: SparkSession, lake: Lake, place: Place) -> list[list[int]]:
    """What each way of reading gives."""
    table = place.location
    return [
        numbers(lake.sql(f"SELECT event:a::int FROM delta.`{table}` WHERE event:a::int >= 0")),
        numbers(lake.read(table).select("n")),
        numbers(lake.table(table).selectExpr("event:a::int")),
        numbers(spark.read.format("variantlake").load(table).select("n")),
    ]


def write(spark: SparkSession, lake: Lake, place: Place, way: str) -> None:
    """Rows of our own, which go on the table that is there."""
    new = place.fresh()
    rows = spark.range(new[0], new[-1] + 1).selectExpr(
        """parse_json('{"a":' || id || '}') AS event""", "CAST(id AS INT) AS n"
    )
    if way == "append":
        lake.append(place.location, rows)
        place.wrote(new)
    else:
        lake.overwrite(place.location, rows)
        place.versions.append(new)


@pytest.mark.parametrize("seed", range(2))
def test_a_lake_answers_what_is_there(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    vl.spark.register(spark)
    lake = vl.spark.connect(spark)
    place = Place(str(tmp_path / "t"), random.Random(seed))
    for _ in range(12):
        for _ in range(place.rng.choice([1, 1, 2])):
            match place.rng.choice(["remake", "remake", "append", "keep", "restore", "write"]):
                case "remake":
                    place.remake()
                case "append":
                    place.append()
                case "keep":
                    place.keep()
                case "restore":
                    place.restore()
                case "write":
                    write(spark, lake, place, place.rng.choice(["append", "overwrite"]))
        for found in answers(spark, lake, place):
            assert found == place.numbers


def test_documents_go_into_the_table_that_is_there(spark: SparkSession, tmp_path: Path) -> None:
    lake, table, source = vl.spark.connect(spark), str(tmp_path / "t"), tmp_path / "d.ndjson"
    source.write_text('{"a": 1}\n')
    for schema in ("event VARIANT", "n INT, event VARIANT", "event VARIANT, more STRING"):
        place = Place(table, random.Random(0))
        place._remove()
        with pytest.raises(VariantLakeError):
            lake.read(table)
        vl.Table.create(table, schema)
        lake.ingest(table, str(source))
        lake.ingest(table, str(source))
        assert numbers(lake.sql(f"SELECT event:a::int FROM delta.`{table}`")) == [1, 1]
        assert str(vl.Table.open(table).schema.to_arrow().names) == str(lake.read(table).columns)


def test_a_catalog_table_that_was_dropped_and_created(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    lake = vl.spark.connect(delta_spark)
    delta_spark.sql("CREATE DATABASE remade")
    try:
        for number, columns in enumerate(["event VARIANT", "n INT, event VARIANT"] * 2):
            delta_spark.sql(
                f"CREATE TABLE remade.t ({columns}) USING delta LOCATION '{tmp_path / 't'}'"
            )
            for value in range(number, number + 2):
                delta_spark.sql(
                    f"INSERT INTO remade.t (event) SELECT parse_json('{{\"a\": {value}}}')"
                )
            wanted = [number, number + 1]
            assert numbers(lake.sql("SELECT event:a::int FROM remade.t")) == wanted
            assert numbers(lake.sql(f"SELECT event:a::int FROM delta.`{tmp_path / 't'}`")) == wanted
            delta_spark.sql("DROP TABLE remade.t")
            Place(str(tmp_path / "t"), random.Random(0))._remove()
    finally:
        delta_spark.sql("DROP DATABASE remade CASCADE")
