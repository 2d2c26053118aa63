"""Write Parquet files whose Variant columns every reader recognises, and collect their statistics.

A file has row groups of bounded size, a page index, one compression for all leaves, decimals as
integers if they fit, and VARIANT(1) in its footer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from variantlake.errors import InvalidSchema, InvalidValue, MissingSource
from variantlake.parquet.metadata.annotate import ColumnPath, annotate
from variantlake.parquet.metadata.footer import parse_footer
from variantlake.parquet.metadata.value_notes import (
    NO_NOTES,
    NOTES_KEY,
    UNKNOWN_REORDERED,
    NotesCollector,
    encode_all,
)
from variantlake.parquet.stats.facts import FileFacts, facts_of, row_group_facts
from variantlake.parquet.stats.statistics_collector import StatisticsCollector
from variantlake.parquet.variant.key_orders import may_differ
from variantlake.parquet.write.encodings import DICTIONARY_BYTES, choose_encodings
from variantlake.parquet.write.repair import RequiredFields
from variantlake.parquet.write.shared_metadata import SharedMetadata
from variantlake.shredding.arrays import AnyArray, AnyField, element_field, members, struct_of
from variantlake.shredding.layout import METADATA, is_list, is_struct, schema_of
from variantlake.shredding.plain_types import plain_array, plain_type
from variantlake.shredding.schema import ShreddingSchema, Untyped
from variantlake.shredding.values import ValueNotes

Compression = Literal["gzip", "brotli", "lz4", "zstd", "snappy", "none"]


ZSTD_LEVEL = 2
"""On events of 1 KB: 4 % smaller than level 1 for 10 % more time; level 3 is only slower."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The layout of files. Sizes in bytes.

    A row group ends at about `row_group_bytes` of memory (Arrow) or at `row_group_rows`, whichever
    comes first. `page_bytes` and `page_rows` do the same for a data page before compression;
    `page_version` is the version of data pages. `compression_level` None is ZSTD_LEVEL for zstd,
    else the codec's default.

    Raises InvalidValue for a bound below 1.
    """

    compression: Compression = "zstd"
    compression_level: int | None = None
    row_group_bytes: int = 64 << 20
    row_group_rows: int = 1 << 20
    page_bytes: int = 1 << 20
    page_rows: int = 20_000
    page_version: Literal["1.0", "2.0"] = "1.0"

    def __post_init__(self) -> None:
        for name in ("row_group_bytes", "row_group_rows", "page_bytes", "page_rows"):
            if getattr(self, name) < 1:
                raise InvalidValue(f"{name} is {getattr(self, name)}, expected at least 1")


DEFAULT_OPTIONS = WriteOptions()


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file: its size in bytes and the facts about its rows."""

    path: str
    size: int
    facts: FileFacts


class FileWriter:
    """Writes one file, a row group at a time; memory grows with the row group.

    `write` keeps rows until a row group is full. `close` finishes the file; it is not a Parquet
    file before, and `abort` removes it. As a context manager it closes at the end, and aborts on
    an exception.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        *,
        variant_columns: Sequence[ColumnPath] = (),
        options: WriteOptions = DEFAULT_OPTIONS,
        watch: Callable[[pa.Table], None] | None = None,
    ) -> None:
        """Open `path`, which is overwritten, for batches of exactly `schema`.

        `variant_columns` are the paths, in names of the Parquet schema (in a list `list`,
        `element`, in a map `key_value`, `value`), of the structs to mark as VARIANT; their types
        come from `shredding.layout.arrow_type`. `watch` is called with the rows of each row group
        before they are encoded.

        Raises InvalidSchema for a column that is missing or is not a shredded Variant, and for
        repeated names; MissingSource when the folder does not exist.
        """
        self._path = os.fspath(path)
        self._given_schema = schema.remove_metadata()
        self._schema = pa.schema([f.with_type(plain_type(f.type)) for f in self._given_schema])
        self._required = RequiredFields(self._schema)
        self._variants = tuple(variant_columns)
        self._options = options
        self._watch = watch
        shreddings = _shreddings(self._schema, self._variants)
        self._collector = StatisticsCollector(self._schema, shreddings)
        self._noted = NotesCollector(
            [path for path, each in shreddings.items() if not isinstance(each.root, Untyped)]
        )
        self._unshredded = frozenset(shreddings) - frozenset(self._noted.by_column)
        self._reordered: set[ColumnPath] = set()
        self._metadata: SharedMetadata | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._closed = False
        try:
            self._sink = pa.OSFile(self._path, "wb")
        except FileNotFoundError:
            raise MissingSource("no such folder", file=os.path.dirname(self._path)) from None  # noqa: PTH120  # str in, str out

    @property
    def pending_bytes(self) -> int:
        """Bytes in memory (Arrow) of the rows that are not yet in a row group."""
        return self._pending_bytes

    def write(
        self, data: pa.RecordBatch | pa.Table, notes: Mapping[ColumnPath, ValueNotes] = NO_NOTES
    ) -> None:
        """Add rows. `notes` describe the values of Variant columns; a column without is unknown.

        Raises InvalidSchema when they are not of the writer's schema, InvalidValue for a null in a
        required field. In both cases no row was added.
        """
        if self._closed:
            raise InvalidValue("the file is closed", file=self._path)
        if not data.schema.equals(self._given_schema):
            raise InvalidSchema(
                f"rows of the schema\n{data.schema}\nfor a file of\n{self._given_schema}",
                file=self._path,
            )
        batches = [data] if isinstance(data, pa.RecordBatch) else data.to_batches()
        filled = [self._required.fill(self._plain(batch)) for batch in batches]
        if data.num_rows:
            self._noted.add(notes)
        for batch in filled:
            if batch.num_rows:
                self._collector.add(batch)
                self._add(batch)
                self._flush_full_groups()

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._schema.equals(self._given_schema):
            return batch
        arrays: list[Any] = list(map(plain_array, batch.columns))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def close(self) -> WrittenFile:
        """Write the remaining rows and the footer, mark the Variant columns, and return the facts.

        Aborts when any of that fails.
        """
        if self._closed:
            raise InvalidValue("the file is closed", file=self._path)
        try:
            written = self._finish()
        except BaseException:
            self.abort()
            raise
        self._closed = True
        return written

    def _finish(self) -> WrittenFile:
        if self._pending_rows or self._writer is None:
            self._write_row_group(self._pending_table())
            self._pending.clear()
        if self._writer is not None:
            if notes := self._notes():
                self._writer.add_key_value_metadata({NOTES_KEY: encode_all(notes)})
            self._writer.close()
        self._sink.close()
        tail = annotate(self._path, self._variants)
        footer = parse_footer(tail.footer, tail.offset)
        groups = row_group_facts(footer) if self._collector.has_long_text else ()
        facts = self._collector.refine(facts_of(footer, tail.size), groups)
        return WrittenFile(self._path, facts.size, facts)

    def _notes(self) -> Mapping[ColumnPath, ValueNotes]:
        """Return the notes for the footer. Those of unshredded columns only tell the key order."""
        notes = dict(self._noted.by_column)
        for path in self._reordered:
            nothing = ValueNotes() if path in self._unshredded else UNKNOWN_REORDERED
            notes[path] = replace(notes.get(path, nothing), reordered=True)
        return notes

    def abort(self) -> None:
        """Remove the partial file. Does nothing after `close`."""
        if self._closed:
            return
        self._closed = True
        self._pending.clear()
        # Closing the writer may write to its sink; the file is removed anyway.
        with suppress(OSError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._sink.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)  # noqa: PTH108  # str in, str out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()
        elif not self._closed:
            self.close()

    def _add(self, batch: pa.RecordBatch) -> None:
        """Keep rows for their row group."""
        if self._metadata is None:
            self._metadata = SharedMetadata(self._schema, batch, self._variants)
        kept = self._metadata.share(batch)
        for path in self._variants:
            if path not in self._reordered and may_differ(_metadata_at(kept, path)):
                self._reordered.add(path)
        self._pending.append(kept)
        self._pending_rows += kept.num_rows
        self._pending_bytes += kept.nbytes

    def _pending_table(self) -> pa.Table:
        schema = self._schema if self._metadata is None else self._metadata.schema
        return pa.Table.from_batches(self._pending, schema)

    def _flush_full_groups(self) -> None:
        options = self._options
        while (
            self._pending_rows >= options.row_group_rows
            or self._pending_bytes >= options.row_group_bytes
        ):
            table = self._pending_table()
            rows = self._rows_of_group(table)
            self._write_row_group(table.slice(0, rows))
            rest = table.slice(rows)
            self._pending = rest.to_batches()
            self._pending_rows = rest.num_rows
            self._pending_bytes = rest.nbytes if rest.num_rows else 0

    def _rows_of_group(self, table: pa.Table) -> int:
        """Return the number of first rows that fill one row group, at least one."""
        limit = self._options.row_group_bytes
        rows = min(table.num_rows, self._options.row_group_rows)
        size = table.slice(0, rows).nbytes
        while rows > 1 and size > limit:
            # In proportion; again if the first rows are larger than the average. A group slightly
            # above the bound is better than a tiny one after it.
            fitting = max(1, min(rows * limit // size, rows - 1))
            if size <= limit + limit // 4:
                break
            rows = fitting
            size = table.slice(0, rows).nbytes
        return rows

    def _write_row_group(self, table: pa.Table) -> None:
        if self._writer is None:
            self._writer = self._open(table)
        if table.num_rows:
            if self._metadata is not None:
                table = self._metadata.unify(table)
            if self._watch is not None:
                self._watch(table)
            self._writer.write_table(table, row_group_size=table.num_rows)

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        options, level = self._options, self._options.compression_level
        encodings = choose_encodings(first)
        if level is None and options.compression == "zstd":
            level = ZSTD_LEVEL
        return pq.ParquetWriter(
            self._sink,
            first.schema,
            version="2.6",
            data_page_version=options.page_version,
            # One codec for all leaves: a dict would leave unnamed leaves uncompressed.
            compression=options.compression,
            compression_level=level,
            use_dictionary=encodings.dictionary or False,  # type: ignore[arg-type]  # a list is taken
            column_encoding=encodings.others or None,
            dictionary_pagesize_limit=DICTIONARY_BYTES,
            data_page_size=options.page_bytes,
            max_rows_per_page=options.page_rows,
            write_batch_size=_rows_at_once(first, options.page_bytes),
            write_page_index=True,
            store_decimal_as_integer=True,
            write_page_checksum=True,
            # We do not need the Arrow schema in the key-value metadata.
            store_schema=False,
        )


def _rows_at_once(table: pa.Table, page_bytes: int) -> int:
    """Return the rows after which pyarrow checks a page's size: fewer than its default if large.

    Readers decompress whole pages, so a page should not have a thousand large values.
    """
    return max(1, min(1024, page_bytes * table.num_rows // max(table.nbytes, 1)))


def _shreddings(
    schema: pa.Schema, variants: Sequence[ColumnPath]
) -> dict[ColumnPath, ShreddingSchema]:
    """Return the shredding of each Variant column. Raises InvalidSchema."""
    if len(set(schema.names)) != len(schema.names):
        raise InvalidSchema(f"column names repeat: {schema.names}")
    return {path: schema_of(_resolve(schema, path)) for path in variants}


def _resolve(schema: pa.Schema, path: ColumnPath) -> pa.DataType:
    """Return the Arrow type at a path of Parquet names."""
    kind: pa.DataType = pa.struct(list(schema))
    rest = path
    while rest:
        for names, field in inner_fields(kind):
            if rest[: len(names)] == names:
                kind, rest = field.type, rest[len(names) :]
                break
        else:
            raise InvalidSchema(f"there is no column {'.'.join(path)!r}")
    return kind


def _metadata_at(batch: pa.RecordBatch, path: ColumnPath) -> AnyArray:
    """Return the metadata of a Variant at a path of Parquet names.

    In lists and maps, it may include elements of rows outside the batch.
    """
    array: Any = batch.column(batch.schema.get_field_index(path[0]))
    rest = path[1:]
    while rest:
        if isinstance(array, pa.MapArray):
            array, rest = (array.keys if rest[1] == "key" else array.items), rest[2:]
        elif is_list(array.type):
            array, rest = array.values, rest[2:]
        else:
            array, rest = struct_of(array).field(rest[0]), rest[1:]
    return struct_of(array).field(METADATA)


def inner_fields(arrow: pa.DataType) -> Iterator[tuple[ColumnPath, AnyField]]:
    """Yield the fields of a type with the Parquet names that lead to them."""
    if isinstance(arrow, pa.MapType):
        yield ("key_value", "key"), arrow.key_field
        yield ("key_value", "value"), arrow.item_field
    elif is_struct(arrow):
        for field in members(arrow):
            yield (field.name,), field
    elif is_list(arrow):
        yield ("list", "element"), element_field(arrow)
