"""Reading Parquet files with Variant columns into Arrow.

Every Variant column, wherever it is nested, comes back as struct<metadata: binary, value: binary>,
rebuilt from whatever shredding the file has; SQL NULL is a null struct. Other columns come back as
pyarrow reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import pyarrow as pa
from pyarrow._parquet import ParquetReader

from variantlake.errors import InvalidPath, InvalidValue, MalformedFile, VariantLakeError
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.old_times import OldTimes
from variantlake.parquet.metadata.pages import check_pages, pages_are_usual
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.chunk_values import CodeRuns, read_runs, read_values
from variantlake.parquet.read.prefetch import ahead
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.parquet.variant.variant_columns import column_of, result_field, variant_nodes
from variantlake.storage.opening import Source, name_of, open_file

Progress = Callable[[int, int], None]
"""Called after each batch with the rows that are done and the rows of all."""

BATCH_ROWS = 16384
"""Rows that are taken apart at a time; memory follows this and the page size, not the file."""

WHOLE_BYTES = 256 << 20
"""A column of a row group of more bytes than so many is read in batches."""

BATCH_BYTES = 64 << 20
"""Rows of more bytes than so many together are taken apart in smaller batches, one at the least."""


def read_table(
    path: Source,
    columns: Sequence[str] | None = None,
    *,
    variant_columns: Collection[str] = (),
    progress: Progress | None = None,
) -> pa.Table:
    """Read a Parquet file, every Variant column as struct<metadata, value>.

    Args:
        path: A file name, a URL of an object store, or an open binary file.
        columns: Names of top-level columns in the order wanted; all of them when None.
        variant_columns: Dotted names of groups to read as Variants although the file does not mark
            them. Groups of binary `metadata` and `value`, and those of the legacy layout
            (`variant_group.is_legacy_group`), are found without that.
        progress: Called after each batch with the rows that are read and the rows of the file.

    Raises:
        MalformedFile: The file breaks a specification; with file, row and path.
        InvalidPath: A column, or a group of `variant_columns`, that the file does not have.
        MissingSource: There is no such file.
    """
    with VariantFile(path, columns, variant_columns=variant_columns) as file:
        return pa.Table.from_batches(file.batches(progress=progress), file.schema)


def iter_batches(
    path: Source,
    batch_rows: int = BATCH_ROWS,
    columns: Sequence[str] | None = None,
    *,
    row_groups: Sequence[int] | None = None,
    variant_columns: Collection[str] = (),
    progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read a file as `read_table` does, in record batches.

    Memory is bounded by a few pages of each column and one batch. Nothing is opened before the
    first batch is asked for.

    Args:
        path: As for `read_table`, like `columns` and `variant_columns`.
        batch_rows: The most rows of a batch, 1 or more. A batch has fewer where rows are large:
            about 64 MB of them.
        columns: Names of top-level columns in the order wanted; all of them when None.
        row_groups: Indexes of the row groups to read, from 0; all of them when None.
        variant_columns: Dotted names of groups to take for Variants.
        progress: Called after each batch with the rows that are read and the rows of the file.

    Raises:
        InvalidValue: `batch_rows` below 1, or a row group that the file does not have.
        MissingSource, MalformedFile, InvalidPath: As `read_table`, when the batch is reached.
    """
    with VariantFile(path, columns, variant_columns=variant_columns) as file:
        yield from file.batches(batch_rows, row_groups, progress)


def find_variants(path: Source, *, variant_columns: Collection[str] = ()) -> tuple[str, ...]:
    """The dotted names of the Variant columns of a file, at any depth, in schema order.

    `variant_columns` are such names of groups to take for Variants although nothing marks them.
    Raises MalformedFile, MissingSource, and InvalidPath for a group that the file does not have.
    """
    footer = read_footer(path)
    columns = columns_of_variants(footer, named_groups(footer, variant_columns))
    return tuple(".".join(column) for column in columns)


class VariantFile:
    """An open Parquet file and how each of its columns becomes Arrow.

    `footer` is what the file says of itself, `schema` the Arrow schema of the result.
    """

    def __init__(
        self,
        path: Source,
        columns: Sequence[str] | None = None,
        *,
        variant_columns: Collection[str] = (),
    ) -> None:
        self.name = name_of(path)
        self._input = open_file(path)
        try:
            self.footer = read_footer(self._input)
            wanted = named_groups(self.footer, variant_columns)
            self._nodes = _selected(self.footer, columns)
            self._columns = [column_of(node, wanted) for node in self._nodes]
            self._file = open_parquet(self._input, self.name, self.footer)
            arrow = _subset(self._file.schema_arrow, [node.name for node in self._nodes])
            self.schema = pa.schema(
                [
                    field if column is None else result_field(field, column)
                    for field, column in zip(arrow, self._columns, strict=True)
                ],
                metadata=arrow.metadata,  # type: ignore[arg-type]  # stubs: its own type, refused
            )
        except VariantLakeError as error:
            self._input.close()
            error.file = error.file or self.name
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file if we opened it."""
        self._input.close()

    def batches(
        self,
        batch_rows: int = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the row groups asked for (all when None), in file order."""
        check_batch_rows(batch_rows)
        leaves = sorted(
            leaf
            for node, column in zip(self._nodes, self._columns, strict=True)
            for leaf in (node.leaves() if column is None else column.leaves())
        )
        there = range(len(self.footer.row_groups))
        groups = there if row_groups is None else row_groups
        if unknown := [group for group in groups if group not in there]:
            raise InvalidValue(
                f"there is no row group {unknown[0]}",
                file=self.name,
                hint=f"the file has {len(there)}, counted from 0",
            )
        done, rows = 0, sum(self.footer.row_groups[group].num_rows for group in groups)
        found = self._read(groups, leaves, batch_rows)
        for batch in ahead(found, self._convert, lambda read: read[0].get_total_buffer_size()):
            done += batch.num_rows
            if progress is not None:
                progress(done, rows)
            yield batch

    def _read(
        self, groups: Iterable[int], leaves: Sequence[int], batch_rows: int
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches as the file holds them, each with the number of its first row."""
        for group in groups:
            start = sum(each.num_rows for each in self.footer.row_groups[:group])
            for batch in read_leaves(self._file, self.name, group, leaves, batch_rows):
                yield batch, start
                start += batch.num_rows

    def _convert(self, read: tuple[pa.RecordBatch, int]) -> pa.RecordBatch:
        batch, start = read
        arrays = []
        for field, column in zip(self.schema, self._columns, strict=True):
            # By name: the batch has the file's order and no column twice.
            array = batch.column(field.name)
            try:
                arrays.append(array if column is None else column.convert(array))
            except VariantLakeError as error:
                error.file = self.name
                error.row = None if error.row is None else start + error.row
                error.message = f"column {field.name!r}: {error.message}"
                error.args = (error.message,)
                raise
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def named_groups(footer: Footer, names: Collection[str]) -> frozenset[tuple[str, ...]]:
    """The groups of a file that dotted names mean. Raises InvalidPath for one that is not there."""
    _check_names(names)
    groups = dict(_groups_below(footer.schema, ()))
    for name in names:
        if name not in groups:
            raise InvalidPath(
                f"no group {name!r} to read as a Variant",
                hint=f"the file has {', '.join(map(repr, groups)) or 'no group at all'}",
            )
    return frozenset(groups[name] for name in names)


def _groups_below(
    node: SchemaNode, above: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for child in node.children:
        if child.is_group:
            column = (*above, child.name)
            yield ".".join(column), column
            yield from _groups_below(child, column)


def columns_of_variants(
    footer: Footer, wanted: Collection[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """The Variants of a file, by `is_variant`, in schema order."""
    return tuple(
        column
        for top in footer.schema.children
        for _, column in variant_nodes(top, wanted, (top.name,))
    )


def check_batch_rows(batch_rows: int) -> None:
    """Raise InvalidValue for a size of batch that would read no row."""
    if batch_rows < 1:
        raise InvalidValue(f"batches of {batch_rows} rows", hint="batch_rows is 1 or more")


class ParquetSource:
    """A file that pyarrow reads piece by piece; `column` gives some leaves as dictionaries."""

    def __init__(self, path: Source, footer: Footer, encoded: Sequence[int] = ()) -> None:
        """Raises pyarrow's own errors: see `open_parquet`."""
        self._footer = footer
        self._input = open_file(path)
        # Buffering whole column chunks ahead would make memory follow the row group.
        self._old = OldTimes.of(footer)
        self._encoded = tuple(encoded)
        if not encoded:
            _ = self._columns  # else kernels read most of it
        self._unencoded: set[int] = set()

    @cached_property
    def _columns(self) -> ParquetReader:
        """Reads some leaves as dictionaries."""
        return self._opened("us", self._encoded)

    @cached_property
    def _file(self) -> ParquetReader:
        """Reads all leaves as they are."""
        return self._opened("us") if self._encoded else self._columns

    def _opened(self, int96: str, dictionaries: Sequence[int] = ()) -> ParquetReader:
        # Not ParquetFile, which also tabulates all dotted paths: that takes as long as the rest.
        reader: Any = ParquetReader()  # its stubs lack parameters
        reader.open(
            self._input.native,
            read_dictionary=list(dictionaries) or None,
            pre_buffer=False,
            buffer_size=0 if self._input.held is not None else 1 << 20,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit=int96,
            arrow_extensions_enabled=True,
        )
        opened: ParquetReader = reader
        return opened

    @property
    def schema_arrow(self) -> pa.Schema:
        """The schema as pyarrow understands it."""
        return self._file.schema_arrow

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
        """Rows of a row group, after a look at the page headers. Raises as `read_leaves` does.

        A batch has at most `batch_rows` rows, and about BATCH_BYTES.
        """
        # Our own footer: pyarrow's objects for a chunk abort the process on broken size statistics.
        group, leaf_of = self._footer.row_groups[row_group], self._footer.leaves
        held = self._input.held
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
            # Whoever holds many small files in memory reads them by threads of his own.
            table = self._file.read_row_group(
                row_group, column_indices=list(leaves), use_threads=False
            )
            batches = iter(table.to_batches())
        else:
            batches = self._file.iter_batches(rows, [row_group], column_indices=list(leaves))
        if self._old.concern(leaves):
            return self._settled(batches, row_group, leaves)
        return batches

    def column(self, row_group: int, leaf: int) -> list[pa.RecordBatch] | None:
        """One leaf of a row group in one go. Raises as `batches`.

        None where that takes too much memory, and for times that have to be settled.
        """
        group, own = self._footer.row_groups[row_group], self._footer.leaves[leaf]
        chunk = group.columns[leaf]
        if self._old.concern([leaf]):
            return None
        self._input.prefetch([(chunk.first_page, chunk.compressed_size)])
        if check_pages(self._input.read_at, own, chunk, group) > WHOLE_BYTES:
            return None
        if leaf not in self._unencoded:
            try:
                return self._columns.read_row_group(row_group, column_indices=[leaf]).to_batches()
            except (pa.ArrowException, OSError):
                # Other encodings, such as DELTA_BYTE_ARRAY, are not implemented, and which error
                # says so varies: whole values then, or what else is wrong is said for them.
                self._unencoded.add(leaf)
        return self._file.read_row_group(row_group, column_indices=[leaf]).to_batches()

    def values(self, row_group: int, leaf: int, places: Int64s | None) -> Any:
        """See `read_values`; None for times that have to be settled too."""
        if self._old.concern([leaf]):
            return None
        group = self._footer.row_groups[row_group]
        own, chunk = self._footer.leaves[leaf], group.columns[leaf]
        return read_values(self._input, own, chunk, group, places)

    def runs(self, row_group: int, leaf: int) -> CodeRuns | None:
        """See `read_runs`."""
        group = self._footer.row_groups[row_group]
        return read_runs(self._input, self._footer.leaves[leaf], group.columns[leaf], group)

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


def open_parquet(
    path: Source, name: str, footer: Footer, encoded: Sequence[int] = ()
) -> ParquetSource:
    """Open a file with pyarrow for reading piece by piece. Raises MalformedFile."""
    try:
        return ParquetSource(path, footer, encoded)
    except VariantLakeError:
        raise  # some are OSErrors too
    except (pa.ArrowException, OSError) as error:
        raise MalformedFile(f"pyarrow cannot open it: {error}", file=name) from error


def read_leaves(
    file: ParquetSource, name: str, row_group: int, leaves: Sequence[int], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of one row group with the columns that some leaves need. Raises MalformedFile.

    By position: dotted names cannot tell the key `a.b` from the key `b` within `a`.
    """
    try:
        yield from file.batches(row_group, leaves, batch_rows)
    except VariantLakeError as error:  # some are OSErrors too
        error.message = f"row group {row_group}: {error.message}"
        error.args = (error.message,)
        error.file = name
        raise
    except (pa.ArrowException, OSError) as error:
        raise MalformedFile(f"row group {row_group} does not read: {error}", file=name) from error


def read_leaf(
    file: ParquetSource, name: str, row_group: int, leaf: int
) -> list[pa.RecordBatch] | None:
    """See `ParquetSource.column`. Raises MalformedFile."""
    try:
        return file.column(row_group, leaf)
    except VariantLakeError as error:
        error.message = f"row group {row_group}: {error.message}"
        error.args = (error.message,)
        error.file = name
        raise
    except (pa.ArrowException, OSError) as error:
        raise MalformedFile(f"row group {row_group} does not read: {error}", file=name) from error


def _check_names(names: Collection[str]) -> None:
    """Refuse one name where a list of them is meant: its letters would be taken for names."""
    if isinstance(names, str):
        raise InvalidPath(f"columns are a list of names, not text: {names!r}", hint=f"[{names!r}]")


def _selected(footer: Footer, columns: Sequence[str] | None) -> list[SchemaNode]:
    top = {node.name: node for node in footer.schema.children}
    if len(top) != len(footer.schema.children):
        raise MalformedFile("two columns of the file have one name")
    if columns is None:
        return list(footer.schema.children)
    _check_names(columns)
    if unknown := [name for name in columns if name not in top]:
        raise InvalidPath(
            f"no column {unknown[0]!r}", hint=f"the file has {', '.join(map(repr, top))}"
        )
    return [top[name] for name in dict.fromkeys(columns)]


def _subset(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    fields = {field.name: field for field in schema}
    return pa.schema(
        [fields[name] for name in names], metadata=_without_avro_schema(schema.metadata)
    )


def _without_avro_schema(metadata: Any) -> Any:
    """The file's own key-value metadata, less the entry that describes the shredded columns."""
    return {k: v for k, v in (metadata or {}).items() if k != b"parquet.avro.schema"} or None
