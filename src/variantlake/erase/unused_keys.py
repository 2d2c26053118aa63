"""Find keys that files hold and no row uses: in shared dictionaries, and in names of columns.

The rows of a load share a dictionary, even in different files, and a rewrite that copies columns
copies it. So a file can hold keys of a row that was never in it, or is no longer in it. A shredding
schema that was learned from rows names their keys in every file that uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.files.file_paths import is_absolute
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import cluster_paths
from variantlake.delta.protocol.learned_schemas import learned_schemas
from variantlake.delta.protocol.properties import hints, shredding_schemas, with_schema
from variantlake.delta.schema.table_schema import StructField, VariantType
from variantlake.dml.read_rows import columns_at
from variantlake.dml.removed_rows import vector_rows
from variantlake.erase.found_rows import ErasedRows, tape_of
from variantlake.errors import InvalidSchema, MalformedVariant, in_file
from variantlake.kernels.tape.dictionary import used_keys
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.read.parquet_source import BATCH_ROWS, ParquetSource, open_parquet
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.parquet.stats.facts import facts_of
from variantlake.parquet.variant.variant_group import GroupNode, VariantGroup, parse_group
from variantlake.planning.files import NO_ROWS, ScanFile
from variantlake.planning.log_files import LogFiles
from variantlake.scan.files.conform import find_field
from variantlake.shredding.arrays import AnyArray, struct_of
from variantlake.shredding.layout import METADATA, VALUE, VARIANT_TYPE
from variantlake.shredding.schema import Object, ShreddingSchema, subtree, without_fields
from variantlake.storage.opening import open_file

_UNREADABLE = (
    "its file must keep some keys, and keys of erased rows cannot be told from them: delete the"
    " row first; a deletion vector hides it until its file is rewritten"
)
_NULL = b"\x00"
"""The Variant null, which uses no key."""


def unused_keys(
    snapshot: Snapshot, erased: Sequence[ErasedRows]
) -> tuple[frozenset[str], list[ErasedRows]]:
    """Return the keys that no row uses once the `erased` ones are gone, and files to rewrite.

    These are the files outside `erased` that hold such keys; all their visible rows stay. Keys that
    the table's owner has named are kept: those of shredding schemas, of hints and of the
    clustering. Files outside the table's folder are ignored.

    Raises MalformedFile and MalformedVariant, with the file and the row, if a file does not show
    which keys it uses.
    """
    fields = [field for field in snapshot.schema.fields if isinstance(field.type, VariantType)]
    if not fields:
        return frozenset(), []
    staying = {each.add.path: each.staying for each in erased}
    named = set(_named(snapshot, fields))
    used: set[str] = set()
    unused = {
        name
        for field in fields
        for name in _names(_learned(snapshot, field.physical_name) or ShreddingSchema())
    }
    holding: list[tuple[AddFile, ScanFile, set[str]]] = []
    files = LogFiles(snapshot).files(np.arange(snapshot.files.num_rows, dtype=np.int64))
    for add, file in zip(snapshot.add_files(), files, strict=True):
        places = staying.get(add.path)
        # A file outside of the folder belongs to another table, whose owner decides about it.
        is_outside = is_absolute(add.path) and not file.path.startswith(f"{snapshot.store.uri}/")
        if is_outside or (places is not None and not len(places)):
            continue
        try:
            with in_file(file.path):
                keys, idle = _FileKeys.of(snapshot, file, fields).split(named, places)
        except MalformedVariant as error:
            error.hint = error.hint or _UNREADABLE
            raise
        used |= keys - idle
        unused |= idle
        # Another file may use a key that this one does not, so decide after the loop.
        if idle and places is None:
            holding.append((add, file, idle))
    unused -= used | named
    return frozenset(unused), [
        _visible(snapshot, add, file) for add, file, keys in holding if not keys.isdisjoint(unused)
    ]


def without_keys(snapshot: Snapshot, keys: Collection[str]) -> Snapshot:
    """Remove these keys from the table's learned shredding schemas."""
    configuration = snapshot.properties
    for field in snapshot.schema.fields:
        schema = _learned(snapshot, field.physical_name)
        if schema is not None and (left := without_fields(schema, keys)) != schema:
            configuration = with_schema(
                configuration, field.physical_name, left, snapshot.version + 1
            )
    if configuration == snapshot.properties:
        return snapshot
    return replace(snapshot, metadata=replace(snapshot.metadata, configuration=configuration))


def _named(snapshot: Snapshot, fields: Iterable[StructField]) -> Iterator[str]:
    """Yield the keys that the table's owner has named in its properties."""
    properties = snapshot.properties
    given = shredding_schemas(properties, snapshot.schema)
    for field in fields:
        name = field.physical_name
        if name in given and _learned(snapshot, name) is None:
            yield from _names(given[name])
        for hint in hints(properties, name):
            yield from hint.steps
    text = properties.get(CLUSTER_BY)
    if text is None:
        return
    with suppress(InvalidSchema):  # the property may name columns that no longer exist
        for each in cluster_paths(text, snapshot.schema, snapshot.partition_columns):
            yield from () if each.path is None else map(str, each.path.steps)


def _learned(snapshot: Snapshot, column: str) -> ShreddingSchema | None:
    """Return the schema of a column (physical name) if it was learned from rows, else None."""
    if learned_schemas(snapshot.properties, column) is None:
        return None
    return shredding_schemas(snapshot.properties, snapshot.schema).get(column)


def _names(schema: ShreddingSchema) -> Iterator[str]:
    for node in subtree(schema.root):
        yield from (name for name, _ in node.fields) if isinstance(node, Object) else ()


def _visible(snapshot: Snapshot, add: AddFile, file: ScanFile) -> ErasedRows:
    """Return a file without rows to erase; its hidden rows do not stay."""
    with open_file(file.path) as source:
        rows = read_footer(source).num_rows
    left = np.setdiff1d(
        np.arange(rows, dtype=np.int64), vector_rows(snapshot, add, rows), assume_unique=True
    )
    return ErasedRows(add, file, visible=NO_ROWS, hidden=NO_ROWS, staying=left)


@dataclass(frozen=True, slots=True)
class _FileKeys:
    """The keys that a file holds: in its dictionaries, and as names of columns."""

    snapshot: Snapshot
    file: ScanFile
    fields: Sequence[StructField]
    footer: Footer
    groups: Sequence[VariantGroup]

    @classmethod
    def of(cls, snapshot: Snapshot, file: ScanFile, fields: Sequence[StructField]) -> Self:
        with open_file(file.path) as source:
            footer = read_footer(source)
        by_id = not snapshot.has_stored_names(footer)
        nodes = (find_field(footer.schema, field, by_id=by_id) for field in fields)
        groups = [parse_group(node, (node.name,)) for node in nodes if node is not None]
        return cls(snapshot, file, fields, footer, groups)

    def split(self, named: set[str], places: Int64s | None) -> tuple[set[str], set[str]]:
        """Return all keys, and the idle ones: neither in `named` nor used by a row at `places`.

        None means all rows. Stops reading once no key can be idle.
        """
        keys = set(self._columns()) | self._of_dictionaries()
        idle = keys - named
        if places is None:
            idle -= self._of_typed_columns()
            places = np.arange(self.footer.num_rows, dtype=np.int64)
        if not idle:
            return keys, idle
        wanted = pa.schema([pa.field(each.physical_name, VARIANT_TYPE) for each in self.fields])
        reader = VariantReader()
        for table in columns_at(self.snapshot, self.file, wanted, places):
            for column in table.columns:
                idle -= _keys_in_use(reader, column, places)
            if not idle:
                break
            places = places[table.num_rows :]
        return keys, idle

    def _columns(self) -> Iterator[str]:
        for group in self.groups:
            yield from _names_below(group.root)

    def _of_typed_columns(self) -> set[str]:
        """Return the keys of paths whose typed columns hold a value."""
        facts = facts_of(self.footer, self.file.size, [group.column for group in self.groups])
        return {
            step
            for variant in facts.variants
            for path in variant.paths
            if path.typed > 0
            for step in path.path.steps
            if isinstance(step, str)
        }

    def _of_dictionaries(self) -> set[str]:
        leaves = sorted(group.metadata for group in self.groups if group.metadata is not None)
        found: set[str] = set()
        with open_parquet(self.file.path, self.file.path, self.footer, leaves) as source:
            for number in range(len(self.footer.row_groups)):
                for leaf in leaves:
                    for batch in _batches(source, number, leaf):
                        found |= _keys_of(struct_of(batch.column(0)).field(0))
        return found


def _names_below(node: GroupNode) -> Iterator[str]:
    for name, child in node.fields:
        yield name
        yield from _names_below(child)
    for other in (*node.others, *(() if node.element is None else (node.element,))):
        yield from _names_below(other)


def _batches(source: ParquetSource, row_group: int, leaf: int) -> Iterable[pa.RecordBatch]:
    whole = source.column(row_group, leaf)
    return source.batches(row_group, [leaf], BATCH_ROWS) if whole is None else whole


def _keys_of(metadata: AnyArray) -> set[str]:
    """Return the keys of metadata; for an Arrow dictionary, also of entries that no row uses."""
    entries: Any = metadata
    distinct = entries.dictionary if isinstance(metadata, pa.DictionaryArray) else entries.unique()
    distinct = distinct.drop_null()
    nulls = pa.array([_NULL] * len(distinct), pa.binary())
    tape = tape_of(
        VariantReader(),
        pa.StructArray.from_arrays([distinct.cast(pa.binary()), nulls], [METADATA, VALUE]),
    )
    return {name.decode() for name in tape.keys.names()[1 : tape.key_count]}


def _keys_in_use(reader: VariantReader, column: pa.ChunkedArray[Any], places: Int64s) -> set[str]:
    found: set[str] = set()
    for chunk in column.chunks:
        found |= used_keys(tape_of(reader, struct_of(chunk), places))
        places = places[len(chunk) :]
    return found
