"""Variants as an Arrow column of struct<metadata, value>, and the way back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue, VariantLakeError
from variantlake.kernels.variant.arrow_variants import variant_column
from variantlake.shredding.layout import is_variant_type


def variant_array(values: Iterable[object]) -> pa.StructArray:
    """The column that `write_table` takes: one row for each value.

    A Variant goes in as it is, None is SQL NULL (the Variant null is `Variant.of(None)`), any other
    Python object goes through `Variant.of`.

    Returns:
        struct<metadata: binary not null, value: binary not null>, as in an unshredded Variant
        group (Parquet's VariantEncoding.md).

    Raises:
        VariantLakeError: As `Variant.of`, with the row, which counts from 0: InvalidValue for an
            object that no Variant type holds.
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
    """The rows of a column of struct<metadata, value>, as `read_table` gives it; None is SQL NULL.

    Raises InvalidValue for another column, MalformedVariant, with the row, for bytes that are no
    Variant.
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
