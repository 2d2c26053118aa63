"""Convert Python values to a column's type, and refuse those that Arrow would change silently.

Arrow converts 3.5 to 3 in a column of integers, and the number 3 to a date.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.schema.table_schema import StructType, spark_name
from variantlake.errors import InvalidSchema, InvalidValue

_ARROW_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)

_MISSING = frozenset(("NaTType", "NAType"))
"""Types that stand for a missing value in rows of pandas: NULL in any column."""

_MAX_FLOAT = float(np.finfo(np.float32).max)


def array_of(
    name: str, values: Sequence[Any], start: int, type_: pa.DataType | None = None
) -> pa.Array[Any]:
    """The values of a column as an Arrow array. `start` is the row number of the first one.

    Raises InvalidValue, with the row, for a value of another type, and for one that the type cannot
    hold without loss.
    """
    kinds = set(map(type, values))
    if any(kind.__name__ in _MISSING for kind in kinds):
        values = [None if type(value).__name__ in _MISSING else value for value in values]
        kinds = set(map(type, values))
    try:
        array: pa.Array[Any] = pa.array(values, type_, from_pandas=False)
    except _ARROW_ERRORS:
        for number, value in enumerate(values):
            try:
                pa.array([value], type_)
            except _ARROW_ERRORS as error:
                raise _refused(name, value, start + number, type_, str(error)) from None
        raise InvalidValue(f"the values of {name!r} have no type in common", row=start) from None
    if type_ is not None and not kinds <= _harmless(type_):
        for number, value in enumerate(values):
            if why := loss(value, type_):
                raise _refused(name, value, start + number, type_, why)
    return array


def loss(value: Any, kind: pa.DataType) -> str:
    """What Arrow would lose of a value in a type that accepts it; empty if nothing."""
    if value is None:
        return ""
    if pa.types.is_nested(kind):
        return next(filter(None, (loss(*part) for part in _parts(value, kind))), "")
    if pa.types.is_integer(kind):
        return _loss_of_integer(value)
    if pa.types.is_date(kind):
        return _loss_of_date(value)
    if isinstance(kind, pa.TimestampType):
        return _loss_of_time(value, has_zone=kind.tz is not None)
    if pa.types.is_floating(kind) and isinstance(value, bool):
        return "it is a boolean"
    if pa.types.is_float32(kind) and math.isfinite(value) and abs(value) > _MAX_FLOAT:
        return "it is too large"
    return ""


def _harmless(kind: pa.DataType) -> frozenset[type]:
    """The Python types whose values an Arrow type holds without loss."""
    types, none = pa.types, type(None)
    if types.is_integer(kind):
        return frozenset((int, none))
    if types.is_float64(kind):
        return frozenset((float, int, none))
    if types.is_date(kind):
        return frozenset((dt.date, none))
    if isinstance(kind, pa.TimestampType) and kind.tz is not None:
        return frozenset((dt.datetime, none))
    if types.is_nested(kind) or types.is_float32(kind) or types.is_timestamp(kind):
        return frozenset((none,))
    return frozenset((none, str, bytes, bool, Decimal))


def _loss_of_integer(value: Any) -> str:
    if isinstance(value, np.datetime64 | np.timedelta64):
        return "it is a time"
    if isinstance(value, float | Decimal | np.floating) and value != int(value):
        return "it is not a whole number"
    return ""


def _loss_of_date(value: Any) -> str:
    if isinstance(value, dt.datetime):
        has_time = value.tzinfo is not None or value.time() != dt.time()
        return "its time of day would be lost" if has_time else ""
    is_date = type(value) is dt.date or isinstance(value, np.datetime64)
    return "" if is_date else "it is not a date"


def _loss_of_time(value: Any, *, has_zone: bool) -> str:
    if isinstance(value, np.datetime64):
        return ""
    if not isinstance(value, dt.datetime):
        return "it is not a time"
    if value.tzinfo is not None and not has_zone:
        return "its time zone would be lost"
    return "its nanoseconds would be lost" if getattr(value, "nanosecond", 0) else ""


def _parts(value: Any, kind: Any) -> Iterator[tuple[Any, pa.DataType]]:
    """The values within a nested value, each with its type."""
    if isinstance(kind, pa.StructType):
        if isinstance(value, Mapping):
            yield from ((value.get(field.name), field.type) for field in kind)
    elif isinstance(kind, pa.MapType):
        for key, each in value.items() if isinstance(value, Mapping) else value:
            yield key, kind.key_type
            yield each, kind.item_type
    else:
        yield from ((each, kind.value_type) for each in value)


def _refused(name: str, value: Any, row: int, kind: pa.DataType | None, why: str) -> InvalidValue:
    wanted = "" if kind is None else _sql_name(kind)
    hint = f"the column is {wanted}"
    if isinstance(value, str) and kind is not None and not pa.types.is_nested(kind):
        why, hint = "it is text", f"{hint}, and text is not converted"
    return InvalidValue(
        f"column {name!r} cannot hold {value!r:.80}: {why}", row=row, hint=hint if wanted else ""
    )


def _sql_name(kind: pa.DataType) -> str:
    """The type in DDL; empty for one that no table can have."""
    try:
        schema = StructType.from_arrow(pa.schema([pa.field("it", kind)]))
    except InvalidSchema:
        return ""
    name = spark_name(schema.fields[0].type)
    return name if "<" in name else name.upper()
