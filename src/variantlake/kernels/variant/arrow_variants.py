"""Convert Arrow arrays of any type to arrays of Variants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from variantlake.encoding.variant import Variant
from variantlake.errors import VariantLakeError
from variantlake.shredding.arrays import struct_of, variants_of
from variantlake.shredding.layout import METADATA, VALUE, is_variant_type


def variant_column(values: Sequence[Variant | None]) -> pa.StructArray:
    """Return the Variants as an array of struct<metadata, value>."""
    return variants_of([None if each is None else (each.metadata, each.value) for each in values])


def as_variants(array: Any) -> pa.StructArray:
    """Return the values as struct<metadata, value>; Variants, at the top or nested, are kept.

    A null at the top becomes a SQL NULL, a nested one a Variant null. Python converts the values,
    each distinct scalar once. Raises InvalidValue, with the row, for what no Variant type holds.
    """
    if is_variant_type(array.type):
        return struct_of(array)
    if pa.types.is_null(array.type):
        return variant_column([None] * len(array))
    if not pa.types.is_nested(array.type) and not pa.types.is_dictionary(array.type):
        encoded = array.dictionary_encode()
        distinct = [_variant(each, row) for row, each in enumerate(encoded.dictionary)]
        if not distinct:
            return variant_column([None] * len(array))
        return variant_column(distinct).take(encoded.indices)
    return variant_column(
        [_variant(each, row) if each.is_valid else None for row, each in enumerate(array)]
    )


def _variant(scalar: Any, row: int) -> Variant:
    try:
        return Variant.of(_plain(scalar))
    except VariantLakeError as error:
        error.row = row
        raise


def _plain(scalar: Any) -> Any:
    """Return the scalar with each nested Variant as a `Variant`."""
    if not scalar.is_valid or not pa.types.is_nested(scalar.type):
        return scalar
    if is_variant_type(scalar.type):
        return Variant(scalar[METADATA].as_py(), scalar[VALUE].as_py())
    if pa.types.is_struct(scalar.type):
        return {field.name: _plain(scalar[i]) for i, field in enumerate(scalar.type)}
    if pa.types.is_map(scalar.type):
        entries = scalar.values
        keys = entries.field(0).to_pylist()
        return dict(zip(keys, map(_plain, entries.field(1)), strict=True))
    return [_plain(each) for each in scalar.values]
