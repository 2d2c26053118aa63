"""Format dates and timestamps of Arrow columns, also in years beyond Python's range."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from variantlake.encoding.json_text import date_text, timestamp_text
from variantlake.shredding.arrays import map_leaves

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def is_time(type_: pa.DataType) -> bool:
    """Whether a column holds dates or timestamps."""
    return pa.types.is_date32(type_) or pa.types.is_timestamp(type_)


def time_texts(column: Any) -> list[str | None]:
    """Times as Spark writes them: `2025-04-16 12:34:56.78`, `+10000-01-01`; a zone as `+00:00`."""
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).to_pylist()
        return [None if day is None else date_text(day) for day in days]
    zone = None if column.type.tz is None else dt.UTC
    numbers = column.cast(pa.int64()).to_pylist()
    unit = _UNITS[column.type.unit]
    return [None if number is None else timestamp_text(number, unit, zone) for number in numbers]


def with_time_texts(array: Any) -> Any:
    """The array with text in place of dates and timestamps, at any depth."""
    return map_leaves(
        array,
        lambda leaf: pa.array(time_texts(leaf), pa.string()) if is_time(leaf.type) else leaf,
    )
