"""Read the `stats` text of an `add`, written by us or by any other writer.

Statistics that cannot be understood give no bound and no count, never an error, because reads stay
correct without them. Spec: PROTOCOL, "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from variantlake.delta.schema.table_schema import (
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.delta.stats.stats_writer import DAY_OF_EPOCH, EPOCH, Column
from variantlake.delta.stats.variant_bounds import plain_bounds
from variantlake.encoding.scalar import Scalar
from variantlake.parquet.stats.bounds import Bounds, Raw
from variantlake.parquet.stats.facts import UNKNOWN, ColumnFacts
from variantlake.paths import Path

INTEGERS = {"long": 64, "integer": 32, "short": 16, "byte": 8}
_MICROSECOND = timedelta(microseconds=1)
TRUNCATION = 1000
"""Microseconds that a maximum may have lost when its writer truncated it to milliseconds."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FileStats:
    """The statistics of a file. Columns go by physical paths; counts are -1 if unknown.

    `minimums` and `maximums` hold the bounds of Variant columns by path. `tight` is false if rows
    were deleted since: then bounds still enclose, but may not be exact, and null counts are known
    only if they are 0 or all rows.
    """

    num_records: int = UNKNOWN
    tight: bool = True
    columns: tuple[ColumnFacts, ...] = ()
    variant_nulls: Mapping[Column, int] = field(default_factory=dict)
    minimums: Mapping[Column, Mapping[Path, Scalar]] = field(default_factory=dict)
    maximums: Mapping[Column, Mapping[Path, Scalar]] = field(default_factory=dict)


class StatsReader:
    """Reads the statistics of one table's files. Bound to the table's schema."""

    def __init__(self, schema: StructType) -> None:
        leaves = list(schema.leaves(physical=True))
        self._columns = [
            (path, leaf.type, arrow_type(leaf.type), was_float(leaf))
            for path, leaf in leaves
            if not isinstance(leaf.type, VariantType)
        ]
        self._variants = schema.variant_columns(physical=True)
        # Only the slow parser keeps every digit of a decimal.
        self._decimals = any(str(leaf.type).startswith("decimal") for _, leaf in leaves)

    def read(self, text: str | None) -> FileStats:
        """Read the facts that a file's `stats` hold about the table's columns."""
        document = parse_stats(text, decimals=self._decimals)
        if document is None:
            return FileStats()
        records = _count(document.get("numRecords"))
        tight = document.get("tightBounds", True) is True
        lows, highs = document.get("minValues"), document.get("maxValues")

        def nulls_of(path: Column) -> int:
            count = _count(find_in(document.get("nullCount"), path))
            return count if tight or count in (0, records) else UNKNOWN

        columns = (
            _column(
                path,
                type_,
                arrow,
                nulls=nulls_of(path),
                low=find_in(lows, path),
                high=find_in(highs, path),
                tight=tight,
                widened=widened,
            )
            for path, type_, arrow, widened in self._columns
        )
        return FileStats(
            records,
            tight,
            tuple(column for column in columns if column is not None),
            {path: nulls_of(path) for path in self._variants},
            {path: plain_bounds(find_in(lows, path)) for path in self._variants},
            {path: plain_bounds(find_in(highs, path)) for path in self._variants},
        )


def parse_stats(text: str | None, *, decimals: bool) -> dict[str, Any] | None:
    """Parse a `stats` text; None if it is no JSON object. `decimals` keeps all digits, slowly."""
    if text is None:
        return None
    try:
        document = orjson.loads(text)
        if decimals:  # this parser alone would also accept lone surrogates and NaN
            document = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _column(
    path: Column,
    type_: DataType,
    arrow: pa.DataType,
    *,
    nulls: int,
    low: Any,
    high: Any,
    tight: bool,
    widened: bool,
) -> ColumnFacts | None:
    """Return the facts of an ordinary column; None if nothing is known about it."""
    minimum = maximum = None
    if isinstance(type_, PrimitiveType):
        minimum = bound_of(low, type_, up=False, widened=widened)
        maximum = bound_of(high, type_, up=True, widened=widened)
    if nulls == UNKNOWN and minimum is None and maximum is None:
        return None
    # Writers truncate timestamps and may truncate strings. Numbers and dates are exact while no
    # row is deleted.
    exact = tight and not widened and not isinstance(minimum, str) and not is_time(type_)
    return ColumnFacts(
        path,
        arrow,
        nulls,
        Bounds(minimum, maximum, exact and minimum is not None, exact and maximum is not None),
    )


def find_in(document: Any, path: Column) -> Any:
    """Return the value under nested keys; None if a key is missing."""
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**63 else UNKNOWN


def is_time(type_: object) -> bool:
    """Whether a column's type is a timestamp, whose statistics other writers truncate."""
    return isinstance(type_, PrimitiveType) and type_.name.startswith("timestamp")


def was_float(item: StructField) -> bool:
    """Whether old files of a DOUBLE column hold floats (type widening)."""
    changes = item.metadata.get("delta.typeChanges")
    return isinstance(changes, list) and any(
        isinstance(change, dict) and change.get("fromType") == "float" for change in changes
    )


def bound_of(value: Any, type_: PrimitiveType, *, up: bool, widened: bool = False) -> Raw | None:
    """Return a bound that encloses the column's values even if its writer rounded its own bound.

    `widened` is `was_float` of the column: the text may then mean a float or a double.
    """
    raw = raw_value(value, type_)
    if widened and isinstance(raw, float):
        raw = (max if up else min)(raw, as_float(raw))
    if isinstance(raw, float) and raw == 0:
        # Writers disagree on the sign of a zero bound if the column holds zeros of both signs.
        return 0.0 if up else -0.0
    if up and isinstance(raw, int) and is_time(type_):
        return raw + TRUNCATION
    return raw


def raw_value(value: Any, type_: PrimitiveType) -> Raw | None:
    """Convert a JSON value of the statistics to a raw one; None if it does not fit the type."""
    name = type_.name
    if isinstance(value, bool) or value is None:
        return None
    if name in INTEGERS:
        limit = 1 << (INTEGERS[name] - 1)
        return value if isinstance(value, int) and -limit <= value < limit else None
    if name == "decimal":
        return Decimal(value) if isinstance(value, (int, Decimal)) else None
    if name in ("float", "double"):
        # "NaN" and "Infinity" are strings and say nothing about the other values.
        number = float(value) if isinstance(value, (int, float, Decimal)) else None
        return as_float(number) if name == "float" and number is not None else number
    if not isinstance(value, str):
        return None
    if name == "string":
        return value
    try:
        if name == "date":
            return days_of(value)
        return micros_of(value, zoned=name == "timestamp") if is_time(type_) else None
    except (ValueError, OverflowError):
        return None


def as_float(number: float) -> float:
    """Round to single precision: writers write 1.1 for 1.10000002384185791015625."""
    try:
        single: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return single


def days_of(text: str) -> int:
    """Parse a date to days since the epoch. Raises ValueError."""
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text).toordinal() - DAY_OF_EPOCH


def micros_of(text: str, *, zoned: bool) -> int:
    """Parse a text to microseconds since the epoch.

    Raises ValueError if the text has a zone and `zoned` is false, or the reverse.
    """
    moment = datetime.fromisoformat(text)
    if zoned != (moment.tzinfo is not None):
        raise ValueError(text)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // _MICROSECOND
