"""Convert Arrow scalars to a Variant's scalars and back, with their exact types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from variantlake.encoding.scalar import (
    DECIMAL_DIGITS,
    FALSE,
    NULL,
    TRUE,
    Scalar,
    decimal_parts,
    exact_decimal,
    integer,
)
from variantlake.errors import InvalidValue
from variantlake.types import KIND_OF, Primitive, ShreddedType

ArrowScalar: TypeAlias = Any  # pa.Scalar: its subclasses have attributes that the base lacks

MICROS_OF_UNIT = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
"""The microseconds of each unit that is not finer, by its name in NumPy and Arrow."""

_MILLIS_OF_DAY = 86_400_000
_INTEGERS = {
    pa.int8(): Primitive.INT8,
    pa.int16(): Primitive.INT16,
    pa.int32(): Primitive.INT32,
    pa.int64(): Primitive.INT64,
}


def from_arrow(scalar: ArrowScalar) -> Scalar | dict[str, ArrowScalar] | list[ArrowScalar]:
    """Convert an Arrow scalar to a `Scalar`, or to a dict or list of further Arrow scalars.

    Signed integers keep their width, unsigned ones take the narrowest type that holds them.
    Timestamps and times coarser than micros become micros. Structs and maps become objects, lists
    arrays, and a null of any type the Variant null.

    Raises InvalidValue for types that no Variant type holds exactly (durations, intervals, times in
    nanoseconds, decimals beyond 38 digits), for map keys that are not strings, and for two fields
    with one name.
    """
    arrow = scalar.type
    if not scalar.is_valid:
        return NULL
    if pa.types.is_dictionary(arrow):
        return from_arrow(scalar.value)
    if pa.types.is_struct(arrow):
        names = [field.name for field in arrow]
        return _object(names, [scalar[i] for i in range(len(names))])
    if pa.types.is_map(arrow):
        return _object(scalar.values.field(0).to_pylist(), list(scalar.values.field(1)))
    if isinstance(scalar, pa.ListScalar):  # of any kind of list
        return list(scalar)
    return _primitive(arrow, scalar)


def _object(names: list[Any], children: list[ArrowScalar]) -> dict[str, ArrowScalar]:
    if not all(isinstance(name, str) for name in names):
        raise InvalidValue("keys of an object are strings", hint="cast the map's keys to string")
    if len(set(names)) != len(names):
        raise InvalidValue(f"an object has no two fields of one name: {names!r}")
    return dict(zip(names, children, strict=True))


def _primitive(arrow: pa.DataType, scalar: ArrowScalar) -> Scalar:
    if arrow in _INTEGERS:
        return Scalar(_INTEGERS[arrow], scalar.as_py())
    if pa.types.is_unsigned_integer(arrow):
        return integer(scalar.as_py())
    if pa.types.is_boolean(arrow):
        return TRUE if scalar.as_py() else FALSE
    if pa.types.is_decimal(arrow):
        return exact_decimal(scalar.as_py())
    if pa.types.is_float16(arrow) or pa.types.is_float32(arrow):
        return Scalar(Primitive.FLOAT, float(scalar.as_py()))
    if pa.types.is_date32(arrow):
        return Scalar(Primitive.DATE, scalar.value)
    if pa.types.is_date64(arrow) and scalar.value % _MILLIS_OF_DAY == 0:
        return Scalar(Primitive.DATE, scalar.value // _MILLIS_OF_DAY)
    if pa.types.is_timestamp(arrow):
        return _timestamp(arrow, scalar.value)
    if pa.types.is_time(arrow) and arrow.unit in MICROS_OF_UNIT:
        return Scalar(Primitive.TIME, scalar.value * MICROS_OF_UNIT[arrow.unit])
    for is_type, primitive in _SAME_IN_PYTHON:
        if is_type(arrow):
            return Scalar(primitive, scalar.as_py())
    raise InvalidValue(f"no Variant type holds Arrow's {arrow}")


_SAME_IN_PYTHON = (
    (pa.types.is_float64, Primitive.DOUBLE),
    (pa.types.is_string, Primitive.STRING),
    (pa.types.is_large_string, Primitive.STRING),
    (pa.types.is_string_view, Primitive.STRING),
    (pa.types.is_binary, Primitive.BINARY),
    (pa.types.is_large_binary, Primitive.BINARY),
    (pa.types.is_binary_view, Primitive.BINARY),
    (pa.types.is_fixed_size_binary, Primitive.BINARY),
    (lambda arrow: arrow == pa.uuid(), Primitive.UUID),
)


def _timestamp(arrow: pa.TimestampType[Any, Any], number: int) -> Scalar:
    """Convert a timestamp: with a zone it is adjusted to UTC, as Arrow stores it."""
    if arrow.unit == "ns":
        with_zone, without = Primitive.TIMESTAMP_NANOS, Primitive.TIMESTAMP_NTZ_NANOS
    else:
        with_zone, without = Primitive.TIMESTAMP, Primitive.TIMESTAMP_NTZ
        number *= MICROS_OF_UNIT[arrow.unit]
    return Scalar(without if arrow.tz is None else with_zone, number)


def to_arrow(scalar: Scalar) -> ArrowScalar:
    """Convert a primitive value to an Arrow scalar of the type that shredding uses.

    Decimals have the precision of their width (9, 18, 38); the Variant null is a null of type null.
    """
    if scalar.type is Primitive.NULL:
        return pa.scalar(None, pa.null())
    kind, value = KIND_OF[scalar.type], scalar.value
    if not isinstance(value, Decimal):
        return pa.scalar(value, ShreddedType(kind).arrow)
    _, scale = decimal_parts(value)
    precision = max(DECIMAL_DIGITS[scalar.type], scale)
    return pa.scalar(value, ShreddedType(kind, precision, scale).arrow)
