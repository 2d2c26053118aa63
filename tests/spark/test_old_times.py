"""INT96, Delta Spark's default, and the calendar before 1582: read as Spark reads them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from variantlake.spark import connect
from variantlake.spark.streaming.registration import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TIMES = (
    "0001-01-01 00:00:00",
    "1500-02-28 23:59:59.999999",
    "1582-10-04 12:00:00",
    "1582-10-15 00:00:00",
    "1899-12-31 00:00:00.000001",
    "2026-01-01 01:02:03.456789",
    "9999-12-31 23:59:59.999999",
)
COUNT = "count_if(t > TIMESTAMP '9000-01-01') AS late, count_if(t < TIMESTAMP '0100-01-01') AS soon"


def times_of(session: SparkSession, location: str) -> list[tuple[str, str]]:
    """Texts by Spark's own reader: Python has no zone for the year 1."""
    columns = "CAST(id AS INT), CAST(t AS STRING), CAST(d AS STRING)"
    rows = session.sql(f"SELECT {columns} FROM delta.`{location}` ORDER BY id").collect()
    return [(row[1], row[2]) for row in rows]


def made(session: SparkSession, path: Path, mode: str) -> str:
    settings = {
        "spark.sql.parquet.int96RebaseModeInWrite": mode,
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.outputTimestampType": "INT96",
    }
    before = {name: session.conf.get(name) for name in settings}
    values = ", ".join(
        f"({n}, TIMESTAMP '{text}', DATE '{text[:10]}', named_struct('t', TIMESTAMP '{text}'), "
        f"array(TIMESTAMP '{text}'), parse_json('{{\"n\": {n}}}'), TIMESTAMP_NTZ '{text}')"
        for n, text in enumerate(TIMES)
    )
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        session.sql(
            f"CREATE TABLE delta.`{path}` (id INT, t TIMESTAMP, d DATE, s STRUCT<t: TIMESTAMP>, "
            "l ARRAY<TIMESTAMP>, event VARIANT, ntz TIMESTAMP_NTZ) USING delta"
        )
        session.sql(f"INSERT INTO delta.`{path}` VALUES {values}")
    finally:
        for name, kept in before.items():
            session.conf.set(name, str(kept))
    return str(path)


@pytest.mark.parametrize("mode", ["CORRECTED", "LEGACY"])
def test_what_spark_wrote_is_read_as_spark_reads_it(
    delta_spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    location = made(delta_spark, tmp_path / "t", mode)
    files = list((tmp_path / "t").glob("*.parquet"))
    marked = [b"legacyINT96" in file.read_bytes() for file in files]
    assert any(marked) == (mode == "LEGACY")
    expected = [
        (dt.datetime.fromisoformat(t).replace(tzinfo=dt.UTC), dt.date.fromisoformat(d))
        for t, d in times_of(delta_spark, location)
    ]
    assert [t.replace(tzinfo=None).isoformat(" ") for t, _ in expected] == [*TIMES]
    rows_here = vl.Table.open(location).scan(["id", "t", "d", "s", "l", "ntz"]).to_arrow()
    found: list[Any] = rows_here.sort_by("id").to_pylist()
    assert [(row["t"], row["d"]) for row in found] == expected
    assert [row["s"]["t"] for row in found] == [row["l"][0] for row in found]
    assert [row["s"]["t"] for row in found] == [t for t, _ in expected]
    assert [row["ntz"].isoformat(" ") for row in found] == [*TIMES]
    lake = connect(delta_spark)
    late = f"SELECT {COUNT} FROM delta.`{location}` WHERE event:n::int >= 0"
    assert [tuple(row) for row in lake.sql(late).collect()] == [(1, 1)]
    register(delta_spark)
    frame = delta_spark.read.format("variantlake").load(location)
    rows = frame.selectExpr("CAST(t AS STRING)", "CAST(l[0] AS STRING)", "CAST(d AS STRING)")
    assert sorted((t, d) for t, _, d in rows.collect()) == times_of(delta_spark, location)
    # Statistics of such columns skip no row that is asked for.
    for query in ("t = TIMESTAMP '9999-12-31 23:59:59.999999'", "t < TIMESTAMP '0001-01-02'"):
        select = f"SELECT count(*) AS c FROM delta.`{location}` WHERE {query}"
        assert lake.sql(select).collect()[0].c == 1
        scan = vl.Table.open(location).scan(["id"], query)
        assert scan.to_arrow().num_rows == 1
