"""Decode primitive values to Python, and encode them.

Spec: VariantEncoding, "Value Data for Primitive type", "Value Data for Short string" and
"Encoding types".
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, cast

from variantlake.errors import InvalidValue, MalformedVariant, UnknownVariantType
from variantlake.types import MAX_PRECISION, PRIMITIVES, VARIABLE, BasicType, Primitive

ScalarValue: TypeAlias = bool | int | float | Decimal | str | bytes | uuid.UUID | None
"""Python values of scalars, by primitive type:

null None; booleans bool; int8 to int64 int; float and double float; decimals Decimal with the
stored scale; date int (days since 1970-01-01); timestamps int (micros or nanos since the epoch, in
UTC or in no zone); time int (micros since midnight); binary bytes; string str; uuid UUID.
"""

MAX_SHORT_STRING = 63
"""The most bytes of a short string."""

DECIMAL_DIGITS = {Primitive.DECIMAL4: 9, Primitive.DECIMAL8: 18, Primitive.DECIMAL16: MAX_PRECISION}
"""The most digits of each decimal width (the spec's decimal table)."""

INTEGER_BITS = {Primitive.INT8: 8, Primitive.INT16: 16, Primitive.INT32: 32, Primitive.INT64: 64}


@dataclass(frozen=True, slots=True)
class Scalar:
    """One primitive value. Short strings and strings are both `Primitive.STRING`."""

    type: Primitive
    value: ScalarValue


NULL = Scalar(Primitive.NULL, None)
TRUE = Scalar(Primitive.TRUE, True)
FALSE = Scalar(Primitive.FALSE, False)


def integer(value: int) -> Scalar:
    """Make the scalar of an integer in the narrowest type that holds it, as Spark does.

    int8 to int64, then a decimal of scale 0. Raises InvalidValue beyond 38 digits.
    """
    for primitive, bits in INTEGER_BITS.items():
        if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return Scalar(primitive, value)
    if abs(value) >= 10**MAX_PRECISION:
        raise InvalidValue(f"integer has more than {MAX_PRECISION} digits")
    return exact_decimal(Decimal(value))


def exact_decimal(value: Decimal) -> Scalar:
    """Make the scalar of a decimal, with its scale, in the narrowest width that holds both.

    The scale counts because Spark refuses a decimal4 whose scale is above 9, though the spec allows
    it. A positive exponent becomes zeros. Raises InvalidValue for NaN, infinities and beyond 38
    digits.
    """
    unscaled, scale = decimal_parts(value)
    for primitive, digits in DECIMAL_DIGITS.items():
        if scale <= digits and abs(unscaled) < 10**digits:
            return Scalar(primitive, decimal_of(unscaled, scale))
    raise InvalidValue(f"decimal has more than {MAX_PRECISION} digits after its point")


def exact_parts(scalar: Scalar) -> tuple[int, int]:
    """Return the unscaled integer and the scale of an integer or decimal."""
    if isinstance(scalar.value, Decimal):
        return decimal_parts(scalar.value)
    return integer_of(scalar), 0


def integer_of(scalar: Scalar) -> int:
    """Return the value of a scalar that stores an integer, such as a date or a time."""
    return cast("int", scalar.value)


def decimal_parts(value: Decimal) -> tuple[int, int]:
    """Return the unscaled integer and the scale (>= 0, not limited here).

    Raises InvalidValue unless finite and of at most 38 digits.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidValue(f"{value} is not a finite decimal")
    # Check the number of digits before making an integer: 1E+999999999 must be cheap to refuse.
    if any(digits) and len(digits) + max(0, exponent) > MAX_PRECISION:
        raise InvalidValue(f"decimal has more than {MAX_PRECISION} digits")
    unscaled = int("".join(map(str, digits)) or "0")
    if unscaled and exponent > 0:
        unscaled *= 10**exponent
    return (-unscaled if sign else unscaled), max(0, -exponent)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Make a Decimal of exactly this scale, without rounding by a context."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def scalar_size(value: bytes, start: int, end: int) -> int:
    """Return the bytes of the primitive or short string at `start`, with its header.

    Reads nothing from `end` on, but does not check whether the value ends before it.

    Raises UnknownVariantType for a type id that this version does not know, MalformedVariant if
    the size itself ends too early.
    """
    header = value[start]
    if header & 0x03 == BasicType.SHORT_STRING:
        return 1 + (header >> 2)
    width = PRIMITIVES[primitive_type(value, start)].width
    if width != VARIABLE:
        return 1 + width
    if end - start < 5:
        raise MalformedVariant("value ends inside of its 4-byte size", offset=end)
    return 5 + int.from_bytes(value[start + 1 : start + 5], "little")


def primitive_type(value: bytes, start: int) -> Primitive:
    """Return the type of the primitive value at `start`. Raises UnknownVariantType."""
    type_id = value[start] >> 2
    if type_id >= len(PRIMITIVES):
        raise UnknownVariantType(
            f"primitive type id {type_id} is unknown",
            offset=start,
            hint="written by a later version of the specification? Its siblings can still be read",
        )
    return Primitive(type_id)


def decode_scalar(value: bytes, start: int, end: int) -> Scalar:
    """Decode the primitive or short string that fills `value[start:end]` exactly.

    Raises MalformedVariant, and UnknownVariantType for an unknown type id.
    """
    size = scalar_size(value, start, end)
    if size != end - start:
        raise MalformedVariant(f"value takes {size} bytes, but has {end - start}", offset=start)
    if value[start] & 0x03 == BasicType.SHORT_STRING:
        return Scalar(Primitive.STRING, decode_string(value, start + 1, end))
    decoder = _DECODERS.get(primitive_type(value, start), _decode_signed)
    return decoder(value, start, end)


def decode_string(data: bytes, start: int, end: int) -> str:
    """Decode UTF-8. Spec: "String values must be UTF-8 encoded". Raises MalformedVariant."""
    try:
        return data[start:end].decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedVariant(
            f"string is not UTF-8: {error.reason}", offset=start + error.start
        ) from None


def _decode_signed(value: bytes, start: int, end: int) -> Scalar:
    """Decode the types of _SIGNED: signed little-endian."""
    number = int.from_bytes(value[start + 1 : end], "little", signed=True)
    return Scalar(Primitive(value[start] >> 2), number)


def _decode_decimal(value: bytes, start: int, end: int) -> Scalar:
    """Decode one byte of scale in [0, 38], then the unscaled value; checks its digits."""
    primitive, scale = Primitive(value[start] >> 2), value[start + 1]
    if scale > MAX_PRECISION:
        raise MalformedVariant(
            f"decimal scale {scale} is outside of [0, {MAX_PRECISION}]", offset=start + 1
        )
    unscaled = int.from_bytes(value[start + 2 : end], "little", signed=True)
    if abs(unscaled) >= 10 ** DECIMAL_DIGITS[primitive]:
        raise MalformedVariant(
            f"{PRIMITIVES[primitive].name} holds more than {DECIMAL_DIGITS[primitive]} digits",
            offset=start + 2,
        )
    return Scalar(primitive, decimal_of(unscaled, scale))


_DECODERS: dict[Primitive, Callable[[bytes, int, int], Scalar]] = {
    Primitive.NULL: lambda _value, _start, _end: NULL,
    Primitive.TRUE: lambda _value, _start, _end: TRUE,
    Primitive.FALSE: lambda _value, _start, _end: FALSE,
    Primitive.DOUBLE: lambda value, start, _end: Scalar(
        Primitive.DOUBLE, struct.unpack_from("<d", value, start + 1)[0]
    ),
    Primitive.FLOAT: lambda value, start, _end: Scalar(
        Primitive.FLOAT, struct.unpack_from("<f", value, start + 1)[0]
    ),
    Primitive.DECIMAL4: _decode_decimal,
    Primitive.DECIMAL8: _decode_decimal,
    Primitive.DECIMAL16: _decode_decimal,
    Primitive.BINARY: lambda value, start, end: Scalar(Primitive.BINARY, value[start + 5 : end]),
    Primitive.STRING: lambda value, start, end: Scalar(
        Primitive.STRING, decode_string(value, start + 5, end)
    ),
    Primitive.UUID: lambda value, start, end: Scalar(
        Primitive.UUID, uuid.UUID(bytes=value[start + 1 : end])
    ),
}
_SIGNED = set(Primitive) - _DECODERS.keys()
"""Integers, dates, timestamps and times."""


def encode_scalar(scalar: Scalar) -> bytes:
    """Encode one primitive value; a string of up to 63 bytes becomes a short string.

    Raises InvalidValue when the Python value does not belong to the type or does not fit it.
    """
    data = scalar.value
    match scalar.type:
        case Primitive.NULL if data is None:
            body = b""
        case Primitive.TRUE | Primitive.FALSE if data is (scalar.type is Primitive.TRUE):
            body = b""
        case Primitive.STRING if isinstance(data, str):
            text = encode_string(data)
            if len(text) <= MAX_SHORT_STRING:
                return bytes([BasicType.SHORT_STRING | len(text) << 2]) + text
            body = _sized(text)
        case Primitive.BINARY if isinstance(data, bytes):
            body = _sized(data)
        case Primitive.UUID if isinstance(data, uuid.UUID):
            body = data.bytes
        case Primitive.DOUBLE if isinstance(data, float):
            body = struct.pack("<d", data)
        case Primitive.FLOAT if isinstance(data, float):
            body = _encode_float(data)
        case _ if scalar.type in DECIMAL_DIGITS and isinstance(data, Decimal):
            body = _encode_decimal(scalar.type, data)
        case _ if scalar.type in _SIGNED and isinstance(data, int) and not isinstance(data, bool):
            body = _encode_signed(scalar.type, data)
        case _:
            raise InvalidValue(
                f"{type(data).__name__} is not what {PRIMITIVES[scalar.type].name} holds"
            )
    return bytes([scalar.type << 2]) + body


def encode_string(text: str) -> bytes:
    """Encode UTF-8. Raises InvalidValue for a lone surrogate, which UTF-8 cannot encode."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"string holds a lone surrogate at character {error.start}, which UTF-8 cannot write"
        ) from None


def _sized(data: bytes) -> bytes:
    if len(data) >= 1 << 32:
        raise InvalidValue(f"{len(data)} bytes do not fit a 4-byte size")
    return len(data).to_bytes(4, "little") + data


def _encode_signed(primitive: Primitive, number: int) -> bytes:
    info = PRIMITIVES[primitive]
    try:
        return number.to_bytes(info.width, "little", signed=True)
    except OverflowError:
        raise InvalidValue(f"integer does not fit {info.name}") from None


def _encode_float(number: float) -> bytes:
    """Encode an IEEE single. Refuses a double that would be rounded."""
    try:
        body = struct.pack("<f", number)
    except OverflowError:
        body = b""
    if not body or (struct.unpack("<f", body)[0] != number and not math.isnan(number)):
        raise InvalidValue(f"{number!r} is not exactly a 4-byte float")
    return body


def _encode_decimal(primitive: Primitive, value: Decimal) -> bytes:
    unscaled, scale = decimal_parts(value)
    if scale > MAX_PRECISION or abs(unscaled) >= 10 ** DECIMAL_DIGITS[primitive]:
        raise InvalidValue(f"decimal {value} does not fit {PRIMITIVES[primitive].name}")
    width = PRIMITIVES[primitive].width - 1
    return bytes([scale]) + unscaled.to_bytes(width, "little", signed=True)
