"""Compute digests of files and tables, which show whether a rewrite kept every row.

The digest of some rows is the sum of their hashes. It does not depend on their order or on the
files that hold them, and files that two versions share cancel out. The digester reads columns as
the file stores them and converts them to the table's types. It hashes shredded Variants without
reassembling them. Deleted rows do not count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pyarrow as pa

from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.char_types import char_length, declared_type
from variantlake.delta.schema.char_values import padded
from variantlake.delta.schema.table_schema import (
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.delta.stats.partition_values import partition_key
from variantlake.errors import VariantLakeError, in_file
from variantlake.kernels.digest.rows import Digest, RowSums
from variantlake.kernels.native.declared import Int64s
from variantlake.parallel.prefetch import ahead
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.parquet_source import BATCH_ROWS, ParquetSource, open_parquet
from variantlake.parquet.variant.variant_columns import ColumnWithVariants, column_of, is_variant
from variantlake.parquet.variant.variant_group import parse_group
from variantlake.scan.files.conform import conformed, find_field
from variantlake.storage.input_file import InputFile
from variantlake.storage.opening import Source, open_file

CountRows = Callable[[int], object]
"""A callback that gets the number of rows read since its last call."""

_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class DigestFile:
    """A file of a table. `partition` holds the log's partition values by physical column name."""

    location: str
    vector: DeletionVectorDescriptor | None
    partition: Mapping[str, str | None]

    @classmethod
    def of(cls, snapshot: Snapshot, add: AddFile) -> Self:
        """Return the file of an `add` action."""
        return cls(snapshot.location(add.path), add.deletion_vector, add.partition_values)


@dataclass(frozen=True, slots=True)
class RowHashes:
    """The hashes (int64) of consecutive rows of a file, which start at row `first`.

    `kept` marks the rows that count: those not deleted, or the caller's `places`. `digest` is the
    digest of these rows.
    """

    first: int
    hashes: Int64s
    kept: np.ndarray[Any, Any]
    digest: Digest


class RowDigester:
    """Hashes rows of one table's files, given as record batches in the file's own layout.

    It hashes the columns of `table`'s schema. Values of partition columns come from the log, not
    from the batch. Several threads may share it.
    """

    def __init__(self, table: Snapshot, *, as_stored: bool = False) -> None:
        """`as_stored` hashes the bytes of Variants; use it only for rows that keep their layout."""
        self._as_stored = as_stored
        partition = frozenset(table.partition_columns)
        self._fields = tuple(f for f in table.schema.fields if f.name not in partition)
        self._partitions = {f.physical_name: f for f in table.schema.fields if f.name in partition}
        self._variants = frozenset(table.schema.variant_columns(physical=True))
        self._local = threading.local()

    def columns_of(self, footer: Footer, *, by_id: bool) -> DigestColumns:
        """Return the columns of a file that count. `by_id` is that of `find_field`.

        Raises MalformedFile for an invalid Variant group.
        """
        columns = []
        for field in self._fields:
            node = find_field(footer.schema, field, by_id=by_id)
            if node is not None:
                columns.append(_FileColumn.of(node, field, self._variants, by_id=by_id))
        return DigestColumns(tuple(columns))

    def hashes(
        self,
        columns: DigestColumns,
        batch: pa.RecordBatch,
        partition: Mapping[str, str | None],
        kept: np.ndarray[Any, Any] | None = None,
    ) -> tuple[Digest, Int64s]:
        """Return the digest of the `kept` rows (bool; None: all) and the hash of every row.

        `batch` holds the columns as pyarrow reads them, under the file's names.

        Raises MalformedVariant, MalformedFile, with the row of the batch.
        """
        sums: RowSums | None = getattr(self._local, "sums", None)
        if sums is None:
            sums = self._local.sums = RowSums()
        sums.start(batch.num_rows)
        self.add_partition(sums, partition)
        for column in columns.columns:
            try:
                column.add(sums, batch.column(column.node.name), as_stored=self._as_stored)
            except VariantLakeError as error:
                error.say_first(f"column {column.node.name!r}")
                raise
        return sums.close(kept)

    def add_partition(self, sums: RowSums, partition: Mapping[str, str | None]) -> None:
        """Add the partition values of a file to the hash of each of its rows."""
        for name in sorted(partition):
            # In the protocol, both null and the empty string mean NULL.
            text = partition[name] or None
            field = self._partitions.get(name)
            if text is not None and field is not None:
                text = _one_text(text, field)
            sums.add_constant(name, text)


def _one_text(text: str, field: StructField) -> str:
    """Return one canonical text for all the ways in which writers spell a partition value."""
    kind = field.type
    if isinstance(kind, PrimitiveType) and kind.name in _SEVERAL_TEXTS:
        key = partition_key(text, kind)
        return str(key.normalize() if isinstance(key, Decimal) else key)
    return text.ljust(char_length(field))


_SEVERAL_TEXTS = ("timestamp", "timestamp_ntz", "float", "double", "decimal")
"""Types whose partition values have more than one valid spelling."""


@dataclass(frozen=True, slots=True)
class DigestColumns:
    """The columns of one file that the digest covers."""

    columns: tuple[_FileColumn, ...]

    @property
    def leaves(self) -> list[int]:
        """The numbers of the leaves to read, in the file's order."""
        return sorted({leaf for column in self.columns for leaf in column.leaves})


@dataclass(frozen=True, slots=True)
class _FileColumn:
    """One column of a file.

    If `is_stored`, the column is a Variant that is hashed as the file stores it. Otherwise
    `variant`, unless None, rebuilds the Variants that the column holds.
    """

    node: SchemaNode
    field: StructField
    leaves: tuple[int, ...]
    is_stored: bool
    variant: ColumnWithVariants | None
    by_id: bool

    @classmethod
    def of(
        cls,
        node: SchemaNode,
        field: StructField,
        variants: frozenset[tuple[str, ...]],
        *,
        by_id: bool,
    ) -> Self:
        """Return the column for `node` of a file, which holds the table's `field`."""
        holds_variant = StructType((field,)).holds_variant()
        variant = column_of(node, variants) if holds_variant else None
        leaves = tuple(node.leaves() if variant is None else variant.leaves())
        is_stored = (
            isinstance(field.type, VariantType)
            and is_variant(node, (node.name,), variants)
            and not parse_group(node, (node.name,)).is_legacy
        )
        return cls(node, field, leaves, is_stored, variant, by_id)

    def add(self, sums: RowSums, array: Any, *, as_stored: bool) -> None:
        """Add the column's values to the hashes of their rows; `as_stored` as for RowDigester."""
        if self.is_stored:
            add = sums.add_stored if as_stored else sums.add_variants
            add(self.field.physical_name, array)
            return
        if self.variant is not None:
            array = self.variant.convert(array)
        array = conformed(array, self.field.type, self.node, by_id=self.by_id)
        # Some writers pad CHAR values and others leave that to readers; both mean one value.
        array = padded(array, declared_type(self.field))
        sums.add_column(self.field.physical_name, array)


class FileDigester:
    """Reads the files of one table and computes their digests."""

    def __init__(self, table: Snapshot) -> None:
        self._table = table
        self._digester = RowDigester(table)

    def rows(
        self,
        file: DigestFile,
        count: CountRows | None = None,
        *,
        source: Source | None = None,
        places: Int64s | None = None,
    ) -> Iterator[RowHashes]:
        """Yield the hashes of all rows of a file, batch by batch, with a few batches in memory.

        `source` is where the file's bytes are for now, if not at its location. If `places` (row
        numbers in ascending order) is given, only these rows count, deleted or not.

        Raises MalformedFile, MalformedVariant, with file and row; MissingSource.
        """
        opening = open_file(file.location if source is None else source)
        with opening as opened, in_file(file.location):
            reading = self._reading(opened, file, places)
            weigh = lambda given: given[1].get_total_buffer_size()
            for found in ahead(reading.batches(), reading.hashed, weigh):
                yield found
                if count is not None:
                    count(len(found.hashes))

    def _reading(
        self, opened: InputFile, file: DigestFile, places: Int64s | None
    ) -> _DigestReading:
        footer = read_footer(opened.borrowed())
        rows = footer.num_rows
        deleted = _NO_ROWS
        if file.vector is not None and places is None:
            deleted = deleted_rows(self._table.store, file.vector, rows)
        by_id = not self._table.has_stored_names(footer)
        columns = self._digester.columns_of(footer, by_id=by_id)
        parquet = open_parquet(opened.borrowed(), file.location, footer)
        return _DigestReading(self._digester, file, footer, columns, parquet, deleted, places)

    def digest(
        self,
        file: DigestFile,
        count: CountRows | None = None,
        *,
        source: Source | None = None,
        places: Int64s | None = None,
    ) -> Digest:
        """Return the digest of a file's rows. Takes the arguments of `rows`, raises as `rows`."""
        found = self.rows(file, count, source=source, places=places)
        return sum((each.digest for each in found), Digest())

    def sum(self, files: Iterable[DigestFile], count: CountRows | None = None) -> Digest:
        """Return the digest of the rows of several files. Raises as `rows`."""
        return sum((self.digest(file, count) for file in files), Digest())


@dataclass(frozen=True, slots=True)
class _DigestReading:
    """One open file: reads its batches and hashes each of them."""

    digester: RowDigester
    file: DigestFile
    footer: Footer
    columns: DigestColumns
    parquet: ParquetSource
    deleted: Int64s
    places: Int64s | None

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of the columns that count, each with the number of its first row."""
        start = 0
        for batch in file_batches(self.parquet, self.footer, self.columns.leaves):
            yield start, batch
            start += batch.num_rows

    def hashed(self, given: tuple[int, pa.RecordBatch]) -> RowHashes:
        """Hash one item of `batches`."""
        start, batch = given
        end = start + batch.num_rows
        if self.places is None:
            kept = np.ones(batch.num_rows, np.bool_)
            kept[_within(self.deleted, start, end)] = False
        else:
            kept = np.zeros(batch.num_rows, np.bool_)
            kept[_within(self.places, start, end)] = True
        try:
            digest, hashes = self.digester.hashes(self.columns, batch, self.file.partition, kept)
        except VariantLakeError as error:
            error.row = None if error.row is None else start + error.row
            raise
        return RowHashes(start, hashes, kept, digest)


def _within(places: Int64s, start: int, end: int) -> Int64s:
    low, high = np.searchsorted(places, (start, end))
    return places[low:high] - start


def file_batches(
    source: ParquetSource, footer: Footer, leaves: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches, with the columns of these leaves."""
    for number, group in enumerate(footer.row_groups):
        if leaves:
            yield from source.batches(number, leaves, BATCH_ROWS)
            continue
        for start in range(0, group.num_rows, BATCH_ROWS):  # the file has no column of the table
            count = min(BATCH_ROWS, group.num_rows - start)
            yield pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""])


def table_digest(snapshot: Snapshot, count: CountRows | None = None) -> Digest:
    """Return the digest of all rows of a version. Raises as `FileDigester.rows`."""
    files = (DigestFile.of(snapshot, add) for add in snapshot.add_files())
    return FileDigester(snapshot).sum(files, count)
