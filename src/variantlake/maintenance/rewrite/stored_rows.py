"""The rows of one data file in the form that the files of a table have now.

A Variant column that is shredded as wanted passes as the columns that it consists of; of any other
the Variants are rebuilt and shredded anew. Other columns get the table's types and names. Deleted
rows are left out. Memory follows a batch of a row group.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.stored_names import has_stored_names
from variantlake.delta.schema.column_mapping import physical_type
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.delta.schema.table_schema import arrow_type as table_type
from variantlake.errors import VariantLakeError
from variantlake.ingest.encode.encode import VariantColumn
from variantlake.ingest.encode.nested import variant_paths
from variantlake.maintenance.rewrite.groups import FileGroup, InputFile, Tier
from variantlake.maintenance.rewrite.proof import RewriteProof
from variantlake.maintenance.rewrite.row_ids import RowIdColumns
from variantlake.maintenance.rewrite.told_apart import decimal_paths, look_like_integers
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.prefetch import ahead
from variantlake.parquet.read.reader import BATCH_ROWS, open_parquet, read_leaves
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.parquet.stats.facts import facts_of
from variantlake.parquet.variant.variant_columns import Column, column_of
from variantlake.parquet.variant.variant_group import VariantGroup, parse_group
from variantlake.paths import Path
from variantlake.scan.column_reads import as_type, leaves_below
from variantlake.scan.conform import conformed, find_field
from variantlake.shredding.layout import TYPED_VALUE, VARIANT_TYPE, arrow_type
from variantlake.shredding.schema import ShreddingSchema, Untyped
from variantlake.shredding.values import ValueNotes
from variantlake.storage.opening import open_file

Notes = Mapping[ColumnPath, ValueNotes]


@dataclass(frozen=True, slots=True)
class StoredForm:
    """How rows are stored in the new files of a group: `schema` is that of their batches.

    `columns` are the table's without the partition columns; `variants` the paths of all Variants by
    the names of the Parquet schema; `told_apart` as in FileGroup.
    """

    columns: tuple[StructField, ...]
    schema: pa.Schema
    layouts: Mapping[str, ShreddingSchema]
    told_apart: Mapping[str, frozenset[Path]]
    row_ids: RowIdColumns | None

    @classmethod
    def of(
        cls,
        table: StructType,
        partition_columns: Collection[str],
        group: FileGroup,
        row_ids: RowIdColumns | None,
    ) -> Self:
        """The form of a group's files."""
        columns = tuple(item for item in table.fields if item.name not in partition_columns)
        fields = [
            pa.field(
                item.physical_name,
                arrow_type(group.layouts[item.physical_name])
                if isinstance(item.type, VariantType)
                else physical_type(item.type),
                item.physical_name not in group.required,
            )
            for item in columns
        ]
        if row_ids is not None:
            fields += row_ids.fields()
        return cls(columns, pa.schema(fields), group.layouts, group.told_apart, row_ids)

    @property
    def variants(self) -> tuple[ColumnPath, ...]:
        """The paths of all Variants, by the names of the Parquet schema."""
        return tuple(
            path
            for item in self.columns
            for path in variant_paths(item.type, (item.physical_name,))
        )


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Some rows of an input file, as they are stored; `positions` are their places in it.

    `apart` is None for nearly all rows. Those whose notes do not go with what the group tells apart
    share files only with rows whose `apart` is equal.
    """

    batch: pa.RecordBatch
    notes: Notes
    positions: Int64s
    apart: Hashable | None


class InputRows:
    """An open input file. `tier` is how its rows come; a context manager."""

    def __init__(
        self,
        table: Snapshot,
        file: InputFile,
        form: StoredForm,
        proof: RewriteProof | None = None,
    ) -> None:
        """With a `proof` it sees all rows, as the file holds them."""
        self.file = file
        self._form = form
        self._proof = proof
        self._location = table.location(file.path)
        self._input = open_file(self._location)
        try:
            self._prepare(table)
        except BaseException as error:
            self._input.close()
            if isinstance(error, VariantLakeError):
                error.file = error.file or self._location
            raise

    def _prepare(self, table: Snapshot) -> None:
        footer = self.footer = read_footer(self._input)
        by_id = not has_stored_names(table, footer)
        variants = frozenset(table.schema.variant_columns(physical=True))
        self._columns = [
            _column(item, footer, self._form, variants, by_id=by_id) for item in self._form.columns
        ]
        self._ids: dict[str, SchemaNode] = {}
        if self._form.row_ids is not None:
            self._form.row_ids.check(self.file)
            found = {node.name: node for node in footer.schema.children}
            self._ids = {n: found[n] for n in self._form.row_ids.names if n in found}
        rows = sum(group.num_rows for group in footer.row_groups)
        self._deleted: Int64s = np.empty(0, np.int64)
        if self.file.vector is not None:
            self._deleted = deleted_rows(table.store, self.file.vector, rows)
        self.rows = rows - len(self._deleted)
        self._source = open_parquet(self._input, self._location, footer)
        self._watch = None if self._proof is None else self._proof.reading(footer, self._location)

    @property
    def tier(self) -> Tier:
        """How the rows come: whether Variants have to be rebuilt."""
        rebuilt = any(column.is_rebuilt for column in self._columns)
        return Tier.SHRED if rebuilt else Tier.COLUMNS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()
        self._input.close()

    def __iter__(self) -> Iterator[StoredRows]:
        """The rows in the file's order. Raises MalformedFile, MalformedVariant, with the row."""
        return ahead(self._read(), self._stored, lambda read: read[0].get_total_buffer_size())

    def _read(self) -> Iterator[tuple[pa.RecordBatch, Int64s]]:
        """Batches as the file has them, without deleted rows, and where these are in the file."""
        leaves = sorted(
            {leaf for column in self._columns for leaf in column.leaves}
            | {leaf for node in self._ids.values() for leaf in node.leaves()}
        )
        start = 0
        for number, group in enumerate(self.footer.row_groups):
            for batch in self._batches(number, group.num_rows, leaves):
                positions = np.arange(start, start + batch.num_rows)
                start += batch.num_rows
                low, high = np.searchsorted(self._deleted, (positions[0], start))
                if low < high:
                    kept = np.ones(batch.num_rows, np.bool_)
                    kept[self._deleted[low:high] - positions[0]] = False
                    if kept.any():
                        yield batch.filter(pa.array(kept)), positions[kept]
                else:
                    yield batch, positions

    def _batches(self, number: int, rows: int, leaves: Sequence[int]) -> Iterator[pa.RecordBatch]:
        if leaves:
            yield from read_leaves(self._source, self._location, number, leaves, BATCH_ROWS)
            return
        for start in range(0, rows, BATCH_ROWS):  # no column of the table is in the file
            count = min(BATCH_ROWS, rows - start)
            yield pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""])

    def _stored(self, read: tuple[pa.RecordBatch, Int64s]) -> StoredRows:
        batch, positions = read
        if self._watch is not None:
            self._watch(batch, positions)
        arrays: list[Any] = []
        notes: dict[ColumnPath, ValueNotes] = {}
        is_alike = True
        for column, stored in zip(self._columns, self._form.schema, strict=False):
            try:
                array, noted = column.convert(batch, stored.type)
            except VariantLakeError as error:
                error.file = error.file or self._location
                if error.row is not None:
                    error.row = int(positions[error.row])
                raise
            arrays.append(array)
            told = self._form.told_apart.get(stored.name, frozenset())
            if noted is not None:
                notes[(stored.name,)], goes = column.noted(noted, told, array)
                is_alike = is_alike and goes
            else:
                is_alike = is_alike and not told
        if self._form.row_ids is not None:
            own = {name: batch.column(name) for name in self._ids}
            arrays += self._form.row_ids.values(self.file, positions, own)
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._form.schema)
        return StoredRows(rows, notes, positions, None if is_alike else True)


# --- One column -----------------------------------------------------------------------------------


class _ColumnRows(Protocol):
    """How one column of the table comes from a file."""

    @property
    def leaves(self) -> tuple[int, ...]:
        """The leaves of the file that are read."""

    @property
    def is_rebuilt(self) -> bool:
        """Whether Variants are built on the way."""

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        """The column of a batch of the file as it is stored, and what is known of its values."""

    def noted(
        self, notes: ValueNotes, told: frozenset[Path], group: Any
    ) -> tuple[ValueNotes, bool]:
        """The notes as the new file may join them, and whether it may tell `told` apart then."""


def _column(
    item: StructField,
    footer: Footer,
    form: StoredForm,
    variants: Collection[ColumnPath],
    *,
    by_id: bool,
) -> _ColumnRows:
    node = find_field(footer.schema, item, by_id=by_id)
    if node is None:
        return _Missing(isinstance(item.type, VariantType))
    if not isinstance(item.type, VariantType):
        variant = None
        if StructType((item,)).holds_variant():
            variant = column_of(node, variants)
        leaves = leaves_below(node) if variant is None else variant.leaves()
        return _Ordinary(tuple(leaves), item, node, variant, by_id)
    group = parse_group(node, (node.name,))
    notes = group.notes
    if notes is None and not group.is_legacy and not isinstance(group.schema.root, Untyped):
        notes = _noted(footer, (node.name,))
    wanted = form.layouts[item.physical_name]
    if not is_layout(group, node, wanted):
        rebuilt = column_of(node, {(node.name,)})
        if rebuilt is None:
            raise TypeError("a Variant group is a Variant")
        return _Rebuilt(tuple(rebuilt.leaves()), item, node, rebuilt, wanted)
    return _Same(tuple(group.leaves()), node, notes, decimal_paths(wanted))


def is_layout(group: VariantGroup, node: SchemaNode, wanted: ShreddingSchema) -> bool:
    """Whether a file's Variant group has exactly this layout, so that its columns can be copied."""
    return (
        not group.is_legacy
        and not group.has_others
        and group.schema == wanted
        and _has_required_fields(node)
    )


def _has_required_fields(group: SchemaNode) -> bool:
    """Whether the fields and elements of a shredded group are required, as they have to be."""
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
    """What the file tells of the values although its writer made no notes."""
    facts = facts_of(footer, 0, {column})
    return next((each.notes for each in facts.variants if each.column == column), None)


def _as_noted(
    _self: object, notes: ValueNotes, told: frozenset[Path], _group: Any
) -> tuple[ValueNotes, bool]:
    """Notes that were made of these very rows; decimals that look like integers may not join."""
    return notes, not notes.whole & told


@dataclass(frozen=True, slots=True)
class _Missing:
    """A column that the file does not have: NULL."""

    is_variant: bool
    leaves: tuple[int, ...] = ()
    is_rebuilt: bool = False

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        return pa.nulls(batch.num_rows, wanted), ValueNotes() if self.is_variant else None

    noted = _as_noted


@dataclass(frozen=True, slots=True)
class _Ordinary:
    """A column that is no Variant; those inside of it are stored unshredded."""

    leaves: tuple[int, ...]
    field: StructField
    node: SchemaNode
    variant: Column | None
    by_id: bool
    is_rebuilt: bool = False

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        array: Any = batch.column(self.node.name)
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        if array.type == wanted:
            return array, None
        if self.variant is not None:
            array = self.variant.convert(array)
        array = conformed(array, self.field.type, self.node, by_id=self.by_id)
        if array.type == wanted:
            return array, None
        # Structs go by physical names in files; everything else of the type is the same.
        return _renamed(array, table_type(self.field.type), wanted), None

    noted = _as_noted


def _renamed(array: Any, given: Any, wanted: Any) -> Any:
    return array.view(wanted) if array.type == given else as_type(array, given).view(wanted)


@dataclass(frozen=True, slots=True)
class _Same:
    """A Variant column in the wanted layout: its columns as they are."""

    leaves: tuple[int, ...]
    node: SchemaNode
    notes: ValueNotes | None
    decimals: frozenset[Path]
    is_rebuilt: bool = False

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        array: Any = batch.column(self.node.name)
        return (array if array.type == wanted else as_type(array, wanted)), self.notes

    def noted(
        self, notes: ValueNotes, told: frozenset[Path], group: Any
    ) -> tuple[ValueNotes, bool]:
        # What a file notes of its decimals counts where it tells integers apart. Elsewhere nothing
        # is known of them, but what a look tells.
        own = notes.told_apart
        goes = own == told or not look_like_integers(group, own ^ told)
        unknown = self.decimals - own
        whole = unknown - (told if goes else frozenset())
        return ValueNotes(notes.lacking, notes.integers, whole, notes.padded | unknown), goes


@dataclass(frozen=True, slots=True)
class _Rebuilt:
    """A Variant column in another layout: its Variants, shredded as wanted."""

    leaves: tuple[int, ...]
    column: StructField
    node: SchemaNode
    variant: Column
    wanted: ShreddingSchema
    idle: list[VariantColumn] = field(default_factory=list)
    is_rebuilt: bool = True

    def convert(self, batch: pa.RecordBatch, wanted: Any) -> tuple[Any, ValueNotes | None]:
        whole = self.variant.convert(batch.column(self.node.name))
        # Batches are converted by several threads, and an encoder keeps the keys that it has seen.
        encoder = self.idle.pop() if self.idle else self._encoder()
        array: Any = encoder.encode(whole)
        found = next(iter(encoder.notes.values()), ValueNotes())
        self.idle.append(encoder)
        return (array if array.type == wanted else as_type(array, wanted)), found

    def _encoder(self) -> VariantColumn:
        return VariantColumn(self.column, VARIANT_TYPE, lambda _: self.wanted, from_json=False)

    noted = _as_noted
