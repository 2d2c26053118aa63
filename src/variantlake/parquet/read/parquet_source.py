"""Read a Parquet file with pyarrow piece by piece, by row group and leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self

import pyarrow as pa
from pyarrow._parquet import ParquetReader

from variantlake.errors import MalformedFile, VariantLakeError, in_file
from variantlake.parquet.metadata.footer import Footer
from variantlake.parquet.metadata.old_times import OldTimes
from variantlake.parquet.metadata.pages import check_pages, pages_are_usual
from variantlake.parquet.read.chunk_pages import ChunkPlace
from variantlake.parquet.read.chunk_runs import CodeRuns, read_runs
from variantlake.parquet.read.chunk_values import read_values
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.shredding.plain_types import viewless_array, viewless_type
from variantlake.storage.opening import Source, open_file

BATCH_ROWS = 16384
"""Rows of a batch. Memory grows with this and the page size, not with the file."""

WHOLE_BYTES = 256 << 20
"""A column chunk with more bytes than this is read in batches."""

BATCH_BYTES = 64 << 20
"""A batch with more bytes than this has fewer rows, at least one."""


class ParquetSource:
    """A file that pyarrow reads piece by piece; `column` reads `encoded` leaves as dictionaries.

    Errors name the file `name`. With `lazily`, pyarrow opens it only if our kernels cannot read a
    chunk.
    """

    def __init__(
        self,
        path: Source,
        name: str,
        footer: Footer,
        encoded: Sequence[int] = (),
        *,
        lazily: bool = False,
    ) -> None:
        """Raises pyarrow's errors, which `open_parquet` translates."""
        self._name = name
        self._footer = footer
        self._input = open_file(path)
        self._old = OldTimes.of(footer)
        self._encoded = tuple(encoded)
        if not lazily:
            _ = self._columns
        self._unencoded: set[int] = set()

    @cached_property
    def _columns(self) -> ParquetReader:
        """The reader that returns the leaves `encoded` as dictionaries."""
        return self._opened("us", self._encoded)

    @cached_property
    def _file(self) -> ParquetReader:
        """The reader that returns all leaves without dictionaries."""
        return self._opened("us") if self._encoded else self._columns

    def _opened(self, int96: str, dictionaries: Sequence[int] = ()) -> ParquetReader:
        # ParquetFile would also tabulate all dotted paths, which takes as long as the rest.
        reader: Any = ParquetReader()  # its stubs lack parameters
        # Without pre_buffer: whole chunks in memory would make it grow with the row group.
        reader.open(
            self._input.native,
            read_dictionary=list(dictionaries) or None,
            pre_buffer=False,
            buffer_size=0 if self._input.data is not None else 1 << 20,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit=int96,
            arrow_extensions_enabled=True,
        )
        opened: ParquetReader = reader
        return opened

    @cached_property
    def schema_arrow(self) -> pa.Schema:
        """The schema as pyarrow reads it, with view types replaced by plain ones."""
        schema = self._file.schema_arrow
        plain = [field.with_type(viewless_type(field.type)) for field in schema]
        return pa.schema(plain).with_metadata(schema.metadata)

    def close(self) -> None:
        """Close the file if we opened it."""
        self._input.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def batches(
        self, row_group: int, leaves: Sequence[int], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group, with the columns of `leaves`. Raises MalformedFile.

        Leaves are positions, since dotted names cannot tell the key `a.b` from the key `b` in `a`.
        A batch has at most `batch_rows` rows, and about BATCH_BYTES.
        """
        with self._reading(row_group):
            yield from self._batches(row_group, leaves, batch_rows)

    def _batches(
        self, row_group: int, leaves: Sequence[int], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Check the page headers, then return the batches."""
        # From our footer: pyarrow's chunk objects abort the process on broken size statistics.
        group, leaf_of = self._footer.row_groups[row_group], self._footer.leaves
        held = self._input.data
        size = -1 if held is None else pages_are_usual(held, leaf_of, group, leaves)
        if size < 0:
            chunks = [group.columns[leaf] for leaf in leaves]
            self._input.prefetch((chunk.first_page, chunk.compressed_size) for chunk in chunks)
            size = sum(
                check_pages(self._input.read_at, leaf_of[leaf], group.columns[leaf], group)
                for leaf in leaves
            )
        rows = min(max(1, BATCH_BYTES * group.num_rows // max(size, 1)), batch_rows)
        batches: Iterator[pa.RecordBatch]
        if held is not None and group.num_rows <= rows:
            # A caller with many small files in memory reads them in its own threads.
            table = self._file.read_row_group(
                row_group, column_indices=list(leaves), use_threads=False
            )
            batches = iter(table.to_batches())
        else:
            batches = self._file.iter_batches(rows, [row_group], column_indices=list(leaves))
        batches = map(self._viewless, batches)
        if self._old.concern(leaves):
            return self._settled(batches, row_group, leaves)
        return batches

    def column(self, row_group: int, leaf: int) -> list[pa.RecordBatch] | None:
        """Read one leaf of a row group at once. Raises MalformedFile.

        Returns None if that takes too much memory, or if old timestamps need `OldTimes.settled`.
        """
        with self._reading(row_group):
            return self._column(row_group, leaf)

    def _column(self, row_group: int, leaf: int) -> list[pa.RecordBatch] | None:
        group, own = self._footer.row_groups[row_group], self._footer.leaves[leaf]
        chunk = group.columns[leaf]
        if self._old.concern([leaf]):
            return None
        self._input.prefetch([(chunk.first_page, chunk.compressed_size)])
        if check_pages(self._input.read_at, own, chunk, group) > WHOLE_BYTES:
            return None
        if leaf not in self._unencoded:
            try:
                table = self._columns.read_row_group(row_group, column_indices=[leaf])
                return [self._viewless(batch) for batch in table.to_batches()]
            except MemoryError:  # an ArrowException too, and the file may be whole
                raise
            except (pa.ArrowException, OSError):
                # pyarrow reads no dictionaries from encodings such as DELTA_BYTE_ARRAY, and its
                # errors for that vary. So read whole values; that raises any other error again.
                self._unencoded.add(leaf)
        table = self._file.read_row_group(row_group, column_indices=[leaf])
        return [self._viewless(batch) for batch in table.to_batches()]

    def _viewless(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if all(viewless_type(field.type) == field.type for field in batch.schema):
            return batch
        columns = [viewless_array(column) for column in batch.columns]
        fields = zip(batch.schema, columns, strict=True)
        plain = [field.with_type(column.type) for field, column in fields]
        schema = pa.schema(plain).with_metadata(batch.schema.metadata)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def values(self, row_group: int, leaf: int, places: Int64s | None) -> Any:
        """Call `read_values`. Returns None also if old timestamps need `OldTimes.settled`."""
        if self._old.concern([leaf]):
            return None
        return read_values(self._place(row_group, leaf), places)

    def chunk(self, row_group: int, leaf: int) -> ChunkPlace | None:
        """Return a chunk for `read_joined`, None if old timestamps need `OldTimes.settled`."""
        return None if self._old.concern([leaf]) else self._place(row_group, leaf)

    def runs(self, row_group: int, leaf: int) -> CodeRuns | None:
        """Call `read_runs`."""
        return read_runs(self._place(row_group, leaf))

    def _place(self, row_group: int, leaf: int) -> ChunkPlace:
        group = self._footer.row_groups[row_group]
        return ChunkPlace(self._input, self._footer.leaves[leaf], group.columns[leaf], group)

    def _settled(
        self, batches: Iterator[pa.RecordBatch], row_group: int, leaves: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        start = 0
        seconds = None
        if timestamps := sorted(self._old.int96.intersection(leaves)):
            file = self._opened("s")
            seconds = file.read_row_group(row_group, column_indices=timestamps)
        for batch in batches:
            part = None if seconds is None else seconds.slice(start, batch.num_rows)
            try:
                yield self._old.settled(batch, leaves, part)
            except VariantLakeError as error:
                if error.row is not None:
                    before = self._footer.row_groups[:row_group]
                    error.row += start + sum(group.num_rows for group in before)
                raise
            start += batch.num_rows

    @contextmanager
    def _reading(self, row_group: int) -> Iterator[None]:
        """Add the row group's number and the file's name to errors, ours and pyarrow's."""
        with in_file(self._name):
            try:
                yield
            except VariantLakeError as error:  # some are OSErrors too
                error.say_first(f"row group {row_group}")
                raise
            except MemoryError:  # an ArrowException too, and the file may be whole
                raise
            except (pa.ArrowException, OSError) as error:
                if "launch worker thread" in str(error):  # for lack of memory
                    raise MemoryError(str(error)) from error
                raise MalformedFile(f"row group {row_group} does not read: {error}") from error


def open_parquet(
    path: Source,
    name: str,
    footer: Footer,
    encoded: Sequence[int] = (),
    *,
    lazily: bool = False,
) -> ParquetSource:
    """Open a file as a ParquetSource. Raises MalformedFile."""
    try:
        return ParquetSource(path, name, footer, encoded, lazily=lazily)
    except VariantLakeError:
        raise  # some are OSErrors too
    except MemoryError:  # an ArrowException too, and the file may be whole
        raise
    except (pa.ArrowException, OSError) as error:
        raise MalformedFile(f"pyarrow cannot open it: {error}", file=name) from error
