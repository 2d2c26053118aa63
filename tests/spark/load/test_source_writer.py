"""`df.write.format("variantlake")` does what `lake.append` and `lake.overwrite` do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

import variantlake as vl
from variantlake.errors import InvalidQuery
from variantlake.spark.load.sink_options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXTS = [(n, n % 2, f'{{"n": {n}, "kind": "k{n % 3}"}}') for n in range(20)]


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    vl.spark.register(spark)


def frame_of(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, "id INT, part INT, event STRING").coalesce(2)


def save(frame: DataFrame, table: Path, mode: str = "append", **options: Any) -> None:
    writer = frame.write.format("variantlake").mode(mode)
    writer.options(**{"jsonColumns": "event", **options}).save(str(table))


def ids(table: Path) -> list[int]:
    rows = vl.Table.open(table).scan("id, event:n::int AS n").to_arrow().to_pylist()
    assert [row["id"] for row in rows] == [row["n"] for row in rows]
    return sorted(row["id"] for row in rows)


def test_rows_are_appended_in_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    save(frame_of(spark, TEXTS[:10]), table, partitionBy="part")
    save(frame_of(spark, TEXTS[10:]), table)
    found = vl.Table.open(table)
    assert found.version == 1
    assert ids(table) == list(range(20))
    assert found.snapshot.partition_columns == ("part",)
    assert found.scan(where="event:n::int > 100").explain().read_files == 0
    delta = spark.read.format("delta").load(str(table))
    assert delta.selectExpr("sum(event:n::int)").first()[0] == 190  # type: ignore[index]


def test_variants_are_written_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, TEXTS).selectExpr("id", "parse_json(event) AS event")
    frame.write.format("variantlake").mode("append").save(str(tmp_path / "t"))
    assert ids(tmp_path / "t") == list(range(20))


def test_an_overwrite_replaces_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    save(frame_of(spark, TEXTS), table, partitionBy="part")
    odd = [row for row in TEXTS[:4] if row[1]]
    save(frame_of(spark, odd), table, "overwrite", replaceWhere="part = 1")
    assert ids(table) == [*range(4), *range(4, 20, 2)]
    even = [row for row in TEXTS[:4] if not row[1]]
    save(frame_of(spark, even), table, "overwrite", partitionOverwriteMode="dynamic")
    assert ids(table) == [0, 1, 2, 3]
    save(frame_of(spark, TEXTS[7:9]), table, "overwrite")
    assert ids(table) == [7, 8]
    save(frame_of(spark, []), table, "overwrite")
    assert ids(table) == []
    assert vl.Table.open(table).version == 4


def test_a_load_of_one_name_is_done_once(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        save(frame_of(spark, TEXTS), tmp_path / "t", loadId="monday")
    assert ids(tmp_path / "t") == list(range(20))


def test_a_bad_row_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    save(frame_of(spark, TEXTS[:3]), table)
    files = sorted(path.name for path in table.rglob("*.parquet"))
    with pytest.raises(PySparkException, match="expected"):
        save(frame_of(spark, [*TEXTS[3:], (99, 1, "{bad")]), table)
    assert ids(table) == [0, 1, 2]
    assert sorted(path.name for path in table.rglob("*.parquet")) == files


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("append", {"replaceWhere": "part = 1"}, "for the mode overwrite"),
        ("overwrite", {"partitionOverwriteMode": "some"}, "partitionOverwriteMode is 'some'"),
        ("append", {"queryId": "q"}, "has no option 'queryid'"),
        ("errorifexists", {}, 'either the "Append"'),
    ],
)
def test_what_cannot_be_is_said(
    spark: SparkSession, tmp_path: Path, mode: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        save(frame_of(spark, TEXTS), tmp_path / "t", mode, **options)


def test_tables_of_the_catalog_are_refused_with_a_way_to_go(
    spark: SparkSession, tmp_path: Path
) -> None:
    save(frame_of(spark, TEXTS), tmp_path / "t")
    with pytest.raises(
        PySparkException, match=r"cannot be of the format[\s\S]*append\(path, frame"
    ):
        spark.sql(f"CREATE TABLE of_the_catalog USING variantlake LOCATION '{tmp_path / 't'}'")
    with pytest.raises(InvalidQuery, match=r"no table is named[\s\S]*append\(path, frame"):
        SinkOptions.of_batch({}, overwrite=False)


def test_a_table_with_constraints_is_left_to_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    save(frame_of(spark, TEXTS), tmp_path / "t")
    vl.spark.connect(spark).add_constraint(tmp_path / "t", "positive", "id >= 0")
    with pytest.raises(PySparkException, match=r"constraints[\s\S]*append\(path, frame\)"):
        save(frame_of(spark, TEXTS), tmp_path / "t")
