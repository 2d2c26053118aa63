"""Read the rows of data files and convert them to the form of a group's new files.

A Variant column that has the wanted layout already is copied as the columns it consists of; any
other is rebuilt and shredded anew. Other columns get the table's types and names. Deleted rows are
left out. Small files are read whole, and rows of files with one schema are converted together. For
large files, memory holds a few batches of a row group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, Self

import numpy as np
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.batches import packed
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.delta.schema.column_mapping import physical_type
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.errors import VariantLakeError, in_file
from variantlake.ingest.encode.nested import variant_paths
from variantlake.maintenance.digest import DigestColumns, file_batches
from variantlake.maintenance.rewrite.cells import Cells
from variantlake.maintenance.rewrite.gather_rows import GATHERED_BYTES, GATHERED_ROWS, joined
from variantlake.maintenance.rewrite.groups import (
    FileGroup,
    InputCounts,
    RewriteInput,
    Tier,
    TierCounts,
    total,
)
from variantlake.maintenance.rewrite.groups import joined as joined_counts
from variantlake.maintenance.rewrite.proof import RewriteProof
from variantlake.maintenance.rewrite.stored_columns import ColumnRows, column_rows
from variantlake.parallel.prefetch import AHEAD_BYTES, ahead
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.parquet_source import open_parquet
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.paths import Path
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import ValueNotes
from variantlake.storage.opening import open_file

Notes = Mapping[ColumnPath, ValueNotes]
Check = Callable[[], None]

SMALL_BYTES = 4 << 20
"""Bytes up to which a file is read whole, and up to which one thread reads files together."""

_MOST_FILES = 64
"""Most files that one thread reads together, so that the caller sees progress."""

_ARROW_BYTES = 6
"""About how many bytes in memory a byte of a file takes."""


@dataclass(frozen=True, slots=True)
class StoredForm:
    """The form of rows in the new files of a group; `schema` is that of their batches.

    `columns` are the table's columns without partition columns, as in the input files; `stored` are
    the same as in the new files. `layouts` and `told_apart` as in FileGroup.
    """

    columns: tuple[StructField, ...]
    stored: tuple[StructField, ...]
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
        *,
        new: StructType | None = None,
    ) -> Self:
        """Return the form of a group's files; `new` are the table's columns for new files."""
        columns, stored = (
            tuple(item for item in each.fields if item.name not in partition_columns)
            for each in (table, new or table)
        )
        fields = [
            pa.field(
                item.physical_name,
                arrow_type(group.layouts[before.physical_name])
                if isinstance(item.type, VariantType)
                else physical_type(item.type),
                before.physical_name not in group.required,
            )
            for before, item in zip(columns, stored, strict=True)
        ]
        if row_ids is not None:
            fields += [pa.field(name, pa.int64()) for name in row_ids.names]
        return cls(columns, stored, pa.schema(fields), group.layouts, group.told_apart, row_ids)

    @property
    def variants(self) -> tuple[ColumnPath, ...]:
        """The paths of all Variants, in the names of the new files' Parquet schema."""
        return tuple(
            path for item in self.stored for path in variant_paths(item.type, (item.physical_name,))
        )


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows in the form of new files.

    `apart` is None for nearly all rows. It is set if the notes of the rows do not allow what the
    group tells apart; these rows share files only with rows whose `apart` is equal. `by_cell` has
    the rows by cell if the group has cells.
    """

    batch: pa.RecordBatch
    notes: Notes
    apart: Hashable | None
    by_cell: Sequence[tuple[int, pa.RecordBatch]] = ()


@dataclass(frozen=True, slots=True)
class _StoredReading:
    """How to read the columns of a file; one object for files of one schema.

    `ids` are the columns of row ids in the file, `hashed` is for the proof.
    """

    columns: tuple[ColumnRows, ...]
    ids: Mapping[str, SchemaNode]
    hashed: DigestColumns | None

    @property
    def leaves(self) -> list[int]:
        """The leaves to read, in the order of the file."""
        found = {leaf for column in self.columns for leaf in column.leaves}
        return sorted(found | {leaf for node in self.ids.values() for leaf in node.leaves()})

    @property
    def tier(self) -> Tier:
        """The tier of the file: SHRED if Variants have to be rebuilt, else COLUMNS."""
        rebuilt = any(column.is_rebuilt for column in self.columns)
        return Tier.SHRED if rebuilt else Tier.COLUMNS


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one file as stored there, without deleted rows, and their places in the file."""

    reading: _StoredReading
    file: RewriteInput
    location: str
    batch: pa.RecordBatch
    positions: Int64s


class InputRows:
    """Reads the input files of a group. `tiers` and `rows` count the files opened so far."""

    def __init__(
        self,
        table: Snapshot,
        form: StoredForm,
        proof: RewriteProof | None = None,
        *,
        cells: Cells | None = None,
        check: Check | None = None,
    ) -> None:
        """`proof` gets all rows as stored in their files; `cells` split the rows.

        `check` stops the read by raising.
        """
        self._cells = cells
        self._table = table
        self._form = form
        self._proof = proof
        self._check = check
        self._variants = frozenset(table.schema.variant_columns(physical=True))
        self._counts: deque[TierCounts] = deque()
        self._last_reading: tuple[SchemaNode, _StoredReading] | None = None

    @property
    def tiers(self) -> TierCounts:
        """Counts of files and rows by tier."""
        return joined_counts(self._counts)

    @property
    def rows(self) -> int:
        """The number of rows, without deleted ones."""
        return total(self.tiers).rows

    def of(self, files: Iterable[RewriteInput]) -> Iterator[StoredRows]:
        """Yield the rows of files, in their order.

        Raises MalformedFile, MalformedVariant, with file and row; MissingSource.
        """
        for is_small, run in groupby(files, key=lambda file: file.size <= SMALL_BYTES):
            if not is_small:
                for file in run:
                    weigh = lambda piece: int(piece.batch.get_total_buffer_size())
                    yield from ahead(self._pieces(file), lambda piece: self._stored([piece]), weigh)
                continue
            weigh_files = lambda given: _ARROW_BYTES * sum(file.size for file in given)
            together = packed(run, lambda file: file.size, SMALL_BYTES, _MOST_FILES)
            for rows in ahead(together, self._at_once, weigh_files):
                yield from rows

    def _at_once(self, files: Sequence[RewriteInput]) -> Iterable[StoredRows]:
        """Return the rows of small files; those beyond AHEAD_BYTES are read by the iteration."""
        waiting = map(self._stored, self._alike(chain.from_iterable(map(self._pieces, files))))
        taken, size = [], 0
        for rows in waiting:
            taken.append(rows)
            size += rows.batch.get_total_buffer_size()
            if size > AHEAD_BYTES:  # the rows of a small file may be large in memory
                break
        return chain(taken, waiting)

    def _alike(self, pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
        """Group pieces to convert together: of one schema, up to the size of a gathered batch."""
        own: list[_Piece] = []
        rows = size = 0
        for piece in pieces:
            if own and (
                piece.reading is not own[0].reading
                or rows >= GATHERED_ROWS
                or size >= GATHERED_BYTES
                or not piece.batch.schema.equals(own[0].batch.schema)
            ):
                yield own
                own, rows, size = [], 0, 0
            own.append(piece)
            rows += piece.batch.num_rows
            size += piece.batch.get_total_buffer_size()
        if own:
            yield own

    # --- Reading ----------------------------------------------------------------------------------

    def _pieces(self, file: RewriteInput) -> Iterator[_Piece]:
        """Yield the rows of a file, batch by batch."""
        if self._check is not None:
            self._check()
        location = self._table.location(file.path)
        with in_file(location), open_file(location) as found:
            is_small = max(found.size, file.size) <= SMALL_BYTES
            opened = found.in_memory() if is_small else found.borrowed()
            with opened:
                footer = read_footer(opened)
                reading = self._reading(footer)
                rows = footer.num_rows
                deleted: Int64s = np.empty(0, np.int64)
                if file.vector is not None:
                    deleted = deleted_rows(self._table.store, file.vector, rows)
                self._counts.append({reading.tier: InputCounts(1, file.size, rows - len(deleted))})
                with open_parquet(opened, location, footer) as source:
                    batches = file_batches(source, footer, reading.leaves)
                    for batch, positions in _kept(batches, deleted):
                        yield _Piece(reading, file, location, batch, positions)

    def _reading(self, footer: Footer) -> _StoredReading:
        known = (
            self._last_reading
        )  # another thread may have set it; footers of one schema share its object
        if known is not None and known[0] is footer.schema:
            return known[1]
        by_id = not self._table.has_stored_names(footer)
        columns = tuple(
            column_rows(item, footer, self._form.layouts, self._variants, by_id=by_id)
            for item in self._form.columns
        )
        found = {node.name: node for node in footer.schema.children}
        names = () if self._form.row_ids is None else self._form.row_ids.names
        ids = {name: found[name] for name in names if name in found}
        hashed = None if self._proof is None else self._proof.columns_of(footer)
        reading = _StoredReading(columns, ids, hashed)
        if all(column.is_of_schema for column in columns):
            self._last_reading = footer.schema, reading
        return reading

    # --- Converting -------------------------------------------------------------------------------

    def _stored(self, pieces: Sequence[_Piece]) -> StoredRows:
        """Convert pieces of one schema to the form of new files."""
        reading = pieces[0].reading
        batch = joined([piece.batch for piece in pieces])
        with _placed(pieces):
            if self._proof is not None and reading.hashed is not None:
                self._proof.read(reading.hashed, batch)
            arrays, notes, is_alike = self._converted(reading, batch)
        ids = self._form.row_ids
        if ids is not None:
            own = []
            for piece in pieces:
                file, stored = piece.file, {name: piece.batch.column(name) for name in reading.ids}
                with in_file(piece.location):
                    own.append(
                        ids.values(
                            file.base_row_id, file.row_commit_version, piece.positions, stored
                        )
                    )
            arrays += map(pa.concat_arrays, zip(*own, strict=True))
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._form.schema)
        by_cell = () if self._cells is None else self._cells.parted(rows)
        return StoredRows(rows, notes, None if is_alike else True, by_cell)

    def _converted(
        self, reading: _StoredReading, batch: pa.RecordBatch
    ) -> tuple[list[Any], dict[ColumnPath, ValueNotes], bool]:
        """Convert the table's columns.

        Returns them, their notes, and whether the notes allow what the group tells apart.
        """
        arrays: list[Any] = []
        notes: dict[ColumnPath, ValueNotes] = {}
        is_alike = True
        forms = zip(reading.columns, self._form.columns, self._form.schema, strict=False)
        for column, item, stored in forms:
            array, noted = column.convert(batch, stored.type)
            arrays.append(array)
            told = self._form.told_apart.get(item.physical_name, frozenset())
            if noted is not None:
                notes[(stored.name,)], goes = column.noted(noted, told, array)
                is_alike = is_alike and goes
            else:
                is_alike = is_alike and not told
        return arrays, notes, is_alike


def _kept(
    batches: Iterable[pa.RecordBatch], deleted: Int64s
) -> Iterator[tuple[pa.RecordBatch, Int64s]]:
    """Yield batches without deleted rows, and the places of their rows in the file."""
    start = 0
    for batch in batches:
        positions = np.arange(start, start + batch.num_rows)
        low, high = np.searchsorted(deleted, (start, start + batch.num_rows))
        if low < high:
            kept = np.ones(batch.num_rows, np.bool_)
            kept[deleted[low:high] - start] = False
            if kept.any():
                yield batch.filter(arrow_array(kept)), positions[kept]
        else:
            yield batch, positions
        start += batch.num_rows


@contextmanager
def _placed(pieces: Sequence[_Piece]) -> Iterator[None]:
    """Make errors name the file and the row in it; errors count rows over all pieces."""
    try:
        yield
    except VariantLakeError as error:
        row = error.row or 0
        for piece in pieces:
            if row < len(piece.positions):
                error.file = piece.location
                error.row = None if error.row is None else int(piece.positions[row])
                break
            row -= len(piece.positions)
        raise
