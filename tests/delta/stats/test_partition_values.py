"""Partition values: every type, and the texts that several writers have for one value."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

import variantlake as vl
from tests.delta.tables import add
from variantlake.delta.schema.table_schema import PrimitiveType, StructField
from variantlake.delta.stats.partition_values import partition_array, partition_key, partition_text
from variantlake.errors import UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = dt.datetime(2024, 1, 1, 10, 0, 0, 500000, tzinfo=dt.UTC)
MOMENT = UTC.replace(tzinfo=None)

TEXTS: list[tuple[str, str, Any]] = [
    ("string", "a/b=c %20:x?#é😀", "a/b=c %20:x?#é😀"),
    ("string", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
    ("long", "9223372036854775807", 2**63 - 1),
    ("byte", "-128", -128),
    ("float", "1.5", 1.5),
    ("double", "Infinity", math.inf),
    ("double", "-inf", -math.inf),
    ("double", "1.0E300", 1e300),
    ("decimal", "1.10", Decimal("1.100")),
    ("boolean", "true", True),
    ("boolean", "TRUE", True),
    ("boolean", "False", False),
    ("binary", "\x01é", b"\x01\xc3\xa9"),
    ("date", "0001-01-01", dt.date(1, 1, 1)),
    ("timestamp", "2024-01-01T10:00:00.500000Z", UTC),
    ("timestamp", "2024-01-01 10:00:00.5", UTC),
    ("timestamp", "2024-01-01 10:00:00.500000", UTC),
    ("timestamp_ntz", "2024-01-01 10:00:00.5", MOMENT),
]


def column(kind: str) -> StructField:
    decimal = kind == "decimal"
    return StructField("p", PrimitiveType(kind, 10, 3) if decimal else PrimitiveType(kind))


@pytest.mark.parametrize(("kind", "text", "value"), TEXTS)
def test_a_text_is_its_value(kind: str, text: str, value: Any) -> None:
    field = column(kind)
    assert partition_array(text, field).to_pylist() == [value]
    assert partition_array("", field).to_pylist() == [None]
    ours = partition_text(value, field)
    assert partition_array(ours, field).to_pylist() == [value]
    assert isinstance(field.type, PrimitiveType)
    assert partition_key(ours, field.type) == partition_key(text, field.type)


def test_texts_of_one_float_are_one_partition() -> None:
    kind = PrimitiveType("float")
    assert partition_key("0.1", kind) == partition_key("0.10000000149011612", kind)


def test_nan_is_one_partition() -> None:
    kind = PrimitiveType("double")
    assert partition_key("NaN", kind) == partition_key("nan", kind)
    assert math.isnan(partition_array("NaN", column("double"))[0].as_py())


@pytest.mark.parametrize(
    ("kind", "text"),
    [("byte", "128"), ("long", "1_0"), ("decimal", "12345678901"), ("date", "today"),
     ("boolean", "yes"), ("binary", "\\u00FF"), ("timestamp", "noon")],
)  # fmt: skip
def test_what_is_not_clearly_a_value_is_refused(kind: str, text: str) -> None:
    with pytest.raises(UnsupportedFeature, match="the partition value"):
        partition_array(text, column(kind))


def test_partitions_of_delta_rs(tmp_path: Path) -> None:
    """Timestamps without a zone, which delta-rs means in UTC; NaN; a string with a slash."""
    data = pa.table({
        "n": [1, 2],
        "ts": pa.array([UTC, None], pa.timestamp("us", "UTC")),
        "f": [math.nan, math.inf],
        "s": ["a/ü b", None],
    })  # fmt: skip
    deltalake.write_deltalake(tmp_path, data, partition_by=["ts", "f", "s"])
    found = vl.Table.open(tmp_path).scan().to_arrow().sort_by("n").to_pydict()
    assert (found["ts"], found["s"]) == ([UTC, None], ["a/ü b", None])
    assert math.isnan(found["f"][0])
    table = vl.Table.open(tmp_path)
    table.overwrite(data.slice(0, 0), where={"f": math.nan})
    assert vl.Table.open(tmp_path).scan("n").to_arrow()["n"].to_pylist() == [2]


@pytest.mark.spark
def test_two_texts_of_one_value_are_rows_of_two_files(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """Ours, and Delta Spark's: 1.50 and 1.5, times with three digits and with six."""
    table = vl.Table.create(tmp_path, "n INT, m TIMESTAMP_NTZ, d DOUBLE", partition_by=["m", "d"])
    rows = pa.table({"n": pa.array([1], pa.int32()), "m": [MOMENT], "d": [1.5]})
    table.append(rows)
    (ours,) = table.refresh().snapshot.add_files()
    (tmp_path / "again.parquet").write_bytes((tmp_path / ours.path).read_bytes())
    partition = {"m": "2024-01-01 10:00:00.5", "d": "1.50"}
    again = add("again.parquet", size=ours.size, partitionValues=partition)
    (tmp_path / "_delta_log" / f"{2:020d}.json").write_text(json.dumps(again), encoding="utf-8")
    lake = vl.spark.connect(delta_spark)
    assert delta_spark.read.format("delta").load(str(tmp_path)).count() == 2
    assert lake.read(tmp_path).count() == 2
    assert lake.sql(f"SELECT n FROM delta.`{tmp_path}` WHERE d = 1.5").count() == 2
    assert vl.Table.open(tmp_path).scan(where="d = 1.5").to_arrow().num_rows == 2
