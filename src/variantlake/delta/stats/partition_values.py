"""Write, read and compare partition values, which writers spell in different ways.

Spec: PROTOCOL, "Partition Value Serialization".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, arrow_type
from variantlake.delta.stats.stats_reader import as_float, days_of, micros_of, raw_value
from variantlake.errors import UnsupportedFeature
from variantlake.shredding.arrays import AnyArray


def partition_text(value: Any, field: StructField) -> str | None:
    """Return a partition column's value as text for the log; None for NULL and the empty string.

    Raises UnsupportedFeature for binary that is not UTF-8 text: Delta Spark would read other bytes.
    """
    match value:
        case None | "" | b"":
            return None  # the protocol has no empty partition values
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
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise UnsupportedFeature(
                    f"partition column {field.name!r} is binary, and {value!r} is not UTF-8 text",
                    hint="readers do not agree what such a partition value is in the log",
                ) from None
    return str(value)


def partition_constant(text: str | None, type_: PrimitiveType) -> Any:
    """Return the value of a partition text, raw as `partition_raw`; None for NULL.

    Takes a timestamp without a zone as UTC, as delta-rs writes it and as Delta Spark reads it in a
    UTC session. Binary is the UTF-8 encoding of the text, as in Delta Spark.

    Raises UnsupportedFeature for a text that is not clearly a value of the type.
    """
    if not text:
        return None
    if type_.name == "binary" and "\\u" not in text:  # delta-rs escapes bytes with \\u
        return text.encode()
    value = partition_raw(text, type_)
    if value is None and type_.name == "timestamp":
        value = partition_raw(f"{text}+00:00", type_)
    if value is None:
        raise UnsupportedFeature(
            f"the partition value {text!r} is not clearly a {type_}", hint="read it with Spark"
        )
    return value


def partition_array(text: str | None, field: StructField) -> AnyArray:
    """Return the value of a partition column as an array of one row.

    Raises UnsupportedFeature for a text that is not clearly a value of the type.
    """
    if not isinstance(field.type, PrimitiveType):
        raise UnsupportedFeature(f"partition column {field.name!r} is {field.type}")
    raw = partition_constant(text, field.type)
    kind = field.type.name
    try:
        if kind == "date" or kind.startswith("timestamp"):
            stored: Any = arrow_array([raw], pa.int32() if kind == "date" else pa.int64())
            found: AnyArray = stored.cast(arrow_type(field.type))
        else:
            found = arrow_array([raw], arrow_type(field.type))
    except pa.ArrowException as error:
        raise UnsupportedFeature(
            f"the partition value {text!r} of {field.name!r} is beyond {field.type}: {error}"
        ) from None
    return found


def partition_raw(text: str | None, type_: PrimitiveType) -> Any:
    """Parse a partition text to a raw value: dates in days, timestamps in microseconds.

    Returns None for NULL and for a text that it does not understand.
    """
    parse = _PARSERS.get(type_.name)
    if parse is None or text is None or text == "":
        return None
    try:
        # Only Python accepts underscores and digits of other scripts in numbers.
        if type_.name != "string" and ("_" in text or not text.isascii()):
            return None
        value = parse(text)
    except (ValueError, ArithmeticError, KeyError):
        return None
    # An integer may be out of its type's range.
    return raw_value(value, type_) if parse is int else value


def partition_key(text: str | None, type_: PrimitiveType) -> Any:
    """Return a key that is equal for two texts exactly if they mean the same value."""
    try:
        raw = partition_constant(text, type_)
    except UnsupportedFeature:
        return text
    return "NaN" if isinstance(raw, float) and math.isnan(raw) else raw


_PARSERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "long": int,
    "integer": int,
    "short": int,
    "byte": int,
    "float": lambda text: as_float(float(text)),
    "double": float,
    "decimal": Decimal,
    # In any case, as Spark reads them; the protocol writes lower case.
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "date": days_of,
    # A text without a zone is in the writer's time zone, which the log does not record.
    "timestamp": lambda text: micros_of(text, zoned=True),
    "timestamp_ntz": lambda text: micros_of(f"{text}+00:00", zoned=True),
}
