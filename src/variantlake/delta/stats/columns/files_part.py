"""Decode the log's facts about one batch of files on demand, and cache them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from variantlake.delta.schema.table_schema import (
    PrimitiveType,
    StructField,
    StructType,
)
from variantlake.delta.stats.columns.json_members import (
    StringColumn,
    members_of,
    texts_of,
)
from variantlake.delta.stats.columns.parsed_stats import parsed_or_texts
from variantlake.delta.stats.columns.path_bounds import BoundTexts
from variantlake.delta.stats.columns.tag_columns import TagColumn, map_columns
from variantlake.delta.stats.columns.text_stats import StatsColumns, TextStats
from variantlake.delta.stats.file_texts import FileTexts, unpacked
from variantlake.delta.stats.stats_reader import (
    is_time,
    was_float,
)
from variantlake.delta.stats.tags import (
    MAXIMUM_EXACT,
    MINIMUM_EXACT,
    PLAIN_FLOATS,
    PREFIX,
    VERSION,
    column_name,
    parse_layout,
)
from variantlake.errors import VariantLakeError
from variantlake.kernels.log.log_stats import read_counts
from variantlake.kernels.log.tag_texts import match_marks
from variantlake.parquet.stats.fact_columns import (
    Bools,
    BoundColumns,
    ColumnPath,
    Int64s,
    RawColumn,
    note_bits,
)
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.paths import Path
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import parse_notes
from variantlake.types import Kind, ShreddedType

_LOCK = threading.Lock()
"""Shared by all `Layouts` and `Recent`: snapshots are pickled for tasks, and a lock cannot be."""

_RECENT_ROWS = 1 << 19
"""How many rows of decoded columns are cached, of some 50 bytes each."""


Narrow = npt.NDArray[np.signedinteger[Any]]
"""Signed integers of any width."""


class Layouts:
    """The different layouts of a table's files, by their DDL."""

    def __init__(self) -> None:
        self.schemas: list[ShreddingSchema] = []
        self.nodes: list[dict[Path, int]] = []
        self.paths: list[list[Path]] = []
        self.recent = Recent()
        self._codes: dict[str, int] = {}

    def code(self, text: str | None) -> int:
        """Return the number of a layout, -1 if the text is not a layout."""
        if text is None:
            return -1
        with _LOCK:
            if text not in self._codes:
                self._codes[text] = self._new_code(text)
            return self._codes[text]

    def _new_code(self, text: str) -> int:
        try:
            schema, nodes = parse_layout(text)
        except VariantLakeError:
            return -1
        self.schemas.append(schema)
        self.paths.append([path for path, _ in nodes])
        self.nodes.append({path: index for index, (path, _) in enumerate(nodes)})
        return len(self.schemas) - 1


class Recent:
    """A cache of the columns decoded last: all of a small table, a few of a large one."""

    def __init__(self) -> None:
        self._columns: dict[Any, tuple[int, Any]] = {}
        self._rows = 0

    def has(self, key: Any) -> bool:
        """Whether the cache has a column for `key`."""
        return key in self._columns

    def once(self, key: Any, rows: int, make: Callable[[], Any]) -> Any:
        """Return the column cached for `key`, else cache what `make` returns, of this many rows."""
        known = self._columns.get(key)
        if known is not None:
            return known[1]
        column = make()
        with _LOCK:
            if self._columns.setdefault(key, (rows, column))[1] is column:
                self._rows += rows
            while self._rows > _RECENT_ROWS and len(self._columns) > 1:
                self._rows -= self._columns.pop(next(iter(self._columns)))[0]
        return column


_KINDS = ("layout", "facts", "values", "bounds")


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of some files on a Variant column; `facts` and `bounds` are packed texts.

    `layout` is -1 where the tags do not tell it, `notes` are the `note_bits`. Both have the type
    that `_narrow` returns.
    """

    layout: Narrow
    notes: Narrow
    facts: Any
    bounds: Any


class FilesPart:
    """A batch of files that were read into memory together."""

    def __init__(self, texts: FileTexts, schema: StructType, layouts: Layouts) -> None:
        self.texts = texts
        self.rows: int = texts.rows
        self.layouts = layouts
        self._schema = schema

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what `make` returns, cached for a while."""
        return self.layouts.recent.once((self, key), self.rows, make)

    @cached_property
    def _stats(self) -> StatsColumns:
        texts = TextStats(self.texts, self._schema)
        return parsed_or_texts(self.texts.struct(), self._schema, texts)

    @cached_property
    def num_records(self) -> Int64s:
        """Rows of each file, -1 if unknown."""
        return self._stats.num_records

    @cached_property
    def tight(self) -> Bools:
        """Files whose bounds are tight: some row reaches them."""
        return self._stats.tight

    @cached_property
    def whole(self) -> Bools:
        """Files with tight bounds and without a deletion vector."""
        whole: Bools = self.tight & ~self.texts.marked
        return whole

    def nulls(self, column: ColumnPath) -> Int64s:
        """Return null counts; without tight bounds, only 0 and all rows are known (rule 23)."""
        counts = self._stats.nulls(column)
        informs = self.tight | (counts == 0) | (counts == self.num_records)
        return np.where(informs, counts, UNKNOWN)

    @cached_property
    def _tags(self) -> dict[ColumnPath, _Tags]:
        """Our tags on each Variant column, extracted from the maps in one pass."""
        columns = {
            column: column_name(column) for column in self._schema.variant_columns(physical=True)
        }
        names = ["version", "file"]
        for name in columns.values():
            names += [f"{kind}.{name}" for kind in _KINDS]
        found = map_columns(self.texts.encoded("tags"), [PREFIX + name for name in names])
        believed = self._believed(found[f"{PREFIX}version"], found[f"{PREFIX}file"])
        return {
            column: self._read_tags(believed, *(found[f"{PREFIX}{kind}.{name}"] for kind in _KINDS))
            for column, name in columns.items()
        }

    def _believed(self, version: TagColumn, file: TagColumn) -> Bools:
        """Return a mask of the files whose tags are about this very file (EXACTNESS, rule 25)."""
        marked = np.empty(self.rows, np.uint8)
        match_marks(file.texts, self.texts.sizes, self.num_records, marked)
        known = version.codes(lambda text: int(text == VERSION))
        believed: Bools = (known == 1) & (marked == 1)
        return believed

    def _read_tags(
        self,
        believed: Bools,
        layouts: TagColumn,
        facts: TagColumn,
        values: TagColumn,
        bounds: TagColumn,
    ) -> _Tags:
        layout = layouts.codes(self.layouts.code)
        layout[~believed] = -1
        # If any count of a file is invalid, its tags are ignored.
        sound = self._read_counts(facts.texts, self.num_records, layout)[:, 3] >= 0
        layout = np.where(sound, layout, -1)
        bits = values.codes(lambda text: note_bits(parse_notes(text)))
        notes = np.where(layout >= 0, bits, UNKNOWN)
        return _Tags(_narrow(layout), _narrow(notes), facts.packed(), bounds.packed())

    def layout(self, column: ColumnPath) -> Narrow:
        """Return the layout of each file, -1 if the tags do not tell it."""
        return self._tags[column].layout

    def notes(self, column: ColumnPath) -> Narrow:
        """Return the `note_bits` of each file, -1 if the tags do not tell its layout."""
        return self._tags[column].notes

    def counts(self, column: ColumnPath, path: Path, rows: Int64s | None = None) -> Narrow:
        """Return the four numbers of the node at `path`, shape (rows, 4); -1 if it is no node.

        They are of all files, and are cached then, or of `rows`.
        """
        if rows is not None and not self.layouts.recent.has((self, ("counts", column, path))):
            return self._counts(column, path, rows)
        found: Narrow = self.once(
            ("counts", column, path),
            lambda: _narrow(self._counts(column, path, np.arange(self.rows))),
        )
        return found if rows is None else found[rows]

    def _counts(self, column: ColumnPath, path: Path, rows: Int64s) -> Int64s:
        layout = self.layout(column)[rows].astype(np.int64)
        nodes = [known.get(path, -1) for known in self.layouts.nodes]
        texts = texts_of(unpacked(self._tags[column].facts)).take(rows)
        records = self.num_records[rows]
        return self._read_counts(texts, records, layout, np.array([*nodes, -1], np.int64)[layout])

    def _read_counts(
        self, texts: StringColumn, records: Int64s, layout: Int64s, nodes: Int64s | None = None
    ) -> Int64s:
        """Read one node's numbers; without `nodes`, read the root's and check all others."""
        sizes = np.array([*(len(known) for known in self.layouts.paths), 0], np.int64)[layout]
        whole = int(nodes is None)
        if nodes is None:
            nodes = np.zeros(len(records), np.int64)
        texts = texts.where((layout >= 0) & (nodes >= 0))
        counts = np.full(len(records) * 4, UNKNOWN, np.int64)
        read_counts(texts.data, texts.starts, texts.ends, records, sizes, nodes, whole, counts)
        table = counts.reshape(-1, 4)
        table[table[:, 3] < 0] = UNKNOWN
        return table

    def variant_bounds(self, column: ColumnPath, path: Path, leaf: ShreddedType) -> BoundColumns:
        """Return the bounds of the leaf at `path` in every file.

        They are undefined for a file whose leaf there has another type.
        """
        found: BoundColumns = self.once(
            ("bounds", column, path, leaf), lambda: self._read_bounds(column, path, leaf)
        )
        return found

    def _read_bounds(self, column: ColumnPath, path: Path, leaf: ShreddedType) -> BoundColumns:
        low, high = (
            _or_tagged(bound, there, more, path, leaf)
            for (bound, there), more in zip(
                self._stats.variant_bounds(column, path, leaf), self._tagged(column), strict=True
            )
        )
        flags = self.counts(column, path)[:, 3]
        exact = self.whole & (flags >= 0)
        if leaf.kind is Kind.STRING:
            # The writer of the statistics may have cut strings.
            exact &= False
        return BoundColumns(
            low,
            high,
            exact & low.valid & (flags & MINIMUM_EXACT != 0),
            exact & high.valid & (flags & MAXIMUM_EXACT != 0),
            (flags >= 0) & (flags & PLAIN_FLOATS != 0),
        )

    def _tagged(self, column: ColumnPath) -> Sequence[BoundTexts | None]:
        """Return the bounds in our tags, which the protocol does not allow in statistics."""
        texts = texts_of(unpacked(self._tags[column].bounds))
        if (texts.starts < 0).all():
            return (None, None)
        return [BoundTexts(each.texts()) for each in members_of(texts, [("min",), ("max",)])]

    def column_bounds(
        self, column: ColumnPath, item: StructField, stored: ShreddedType
    ) -> BoundColumns:
        """Return the bounds of an ordinary column."""

        def read() -> BoundColumns:
            type_, widened = item.type, was_float(item)
            if not isinstance(type_, PrimitiveType):
                return BoundColumns.unknown(self.rows, stored)
            minimum, maximum = self._stats.column_bounds(column, type_, stored, widened=widened)
            # Strings may be cut and times always are; only bounds of numbers and dates are exact.
            sure = stored.kind is not Kind.STRING and not widened and not is_time(type_)
            exact = self.tight & sure
            unknown = np.zeros(self.rows, np.bool_)
            return BoundColumns(
                minimum, maximum, exact & minimum.valid, exact & maximum.valid, unknown
            )

        found: BoundColumns = self.once(("column", column, stored), read)
        return found


def _narrow(numbers: Int64s) -> Narrow:
    """Convert to the narrowest type that holds the numbers, which are cached and mostly small."""
    least, greatest = numbers.min(initial=0), numbers.max(initial=0)
    for type_ in (np.int8, np.int16, np.int32):
        if np.iinfo(type_).min <= least and greatest <= np.iinfo(type_).max:
            return numbers.astype(type_)
    return numbers


def _or_tagged(
    bound: RawColumn, there: Bools, tagged: BoundTexts | None, path: Path, leaf: ShreddedType
) -> RawColumn:
    """Return one side's bound from the statistics, or from our tags where they have none."""
    if tagged is not None:
        more, more_there = tagged.find(path, leaf)
        rows = np.flatnonzero(more_there & ~there)
        bound.put(rows, more.take(rows))
    return bound
