"""Read the rows of one data file for a scan, a row group at a time: operands and columns.

For a clean path only its typed column is read; constants are not read at all. Whole columns
(Variants, which kernels rebuild, and ordinary ones) are read on demand, and only rows that are
still wanted are rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.char_types import declared_type
from variantlake.delta.schema.char_values import padded, padded_to
from variantlake.delta.schema.table_schema import DataType, StructField, StructType, arrow_type
from variantlake.delta.stats.partition_values import partition_array
from variantlake.errors import VariantLakeError, in_file
from variantlake.expressions.arrays import Values, at_places, one_array
from variantlake.expressions.tree import Ref
from variantlake.parallel.prefetch import ahead
from variantlake.parquet.read.chunk_pages import ChunkPlace
from variantlake.parquet.read.parquet_source import BATCH_ROWS
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.planning.exact.readings import NullColumn, PhysicalColumn, Reading
from variantlake.planning.files import ScanFile
from variantlake.planning.stats.skipping import Skipper
from variantlake.scan.files.casts import extract, requested_type
from variantlake.scan.files.column_reads import ColumnRead
from variantlake.scan.files.combinations import Combinations
from variantlake.scan.files.file_layouts import FileLayouts
from variantlake.scan.files.stretches import Runs, Stretches
from variantlake.scan.files.typed_columns import TypedColumns, converted
from variantlake.shredding.arrays import AnyField
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.storage.opening import open_file
from variantlake.telemetry.tracing import begin
from variantlake.types import Kind


class FileReader:
    """One open file, whose footer decides how to read each `requested` path.

    `encoded` reads typed columns a whole row group at a time, and strings as dictionaries.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        file: ScanFile,
        requested: Iterable[Ref],
        partition_types: Mapping[str, str],
        *,
        encoded: bool = False,
        layouts: FileLayouts | None = None,
    ) -> None:
        self.file = file
        self._encoded = encoded
        self._snapshot = snapshot
        self._partition_types = partition_types
        self._fields = {item.physical_name: item for item in snapshot.schema.fields}
        requested = list(dict.fromkeys(requested))
        self._paths = {ref.path for ref in requested if ref.path is not None}
        self._cached: dict[tuple[Ref | str, int], Any] = {}
        self._runs: dict[tuple[Ref, int], Runs | None] = {}
        self._end = begin("read", file=file.path)
        self._input = open_file(file.path)
        try:
            self._layout = (layouts or FileLayouts()).of(snapshot, file, self._input)
            self.footer = self._layout.footer
            self._readings = self._layout.readings(requested)
            self._deleted = self._deleted_rows()
            self._typed = TypedColumns(
                self._input,
                file.path,
                self._layout,
                self._fields,
                self._readings,
                encoded=encoded,
            )
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._input.close()
        if self._end is not None:
            self._end()

    def rows(self, skipper: Skipper, part: tuple[int, int] = (0, 1)) -> Iterator[Rows]:
        """Yield the row groups that may hold a match and have rows that are not deleted.

        `part` is (number, count) of equal parts of the file: yields the row groups that begin in
        it.
        """
        several = len(self.footer.row_groups) > 1 and skipper.conjuncts
        groups = self._layout.row_groups(self._paths) if several else None
        may_match = (
            np.ones(len(self.footer.row_groups), np.bool_)
            if groups is None
            else skipper.may_match(groups)
        )
        start, (own, parts) = 0, part
        for number, group in enumerate(self.footer.row_groups):
            mine = start * parts // max(self.footer.num_rows, 1) == own
            if mine and may_match[number]:
                kept = np.ones(group.num_rows, np.bool_)
                within = self._deleted[
                    np.searchsorted(self._deleted, start) : np.searchsorted(
                        self._deleted, start + group.num_rows
                    )
                ]
                kept[within - start] = False
                self._cached, self._runs = {}, {}
                if kept.any():
                    yield Rows(self, number, kept, np.arange(group.num_rows))
            start += group.num_rows

    def group(self, number: int, places: Int64s) -> Rows:
        """Rows of a row group by their places in it, in the order of the file."""
        self._cached, self._runs = {}, {}
        return Rows(self, number, np.ones(len(places), np.bool_), places)

    def physical(self, ref: Ref, reading: PhysicalColumn, row_group: int, places: Int64s) -> Values:
        """Read a path from its typed column, in some rows of a row group."""
        is_whole = len(places) == self.footer.row_groups[row_group].num_rows
        runs, key = self._runs.get((ref, row_group)), (ref, row_group)
        if runs is not None:
            return runs.in_rows(places)
        if key not in self._cached:
            array = self._typed.decoded(ref, reading, row_group, None if is_whole else places)
            if array is not None and not is_whole:
                return converted(at_places(array, places), ref, reading)
            if array is None:
                array = self._typed.read(ref, reading, row_group)
            self._cached[key] = converted(array, ref, reading)
        found: Values = self._cached[key]
        return found if is_whole else found.take(places)

    def chunk(self, ref: Ref, reading: PhysicalColumn, row_group: int) -> ChunkPlace | None:
        """A path's typed column in a row group; None if pyarrow has to read it."""
        with in_file(self.file.path):
            return self._typed.chunk(ref, reading, row_group)

    def runs(self, ref: Ref, row_group: int) -> Runs | None:
        """A column or path in all rows of a row group as runs; None if too many or none."""
        key = ref, row_group
        if key not in self._runs:
            self._runs[key] = self._run_values(ref, row_group)
        return self._runs[key]

    def _run_values(self, ref: Ref, row_group: int) -> Runs | None:
        rows = self.footer.row_groups[row_group].num_rows
        constant = self.constant(ref, 1)
        if constant is not None:
            return Runs.of_one(_as_char(constant, ref), rows)
        reading = self.reading(ref)
        if isinstance(reading, NullColumn):
            return Runs.of_one(self.nulls(ref, 1), rows)
        if not isinstance(reading, PhysicalColumn):
            return None
        return self._typed.runs(ref, reading, row_group)

    def whole(self, column: str, row_group: int, chosen: Int64s) -> Any:
        """A column in some rows of a row group; None if the file has no such column."""
        key = column, row_group
        if key in self._cached:
            return _take(self._cached[key], chosen)
        parts = list(self.parts(column, row_group, chosen))
        if not parts:
            return None
        array = one_array(parts)
        if len(chosen) == self.footer.row_groups[row_group].num_rows:
            self._cached[key] = array
        return array

    def parts(self, column: str, row_group: int, chosen: Int64s) -> Iterator[Any]:
        """Yield the column piece by piece; nothing if the file has no such column."""
        field = self._fields[column]
        read = self._column_read(pa.field(column, arrow_type(field.type)))
        if read is None:
            return
        declared = declared_type(field)

        def chosen_of(part: tuple[pa.RecordBatch, Int64s]) -> Any:
            return padded(read.of_table(_take(part[0].column(0), part[1])), declared)

        yield from ahead(self._chosen(row_group, sorted(read.leaves), chosen), chosen_of, _bytes_of)

    def _column_read(self, item: AnyField) -> ColumnRead | None:
        """How to read a column as `item`; None if the file has no such column."""
        field, layout = self._fields[item.name], self._layout
        node = layout.node(field)
        if node is None:
            return None
        return ColumnRead.of(node, item, field, layout.variants, by_id=not layout.named)

    def _chosen(
        self, row_group: int, leaves: Sequence[int], chosen: Int64s
    ) -> Iterator[tuple[pa.RecordBatch, Int64s]]:
        """Yield the batches that have chosen rows of a row group, and these rows' places."""
        start = 0
        for batch in self._typed.source.batches(row_group, leaves, BATCH_ROWS):
            low, high = np.searchsorted(chosen, (start, start + batch.num_rows))
            if low < high:
                yield batch, chosen[low:high] - start
            start += batch.num_rows

    def columns(self, row_group: int, wanted: pa.Schema, chosen: Int64s) -> Iterator[pa.Table]:
        """Yield columns, by their names in files, as these types, in some rows of a row group.

        All columns are read at once; rows are gathered until there are BATCH_ROWS, and `ColumnRead`
        converts them. Columns that the file lacks are null. Raises MalformedFile, MalformedVariant,
        with the row.
        """
        found = (self._column_read(item) for item in wanted)
        # Columns of a batch come in the order of the file.
        reads = sorted(
            (read for read in found if read is not None and read.leaves),
            key=lambda read: min(read.leaves),
        )
        leaves = sorted(leaf for read in reads for leaf in read.leaves)
        first = sum(group.num_rows for group in self.footer.row_groups[:row_group])
        for places, parts in self._gathered(row_group, leaves, chosen):
            arrays = {}
            for read, array in zip(reads, parts, strict=True):
                try:
                    with in_file(self.file.path):
                        arrays[read.item.name] = read.result(array)
                except VariantLakeError as error:
                    if error.row is not None:
                        error.row = first + int(places[error.row])
                    raise
            yield pa.Table.from_arrays(
                [arrays.get(item.name, pa.nulls(len(places), item.type)) for item in wanted],
                schema=wanted,
            )

    def _gathered(
        self, row_group: int, leaves: Sequence[int], chosen: Int64s
    ) -> Iterator[tuple[Int64s, list[Any]]]:
        """Yield the chosen rows of some leaves, about BATCH_ROWS at a time, with their places."""
        if not leaves:
            yield chosen, []
            return
        parts: list[pa.RecordBatch] = []
        given = gathered = 0
        for batch, rows in self._chosen(row_group, leaves, chosen):
            parts.append(_take(batch, rows))
            gathered += len(rows)
            if gathered >= BATCH_ROWS or given + gathered == len(chosen):
                columns = zip(*(part.columns for part in parts), strict=True)
                yield (
                    chosen[given : given + gathered],
                    [one_array(list(column)) for column in columns],
                )
                given, gathered, parts = given + gathered, 0, []

    def reading(self, ref: Ref) -> Reading | None:
        """How the plan reads a path; None for ordinary columns and whole Variants."""
        return self._readings.get(ref)

    def is_encoded(self, ref: Ref) -> bool:
        """Whether a path is a typed column of strings that may be read as a dictionary."""
        reading = self.reading(ref)
        return self._encoded and (
            isinstance(reading, PhysicalColumn) and reading.stored.kind is Kind.STRING
        )

    def has(self, column: str, row_group: int) -> bool:
        """Whether the file has a column that was not yet read as a whole."""
        is_there = self._layout.node(self._fields[column]) is not None
        return is_there and (column, row_group) not in self._cached

    def is_constant(self, column: str) -> bool:
        """Whether it is a partition column."""
        return column in self._partition_types

    def constant(self, ref: Ref, rows: int) -> Values | None:
        """A partition column's values; None for any other column."""
        if ref.column[0] not in self._partition_types:
            return None
        field = self._fields[ref.column[0]]
        with in_file(self.file.path):
            return partition_column(field, self.file.partition.get(ref.column[0]), rows)

    def nulls(self, ref: Ref, rows: int) -> Values:
        """NULL in all rows, of the requested type."""
        if ref.path is not None:
            arrow = VARIANT_TYPE if ref.type == "variant" else requested_type(ref).arrow
        else:
            type_, _ = self._field_at(ref)
            arrow = arrow_type(type_)
        return Values(pa.nulls(rows, cast("Any", arrow)))

    def field_of(self, array: Any, ref: Ref) -> Any:
        """The struct field that a Ref names; NULL where a struct around it is."""
        _, places = self._field_at(ref)
        return pc.struct_field(array, places) if places else array

    def _field_at(self, ref: Ref) -> tuple[DataType, list[int]]:
        """The type of an ordinary column or field, and its places in the structs around it."""
        type_, places = self._fields[ref.column[0]].type, []
        for name in ref.column[1:]:
            fields = cast("StructType", type_).fields
            place = next(at for at, each in enumerate(fields) if each.physical_name == name)
            places.append(place)
            type_ = fields[place].type
        return type_, places

    def _deleted_rows(self) -> Int64s:
        vector = self.file.vector
        if vector is None:
            return np.empty(0, np.int64)
        rows = sum(group.num_rows for group in self.footer.row_groups)
        return deleted_rows(self._snapshot.store, vector, rows)


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a row group, by their `places`; `kept` marks those that are not deleted."""

    reader: FileReader
    row_group: int
    kept: Bools
    places: Int64s

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.places)

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the row group."""
        return self.count == self.reader.footer.row_groups[self.row_group].num_rows

    def only(self, chosen: Bools) -> Rows:
        """The chosen rows among these."""
        own = np.flatnonzero(chosen)
        return Rows(self.reader, self.row_group, self.kept[own], self.places[own])

    def stretches(self, asked: Iterable[Ref]) -> Stretches | None:
        """Stretches of these columns; None unless these are all rows and all columns have runs."""
        if not self.is_whole:
            return None
        found: dict[Ref, Runs] = {}
        for ref in dict.fromkeys(asked):
            with in_file(self.reader.file.path):
                runs = self.reader.runs(ref, self.row_group)
            if runs is None:
                return None
            found[ref] = runs
        return Stretches.of(found, self.count)

    def alike(self, asked: Iterable[Ref]) -> Stretches | Combinations | None:
        """Stretches, or else combinations if the columns have few distinct values, or None."""
        refs = tuple(dict.fromkeys(asked))
        found = self.stretches(refs)
        if found is not None or not self.is_whole:
            return found
        if not all(self.reader.is_encoded(ref) for ref in refs):
            return None
        return Combinations.of({ref: self.values(ref) for ref in refs}, self.count)

    def has_whole(self, ref: Ref) -> bool:
        """Whether this is a whole column of the file that `parts` can read."""
        column, *fields = ref.column
        if ref.path is not None or fields:
            return False
        return self.reader.has(column, self.row_group) and not self.reader.is_constant(column)

    def parts(self, ref: Ref) -> Iterator[Any]:
        """Yield such a column in these rows, piece by piece."""
        with in_file(self.reader.file.path):
            yield from self.reader.parts(ref.column[0], self.row_group, self.places)

    def values(self, ref: Ref) -> Values:
        """A column or path in these rows."""
        constant = self.reader.constant(ref, self.count)
        if constant is not None:
            return _as_char(constant, ref)
        reading = self.reader.reading(ref)
        with in_file(self.reader.file.path):
            if isinstance(reading, NullColumn):
                return self.reader.nulls(ref, self.count)
            if isinstance(reading, PhysicalColumn):
                return self.reader.physical(ref, reading, self.row_group, self.places)
            array = self.reader.whole(ref.column[0], self.row_group, self.places)
            if array is None:
                return self.reader.nulls(ref, self.count)
            array = self.reader.field_of(array, ref)
            return _as_char(Values(array), ref) if ref.path is None else extract(array, ref)


def _as_char(values: Values, ref: Ref) -> Values:
    """Pad the values of a CHAR column to the length at which Spark compares them."""
    return Values(padded_to(values.array, ref.char_length)) if ref.char_length else values


def _bytes_of(read: tuple[pa.RecordBatch, Int64s]) -> int:
    return read[0].get_total_buffer_size()


def _take(array: Any, places: Int64s) -> Any:
    if len(places) == len(array):  # rows are taken once each, in order
        return array
    return array.take(arrow_array(places, pa.int64()))


def partition_column(field: StructField, text: str | None, rows: int) -> Values:
    """A partition column of `rows` rows, whose value in the log is `text`.

    Raises UnsupportedFeature for a text whose meaning is not certain.
    """
    array = partition_array(text, field)
    return Values(_take(array, np.zeros(rows, np.int64)))
