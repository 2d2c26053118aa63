"""Rows as an Arrow stream, which other libraries take: Variants are marked as such, or are text.

A VARIANT column has the extension type `arrow.parquet.variant`, which pyarrow and Polars keep and
DuckDB reads as its own VARIANT. Spec: Arrow, "Canonical Extension Types", "Parquet Variant".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from variantlake.shown import Shown
from variantlake.shredding.arrays import AnyField, map_leaves, map_types
from variantlake.shredding.layout import (
    VARIANT_EXTENSION,
    VARIANT_TYPE,
    element_type,
    is_list,
    map_type,
)

_MARK: dict[bytes | str, bytes | str] = {
    "ARROW:extension:name": VARIANT_EXTENSION,
    "ARROW:extension:metadata": "",
}


def marked(field: AnyField) -> AnyField:
    """The field with the extension type on each VARIANT in it, at any depth."""
    kind: Any = field.type
    if kind == VARIANT_TYPE:
        return field.with_metadata(_MARK)
    if isinstance(kind, pa.StructType):
        return field.with_type(pa.struct(list(map(marked, kind))))
    if isinstance(kind, pa.MapType):
        return field.with_type(map_type(kind.key_field, marked(kind.item_field)))
    if is_list(kind) and pa.types.is_nested(element_type(kind)):
        return field.with_type(pa.list_(marked(kind.value_field)))
    return field


class ArrowStream(Shown):
    """Base of what gives rows: whatever takes an Arrow stream takes it as it is."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; VARIANT columns have the extension type."""
        raise NotImplementedError

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        raise NotImplementedError

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow reader. Raises as `to_batches`, while it is read."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All rows as one table. Raises as `to_batches`."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def as_json(self) -> JsonStream:
        """The same rows with JSON text in place of Variants, at any depth.

        `polars.DataFrame(table.scan("event").as_json())`. The text is that of `parquet.to_json`.
        """
        return JsonStream(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream interface."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, repr=False)
class JsonStream(ArrowStream):
    """Rows whose Variants are JSON text. `to_batches` raises as `parquet.to_json`, too."""

    rows: ArrowStream

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return pa.schema(
            [
                pa.field(each.name, map_types(each.type, _text_type, VARIANT_TYPE), each.nullable)
                for each in self.rows.schema
            ]
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        for batch in self.rows.to_batches():
            columns = [
                column if column.type == wanted.type else map_leaves(column, _text, VARIANT_TYPE)
                for column, wanted in zip(batch.columns, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _text_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if kind == VARIANT_TYPE else kind


def _text(array: Any) -> Any:
    from variantlake.parquet.read.json_column import to_json  # loads kernels

    return to_json(array).combine_chunks() if array.type == VARIANT_TYPE else array
