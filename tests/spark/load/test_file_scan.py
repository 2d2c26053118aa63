"""DataFrames of Parquet files, whose rows our own tasks read: the same rows as Spark's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.errors import InvalidJson
from variantlake.ingest.encode.parquet_rows import (
    FileColumn,
    LeftToSpark,
    RowGroupRange,
    file_parts,
    part_rows,
)
from variantlake.shredding.arrays import AnyArray
from variantlake.spark.load.file_scan import FileScan, file_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (
    "text STRING, event VARIANT, b BINARY, flag BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, "
    "i8 BIGINT, f FLOAT, d DOUBLE, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ"
)
ROWS = """
    SELECT IF(id % 7 = 0, NULL, concat('{"a": ', id, ', "t": "x', id % 3, '"}')) AS text,
      IF(id % 5 = 0, NULL, parse_json(concat('{"n": ', id, '}'))) AS event,
      cast(cast(id AS string) AS binary) AS b, id % 2 = 0 AS flag, cast(id % 100 AS tinyint) AS i1,
      cast(id AS smallint) AS i2, cast(-id AS int) AS i4, id * 5000000000 AS i8,
      cast(id / 3 AS float) AS f, id / 7 AS d, date_add(DATE '1500-01-01', cast(id AS int)) AS day,
      timestamp_micros(-60000000000123456 + id) AS at, TIMESTAMP_NTZ '0800-01-01 00:00:01' AS local
    FROM range(0, 300, 1, 3)"""


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("scan") / "a b%20c"
    spark.sql(ROWS).write.parquet(str(path))
    return str(path)


def scan_of(spark: SparkSession, frame: DataFrame) -> FileScan:
    found = file_scan(spark, frame)
    assert found is not None
    return found


def test_rows_are_those_that_spark_reads(spark: SparkSession, folder: str, tmp_path: Path) -> None:
    frame = spark.read.parquet(folder).withColumnRenamed("text", "other").alias("x")
    frame = frame.select("other", "event", *frame.columns[2:])
    scan = scan_of(spark, frame)
    assert {each.stored for each in scan.columns} == set(spark.read.parquet(folder).columns)
    tables = {name: tmp_path / name for name in ("ours", "sparks")}
    for name, given in (("ours", frame), ("sparks", frame.where("i8 >= 0"))):
        vl.Table.create(tables[name], COLUMNS.replace("text STRING", "other VARIANT"))
        vl.spark.connect(spark).append(tables[name], given, json_columns=["other"])
    assert file_scan(spark, frame.where("i8 >= 0")) is None
    key = ["to_json(other) AS j", "to_json(event) AS e", *frame.columns[2:]]
    ours, theirs = (
        spark.read.format("delta").load(str(table)).selectExpr(*key).orderBy("i8").collect()
        for table in tables.values()
    )
    assert ours == theirs
    assert len(ours) == 300


OTHERS: dict[str, Callable[[DataFrame, str], DataFrame]] = {
    "filtered": lambda frame, _: frame.where("flag"),
    "computed": lambda frame, _: frame.selectExpr("upper(text) AS text"),
    "of another type": lambda frame, _: frame.selectExpr("cast(i4 AS bigint) AS i4"),
    "limited": lambda frame, _: frame.limit(3),
    "of two": lambda frame, _: frame.union(frame),
    "file's name": lambda frame, _: frame.selectExpr("_metadata.file_name AS text"),
    "cached": lambda frame, _: frame.select("i8", "text").cache(),
    "with options": lambda frame, folder: frame.sparkSession.read.option(
        "mergeSchema", "true"
    ).parquet(folder),
    "of text": lambda frame, folder: frame.sparkSession.read.text(folder),
    "nested": lambda frame, _: frame.selectExpr("named_struct('a', i4) AS s"),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS.keys())
def test_other_frames_are_left_to_spark(
    spark: SparkSession, folder: str, change: Callable[[DataFrame, str], DataFrame]
) -> None:
    frame = change(spark.read.parquet(folder), folder)
    assert file_scan(spark, frame) is None
    frame.unpersist()


def test_partition_columns_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(
        str(tmp_path / "p")
    )
    assert file_scan(spark, spark.read.parquet(str(tmp_path / "p"))) is None


def write(path: Path, **columns: AnyArray) -> None:
    pq.write_table(pa.table(columns), path)


def test_files_of_other_columns_go_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    text = pa.array(['{"a": 1}'] * 3)
    write(tmp_path / "files" / "1.parquet", event=text, n=pa.array([1, 2, 3], pa.int64()))
    write(tmp_path / "files" / "2.parquet", event=text)
    frame = spark.read.schema("event STRING, n BIGINT").parquet(str(tmp_path / "files"))
    scan = scan_of(spark, frame)
    with pytest.raises(LeftToSpark, match="no column 'n'"):
        list(part_rows([part for group in scan.groups for part in group], scan.columns))
    vl.Table.create(tmp_path / "t", "event VARIANT, n BIGINT")
    result = vl.spark.connect(spark).append(tmp_path / "t", frame, json_columns=["event"])
    assert result.rows_written == 6
    found = vl.Table.open(tmp_path / "t").scan(select=["n"]).to_arrow().column("n").to_pylist()
    assert sorted(found, key=str) == [1, 2, 3, None, None, None]
    assert len(list((tmp_path / "t").glob("*.parquet"))) == result.files_written


def test_times_of_another_calendar_go_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", day=pa.array([-200_000], pa.date32()))
    scan = scan_of(spark, spark.read.parquet(str(tmp_path / "1.parquet")))
    with pytest.raises(LeftToSpark, match="calendar"):
        list(part_rows(scan.groups[0], scan.columns))


def test_bad_rows_are_told_with_their_row(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", event=pa.array(["1", "2", "{", "4"]))
    frame = spark.read.parquet(str(tmp_path / "1.parquet"))
    assert scan_of(spark, frame).groups
    vl.Table.create(tmp_path / "t", "event VARIANT")
    lake = vl.spark.connect(spark)
    with pytest.raises(InvalidJson) as caught:
        lake.append(tmp_path / "t", frame, json_columns=["event"])
    assert caught.value.row == 2
    result = lake.append(tmp_path / "t", frame, json_columns=["event"], mode="quarantine")
    assert (result.rows_written, result.rows_bad) == (3, 1)


def test_every_row_group_is_in_one_part(tmp_path: Path) -> None:
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"n": range(1000)}), path, row_group_size=70)
    (group,) = file_parts([(str(path), path.stat().st_size)], 4)
    assert [(part.start, part.end) for part in group] == [(0, path.stat().st_size)]
    scan_columns = [FileColumn("n", "n", "int64")]
    size = path.stat().st_size
    parts = [
        RowGroupRange(str(path), start, min(start + 900, size)) for start in range(0, size, 900)
    ]
    found = [list(part_rows([part], scan_columns)) for part in parts]
    assert sum(map(bool, found)) > 1
    numbers = [n for batches in found for batch in batches for n in batch.column(0).to_pylist()]
    assert sorted(map(str, numbers)) == sorted(map(str, range(1000)))


def test_parts_are_spread_over_the_cores() -> None:
    groups = file_parts([("a", 300 << 20), ("b", 10 << 20), ("c", 1 << 20)], 2)
    sizes = [[part.end - part.start for part in group] for group in groups]
    assert sizes == [[128 << 20], [128 << 20], [44 << 20, 10 << 20, 1 << 20]]
    assert file_parts([("a", 1), ("b", 1)], 1) == (
        (RowGroupRange("a", 0, 1), RowGroupRange("b", 0, 1)),
    )
    assert file_parts([("a", 1), ("b", 1)], 2) == (
        (RowGroupRange("a", 0, 1),),
        (RowGroupRange("b", 0, 1),),
    )
    assert file_parts([], 2) == ()
