"""Scan a table without Spark: the same plan and the same answers, as Arrow batches.

The plan decides which files to skip and how to read paths. Conditions are evaluated on the columns
that they need; only rows that fulfil them are rebuilt or converted.
"""

from __future__ import annotations

import reprlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from variantlake.delta.log.files.parted_files import PartedFiles
from variantlake.delta.log.identity import check_before_read
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.columns_by_path import type_at
from variantlake.delta.schema.table_schema import arrow_type
from variantlake.errors import InvalidValue, VariantLakeError, in_memory
from variantlake.expressions.arrays import plain, texts_as
from variantlake.expressions.from_python import Expr, condition_text
from variantlake.expressions.tree import Predicate, Ref, map_refs, refs
from variantlake.expressions.typing import spark_type
from variantlake.parallel.streams import chained
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.choose_files import FileChoice, choose_files
from variantlake.planning.exact.readings import NullColumn, PhysicalColumn
from variantlake.planning.explain import Explanation, explain
from variantlake.planning.files import NO_ROWS, ScanFile
from variantlake.planning.stats.exact_facts import ExactFacts
from variantlake.planning.stats.skipping import Skipper
from variantlake.scan.arrow_stream import TOO_MANY_ROWS, ArrowStream, HeadRows, marked
from variantlake.scan.decoded_log import DecodedLog
from variantlake.scan.files.chosen_rows import cast_error, chosen_rows, rows_that_fulfil
from variantlake.scan.files.file_layouts import MOST_FILES
from variantlake.scan.files.file_rows import FileReader, Rows
from variantlake.scan.files.file_tasks import MANY, SMALL_VALUES, FileTask, tasks_of
from variantlake.scan.files.several_files import JoinedRows, joined_groups
from variantlake.scan.footers import row_groups
from variantlake.scan.table_names import partition_types as types_of_partitions
from variantlake.scan.table_names import stored_ref
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.sql.select import Item, QueryText
from variantlake.units import check_limit

Batches: TypeAlias = Generator[pa.RecordBatch, None, None]


def scan_of(
    snapshot: Snapshot,
    select: str | Expr | Sequence[str | Expr],
    where: str | Expr | None,
    limit: int | None,
    decoded: DecodedLog | None = None,
) -> Scan:
    """Make the scan of `Table.scan`, with its arguments and errors."""
    check_limit(limit)
    if isinstance(select, list | tuple) and not select:
        raise InvalidValue("no column is selected", hint='leave select out to mean all, "*"')
    text = QueryText(snapshot.schema)
    asked = condition_text(where)
    condition = None if asked is None else text.condition(asked)
    return Scan(snapshot, text.items(select), condition, limit, decoded or DecodedLog())


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Some rows of one file, which is row `number` of `Snapshot.files`.

    `places` are the positions of the rows from 0, ascending. `num_rows` counts all rows of the
    file, including deleted ones.
    """

    number: int
    file: ScanFile
    places: Int64s
    num_rows: int


FOR_USERS = frozenset(
    {
        *(name for name in vars(ArrowStream) if not name.startswith("_")),
        *("schema", "count", "explain", "read_bytes", "head", "as_json"),
    }
)
"""Names that a notebook's completion shows for a scan or a query; the others are internal."""


@dataclass(frozen=True, repr=False)
class Scan(ArrowStream):
    """A scan of one table version; it reads nothing until rows are requested.

    It is an Arrow stream, which DuckDB, Polars and pyarrow accept directly. VARIANT columns are
    struct<metadata: binary, value: binary> with the extension type `arrow.parquet.variant`;
    timestamps without a zone are taken as UTC. Columns of strings have the type `texts`, which may
    be string views or a dictionary with 32-bit codes: some engines take these at less cost.
    """

    snapshot: Snapshot = field(repr=False)
    items: tuple[Item, ...]
    condition: Predicate | None = None
    max_rows: int | None = None
    decoded: DecodedLog = field(default_factory=DecodedLog, repr=False, compare=False)
    texts: Any = pa.string()  # noqa: RUF009 - types of Arrow do not change

    def __repr__(self) -> str:
        names = reprlib.repr([item.name for item in self.items])
        rows = "some" if self.condition is not None or self.max_rows is not None else "all"
        return f"<Scan of {names}, {rows} rows of version {self.snapshot.version}>"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name in FOR_USERS]

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self._schema_of(self.items)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches, file by file.

        Raises InvalidValue for a value that Spark's cast raises an error for, UnsupportedFeature
        for one that only Spark casts, MalformedFile for a file that breaks a specification,
        TableReplaced if another table is at the location by now, OutOfMemory.
        """
        check_before_read(self.snapshot)
        with in_memory(*TOO_MANY_ROWS):
            yield from self._batches(self.items, limit=self.max_rows)

    def head(self, rows: int = 10) -> HeadRows:
        """The first rows, without reading more than they need. Raises as `ArrowStream.head`."""
        if self.max_rows is None and type(rows) is int and rows >= 0:
            return replace(self, max_rows=rows).head(rows)
        return super().head(rows)

    def count(self) -> int:
        """The number of rows, without reading the selected columns. Raises as `to_batches`."""
        check_before_read(self.snapshot)
        return sum(batch.num_rows for batch in self._batches((), limit=self.max_rows))

    @property
    def read_bytes(self) -> int:
        """Bytes of the files that may hold matching rows; a scan reads only some columns."""
        return self.choice.read_bytes

    def places(self) -> Iterator[RowPlaces]:
        """Yield the places of the rows that fulfil the condition, without files that have none.

        Raises as `to_batches`.
        """
        check_before_read(self.snapshot)
        skipper = Skipper(self.predicate, self.partition_types)
        choice = self.numbered_choice
        for number, file in zip(choice.rows.tolist(), choice.files, strict=True):
            places, rows = self._places_in(file, skipper)
            if len(places):
                yield RowPlaces(number, file, places, rows)

    def _places_in(self, file: ScanFile, skipper: Skipper) -> tuple[Int64s, int]:
        requested = list(refs(self.predicate))
        found = [NO_ROWS]
        with FileReader(self.snapshot, file, requested, self.partition_types) as reader:
            sizes = [group.num_rows for group in reader.footer.row_groups]
            starts = np.cumsum([0, *sizes])
            for rows in reader.rows(skipper):
                chosen = np.flatnonzero(chosen_rows(self.predicate, rows))
                found.append(rows.places[chosen] + int(starts[rows.row_group]))
        return np.concatenate(found), int(starts[-1])

    def explain(self) -> Explanation:
        """Explain what is read and skipped, by which predicate, and how each path is read."""
        check_before_read(self.snapshot)
        groups = row_groups(self.snapshot, self.choice, self.partition_types)
        return explain(self.choice, self._requests, groups, self.snapshot.properties)

    # --- The choice of files ---

    @cached_property
    def partition_types(self) -> Mapping[str, str]:
        """The Spark types of the partition columns, by physical names."""
        return types_of_partitions(self.snapshot)

    @cached_property
    def predicate(self) -> Predicate | None:
        """The condition by the names that files use."""
        return None if self.condition is None else map_refs(self.condition, self.stored)

    @cached_property
    def _requests(self) -> Sequence[Ref]:
        """The paths and columns that are read, by the names that files use."""
        requested = [*(self.stored(item.ref) for item in self.items), *refs(self.predicate)]
        return [ref for ref in requested if spark_type(ref.type) is not None]

    @cached_property
    def choice(self) -> FileChoice:
        """The files to read, chosen once."""
        return choose_files(
            self.decoded.files(self.snapshot, self._requests, self.predicate, self.partition_types),
            self.predicate,
            partition_types=self.partition_types,
        )

    @property
    def numbered_choice(self) -> FileChoice:
        """The choice with all files of the version in its table: rows are of `Snapshot.files`."""
        files = self.snapshot.files
        if isinstance(files, PartedFiles):
            files.load()
            if self.choice.table.left_out.files:
                return replace(self).choice
        return self.choice

    @cached_property
    def exact_facts(self) -> ExactFacts:
        """What the log proves about the files of the choice's table."""
        return ExactFacts(self.choice.table, self.partition_types)

    @cached_property
    def certain(self) -> Bools:
        """The files of that table in which the log proves that all rows fulfil the condition."""
        return self.exact_facts.matching(self.predicate)[1]

    def stored(self, ref: Ref) -> Ref:
        """A column or path by the names that files use."""
        found = self._stored.get(ref)
        if found is None:
            found = self._stored[ref] = stored_ref(self.snapshot, ref)
        return found

    @cached_property
    def _stored(self) -> dict[Ref, Ref]:
        """Caches the results of `stored`, which each row group calls again."""
        return {}

    def type_of(self, ref: Ref) -> pa.DataType:
        """The Arrow type that a column or path has in a result."""
        if ref.path is None:
            if self.snapshot.schema.get(ref.column[0]) is None:
                return VARIANT_TYPE
            return arrow_type(type_at(self.snapshot.schema, ref.column))
        requested = spark_type(ref.type)
        return VARIANT_TYPE if requested is None else requested.arrow

    def _schema_of(self, items: Sequence[Item]) -> pa.Schema:
        types = [self.type_of(each.ref) for each in items]
        fields = [
            marked(pa.field(each.name, self.texts if type_ == pa.string() else type_))
            for each, type_ in zip(items, types, strict=True)
        ]
        return pa.schema(fields)

    # --- Reading ---

    def batches_of(self, files: Iterable[ScanFile]) -> Iterator[pa.RecordBatch]:
        """The rows of some of the chosen files, in this order. Raises as `to_batches`."""
        yield from self._batches(self.items, ((file, self.predicate) for file in files))

    def _batches(
        self,
        items: Sequence[Item],
        files: Iterable[tuple[ScanFile, Predicate | None]] | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of files, each with its condition; by default, of all chosen files."""
        schema = self._schema_of(items)
        wanted = [self.stored(item.ref) for item in items]
        if files is None and limit is None:
            yield from self._all_batches(wanted, schema)
            return
        left = limit
        for file, where in self._files_with_conditions() if files is None else files:
            if left == 0:
                return
            for batch in self._file(FileTask(file, (0, 1), where), wanted, schema, left):
                yield batch
                left = None if left is None else left - batch.num_rows

    def _all_batches(self, wanted: Sequence[Ref], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of all chosen files, read by threads that take a few row groups at a time."""
        values = self.typed_values(self.choice.rows, {*wanted, *refs(self.predicate)})
        # Whole Variants are large: those of several files are not read together.
        read = self._each if values is None else self._files
        batches = (read(some, wanted, schema) for some in self._tasks())
        if values is not None and values <= SMALL_VALUES:
            yield from chain.from_iterable(batches)
        else:
            yield from chained(batches, lambda batch: batch.nbytes)

    def typed_values(self, read: Int64s, asked: Iterable[Ref]) -> int | None:
        """The rows to read times columns; None unless all are typed or partition columns.

        Also None if the number of rows is not known.
        """
        asked = list(asked)
        if any(ref.path is None and ref.column[0] not in self.partition_types for ref in asked):
            return None
        ways = (way for ref in asked if ref.path is not None for way, _ in self.choice.ways(ref))
        if not all(isinstance(way, PhysicalColumn | NullColumn) for way in ways):
            return None
        rows = self.choice.table.facts.num_records[read]
        return None if (rows == UNKNOWN).any() else int(rows.sum()) * len(asked)

    def _tasks(self) -> Iterator[list[FileTask]]:
        """Divide the chosen files into parts, and group small files to read together."""
        records = self.choice.table.facts.num_records[self.choice.rows].tolist()
        files = zip(self._files_with_conditions(), records, strict=True)
        return tasks_of(((file, where, rows) for (file, where), rows in files), most_parts=MANY)

    def _files(
        self, tasks: Sequence[FileTask], wanted: Sequence[Ref], schema: pa.Schema
    ) -> Batches:
        joined = self._together(tasks, wanted, schema)
        yield from self._each(tasks, wanted, schema) if joined is None else joined

    def _each(self, tasks: Sequence[FileTask], wanted: Sequence[Ref], schema: pa.Schema) -> Batches:
        for task in tasks:
            yield from self._file(task, wanted, schema, None)

    def _together(
        self, tasks: Sequence[FileTask], wanted: Sequence[Ref], schema: pa.Schema
    ) -> list[pa.RecordBatch] | None:
        """Read the rows of files together; None to read one file after the other."""
        skipper = Skipper(tasks[0].where, self.partition_types)
        with ExitStack() as opened:
            try:
                readers = [opened.enter_context(self._reader(task, wanted)) for task in tasks]
                groups = (
                    reader.rows(skipper, task.part)
                    for reader, task in zip(readers, tasks, strict=True)
                )
                every = joined_groups(chain.from_iterable(groups), [*wanted, *refs(tasks[0].where)])
                found = [
                    self._selected(hits, wanted, schema, None)
                    for hits in rows_that_fulfil(tasks[0].where, every)
                ]
                return list(chain.from_iterable(found))
            except VariantLakeError:
                return None  # it is raised again, after the rows of the files before

    def _reader(self, task: FileTask, wanted: Sequence[Ref]) -> FileReader:
        return FileReader(
            self.snapshot,
            task.file,
            [*wanted, *refs(task.where)],
            self.partition_types,
            encoded=True,
            layouts=self.decoded.layouts,
        )

    @cached_property
    def _few_files(self) -> Sequence[ScanFile] | None:
        """The chosen files, as objects to keep; None if there are many."""
        return tuple(self.choice.files) if len(self.choice.rows) <= MOST_FILES else None

    def _files_with_conditions(self) -> Iterator[tuple[ScanFile, Predicate | None]]:
        certain = self.certain[self.choice.rows]
        files = self.choice.files if self._few_files is None else self._few_files
        for file, is_certain in zip(files, certain.tolist(), strict=True):
            yield file, None if is_certain else self.predicate

    def _file(
        self, task: FileTask, wanted: Sequence[Ref], schema: pa.Schema, limit: int | None
    ) -> Iterator[pa.RecordBatch]:
        skipper = Skipper(task.where, self.partition_types)
        with self._reader(task, wanted) as reader:
            for hits in rows_that_fulfil(task.where, reader.rows(skipper, task.part), limit):
                yield from self._selected(hits, wanted, schema, task.file)

    def _selected(
        self,
        hits: Rows | JoinedRows,
        wanted: Sequence[Ref],
        schema: pa.Schema,
        file: ScanFile | None,
    ) -> Iterator[pa.RecordBatch]:
        # Mostly the largest column: it is neither copied into one piece nor held as one.
        columns = [ref.column for ref in wanted]
        in_parts = next(
            (ref for ref in wanted if columns.count(ref.column) == 1 and hits.has_whole(ref)), None
        )
        arrays: list[Any] = []
        for ref, column in zip(wanted, schema, strict=True):
            if ref is in_parts:
                arrays.append(None)
                continue
            values = hits.values(ref)
            if values.failed is not None and values.failed.any():
                raise cast_error(ref, file)
            arrays.append(_cast(values.array, column.type))
        if in_parts is None or isinstance(hits, JoinedRows):
            yield _batch(arrays, schema, hits.count)
            return
        at, start = wanted.index(in_parts), 0
        for part in hits.parts(in_parts):
            batch: list[Any] = [
                array if array is None else array.slice(start, len(part)) for array in arrays
            ]
            batch[at] = _cast(part, schema.field(at).type)
            start += len(part)
            yield pa.RecordBatch.from_arrays(batch, schema=schema)


def _cast(array: Any, wanted: pa.DataType) -> Any:
    if array.type == wanted:
        return array
    if pa.types.is_string_view(wanted) or pa.types.is_dictionary(wanted):
        return texts_as(array, wanted)
    found = plain(array)
    return found if found.type == wanted else found.cast(wanted)


def _batch(arrays: Sequence[Any], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # A batch without columns still has a number of rows.
    empty = pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"])
    return empty.select([])
