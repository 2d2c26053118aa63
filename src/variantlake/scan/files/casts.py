"""Spark's `variant_get` on columns and on Variants, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.encoding.scalar import Scalar, decode_scalar
from variantlake.encoding.value import basic_type
from variantlake.encoding.variant import Variant
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.arrays import Values
from variantlake.expressions.casts.values import cast_raw, cast_values
from variantlake.expressions.tree import Ref
from variantlake.expressions.typing import INT_LIMITS, spark_type
from variantlake.kernels.columns.decimals import round_decimals
from variantlake.kernels.json.doubles import UNDECIDED
from variantlake.planning.exact.exactness import IDENTITY, Conversion, ConversionKind
from variantlake.shredding.arrays import AnyArray, bytes_of, struct_of, valid_of
from variantlake.shredding.dictionary import value_at
from variantlake.shredding.fit import Raw, raw_array
from variantlake.shredding.layout import METADATA, VALUE, VARIANT_TYPE
from variantlake.types import KIND_OF, NULL_VALUE, BasicType, Kind, ShreddedType

_STRING = ShreddedType(Kind.STRING)


def requested_type(ref: Ref) -> ShreddedType:
    """The type that a path is read as. Raises UnsupportedFeature for one without a column form."""
    found = spark_type(ref.type)
    if found is None:
        raise UnsupportedFeature(f"the local engine does not read {ref}")
    return found


# --- From a physical column -----------------------------------------------------------------------


def convert(array: AnyArray, stored: ShreddedType, ref: Ref, conversion: Conversion) -> Values:
    """Convert a clean path's typed column to the requested type, by planning's conversion.

    A dictionary of strings stays one if nothing is converted.
    """
    requested = requested_type(ref)
    if isinstance(array, pa.DictionaryArray):
        if conversion == IDENTITY and array.type.value_type == requested.arrow:
            return Values(array)
        array = array.dictionary_decode()
    if conversion == IDENTITY:
        return Values(array if array.type == requested.arrow else array.cast(requested.arrow))
    if conversion.kind is ConversionKind.CAST and (direct := _direct(array, stored, requested)):
        return Values(direct)
    values = cast_values(array, stored, requested)
    failed = valid_of(array) & ~valid_of(values)
    return Values(values, failed if ref.strict and failed.any() else None)


def _direct(array: AnyArray, stored: ShreddedType, requested: ShreddedType) -> AnyArray | None:
    """Cast with Arrow if it casts all values that fit as Spark does; else return None."""
    integers = INT_LIMITS.keys()
    if stored.kind in integers and requested.kind in integers:
        return array.cast(requested.arrow)
    if stored.kind in integers and requested.kind in (Kind.DOUBLE, Kind.FLOAT):
        return array.cast(requested.arrow, safe=False)
    if stored.kind is Kind.DECIMAL and requested.kind is Kind.INT64:
        return array.cast(pa.int64(), safe=False)  # towards zero
    if stored.kind is Kind.DECIMAL and requested.kind is Kind.DOUBLE:
        return nearest_doubles(array)
    if (stored.kind, requested.kind) == (Kind.FLOAT, Kind.DOUBLE):
        return array.cast(pa.float64())
    return None


def nearest_doubles(array: AnyArray) -> AnyArray:
    """Convert decimals to the nearest doubles; Arrow's own cast may be off by one."""
    held: Any = array.buffers()[1]
    words = np.frombuffer(held or b"", np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))]
    bits = np.empty(len(array), np.int64)
    left = round_decimals(words, cast("Any", array.type).scale, bits)
    found = bits.view(np.float64)
    if left:
        unsure = bits == UNDECIDED
        by_text: Any = array.filter(arrow_array(unsure)).cast(pa.string()).cast(pa.float64())
        found[unsure] = by_text.to_numpy(zero_copy_only=False)
    doubles: pa.Array[Any] = arrow_array(found, mask=~valid_of(array) if array.null_count else None)
    return doubles


# --- From Variants --------------------------------------------------------------------------------


def extract(variants: AnyArray, ref: Ref) -> Values:
    """Read a path of Variants (struct<metadata, value>) as the requested type, row by row."""
    group = struct_of(variants)
    metadata, values = (bytes_of(group.field(name)) for name in (METADATA, VALUE))
    valid = group.is_valid().to_pylist()
    if ref.type == "variant":
        return Values(_subvariants(metadata, values, valid, ref))
    requested = requested_type(ref)
    known: dict[bytes, Raw | None] = {}
    raws: list[Raw | None] = []
    failed = np.zeros(len(group), np.bool_)
    for row, there in enumerate(valid):
        found = _at(metadata[row], values[row], ref) if there else None
        raw = None
        if found is not None and found != NULL_VALUE:
            raw = _cast_encoded(metadata[row], found, requested, ref, known)
            failed[row] = raw is None and ref.strict
        raws.append(raw)
    return Values(raw_array(raws, requested), failed if failed.any() else None)


def _at(metadata: bytes | None, value: bytes | None, ref: Ref) -> bytes | None:
    if value is None or ref.path is None:
        return value
    return value_at(metadata, value, ref.path)


def _subvariants(
    metadata: Sequence[bytes | None],
    values: Sequence[bytes | None],
    valid: Sequence[bool | None],
    ref: Ref,
) -> AnyArray:
    """The Variants at a path; NULL if the path is missing, a Variant null if that is its value."""
    found = [
        _at(keys, value, ref) if there else None
        for keys, value, there in zip(metadata, values, valid, strict=True)
    ]
    keys = arrow_array([key or b"" for key in metadata], pa.binary())
    parts = arrow_array([value or b"" for value in found], pa.binary())
    missing = arrow_array([value is None for value in found], pa.bool_())
    return pa.StructArray.from_arrays([keys, parts], fields=list(VARIANT_TYPE), mask=missing)


def _cast_encoded(
    metadata: bytes | None,
    encoded: bytes,
    requested: ShreddedType,
    ref: Ref,
    known: dict[bytes, Raw | None],
) -> Raw | None:
    """Cast one encoded value; None if Spark's cast fails. Equal scalars are cast once."""
    if basic_type(encoded) in (BasicType.OBJECT, BasicType.ARRAY):
        return Variant(metadata or b"", encoded).to_json() if requested == _STRING else None
    if encoded in known:
        return known[encoded]
    scalar = decode_scalar(encoded, 0, len(encoded))  # not a null
    try:
        raw = cast_raw(cast("Raw", scalar.value), _stored_type(scalar), requested)
    except UnsupportedFeature as error:
        error.path = str(ref)
        raise
    if len(known) < _REMEMBERED:
        known[encoded] = raw
    return raw


_REMEMBERED = 65_536
"""The most distinct values of a path in one batch whose casts are cached."""


def _stored_type(scalar: Scalar) -> ShreddedType:
    """The type that Spark sees: its Variant integers have no width."""
    kind = KIND_OF[scalar.type]
    if kind in INT_LIMITS:
        return ShreddedType(Kind.INT64)
    if kind is Kind.DECIMAL and isinstance(scalar.value, Decimal):
        digits, exponent = scalar.value.as_tuple().digits, scalar.value.as_tuple().exponent
        scale = -int(exponent)
        return ShreddedType(Kind.DECIMAL, max(len(digits), scale, 1), scale)
    return ShreddedType(kind)
