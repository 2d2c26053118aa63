"""INT96, and dates and timestamps in the calendar before 1582."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.errors import LimitExceeded, MalformedFile, UnsupportedFeature, VariantLakeError
from variantlake.parquet.metadata.old_times import _moved
from variantlake.parquet.stats.facts import read_facts


def at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  # columns without a zone


FIRST, LAST = at(1, 1, 1), at(9999, 12, 31, 23, 59, 59, 999999)
MICROS = pa.timestamp("us")


def written(path: Path, table: pa.Table, **marks: str) -> Path:
    options: Any = {"use_deprecated_int96_timestamps": True, "store_schema": False}
    with pq.ParquetWriter(path, table.schema, compression="none", **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({f"org.apache.spark.{k}": v for k, v in marks.items()})
    return path


def test_the_first_and_last_day_are_read_as_they_are(tmp_path: Path) -> None:
    values = [FIRST, LAST, None, at(2026, 1, 1, 1, 2, 3, 4)]
    lists = [[LAST, None], None, [], [FIRST]]
    table = pa.table(
        {
            "t": pa.array(values, MICROS),
            "l": pa.array(lists, pa.list_(MICROS)),
            "s": pa.array([{"t": value} for value in values], pa.struct([("t", MICROS)])),
            "m": pa.array([[(1, LAST)], None, [], [(2, None)]], pa.map_(pa.int32(), MICROS)),
        }
    )
    found = vl.parquet.read_table(written(tmp_path / "f.parquet", table))
    assert found.to_pylist() == table.to_pylist()


def test_row_groups_and_batches_keep_their_places(tmp_path: Path) -> None:
    values = pa.array([at(1 + n, 1, 1) for n in range(100)], MICROS)
    path = tmp_path / "f.parquet"
    pq.write_table(
        pa.table({"n": range(100), "t": values}),
        path,
        use_deprecated_int96_timestamps=True,
        row_group_size=30,
    )
    batches = list(vl.parquet.iter_batches(path, 7, ["t"]))
    assert [value for batch in batches for value in batch["t"].to_pylist()] == values.to_pylist()


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("last_day", "error", "message"),
    [
        (2**31 - 1, LimitExceeded, "beyond the years of microseconds"),
        # What Spark's arithmetic makes of the year 290000, which microseconds hold.
        (2**32 - 105_862_232, MalformedFile, "negative Julian day"),
    ],
)
def test_a_day_that_microseconds_do_not_hold_is_an_error_with_its_row(
    tmp_path: Path, nested: bool, last_day: int, error: type[VariantLakeError], message: str
) -> None:
    times: Any = pa.array([at(2000, 1, 1)] * 20 + [at(2026, 1, 1)], MICROS)
    if nested:
        times = pa.ListArray.from_arrays(pa.array(range(22), pa.int32()), times)
    sink = io.BytesIO()
    options: Any = {"use_deprecated_int96_timestamps": True, "use_dictionary": False}
    pq.write_table(pa.table({"t": times}), sink, compression="none", row_group_size=8, **options)
    day = 2_440_588 + (dt.date(2026, 1, 1) - dt.date(1970, 1, 1)).days
    data = sink.getvalue().replace(day.to_bytes(4, "little"), last_day.to_bytes(4, "little"))
    path = tmp_path / "f.parquet"
    path.write_bytes(data)
    with pytest.raises(error, match=message) as caught:
        vl.parquet.read_table(path)
    assert (caught.value.file, caught.value.row) == (str(path), 20)


def test_no_bounds_are_taken_from_int96_or_the_older_calendar(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([FIRST, LAST], MICROS), "d": [FIRST.date(), LAST.date()]})
    facts = read_facts(written(tmp_path / "f.parquet", table))
    assert [column.bounds.minimum for column in facts.columns] == [None, -719_162]
    facts = read_facts(written(tmp_path / "g.parquet", table, version="2.4.8"))
    assert [column.bounds.minimum for column in facts.columns] == [None, None]


def test_older_days_have_the_dates_that_their_calendar_gives_them() -> None:
    # The last Julian day was 4 October 1582; Spark's own table has these differences.
    days = np.array([-141_428, -141_427, -719_164, -171_596, 0])
    assert (_moved(days) - days).tolist() == [-10, 0, 2, -9, 0]
    assert _moved(np.array([-171_596]))[0] == (dt.date(1500, 3, 1) - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize("marks", [{"version": "2.4.8"}, {"version": "4.2.0", "legacyINT96": ""}])
def test_files_of_the_older_calendar(tmp_path: Path, marks: dict[str, str]) -> None:
    times = pa.array([at(1582, 10, 14, 5), at(2000, 1, 1), None], MICROS)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), times)
    table = pa.table({"t": times, "l": lists})
    meant = [at(1582, 10, 4, 5), at(2000, 1, 1), None]
    path = written(tmp_path / "utc.parquet", table, timeZone="UTC", **marks)
    found = vl.parquet.read_table(path)
    assert found["t"].to_pylist() == meant
    assert found["l"].to_pylist() == [[value] for value in meant]
    path = written(tmp_path / "la.parquet", table, timeZone="America/Los_Angeles", **marks)
    with pytest.raises(UnsupportedFeature, match="America/Los_Angeles") as caught:
        vl.parquet.read_table(path)
    assert (caught.value.file, caught.value.row) == (str(path), 0)


def test_timestamps_without_a_zone_were_never_in_the_older_calendar(tmp_path: Path) -> None:
    path, day = tmp_path / "f.parquet", at(1500, 2, 28)
    table = pa.table({"t": pa.array([day], MICROS), "d": [day.date()]})
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        marks = {"version": "4.2.0", "legacyDateTime": "", "timeZone": "America/Los_Angeles"}
        writer.add_key_value_metadata({f"org.apache.spark.{k}": v for k, v in marks.items()})
    assert vl.parquet.read_table(path).to_pylist() == [{"t": day, "d": dt.date(1500, 2, 19)}]
    assert [column.bounds.minimum is None for column in read_facts(path).columns] == [False, True]
