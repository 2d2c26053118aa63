"""Convert columns that are or contain Variants, at any depth, to Arrow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from variantlake.errors import MalformedFile
from variantlake.kernels.shredded.unshred import unshred
from variantlake.kernels.shredded.unshred_legacy import unshred_legacy
from variantlake.parquet.metadata.column_chunks import Int64s
from variantlake.parquet.metadata.schema_tree import SchemaNode, list_item
from variantlake.parquet.variant.variant_group import VariantGroup, is_legacy_group, parse_group
from variantlake.shredding.arrays import (
    AnyArray,
    AnyField,
    element_field,
    list_array,
    list_of,
    map_array,
    members,
    offsets_of,
    struct_of,
)
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE, VARIANT_TYPE, map_type


@dataclass(frozen=True, slots=True)
class FoundVariants:
    """A shredded Variant column, with the number of the row of each of its values."""

    group: VariantGroup
    array: pa.StructArray
    rows: Int64s


class ColumnWithVariants(Protocol):
    """A column that is a Variant or contains one at any depth."""

    def leaves(self) -> Iterable[int]:
        """Return the leaves to read."""

    def type(self, arrow: pa.DataType) -> pa.DataType:
        """Return the result's type for a column that the file stores as `arrow`."""

    def convert(self, array: AnyArray) -> AnyArray:
        """Convert a slice of the column."""

    def variants(self, array: AnyArray, rows: Int64s) -> Iterator[FoundVariants]:
        """Yield the Variants in a slice of the column, still shredded."""


def result_field(field: AnyField, column: ColumnWithVariants) -> AnyField:
    """Return the result's field for one that the file stores as `field`.

    A legacy Variant is nullable even if its group is required: a group with no member set is SQL
    NULL.
    """
    result = field.with_type(column.type(field.type))
    is_legacy = isinstance(column, _VariantColumn) and column.group.is_legacy
    return result.with_nullable(True) if is_legacy else result


def is_variant(
    node: SchemaNode, column: tuple[str, ...], wanted: Collection[tuple[str, ...]]
) -> bool:
    """Whether to read a group as a Variant: it is marked, in `wanted`, or has a Variant's members.

    Spark 4.0 and writers of the legacy layout do not mark theirs.
    """
    if node.logical is not None:
        return node.kind == "VARIANT" or column in wanted
    return column in wanted or _looks_like_variant(node) or is_legacy_group(node)


def variant_nodes(
    node: SchemaNode, wanted: Collection[tuple[str, ...]], column: tuple[str, ...]
) -> Iterator[tuple[SchemaNode, tuple[str, ...]]]:
    """Yield the Variants that a column is or contains (see `is_variant`), each with its name."""
    if is_variant(node, column, wanted):
        yield node, column
        return
    for child in node.children:
        yield from variant_nodes(child, wanted, (*column, child.name))


def _looks_like_variant(node: SchemaNode) -> bool:
    members = {child.name: child for child in node.children if not child.name.startswith("_")}
    return (
        METADATA in members
        and (VALUE in members or TYPED_VALUE in members)
        and members.keys() <= {METADATA, VALUE, TYPED_VALUE}
        and all(
            members[name].physical == "BYTE_ARRAY" and members[name].logical is None
            for name in (METADATA, VALUE)
            if name in members
        )
    )


def column_of(
    node: SchemaNode, wanted: Collection[tuple[str, ...]], above: tuple[str, ...] = ()
) -> ColumnWithVariants | None:
    """Return the conversion of a column; None if it contains no Variant."""
    column = (*above, node.name)
    read: ColumnWithVariants | None
    if is_variant(node, column, wanted):
        read = _VariantColumn(parse_group(node, column))
    elif node.kind == "LIST" and len(node.children) == 1:
        element = _element_of(node, wanted, column)
        return None if element is None else _ListColumn(element)
    elif node.kind in ("MAP", "MAP_KEY_VALUE") and len(node.children) == 1:
        entries = _struct_column(node.children[0], wanted, (*column, node.children[0].name))
        return None if entries is None else _MapColumn(entries)
    else:
        read = _struct_column(node, wanted, column)
    # A repeated group outside a LIST is a list that is never null.
    return _ListColumn(read) if read is not None and node.repetition == "repeated" else read


def _element_of(
    node: SchemaNode, wanted: Collection[tuple[str, ...]], column: tuple[str, ...]
) -> ColumnWithVariants | None:
    """Return the conversion of a LIST's element; None if it contains no Variant."""
    (repeated,), item = node.children, list_item(node)
    column = (*column, repeated.name)
    if item is None:
        return _struct_column(repeated, wanted, column)
    return column_of(item, wanted, column)


def _struct_column(
    node: SchemaNode, wanted: Collection[tuple[str, ...]], column: tuple[str, ...]
) -> _StructColumn | None:
    children = [column_of(child, wanted, column) for child in node.children]
    return _StructColumn(node, children) if any(children) else None


@dataclass(frozen=True, slots=True)
class _VariantColumn:
    group: VariantGroup

    def leaves(self) -> Iterable[int]:
        yield from self.group.leaves()

    def type(self, _: pa.DataType) -> pa.DataType:
        return VARIANT_TYPE

    def convert(self, array: AnyArray) -> AnyArray:
        if self.group.is_legacy:
            return unshred_legacy(struct_of(array))
        return unshred(struct_of(array), self.group.forms)

    def variants(self, array: AnyArray, rows: Int64s) -> Iterator[FoundVariants]:
        yield FoundVariants(self.group, struct_of(array), rows)


@dataclass(frozen=True, slots=True)
class _StructColumn:
    node: SchemaNode
    children: list[ColumnWithVariants | None]

    def leaves(self) -> Iterable[int]:
        for child, column in zip(self.node.children, self.children, strict=True):
            yield from child.leaves() if column is None else column.leaves()

    def type(self, arrow: pa.DataType) -> pa.DataType:
        return pa.struct(self.fields(arrow))

    def convert(self, array: AnyArray) -> AnyArray:
        group = struct_of(array)
        # Flattened, because values below a null group need not be valid Variants.
        children = [
            child if column is None else column.convert(child)
            for child, column in zip(group.flatten(), self.children, strict=True)
        ]
        return pa.StructArray.from_arrays(
            children, fields=self.fields(group.type), mask=group.is_null()
        )

    def variants(self, array: AnyArray, rows: Int64s) -> Iterator[FoundVariants]:
        for child, column in zip(struct_of(array).flatten(), self.children, strict=True):
            if column is not None:
                yield from column.variants(child, rows)

    def fields(self, arrow: pa.DataType) -> list[AnyField]:
        """Return the result's fields for a group that the file stores as `arrow`."""
        return [
            field if column is None else result_field(field, column)
            for field, column in zip(members(arrow), self.children, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _ListColumn:
    element: ColumnWithVariants

    def leaves(self) -> Iterable[int]:
        yield from self.element.leaves()

    def type(self, arrow: pa.DataType) -> pa.DataType:
        field = element_field(arrow)
        return pa.list_(result_field(field, self.element))

    def convert(self, array: AnyArray) -> AnyArray:
        offsets, elements = offsets_of(list_of(array))
        found = self.element.convert(elements)
        return list_array(self.type(array.type), offsets, found, array.is_null())

    def variants(self, array: AnyArray, rows: Int64s) -> Iterator[FoundVariants]:
        offsets, elements = offsets_of(list_of(array))
        yield from self.element.variants(elements, np.repeat(rows, np.diff(offsets)))


@dataclass(frozen=True, slots=True)
class _MapColumn:
    """The entries of a map, keys and items."""

    entries: _StructColumn

    def leaves(self) -> Iterable[int]:
        yield from self.entries.leaves()

    def type(self, arrow: pa.DataType) -> pa.DataType:
        return map_type(*self.entries.fields(_entry_type(arrow)))

    def convert(self, array: AnyArray) -> AnyArray:
        result = self.type(array.type)
        offsets, entries = offsets_of(array)
        parts = struct_of(self.entries.convert(entries)).flatten()
        return map_array(result, offsets, parts, array.is_null())

    def variants(self, array: AnyArray, rows: Int64s) -> Iterator[FoundVariants]:
        _entry_type(array.type)  # refuses other types
        offsets, entries = offsets_of(array)
        yield from self.entries.variants(entries, np.repeat(rows, np.diff(offsets)))


def _entry_type(arrow: pa.DataType) -> pa.DataType:
    if not isinstance(arrow, pa.MapType):
        raise MalformedFile(f"a map that pyarrow reads as {arrow}")
    return pa.struct([arrow.key_field, arrow.item_field])
