"""Convert one column of an input file for new files: as it is stored, renamed, or shredded anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from variantlake.delta.schema.column_mapping import physical_type
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.delta.schema.table_schema import arrow_type as table_type
from variantlake.ingest.encode.encode import VariantColumn
from variantlake.maintenance.rewrite.decimal_notes import decimal_paths, look_like_integers
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.footer import Footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.stats.facts import facts_of
from variantlake.parquet.variant.variant_columns import ColumnWithVariants, column_of
from variantlake.parquet.variant.variant_group import VariantGroup, parse_group
from variantlake.paths import Path
from variantlake.scan.files.column_reads import as_type
from variantlake.scan.files.conform import conformed, find_field
from variantlake.shredding.layout import TYPED_VALUE, VARIANT_TYPE
from variantlake.shredding.schema import ShreddingSchema, Untyped
from variantlake.shredding.values import ValueNotes


@dataclass(frozen=True, slots=True)
class ColumnRows(ABC):
    """Converts one column of the table from a file; `leaves` are the leaves to read."""

    leaves: tuple[int, ...]

    @property
    def is_rebuilt(self) -> bool:
        """Whether the conversion builds Variants."""
        return False

    @property
    def is_of_schema(self) -> bool:
        """Whether this conversion is right for all files of the same schema, notes included."""
        return True

    @abstractmethod
    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        """Convert the column of a batch to type `wanted`; returns it with notes on its values."""

    def noted(
        self, notes: ValueNotes, told: frozenset[Path], _group: Any
    ) -> tuple[ValueNotes, bool]:
        """Return the notes to merge into the new file's, and whether they allow `told`.

        The rows may not join files that tell `told` apart if a decimal there looks like an integer.
        """
        return notes, not notes.whole & told


def column_rows(
    item: StructField,
    footer: Footer,
    layouts: Mapping[str, ShreddingSchema],
    variants: Collection[ColumnPath],
    *,
    by_id: bool,
) -> ColumnRows:
    """Return the conversion of the table's column `item` from a file to the new files' `layouts`.

    `variants` are the paths of the table's Variants in physical names, `by_id` as in `find_field`.
    Raises MalformedFile for an invalid Variant group.
    """
    node = find_field(footer.schema, item, by_id=by_id)
    if node is None:
        return _MissingColumn((), isinstance(item.type, VariantType))
    if not isinstance(item.type, VariantType):
        variant = None
        if StructType((item,)).holds_variant():
            variant = column_of(node, variants)
        leaves = node.leaves() if variant is None else variant.leaves()
        return _Ordinary(tuple(leaves), item, node, variant, by_id)
    group = parse_group(node, (node.name,))
    notes, found = group.notes, False
    if notes is None and not group.is_legacy and not isinstance(group.schema.root, Untyped):
        notes, found = _noted(footer, (node.name,)), True
    wanted = layouts[item.physical_name]
    if not is_layout(group, node, wanted):
        rebuilt = column_of(node, {(node.name,)})
        if rebuilt is None:
            raise TypeError("a Variant group is a Variant")
        return _Rebuilt(tuple(rebuilt.leaves()), item, node, rebuilt, wanted)
    return _Same(tuple(group.leaves()), node, notes, decimal_paths(wanted), found)


def is_layout(group: VariantGroup, node: SchemaNode, wanted: ShreddingSchema) -> bool:
    """Whether a file's Variant group has exactly this layout, so that its columns can be copied."""
    return (
        not group.is_legacy
        and not group.has_others
        and group.schema == wanted
        and _has_required_fields(node)
    )


def _has_required_fields(group: SchemaNode) -> bool:
    """Whether the fields and elements of a shredded group are required, as the format demands."""
    typed = group.named(TYPED_VALUE)
    if typed is None or not typed.is_group:
        return True
    if typed.logical is not None and typed.logical.kind == "LIST":
        inner = [child for level in typed.children for child in level.children]
        if len(typed.children) != 1 or len(inner) != 1:
            return False  # a list of two levels
    else:
        inner = list(typed.children)
    return all(each.repetition == "required" and _has_required_fields(each) for each in inner)


def _noted(footer: Footer, column: ColumnPath) -> ValueNotes | None:
    """Derive notes from the footer of a file whose writer made none."""
    facts = facts_of(footer, 0, {column})
    return next((each.notes for each in facts.variants if each.column == column), None)


@dataclass(frozen=True, slots=True)
class _MissingColumn(ColumnRows):
    """A column that the file does not have, which is NULL."""

    is_variant: bool

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        return pa.nulls(batch.num_rows, wanted), ValueNotes() if self.is_variant else None


@dataclass(frozen=True, slots=True)
class _Ordinary(ColumnRows):
    """A column that is not a Variant; Variants inside it are stored unshredded."""

    field: StructField
    node: SchemaNode
    variant: ColumnWithVariants | None
    by_id: bool

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        array: Any = batch.column(self.node.name)
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        # A name of a field in the file may belong to another field in new files.
        if array.type == wanted == physical_type(self.field.type):
            return array, None
        if self.variant is not None:
            array = self.variant.convert(array)
        array = conformed(array, self.field.type, self.node, by_id=self.by_id)
        if array.type == wanted:
            return array, None
        # New files have the physical names of fields; all else in the type is the same.
        return _renamed(array, table_type(self.field.type), wanted), None


def _renamed(array: Any, given: Any, wanted: Any) -> Any:
    return array.view(wanted) if array.type == given else as_type(array, given).view(wanted)


@dataclass(frozen=True, slots=True)
class _Same(ColumnRows):
    """A Variant column in the wanted layout, whose columns are copied as they are.

    `is_present` says that its notes come from the file's footer facts, not from its schema.
    """

    node: SchemaNode
    notes: ValueNotes | None
    decimals: frozenset[Path]
    is_present: bool

    @property
    def is_of_schema(self) -> bool:
        return not self.is_present

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        array: Any = batch.column(self.node.name)
        return (array if array.type == wanted else as_type(array, wanted)), self.notes

    def noted(
        self, notes: ValueNotes, told: frozenset[Path], group: Any
    ) -> tuple[ValueNotes, bool]:
        # A file's notes on decimals hold for the paths that it tells apart. For the other paths,
        # only a look at the column can tell.
        own = notes.told_apart
        goes = own == told or not look_like_integers(group, own ^ told)
        unknown = self.decimals - own
        whole = unknown - (told if goes else frozenset())
        return ValueNotes(notes.lacking, notes.integers, whole, notes.padded | unknown), goes


@dataclass(frozen=True, slots=True)
class _Rebuilt(ColumnRows):
    """A Variant column in another layout, whose Variants are rebuilt and shredded as wanted."""

    column: StructField
    node: SchemaNode
    variant: ColumnWithVariants
    wanted: ShreddingSchema
    idle: list[VariantColumn] = field(default_factory=list)

    @property
    def is_rebuilt(self) -> bool:
        return True

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        whole = self.variant.convert(batch.column(self.node.name))
        # Several threads convert batches, and an encoder keeps the keys that it has seen, so
        # each call takes an idle one.
        encoder = self.idle.pop() if self.idle else self._encoder()
        array: Any = encoder.encode(whole)
        found = next(iter(encoder.notes.values()), ValueNotes())
        self.idle.append(encoder)
        return (array if array.type == wanted else as_type(array, wanted)), found

    def _encoder(self) -> VariantColumn:
        return VariantColumn(self.column, VARIANT_TYPE, lambda _: self.wanted, from_json=False)
