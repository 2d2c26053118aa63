"""Convert Variants to and from an Arrow column of struct<metadata, value>."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue, VariantLakeError
from variantlake.kernels.variant.arrow_variants import variant_column
from variantlake.shredding.layout import is_variant_type


def variant_array(values: Iterable[object]) -> pa.StructArray:
    """Make a column for `write_table` with one row for each value.

    None becomes SQL NULL (the Variant null is `Variant.of(None)`); any other Python object that is
    not a Variant is converted by `Variant.of`.

    Returns:
        struct<metadata: binary not null, value: binary not null>, as in an unshredded Variant
        group (Parquet's VariantEncoding.md).

    Raises:
        VariantLakeError: As `Variant.of`, with the row, counted from 0: InvalidValue for an object
            that no Variant type can hold.
    """
    rows: list[Variant | None] = []
    for row, value in enumerate(values):
        try:
            rows.append(value if isinstance(value, Variant | None) else Variant.of(value))
        except VariantLakeError as error:
            error.row = row
            raise
    return variant_column(rows)


def variants(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[Variant | None]:
    """Return the rows of a column of struct<metadata, value>, such as `read_table` returns.

    None is SQL NULL. Raises InvalidValue for another column, MalformedVariant, with the row, for
    bytes that are not a Variant.
    """
    if not is_variant_type(column.type):
        raise InvalidValue(
            f"a column of {column.type} is not a struct<metadata: binary, value: binary>"
        )
    found: list[Variant | None] = []
    for row, parts in enumerate(column.to_pylist()):
        try:
            found.append(parts and Variant(parts["metadata"], parts["value"]))
        except VariantLakeError as error:
            error.row = row
            raise
    return found
