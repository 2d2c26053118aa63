"""Variants as an Arrow column of struct<metadata, value>, and the way back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue, VariantLakeError
from variantlake.shredding.arrays import struct_of
from variantlake.shredding.layout import VARIANT_TYPE, is_variant_type


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
    rows: list[dict[str, bytes] | None] = []
    for row, value in enumerate(values):
        try:
            variant = value if isinstance(value, Variant | None) else Variant.of(value)
        except VariantLakeError as error:
            error.row = row
            raise
        rows.append(
            None if variant is None else {"metadata": variant.metadata, "value": variant.value}
        )
    return struct_of(pa.array(rows, VARIANT_TYPE))


def variants(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[Variant | None]:
    """The rows of a column of struct<metadata, value>, as `read_table` gives it; None is SQL NULL.

    Raises InvalidValue for another column, MalformedVariant for bytes that are no Variant.
    """
    if not is_variant_type(column.type):
        raise InvalidValue(
            f"a column of {column.type} is not a struct<metadata: binary, value: binary>"
        )
    rows: list[Any] = column.to_pylist()
    return [row and Variant(row["metadata"], row["value"]) for row in rows]
