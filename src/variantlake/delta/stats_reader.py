"""The `stats` text of an `add`, read: by us or by any other writer.

Unknown is the safe side everywhere: what cannot be understood gives no bound and no count, never an
error, because a table is no worse for statistics that nobody can use.
Spec: PROTOCOL, "Per-file Statistics".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson

from variantlake.delta.schema import PrimitiveType, StructType, VariantType, arrow_type
from variantlake.delta.stats import DAY_OF_EPOCH, EPOCH, Column
from variantlake.delta.variant_bounds import decode_bounds
from variantlake.encoding.scalar import Scalar
from variantlake.errors import VariantLakeError
from variantlake.parquet.bounds import Raw
from variantlake.parquet.facts import UNKNOWN, ColumnFacts
from variantlake.paths import Path

_INTEGERS = {"long": 64, "integer": 32, "short": 16, "byte": 8}
_MICROSECOND = timedelta(microseconds=1)
_TRUNCATION = 1000
"""Microseconds that a maximum may have lost when it was cut to milliseconds."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class FileStats:
    """What `stats` says. Columns go by physical paths; counts are -1 where unknown.

    `minimums` and `maximums` hold the bounds of Variant columns, path by path. `tight` is false
    where rows were deleted since: bounds still enclose, counts inform only when they are 0 or all.
    """

    num_records: int = UNKNOWN
    tight: bool = True
    columns: tuple[ColumnFacts, ...] = ()
    variant_nulls: Mapping[Column, int] = field(default_factory=dict)
    minimums: Mapping[Column, Mapping[Path, Scalar]] = field(default_factory=dict)
    maximums: Mapping[Column, Mapping[Path, Scalar]] = field(default_factory=dict)


NO_STATS = FileStats()


def read_stats(text: str | None, schema: StructType) -> FileStats:
    """What a file's `stats` say about the columns of `schema`."""
    document = _parse(text, schema)
    if document is None:
        return NO_STATS
    records = _count(document.get("numRecords"))
    tight = document.get("tightBounds", True) is True
    lows, highs, nulls = (document.get(name) for name in ("minValues", "maxValues", "nullCount"))
    columns: list[ColumnFacts] = []
    variant_nulls: dict[Column, int] = {}
    minimums: dict[Column, Mapping[Path, Scalar]] = {}
    maximums: dict[Column, Mapping[Path, Scalar]] = {}
    for path, leaf in schema.leaves(physical=True):
        count = _count(_find(nulls, path))
        if not tight and count not in (0, records):
            count = UNKNOWN
        if isinstance(leaf.type, VariantType):
            variant_nulls[path] = count
            minimums[path] = _variant_bounds(_find(lows, path))
            maximums[path] = _variant_bounds(_find(highs, path))
            continue
        low = high = None
        if isinstance(leaf.type, PrimitiveType):
            low = _raw(_find(lows, path), leaf.type, up=False)
            high = _raw(_find(highs, path), leaf.type, up=True)
        if count != UNKNOWN or low is not None or high is not None:
            # Strings may be cut, times are: only numbers and dates are what they are, and only
            # while no row was deleted.
            exact = tight and not isinstance(low, str) and not _is_time(leaf.type)
            columns.append(
                ColumnFacts(
                    path,
                    arrow_type(leaf.type),
                    count,
                    low,
                    high,
                    minimum_exact=exact and low is not None,
                    maximum_exact=exact and high is not None,
                )
            )
    return FileStats(records, tight, tuple(columns), variant_nulls, minimums, maximums)


def _parse(text: str | None, schema: StructType) -> dict[str, Any] | None:
    if text is None:
        return None
    decimals = any(str(leaf.type).startswith("decimal") for _, leaf in schema.leaves())
    try:
        # Only the slow parser keeps every digit of a decimal.
        document = json.loads(text, parse_float=Decimal) if decimals else orjson.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _find(document: Any, path: Column) -> Any:
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**63 else UNKNOWN


def _variant_bounds(text: Any) -> Mapping[Path, Scalar]:
    if not isinstance(text, str):
        return {}
    try:
        return decode_bounds(text)
    except VariantLakeError:
        return {}


def _is_time(type_: object) -> bool:
    return isinstance(type_, PrimitiveType) and type_.name.startswith("timestamp")


def _raw(value: Any, type_: PrimitiveType, *, up: bool) -> Raw | None:
    """A bound as stored, None where the JSON value does not belong to the type."""
    name = type_.name
    if isinstance(value, bool) or value is None:
        return None
    if name in _INTEGERS:
        limit = 1 << (_INTEGERS[name] - 1)
        return value if isinstance(value, int) and -limit <= value < limit else None
    if name == "decimal":
        return Decimal(value) if isinstance(value, (int, Decimal)) else None
    if name in ("float", "double"):
        # "NaN" and "Infinity" are strings, and tell nothing about the other values.
        if not isinstance(value, (int, float, Decimal)):
            return None
        # Writers do not agree about the sign of a zero that bounds zeros of both.
        return float(value) if value != 0 else (0.0 if up else -0.0)
    if not isinstance(value, str):
        return None
    if name == "string":
        return value
    try:
        if name == "date":
            is_date = _DATE.fullmatch(value)
            return date.fromisoformat(value).toordinal() - DAY_OF_EPOCH if is_date else None
        if _is_time(type_):
            return _micros(value, zoned=name == "timestamp") + (_TRUNCATION if up else 0)
    except (ValueError, OverflowError):
        return None
    return None


def _micros(text: str, *, zoned: bool) -> int:
    moment = datetime.fromisoformat(text)
    if zoned != (moment.tzinfo is not None):
        raise ValueError(text)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // _MICROSECOND
