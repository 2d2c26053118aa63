"""Dates and timestamps of Arrow columns as text, also in years that Python's own do not reach."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from variantlake.encoding.json_text import date_text, timestamp_text
from variantlake.shredding.arrays import map_array, members, offsets_of, struct_of
from variantlake.shredding.layout import is_list, is_struct

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def is_time(type_: pa.DataType) -> bool:
    """Whether a column holds dates or timestamps."""
    return pa.types.is_date32(type_) or pa.types.is_timestamp(type_)


def time_texts(column: Any) -> list[str | None]:
    """As Spark writes them: `2025-04-16 12:34:56.78`, `+10000-01-01`; `+00:00` marks a zone."""
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).to_pylist()
        return [None if day is None else date_text(day) for day in days]
    zone = None if column.type.tz is None else dt.UTC
    numbers = column.cast(pa.int64()).to_pylist()
    unit = _UNITS[column.type.unit]
    return [None if number is None else timestamp_text(number, unit, zone) for number in numbers]


def with_time_texts(array: Any) -> Any:
    """The same values with text for dates and timestamps, at every depth."""
    if is_time(array.type):
        return pa.array(time_texts(array), pa.string())
    if is_struct(array.type):
        children = [with_time_texts(child) for child in struct_of(array).flatten()]
        fields = [
            pa.field(item.name, child.type)
            for item, child in zip(members(array.type), children, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if is_list(array.type) and isinstance(array, pa.ListArray):
        offsets, elements = offsets_of(array)
        return pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), with_time_texts(elements), mask=array.is_null()
        )
    if isinstance(array, pa.MapArray):
        offsets, entries = offsets_of(array)
        parts = [with_time_texts(part) for part in struct_of(entries).flatten()]
        kind = pa.map_(parts[0].type, parts[1].type)
        return map_array(kind, offsets, parts, array.is_null())
    return array
