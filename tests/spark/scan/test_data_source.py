"""`spark.read.format("variantlake")`: the rows of `lake.read`, by a data source in Python."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import variantlake as vl
from tests.spark.layouts import changed, rows
from variantlake.delta.log.log_segment import commit_path
from variantlake.spark.lake import Lake, connect
from variantlake.spark.scan.source_options import SourceOptions
from variantlake.spark.streaming.registration import PUSHDOWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    vl.spark.register(spark)
    return connect(spark)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = vl.Table.create(
        tmp_path_factory.mktemp("source") / "t",
        "event VARIANT, k INT, at TIMESTAMP, l ARRAY<STRUCT<q: INT>>, day DATE, name STRING",
        partition_by=["day"],
    )
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    for version in range(2):
        numbers = range(10 * version, 10 * version + 10)
        made.append(
            pa.table(
                {
                    "event": [f'{{"id":{i},"kind":"k{i % 3}"}}' for i in numbers],
                    "k": pa.array(numbers, pa.int32()),
                    "at": [start + dt.timedelta(hours=i) for i in numbers],
                    "l": [[{"q": i}, None] if i % 2 else None for i in numbers],
                    "day": [None if i % 5 == 0 else dt.date(2026, 1, 1 + i % 5) for i in numbers],
                    "name": [f"n{i}" for i in numbers],
                }
            ),
            json_columns=["event"],
        )
    return str(made.snapshot.store.uri)


def load(spark: SparkSession, table: str, **options: Any) -> Any:
    return spark.read.format("variantlake").options(**options).load(table)


def test_it_gives_the_table(spark: SparkSession, lake: Lake, table: str) -> None:
    found = load(spark, table)
    assert found.schema == lake.read(table).schema
    assert rows(found) == rows(lake.read(table))
    assert found.selectExpr("sum(event:id::int)").collect()[0][0] == 190


def test_options(spark: SparkSession, lake: Lake, table: str) -> None:
    older = load(spark, table, version=1, columns="day, event")
    assert older.dtypes == [("day", "date"), ("event", "variant")]
    assert rows(older) == rows(lake.read(table, 1).select("day", "event"))
    last = vl.Table.open(table).history(1)[0].timestamp
    file = Path(table) / commit_path(2)
    os.utime(file, ns=(last * 10**6, last * 10**6))
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=last)
    assert load(spark, table, timestamp=moment.isoformat()).count() == 20
    later = (moment + dt.timedelta(milliseconds=1)).isoformat()
    with pytest.raises(Exception, match="is after the table's newest version"):
        load(spark, table, timestamp=later)


@pytest.mark.usefixtures("lake")
def test_time_travel_as_delta_spells_it(spark: SparkSession, table: str) -> None:
    for options in ({"versionAsOf": 1}, {"VERSIONASOF": "+1"}, {"VERSION": 1}):
        assert load(spark, table, **options).count() == 10
    assert load(spark, f"{table}@v1").count() == load(spark, f"{table}@V01").count() == 10
    assert spark.read.format("delta").option("versionAsOf", 1).load(table).count() == 10
    times = [entry.timestamp for entry in vl.Table.open(table).history()]
    newest = dt.datetime.fromtimestamp(times[0] / 1000, dt.UTC)
    os.utime(Path(table) / commit_path(2), ns=(times[0] * 10**6, times[0] * 10**6))
    for text in (newest.isoformat(), newest.strftime("%Y-%m-%d %H:%M:%S.%f")):
        assert load(spark, table, timestampAsOf=text).count() == 20
        delta = spark.read.format("delta").option("timestampAsOf", text)
        assert delta.load(table).count() == 20
    digits = newest.strftime("%Y%m%d%H%M%S%f")[:17]
    assert load(spark, f"{table}@{digits}").count() == 20


def test_the_session_has_a_time_zone() -> None:
    requested = SourceOptions.of({"path": "/t", "timestampAsOf": "2026-01-01"}, "Asia/Tokyo")
    assert requested.timestamp == 1767193200000
    assert SourceOptions.of({"path": "/t@20260101000000000"}, "Asia/Tokyo") == requested
    assert (
        SourceOptions.of({"path": "/t", "timestamp": "2025-12-31T15:00"}, "Asia/Tokyo") == requested
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": "nope"}, "no column 'nope'"),
        ({"version": "new"}, "'new' is not a version"),
        ({"versionAsOf": ""}, "'' is not a version"),
        ({"versionAsOf": -1}, "'-1' is not a version"),
        ({"versionAsOf": 0, "timestampAsOf": "2026-01-01"}, "given twice"),
        ({"version_as_of": 0}, "did you mean versionAsOf"),
        ({"nonsense": 0}, "no option 'nonsense'"),
        ({"timestamp": "soon"}, "'soon' is not a timestamp"),
    ],
)
def test_options_that_mean_nothing_get_a_sentence(
    spark: SparkSession, table: str, options: dict[str, str], said: str
) -> None:
    vl.spark.register(spark)
    with pytest.raises(PySparkException, match=said):
        load(spark, table, **options)


@pytest.mark.parametrize(
    "condition",
    [
        "k = 3",
        "k > 12 AND name LIKE 'n1%'",
        "k IN (1, 4, 17) OR k IS NULL",
        "day = '2026-01-03'",
        "day IS NULL",
        "at >= '2026-01-01T15:00:00Z'",
        "k <> 5 AND event:id::int < 8",
    ],
)
def test_pushed_filters_leave_the_rows_that_match(
    spark: SparkSession, lake: Lake, table: str, condition: str
) -> None:
    with changed(spark, {PUSHDOWN: "true"}):
        vl.spark.register(spark)
        found = rows(load(spark, table).where(condition))
    vl.spark.register(spark)
    assert found == rows(lake.read(table).where(condition))
    assert found
