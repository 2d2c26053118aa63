"""Primitive values: what they are in Python, and how their bytes are read and written.

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
"""Bytes of the longest string that fits a short string's header."""

DECIMAL_DIGITS = {Primitive.DECIMAL4: 9, Primitive.DECIMAL8: 18, Primitive.DECIMAL16: MAX_PRECISION}
"""Digits that each decimal width may hold (the spec's decimal table)."""

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
    """An exact integer in the narrowest type that holds it, as Spark writes one.

    int8 to int64, then a decimal of scale 0. Raises InvalidValue beyond 38 digits.
    """
    for primitive, bits in INTEGER_BITS.items():
        if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return Scalar(primitive, value)
    if abs(value) >= 10**MAX_PRECISION:
        raise InvalidValue(f"integer has more than {MAX_PRECISION} digits")
    return exact_decimal(Decimal(value))


def exact_decimal(value: Decimal) -> Scalar:
    """A decimal with its scale kept, in the narrowest width whose digits hold value and scale.

    Spark refuses a decimal4 whose scale is above 9, though the spec allows it. A positive exponent
    is written out. Raises InvalidValue for NaN, infinities and what 38 digits cannot hold.
    """
    unscaled, scale = decimal_parts(value)
    for primitive, digits in DECIMAL_DIGITS.items():
        if scale <= digits and abs(unscaled) < 10**digits:
            return Scalar(primitive, decimal_of(unscaled, scale))
    raise InvalidValue(f"decimal has more than {MAX_PRECISION} digits after its point")


def exact_parts(scalar: Scalar) -> tuple[int, int]:
    """The unscaled integer and the scale of an exact number, integer or decimal."""
    if isinstance(scalar.value, Decimal):
        return decimal_parts(scalar.value)
    return integer_of(scalar), 0


def integer_of(scalar: Scalar) -> int:
    """The value of an integer, a date or a time: whatever a Variant holds as one."""
    return cast("int", scalar.value)


def decimal_parts(value: Decimal) -> tuple[int, int]:
    """The unscaled integer and the scale (>= 0, not limited here).

    Raises InvalidValue unless finite and of at most 38 digits.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidValue(f"{value} is not a finite decimal")
    # Decides by the number of digits before any integer is made of them: 1E+999999999 is cheap.
    if any(digits) and len(digits) + max(0, exponent) > MAX_PRECISION:
        raise InvalidValue(f"decimal has more than {MAX_PRECISION} digits")
    unscaled = int("".join(map(str, digits)) or "0")
    if unscaled and exponent > 0:
        unscaled *= 10**exponent
    return (-unscaled if sign else unscaled), max(0, -exponent)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """The Decimal of exactly this scale; no context rounds it."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def scalar_size(value: bytes, start: int, end: int) -> int:
    """Bytes of the primitive or short string at `start`, header included.

    `end` bounds what is read here; whether the value itself ends before it is not checked.

    Raises UnknownVariantType for a type id that this version does not know.
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
    """The type of the primitive value at `start`. Raises UnknownVariantType."""
    type_id = value[start] >> 2
    if type_id >= len(PRIMITIVES):
        raise UnknownVariantType(
            f"primitive type id {type_id} is unknown",
            offset=start,
            hint="written by a later version of the specification? Its siblings can still be read",
        )
    return Primitive(type_id)


def decode_scalar(value: bytes, start: int, end: int) -> Scalar:
    """The primitive or short string that fills `value[start:end]` exactly.

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
    """`data[start:end]` as UTF-8. Spec: "String values must be UTF-8 encoded"."""
    try:
        return data[start:end].decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedVariant(
            f"string is not UTF-8: {error.reason}", offset=start + error.start
        ) from None


def _decode_signed(value: bytes, start: int, end: int) -> Scalar:
    """The types of _SIGNED: signed little-endian."""
    number = int.from_bytes(value[start + 1 : end], "little", signed=True)
    return Scalar(Primitive(value[start] >> 2), number)


def _decode_decimal(value: bytes, start: int, end: int) -> Scalar:
    """One byte of scale in [0, 38], then the unscaled value, whose digits the width limits."""
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
    """The bytes of one primitive value; a string of up to 63 bytes becomes a short string.

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
    """UTF-8. Raises InvalidValue for a lone surrogate, which UTF-8 cannot write."""
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
    """IEEE single. A double that is not a single is refused, never rounded."""
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
