"""Read one column of a file as the Arrow type that an engine wants."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.variant.variant_columns import ColumnWithVariants, column_of
from variantlake.scan.files.conform import conformed
from variantlake.shredding.arrays import (
    AnyArray,
    AnyField,
    list_array,
    list_of,
    map_array,
    members,
    offsets_of,
    struct_of,
)
from variantlake.shredding.layout import is_variant_type


@dataclass(frozen=True, slots=True)
class ColumnRead:
    """How to read one wanted column.

    `leaves` are the leaves to read of the file's column `node`. `field` is the table's column; None
    if typed columns inside a Variant are read as they are. `variant` rebuilds the Variants.
    """

    item: AnyField
    node: SchemaNode
    leaves: tuple[int, ...]
    field: StructField | None
    variant: ColumnWithVariants | None
    by_id: bool

    @classmethod
    def of(
        cls,
        node: SchemaNode,
        item: AnyField,
        field: StructField,
        variants: Collection[tuple[str, ...]],
        *,
        by_id: bool,
    ) -> ColumnRead:
        """Make the read of the file's column `node`, which is the table's `field`.

        If the wanted type of a Variant column has other members than a Variant, they name the typed
        columns to read. `by_id`: fields are found in the file by their ids. Raises MalformedFile
        for an invalid Variant group.
        """
        if isinstance(field.type, VariantType) and not is_variant_type(item.type):
            return cls(item, node, tuple(_named_leaves(node, item.type)), None, None, by_id)
        holds_variant = StructType((field,)).holds_variant()
        variant = column_of(node, variants) if holds_variant else None
        leaves = node.leaves() if variant is None else variant.leaves()
        return cls(item, node, tuple(leaves), field, variant, by_id)

    def result(self, array: Any) -> Any:
        """Convert the read array to the wanted type. Raises MalformedFile, MalformedVariant."""
        return as_type(self.of_table(array), self.item.type)

    def of_table(self, array: Any) -> Any:
        """Convert the read array to the table's column. Raises as `result`."""
        if self.variant is not None:
            array = self.variant.convert(array)
        if self.field is None:
            return array
        return conformed(array, self.field.type, self.node, by_id=self.by_id)


def as_type(array: AnyArray, wanted: Any) -> AnyArray:
    """Convert an array to another type of the same shape, members of structs by their names.

    Members that the array lacks are null; scalars are cast. Raises MalformedFile for a scalar where
    a struct or a list is wanted, pyarrow's own error for a cast that is not possible.
    """
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if pa.types.is_struct(wanted):
        group = struct_of(array)
        places = {item.name: at for at, item in enumerate(members(array.type))}
        children = [
            as_type(group.field(places[item.name]), item.type)
            if item.name in places
            else pa.nulls(len(group), item.type)
            for item in wanted
        ]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=group.is_null())
    if pa.types.is_map(wanted):
        offsets, entries = offsets_of(array)
        keys, items = (struct_of(entries).field(at) for at in range(2))
        parts = [as_type(keys, wanted.key_type), as_type(items, wanted.item_type)]
        return map_array(wanted, offsets, parts, array.is_null())
    if pa.types.is_list(wanted):
        lists = list_of(array)
        offsets, elements = offsets_of(lists)
        return list_array(wanted, offsets, as_type(elements, wanted.value_type), lists.is_null())
    if array.type == wanted:
        return array
    # Spark cuts nanoseconds to microseconds.
    return array.cast(wanted, safe=not pa.types.is_timestamp(wanted))


def _named_leaves(node: SchemaNode, wanted: Any) -> Iterator[int]:
    """Yield the leaves that the members of a type name, without those that the file lacks."""
    if not pa.types.is_struct(wanted):
        yield from node.leaves()
        return
    children = {child.name: child for child in node.children}
    for item in wanted:
        if item.name in children:
            yield from _named_leaves(children[item.name], item.type)
