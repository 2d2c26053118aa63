"""What the log says of all files of a snapshot, as columns that are decoded on demand.

The statistics and tags stay texts in Arrow; compiled kernels pick out of all of them what one query
wants: a member of the statistics, one node's counts, one path's bound. What a text does not hold in
the usual form is read by the plain readers, `stats_reader` and `variant_bounds`, row by row.
Equal, row by row, to `facts.FactsReader`, the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.schema.table_schema import (
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.delta.stats.columnar_bounds import BoundTexts, plain_bounds
from variantlake.delta.stats.columnar_json import Members, StringColumn, members_of, texts_of
from variantlake.delta.stats.stats_reader import (
    INTEGERS,
    bound_of,
    find_in,
    is_time,
    parse_stats,
    was_float,
)
from variantlake.delta.stats.tags import (
    CLEAN_INSIDE_SHIFT,
    MAXIMUM_EXACT,
    MINIMUM_EXACT,
    PLAIN_FLOATS,
    PREFIX,
    VERSION,
    column_name,
    parse_layout,
)
from variantlake.delta.stats.variant_bounds import raw_of
from variantlake.errors import VariantLakeError
from variantlake.kernels.log.log_stats import MISSING, UNUSUAL, read_counts
from variantlake.parquet.stats.fact_columns import (
    Bools,
    BoundColumns,
    ColumnPath,
    Counts,
    Int64s,
    OrdinaryColumns,
    RawColumn,
    VariantColumns,
    note_bits,
    stored_type,
)
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.paths import Path
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import parse_notes
from variantlake.types import Kind, Primitive, ShreddedType

_SIDES = ("minValues", "maxValues")


class LogFacts:
    """The facts of the files in `files` (columns: `delta.files.FILES`), as FactColumns.

    `previous` are those of an older version of the same table: what is in the same memory is not
    decoded again.
    """

    def __init__(
        self, files: pa.Table, schema: StructType, previous: LogFacts | None = None
    ) -> None:
        if previous is not None and previous.schema != schema:
            previous = None
        known = {} if previous is None else {part.key: part for part in previous.parts}
        layouts = _Layouts() if previous is None else previous.layouts
        self.schema: StructType = schema
        self.layouts: _Layouts = layouts
        self.parts: list[_Part] = []
        for batch in files.select(["size", "stats", "tags", "deletion_vector"]).to_batches():
            self.parts.append(known.get(_key(batch)) or _Part(batch, schema, layouts))
        self._ends = np.cumsum([part.rows for part in self.parts]).astype(np.int64)
        self._memo: dict[Any, Any] = {}

    @cached_property
    def num_records(self) -> Int64s:
        """See FactColumns."""
        return _joined([part.num_records for part in self.parts])

    def variant(self, column: ColumnPath) -> VariantColumns | None:
        """See FactColumns."""
        if column not in self.schema.variant_columns(physical=True):
            return None
        if column not in self._memo:
            self._memo[column] = _Variant(self, column)
        found: _Variant = self._memo[column]
        return found

    def column(self, column: ColumnPath) -> OrdinaryColumns | None:
        """See FactColumns."""
        leaves = dict(self.schema.leaves(physical=True))
        if column not in leaves or isinstance(leaves[column].type, VariantType):
            return None
        if column not in self._memo:
            self._memo[column] = _Column(self, column, leaves[column])
        found: _Column = self._memo[column]
        return found

    def of_parts(self, rows: Int64s) -> Iterator[tuple[_Part, Int64s, Int64s]]:
        """The parts that hold some of `rows`; which of them, and their rows within the part."""
        part_of = np.searchsorted(self._ends, rows, "right")
        for number in np.unique(part_of).tolist():
            some = np.flatnonzero(part_of == number)
            part = self.parts[number]
            yield part, some, rows[some] - (self._ends[number] - part.rows)


class _Layouts:
    """The different layouts of a table's files, by their DDL."""

    def __init__(self) -> None:
        self.schemas: list[ShreddingSchema] = []
        self.nodes: list[dict[Path, int]] = []
        self.paths: list[list[Path]] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str | None) -> int:
        """The number of a layout, -1 if the text is not a layout."""
        if text is None:
            return -1
        if text not in self._codes:
            try:
                schema, nodes = parse_layout(text)
            except VariantLakeError:
                self._codes[text] = -1
            else:
                self._codes[text] = len(self.schemas)
                self.schemas.append(schema)
                self.paths.append([path for path, _ in nodes])
                self.nodes.append({path: index for index, (path, _) in enumerate(nodes)})
        return self._codes[text]


def _key(batch: pa.RecordBatch) -> tuple[int, ...]:
    """Where a batch is in memory, which stays as long as it is held."""
    arrays: Any = [batch.column("stats"), batch.column("tags")]
    places = [
        0 if buffer is None else buffer.address for array in arrays for buffer in array.buffers()
    ]
    return (batch.num_rows, *(array.offset for array in arrays), *places)


class _Part:
    """Files that came into memory together. Everything is decoded at most once."""

    def __init__(self, batch: pa.RecordBatch, schema: StructType, layouts: _Layouts) -> None:
        self.key = _key(batch)
        self.rows: int = batch.num_rows
        self.layouts = layouts
        self._schema = schema
        self._batch: Any = batch
        self._memo: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, remembered."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    @cached_property
    def stats(self) -> StringColumn:
        """The statistics' texts."""
        return texts_of(self._batch.column("stats"))

    def stats_text(self, row: int) -> str | None:
        """One file's statistics."""
        text: str | None = self._batch.column("stats")[row].as_py()
        return text

    @cached_property
    def _first_members(self) -> dict[ColumnPath, Members]:
        """What every query needs, in one pass: counts of rows, and all about Variant columns."""
        paths: list[ColumnPath] = [("numRecords",), ("tightBounds",)]
        for column in self._schema.variant_columns(physical=True):
            paths += [(name, *column) for name in ("nullCount", *_SIDES)]
        return dict(zip(paths, members_of(self.stats, paths), strict=True))

    def members(self, column: ColumnPath) -> list[Members]:
        """`nullCount`, `minValues` and `maxValues` of a column."""
        paths = [(name, *column) for name in ("nullCount", *_SIDES)]
        if paths[0] in self._first_members:
            return [self._first_members[path] for path in paths]
        found: list[Members] = self.once(column, lambda: members_of(self.stats, paths))
        return found

    @cached_property
    def num_records(self) -> Int64s:
        """Rows of each file, -1 where unknown."""
        return self._first_members["numRecords",].counts()

    @cached_property
    def tight(self) -> Bools:
        """Whether bounds are reached by some row."""
        tags = self._first_members["tightBounds",].tags
        return np.isin(tags, [MISSING, Primitive.TRUE])

    @cached_property
    def whole(self) -> Bools:
        """Files without deleted rows, by all that is said of them."""
        vectors = self._batch.column("deletion_vector").is_null().to_numpy(zero_copy_only=False)
        whole: Bools = self.tight & vectors
        return whole

    def nulls(self, column: ColumnPath) -> Int64s:
        """Null counts; those of files that are not tight inform only when 0 or all (rule 23)."""
        counts = self.members(column)[0].counts()
        informs = self.tight | (counts == 0) | (counts == self.num_records)
        return np.where(informs, counts, UNKNOWN)

    def tag(self, name: str) -> Any:
        """The values of one of our tags, as an Arrow array."""
        return pc.map_lookup(self._batch.column("tags"), PREFIX + name, "first")

    @cached_property
    def _believed(self) -> Bools:
        """Files whose tags speak of this very file (EXACTNESS, rule 25)."""
        size = self._batch.column("size").cast(pa.string())
        records = pa.array(self.num_records).cast(pa.string())
        mark: Any = pc.binary_join_element_wise(size, records, ":")
        version: Any = pc.equal(self.tag("version"), pa.scalar(VERSION))
        said: Any = pc.and_(version, pc.equal(self.tag("file"), mark))
        believed: Bools = pc.fill_null(said, False).to_numpy(zero_copy_only=False)
        return np.logical_and(believed, self.num_records >= 0)

    def layout(self, column: ColumnPath) -> Int64s:
        """The layout of each file, -1 where the tags do not tell."""
        codes: Int64s = self.once(("layout", column), lambda: self._read_layout(column))
        return codes

    def _read_layout(self, column: ColumnPath) -> Int64s:
        encoded = self.tag(f"layout.{column_name(column)}").dictionary_encode("encode")
        known = [self.layouts.code(text) for text in encoded.dictionary.to_pylist()]
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        layout = np.array([*known, -1], np.int64)[indices]
        layout[~self._believed] = -1
        # The counts are all good, or nothing is.
        sound = self._read_counts(column, layout)[:, 3] >= 0
        return np.where(sound, layout, -1)

    def notes(self, column: ColumnPath) -> Int64s:
        """`note_bits` of each file, for those whose layout the tags tell."""
        encoded = self.tag(f"values.{column_name(column)}").dictionary_encode("encode")
        known = [note_bits(parse_notes(text)) for text in encoded.dictionary.to_pylist()]
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        return np.where(self.layout(column) >= 0, np.array([*known, UNKNOWN])[indices], UNKNOWN)

    def counts(self, column: ColumnPath, path: Path) -> Int64s:
        """The four numbers of the node at `path`, shape (rows, 4); -1 where it is no node."""

        def read() -> Int64s:
            layout = self.layout(column)
            nodes = [known.get(path, -1) for known in self.layouts.nodes]
            return self._read_counts(column, layout, np.array([*nodes, -1], np.int64)[layout])

        found: Int64s = self.once(("counts", column, path), read)
        return found

    def _read_counts(
        self, column: ColumnPath, layout: Int64s, nodes: Int64s | None = None
    ) -> Int64s:
        """One node's numbers; without `nodes` those of the root, all others being checked."""
        texts = self.once(
            ("facts", column), lambda: texts_of(self.tag(f"facts.{column_name(column)}"))
        )
        sizes = np.array([*(len(known) for known in self.layouts.paths), 0], np.int64)[layout]
        whole = int(nodes is None)
        if nodes is None:
            nodes = np.zeros(self.rows, np.int64)
        texts = texts.where((layout >= 0) & (nodes >= 0))
        counts = np.full(self.rows * 4, UNKNOWN, np.int64)
        read_counts(
            texts.data, texts.starts, texts.ends, self.num_records, sizes, nodes, whole, counts
        )
        table = counts.reshape(-1, 4)
        table[table[:, 3] < 0] = UNKNOWN
        return table

    def variant_bounds(self, column: ColumnPath, path: Path, leaf: ShreddedType) -> BoundColumns:
        """The bounds of the leaf at `path` in every file; where its leaf is another, anything."""
        found: BoundColumns = self.once(
            ("bounds", column, path, leaf), lambda: self._read_bounds(column, path, leaf)
        )
        return found

    def _read_bounds(self, column: ColumnPath, path: Path, leaf: ShreddedType) -> BoundColumns:
        low, high = (self._side(column, side, path, leaf) for side in (0, 1))
        flags = self.counts(column, path)[:, 3]
        exact = self.whole & (flags >= 0)
        if leaf.kind is Kind.STRING:
            # Whoever wrote the statistics may have cut strings.
            exact &= False
        return BoundColumns(
            low,
            high,
            exact & low.known & (flags & MINIMUM_EXACT != 0),
            exact & high.known & (flags & MAXIMUM_EXACT != 0),
            (flags >= 0) & (flags & PLAIN_FLOATS != 0),
        )

    def _side(self, column: ColumnPath, side: int, path: Path, leaf: ShreddedType) -> RawColumn:
        """One side's bound: that of the statistics, else that of our tags."""
        members = self.members(column)[1 + side]
        texts: BoundTexts = self.once(("side", column, side), lambda: BoundTexts(members.texts()))
        bound, there = texts.find(path, leaf)
        for row in np.flatnonzero(members.tags == UNUSUAL).tolist():
            document = parse_stats(self.stats_text(row), decimals=False)
            text = find_in((document or {}).get(_SIDES[side]), column)
            known = plain_bounds(text).get(path)
            if known is not None:
                there[row] = True
                bound.put(np.array([row]), RawColumn.of([raw_of(leaf, known)], leaf))
        tagged = self._tagged(column)
        if tagged is not None:
            more, more_there = tagged[side].find(path, leaf)
            rows = np.flatnonzero(more_there & ~there)
            bound.put(rows, more.take(rows))
        return bound

    def _tagged(self, column: ColumnPath) -> list[BoundTexts] | None:
        """The bounds that the protocol keeps out of the statistics."""

        def read() -> list[BoundTexts] | None:
            array = self.tag(f"bounds.{column_name(column)}")
            if array.null_count == len(array):
                return None
            texts = texts_of(array)
            return [BoundTexts(each.texts()) for each in members_of(texts, [("min",), ("max",)])]

        found: list[BoundTexts] | None = self.once(("tagged", column), read)
        return found

    def column_bounds(
        self, column: ColumnPath, item: StructField, stored: ShreddedType
    ) -> BoundColumns:
        """The bounds of an ordinary column."""

        def read() -> BoundColumns:
            _, low, high = self.members(column)
            type_, widened = item.type, was_float(item)
            if not isinstance(type_, PrimitiveType):
                return BoundColumns.unknown(self.rows, stored)
            minimum = self._ordinary(column, low, 0, type_, stored, widened=widened)
            maximum = self._ordinary(column, high, 1, type_, stored, widened=widened)
            # Strings may be cut, times are: only numbers and dates are what they are.
            sure = stored.kind is not Kind.STRING and not widened and not is_time(type_)
            exact = self.tight & sure
            unknown = np.zeros(self.rows, np.bool_)
            return BoundColumns(
                minimum, maximum, exact & minimum.known, exact & maximum.known, unknown
            )

        found: BoundColumns = self.once(("column", column, stored), read)
        return found

    def _ordinary(
        self,
        column: ColumnPath,
        members: Members,
        side: int,
        type_: PrimitiveType,
        stored: ShreddedType,
        *,
        widened: bool,
    ) -> RawColumn:
        if type_.name in INTEGERS:
            limit = 1 << (INTEGERS[type_.name] - 1)
            fits = (members.values >= -limit) & (members.values <= limit - 1)
            return RawColumn(members.values, members.integers & fits)
        values: list[Any] = [None] * self.rows
        for row in np.flatnonzero(members.tags != MISSING).tolist():
            value = members.value(row)
            if members.tags[row] == UNUSUAL or (
                isinstance(value, float) and type_.name == "decimal"
            ):
                document = parse_stats(self.stats_text(row), decimals=True)
                value = find_in((document or {}).get(_SIDES[side]), column)
            values[row] = bound_of(value, type_, up=side == 1, widened=widened)
        return RawColumn.of(values, stored)


class _Variant:
    """One Variant column of LogFacts, as VariantColumns."""

    def __init__(self, facts: LogFacts, column: ColumnPath) -> None:
        self._facts, self._column = facts, column
        self.layout: Int64s = _joined([part.layout(column) for part in facts.parts])
        self.nulls: Int64s = _joined([part.nulls(column) for part in facts.parts])
        self.schemas: Sequence[ShreddingSchema] = tuple(facts.layouts.schemas)
        self.legacy: Sequence[bool] = (False,) * len(self.schemas)
        self.others = self.legacy

    @cached_property
    def notes(self) -> Int64s:
        """See VariantColumns."""
        return _joined([part.notes(self._column) for part in self._facts.parts])

    def counts(self, rows: Int64s, nodes: Int64s) -> Counts:
        """See VariantColumns."""
        table = np.full((len(rows), 4), UNKNOWN, np.int64)
        for path, some in self._paths(rows, nodes):
            for part, which, there in self._facts.of_parts(rows[some]):
                table[some[which]] = part.counts(self._column, path)[there]
        inside = np.where(table[:, 3] > 0, table[:, 3] >> CLEAN_INSIDE_SHIFT, 0)
        return Counts(table[:, 0], table[:, 1], table[:, 2], inside)

    def bounds(self, rows: Int64s, nodes: Int64s, leaf: ShreddedType) -> BoundColumns:
        """See VariantColumns."""
        result = BoundColumns.unknown(len(rows), leaf)
        for path, some in self._paths(rows, nodes):
            for part, which, there in self._facts.of_parts(rows[some]):
                found = part.variant_bounds(self._column, path, leaf)
                result.put(some[which], found.take(there))
        return result

    def _paths(self, rows: Int64s, nodes: Int64s) -> Iterator[tuple[Path, Int64s]]:
        """The paths of these nodes, and which of the rows ask for each: mostly all for one."""
        layout, paths = self.layout[rows], self._facts.layouts.paths
        width = max((len(known) for known in paths), default=0) + 1
        pairs, inverse = np.unique(layout * width + nodes, return_inverse=True)
        names = [paths[pair // width][pair % width] for pair in pairs.tolist()]
        for path in dict.fromkeys(names):
            alike = np.array([name == path for name in names], np.bool_)
            yield path, np.flatnonzero(alike[inverse])


class _Column:
    """One ordinary column of LogFacts, as OrdinaryColumns."""

    def __init__(self, facts: LogFacts, column: ColumnPath, item: StructField) -> None:
        self._facts, self._column, self._item = facts, column, item
        self.types: Sequence[ShreddedType | None] = (stored_type(arrow_type(item.type)),)
        self.type: Int64s = np.zeros(len(facts.num_records), np.int64)
        self.nulls: Int64s = _joined([part.nulls(column) for part in facts.parts])

    def bounds(self, rows: Int64s, stored: ShreddedType) -> BoundColumns:
        """See OrdinaryColumns."""
        result = BoundColumns.unknown(len(rows), stored)
        for part, some, there in self._facts.of_parts(rows):
            result.put(some, part.column_bounds(self._column, self._item, stored).take(there))
        return result


def _joined(arrays: list[Int64s]) -> Int64s:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
