"""Read Parquet files with Variant columns into Arrow.

Every Variant column, at any depth, becomes struct<metadata: binary, value: binary>, rebuilt from
the file's shredding; SQL NULL is a null struct. Other columns are as pyarrow reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

import pyarrow as pa

from variantlake.errors import InvalidPath, InvalidValue, MalformedFile, VariantLakeError, in_file
from variantlake.parallel.prefetch import ahead
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.parquet_source import BATCH_ROWS, open_parquet
from variantlake.parquet.variant.variant_columns import column_of, result_field, variant_nodes
from variantlake.progress import OnProgress, Progress
from variantlake.storage.opening import Source, name_of, open_file
from variantlake.storage.options import reach_with


def read_table(
    path: Source,
    columns: Sequence[str] | None = None,
    *,
    variant_columns: Collection[str] = (),
    progress: OnProgress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Read a Parquet file, with every Variant column as struct<metadata, value>.

    Args:
        path: A file name, a URL of an object store, or an open binary file.
        columns: Names of top-level columns in the wanted order; None means all.
        variant_columns: Dotted names of groups to read as Variants although the file does not mark
            them. Groups of binary `metadata` and `value`, and those of the legacy layout
            (`variant_group.is_legacy_group`), need not be named.
        progress: Called after each batch with the rows read so far and the rows of the file.
        storage_options: How to reach the file's bucket, as for `Table.open`.

    Raises:
        MalformedFile: The file breaks a specification; with file, row and path.
        InvalidPath: The file does not have a column, or a group of `variant_columns`.
        MissingSource: There is no such file.
    """
    reach_with(path, storage_options)
    with VariantFile(path, columns, variant_columns=variant_columns) as file:
        return pa.Table.from_batches(file.batches(progress=progress), file.schema)


def iter_batches(
    path: Source,
    batch_rows: int = BATCH_ROWS,
    columns: Sequence[str] | None = None,
    *,
    row_groups: Sequence[int] | None = None,
    variant_columns: Collection[str] = (),
    progress: OnProgress | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read a file as `read_table` does, in record batches.

    Memory is bounded by a few pages of each column and one batch. The file is opened when the
    caller takes the first batch.

    Args:
        path: As for `read_table`, like `columns` and `variant_columns`.
        batch_rows: The most rows of a batch, 1 or more. Batches of large rows have fewer: about
            64 MB of them.
        columns: Names of top-level columns in the wanted order; None means all.
        row_groups: Indexes of the row groups to read, from 0; None means all.
        variant_columns: Dotted names of groups to read as Variants.
        progress: Called after each batch with the rows read so far and the rows of `row_groups`.
        storage_options: As for `read_table`.

    Raises:
        InvalidValue: `batch_rows` below 1, or a row group that the file does not have.
        MissingSource, MalformedFile, InvalidPath: As `read_table`, when the batch is reached.
    """
    reach_with(path, storage_options)
    with VariantFile(path, columns, variant_columns=variant_columns) as file:
        yield from file.batches(batch_rows, row_groups, progress)


def find_variants(
    path: Source,
    *,
    variant_columns: Collection[str] = (),
    storage_options: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the dotted names of a file's Variant columns, at any depth, in schema order.

    `variant_columns` names groups that are Variants although the file does not mark them.
    `storage_options` are as for `read_table`.
    Raises MalformedFile, MissingSource, and InvalidPath for a group that the file does not have.
    """
    reach_with(path, storage_options)
    footer = read_footer(path)
    columns = columns_of_variants(footer, named_groups(footer, variant_columns))
    return tuple(".".join(column) for column in columns)


class VariantFile:
    """An open Parquet file, and the conversion of each of its columns to Arrow.

    `footer` is the file's decoded footer, `schema` the Arrow schema of the result.
    """

    def __init__(
        self,
        path: Source,
        columns: Sequence[str] | None = None,
        *,
        variant_columns: Collection[str] = (),
    ) -> None:
        self.name = name_of(path)
        with in_file(self.name), ExitStack() as opened:
            self._input = open_file(path)
            opened.callback(self._input.close)
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
            opened.pop_all()

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
        progress: OnProgress | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `row_groups`, in that order; None means all of the file's."""
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
                f"no row group {unknown[0]}",
                file=self.name,
                hint=f"the file has {len(there)}, counted from 0",
            )
        done, rows = 0, sum(self.footer.row_groups[group].num_rows for group in groups)
        found = self._read(groups, leaves, batch_rows)
        with in_file(self.name):
            for batch in ahead(found, self._convert, lambda read: read[0].get_total_buffer_size()):
                done += batch.num_rows
                if progress is not None:
                    progress(Progress(done, rows, "rows", "read"))
                yield batch

    def _read(
        self, groups: Iterable[int], leaves: Sequence[int], batch_rows: int
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield batches before their conversion, each with the number of its first row."""
        for group in groups:
            start = sum(each.num_rows for each in self.footer.row_groups[:group])
            for batch in self._file.batches(group, leaves, batch_rows):
                yield batch, start
                start += batch.num_rows

    def _convert(self, read: tuple[pa.RecordBatch, int]) -> pa.RecordBatch:
        batch, start = read
        arrays = []
        for field, column in zip(self.schema, self._columns, strict=True):
            # By name: the columns of the batch are in the file's order.
            array = batch.column(field.name)
            try:
                arrays.append(array if column is None else column.convert(array))
            except VariantLakeError as error:
                error.row = None if error.row is None else start + error.row
                error.say_first(f"column {field.name!r}")
                raise
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def named_groups(footer: Footer, names: Collection[str]) -> frozenset[tuple[str, ...]]:
    """Resolve dotted names to groups of a file. Raises InvalidPath for a group that it lacks."""
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
    """Return the names of a file's Variants (see `is_variant`), in schema order."""
    return tuple(
        column
        for top in footer.schema.children
        for _, column in variant_nodes(top, wanted, (top.name,))
    )


def check_batch_rows(batch_rows: int) -> None:
    """Raise InvalidValue if batches would have no rows."""
    if batch_rows < 1:
        raise InvalidValue(f"batches of {batch_rows} rows", hint="batch_rows is 1 or more")


def _check_names(names: Collection[str]) -> None:
    """Refuse text where a list of names belongs: its letters would be the names."""
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
    """Drop the key-value entry that describes the shredded columns, which the result lacks."""
    return {k: v for k, v in (metadata or {}).items() if k != b"parquet.avro.schema"} or None
