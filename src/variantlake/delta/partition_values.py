"""Partition values: their text in the log, and comparing them however they were written.

Spec: PROTOCOL, "Partition Value Serialization".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from variantlake.delta.schema import PrimitiveType, StructField
from variantlake.delta.stats import DAY_OF_EPOCH, EPOCH
from variantlake.delta.stats_reader import raw_value
from variantlake.errors import UnsupportedFeature


def partition_text(value: Any, field: StructField) -> str | None:
    """A value of a partition column as the log writes it; None for NULL and the empty string.

    Raises UnsupportedFeature for binary.
    """
    match value:
        case None | "":
            return None  # the protocol has no empty string there
        case bool():
            return "true" if value else "false"
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds") + "Z"
        case datetime():
            return value.isoformat(" ", "microseconds")
        case date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case bytes():
            raise UnsupportedFeature(
                f"partition column {field.name!r} is binary, which cannot be written here",
                hint="append with Spark",
            )
    return str(value)


def partition_raw(text: str | None, type_: PrimitiveType) -> Any:
    """The value that a text stands for, raw: dates in days, timestamps in microseconds.

    None for NULL, and for a text that cannot be understood.
    """
    parse = _PARSERS.get(type_.name)
    if parse is None or text is None or text == "":
        return None
    try:
        value = parse(text)
    except (ValueError, ArithmeticError, KeyError):
        return None
    # An integer may be beyond its type.
    return raw_value(value, type_) if parse is int else value


def partition_key(text: str | None, type_: PrimitiveType) -> Any:
    """What two texts of one value have in common, and texts of different values do not."""
    raw = partition_raw(text, type_)
    return (text or None) if raw is None else raw


def _timestamp(text: str) -> int:
    """A timestamp with its zone; without one it is in the writer's zone, which nobody wrote."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _timestamp_ntz(text: str) -> int:
    return _timestamp(f"{text}+00:00")


_PARSERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "long": int,
    "integer": int,
    "short": int,
    "byte": int,
    "float": float,
    "double": float,
    "decimal": Decimal,
    "boolean": {"true": True, "false": False}.__getitem__,
    "date": lambda text: date.fromisoformat(text).toordinal() - DAY_OF_EPOCH,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
}
