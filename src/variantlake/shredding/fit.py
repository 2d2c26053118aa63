"""Decide which scalars fit a typed column, and convert them to and from its raw values.

A column stores raw values: an int for integers, dates (days), times (micros) and timestamps (in
their unit), a Decimal with the column's scale, bool, float, str, bytes, UUID. Strings from a file
are bytes until their row is read, because they may not be UTF-8.

Exact numbers fit by value, whatever their encoded width: in the specification, int8 1 and decimal16
1.00 are the same value. All other types must have the exact encoded type, so that a column of
micros never takes nanos.
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.encoding.scalar import (
    FALSE,
    INTEGER_BITS,
    TRUE,
    Scalar,
    decimal_of,
    decimal_parts,
    decode_string,
    exact_parts,
    integer,
)
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.layout import plain_type
from variantlake.shredding.values import AS_STORED, INTEGERS
from variantlake.types import PRIMITIVES, Family, Kind, Primitive, ShreddedType

Raw: TypeAlias = bool | int | float | Decimal | str | bytes | uuid.UUID


def fit(scalar: Scalar, column: ShreddedType) -> Raw | None:
    """Return the raw value of a scalar in `column`, None if it cannot hold it exactly."""
    if PRIMITIVES[scalar.type].family is not Family.EXACT_NUMERIC:
        return scalar.value if scalar.type in column.info.primitives else None
    unscaled, scale = exact_parts(scalar)
    if column.kind is Kind.DECIMAL:
        number = _rescaled(unscaled, scale, column.scale)
        if number is None or abs(number) >= 10**column.precision:
            return None
        return decimal_of(number, column.scale)
    bits = INTEGER_BITS.get(column.info.primitives[0])
    whole = _rescaled(unscaled, scale, 0)
    if bits is None or whole is None or not -(1 << bits - 1) <= whole < 1 << bits - 1:
        return None
    return whole


def _rescaled(unscaled: int, scale: int, wanted: int) -> int | None:
    """Return the unscaled integer of a number at another scale, None if there is none."""
    power: int = 10 ** abs(wanted - scale)
    if scale <= wanted:
        return unscaled * power
    quotient, rest = divmod(unscaled, power)
    return None if rest else quotient


def raw_array(raws: list[Raw | None], column: ShreddedType) -> AnyArray:
    """Make the Arrow array of a column; None is null."""
    if column.kind is Kind.UUID:
        storage = [raw.bytes if isinstance(raw, uuid.UUID) else None for raw in raws]
        return pa.ExtensionArray.from_storage(pa.uuid(), arrow_array(storage, pa.binary(16)))
    stored = _view_of(column.arrow)
    found: AnyArray = arrow_array(raws, column.arrow if stored is None else stored)
    return found if stored is None else found.view(column.arrow)


def raws_of(array: AnyArray) -> list[Raw | None]:
    """Return the raw values of an Arrow array of any type that a column may have; null is None."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        stored: list[bytes | None] = array.storage.to_pylist()
        return [None if raw is None else uuid.UUID(bytes=raw) for raw in stored]
    stored_as = _BYTES_OF.get(array.type) or _view_of(array.type)
    viewed: AnyArray = array if stored_as is None else array.view(stored_as)
    return viewed.to_pylist()


_BYTES_OF: dict[pa.DataType, pa.DataType] = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _view_of(arrow: pa.DataType) -> pa.DataType | None:
    """Return the integer type behind dates, times and timestamps; Python's types lose nanos."""
    if pa.types.is_date32(arrow):
        return pa.int32()
    if pa.types.is_time64(arrow) or pa.types.is_timestamp(arrow):
        return pa.int64()
    return None


def encoded_type(arrow: pa.DataType) -> Primitive:
    """Return the primitive in which the values of a column are encoded (TRUE for booleans).

    A decimal has the width of its precision, or that of the Arrow type if wider (a DECIMAL(9,4)
    stored in 8 bytes is a decimal8). Spec: VariantEncoding, decimal table.
    """
    arrow = plain_type(arrow)
    column = ShreddedType.from_arrow(arrow)
    if column.kind is not Kind.DECIMAL:
        return column.info.primitives[0]
    width = arrow.bit_width if pa.types.is_decimal64(arrow) else 32
    if column.precision <= 9 and width <= 32:
        return Primitive.DECIMAL4
    return Primitive.DECIMAL8 if column.precision <= 18 else Primitive.DECIMAL16


def scalar_of(raw: Raw, primitive: Primitive) -> Scalar:
    """Convert a raw value of a column to a scalar; `primitive` is its `encoded_type`.

    Raises MalformedVariant for a string that is not UTF-8.
    """
    if primitive is Primitive.TRUE:
        return TRUE if raw else FALSE
    if primitive is Primitive.STRING and isinstance(raw, bytes):
        return Scalar(primitive, decode_string(raw, 0, len(raw)))
    return Scalar(primitive, raw)


def number_of(raw: Raw, primitive: Primitive, form: int) -> Scalar:
    """Convert a raw value of a column with this form of numbers (`values.AS_STORED` and so on).

    A number without a fraction becomes an integer only if it fits 64 bits.
    """
    if form == AS_STORED or not isinstance(raw, Decimal):
        return scalar_of(raw, primitive)
    unscaled, scale = decimal_parts(raw)
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    if scale == 0 and -(1 << 63) <= unscaled < 1 << 63:
        return integer(unscaled)
    if form == INTEGERS and scale > 0:
        return scalar_of(raw, primitive)
    return Scalar(primitive, decimal_of(unscaled, scale))
