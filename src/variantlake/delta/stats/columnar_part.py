"""What the log says of some files, one batch of them: decoded on demand and then kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.schema.table_schema import (
    PrimitiveType,
    StructField,
    StructType,
)
from variantlake.delta.stats.columnar_bounds import BoundTexts
from variantlake.delta.stats.columnar_json import (
    NO_TEXTS,
    JsonMembers,
    StringColumn,
    members_of,
    texts_of,
)
from variantlake.delta.stats.file_texts import FileTexts, packed, unpacked
from variantlake.delta.stats.stats_reader import (
    INTEGERS,
    bound_of,
    find_in,
    is_time,
    parse_stats,
    was_float,
)
from variantlake.delta.stats.tag_columns import map_columns
from variantlake.delta.stats.tags import (
    MAXIMUM_EXACT,
    MINIMUM_EXACT,
    PLAIN_FLOATS,
    PREFIX,
    VERSION,
    column_name,
    parse_layout,
)
from variantlake.delta.stats.variant_bounds import plain_bounds, raw_of
from variantlake.errors import VariantLakeError
from variantlake.kernels.log.log_stats import MISSING, UNUSUAL, read_counts
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
from variantlake.types import Kind, Primitive, ShreddedType

_SIDES = ("minValues", "maxValues")


class Layouts:
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


class FilesPart:
    """Files that came into memory together. Everything is decoded at most once."""

    def __init__(self, texts: FileTexts, schema: StructType, layouts: Layouts) -> None:
        self.texts = texts
        self.rows: int = texts.rows
        self.layouts = layouts
        self._schema = schema
        self._memo: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, remembered."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]

    @cached_property
    def _first_members(self) -> dict[ColumnPath, JsonMembers]:
        """What every query needs, in one pass: counts of rows, and all about Variant columns."""
        paths: list[ColumnPath] = [("numRecords",), ("tightBounds",)]
        for column in self._schema.variant_columns(physical=True):
            paths += [(name, *column) for name in ("nullCount", *_SIDES)]
        return self._find_members(paths)

    def _find_members(self, paths: list[ColumnPath]) -> dict[ColumnPath, JsonMembers]:
        """Members without their texts, which stay packed."""
        found = members_of(texts_of(self.texts.stats()), paths)
        return {
            path: replace(each, documents=NO_TEXTS) for path, each in zip(paths, found, strict=True)
        }

    def _members(self, column: ColumnPath) -> list[JsonMembers]:
        """`nullCount`, `minValues` and `maxValues` of a column, without texts."""
        paths = [(name, *column) for name in ("nullCount", *_SIDES)]
        if paths[0] in self._first_members:
            return [self._first_members[path] for path in paths]
        found = self.once(column, lambda: self._find_members(paths))
        return [found[path] for path in paths]

    @cached_property
    def num_records(self) -> Int64s:
        """Rows of each file, -1 if unknown."""
        return self._first_members["numRecords",].counts()

    @cached_property
    def tight(self) -> Bools:
        """Whether bounds are reached by some row."""
        tags = self._first_members["tightBounds",].tags
        return np.isin(tags, [MISSING, Primitive.TRUE])

    @cached_property
    def whole(self) -> Bools:
        """Files without deleted rows, by all that is said of them."""
        whole: Bools = self.tight & ~self.texts.marked
        return whole

    def nulls(self, column: ColumnPath) -> Int64s:
        """Null counts; those of files that are not tight inform only when 0 or all (rule 23)."""
        counts = self._members(column)[0].counts()
        informs = self.tight | (counts == 0) | (counts == self.num_records)
        return np.where(informs, counts, UNKNOWN)

    @cached_property
    def _tags(self) -> dict[str, Any]:
        """The values of our tags, packed by name: asked for by turns, and in one map."""
        names = ["version", "file"]
        for column in self._schema.variant_columns(physical=True):
            name = column_name(column)
            names += [f"{kind}.{name}" for kind in ("layout", "facts", "values", "bounds")]
        columns = map_columns(self.texts.tags(), [PREFIX + name for name in names])
        return {name: packed(columns[PREFIX + name].array()) for name in names}

    def tag(self, name: str) -> StringColumn:
        """The values of one of our tags."""
        return texts_of(unpacked(self._tags[name]))

    @cached_property
    def _believed(self) -> Bools:
        """Files whose tags speak of this very file (EXACTNESS, rule 25)."""
        size: Any = pa.array(self.texts.sizes).cast(pa.string())
        records = pa.array(self.num_records).cast(pa.string())
        mark: Any = pc.binary_join_element_wise(size, records, ":")
        version: Any = pc.equal(unpacked(self._tags["version"]), pa.scalar(VERSION))
        said: Any = pc.and_(version, pc.equal(unpacked(self._tags["file"]), mark))
        believed: Bools = pc.fill_null(said, False).to_numpy(zero_copy_only=False)
        return np.logical_and(believed, self.num_records >= 0)

    def layout(self, column: ColumnPath) -> Int64s:
        """The layout of each file, -1 if the tags do not tell."""
        return self._layout(column)[0]

    def notes(self, column: ColumnPath) -> Int64s:
        """`note_bits` of each file, for those whose layout the tags tell."""
        return self._layout(column)[1]

    def _layout(self, column: ColumnPath) -> tuple[Int64s, Int64s]:
        found: tuple[Int64s, Int64s] = self.once(
            ("layout", column), lambda: self._read_layout(column)
        )
        return found

    def _read_layout(self, column: ColumnPath) -> tuple[Int64s, Int64s]:
        name = column_name(column)
        layout = _coded(self.tag(f"layout.{name}"), self.layouts.code)
        layout[~self._believed] = -1
        # The counts are all good, or nothing is.
        sound = self._read_counts(self.tag(f"facts.{name}"), layout)[:, 3] >= 0
        bits = _coded(self.tag(f"values.{name}"), lambda text: note_bits(parse_notes(text)))
        layout = np.where(sound, layout, -1)
        return layout, np.where(layout >= 0, bits, UNKNOWN)

    def counts(self, column: ColumnPath, path: Path) -> Int64s:
        """The four numbers of the node at `path`, shape (rows, 4); -1 if it is not a node."""

        def read() -> Int64s:
            layout = self.layout(column)
            nodes = [known.get(path, -1) for known in self.layouts.nodes]
            texts = self.tag(f"facts.{column_name(column)}")
            return self._read_counts(texts, layout, np.array([*nodes, -1], np.int64)[layout])

        found: Int64s = self.once(("counts", column, path), read)
        return found

    def _read_counts(
        self, texts: StringColumn, layout: Int64s, nodes: Int64s | None = None
    ) -> Int64s:
        """One node's numbers; without `nodes` those of the root, all others being checked."""
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
        stats, tagged = texts_of(self.texts.stats()), self._tagged(column)
        low, high = (
            _side(replace(each, documents=stats), (side, *column), more, path, leaf)
            for side, each, more in zip(_SIDES, self._members(column)[1:], tagged, strict=True)
        )
        flags = self.counts(column, path)[:, 3]
        exact = self.whole & (flags >= 0)
        if leaf.kind is Kind.STRING:
            # Whoever wrote the statistics may have cut strings.
            exact &= False
        return BoundColumns(
            low,
            high,
            exact & low.valid & (flags & MINIMUM_EXACT != 0),
            exact & high.valid & (flags & MAXIMUM_EXACT != 0),
            (flags >= 0) & (flags & PLAIN_FLOATS != 0),
        )

    def _tagged(self, column: ColumnPath) -> Sequence[BoundTexts | None]:
        """The bounds that the protocol keeps out of the statistics."""
        texts = self.tag(f"bounds.{column_name(column)}")
        if (texts.starts < 0).all():
            return (None, None)
        return [BoundTexts(each.texts()) for each in members_of(texts, [("min",), ("max",)])]

    def column_bounds(
        self, column: ColumnPath, item: StructField, stored: ShreddedType
    ) -> BoundColumns:
        """The bounds of an ordinary column."""

        def read() -> BoundColumns:
            stats = texts_of(self.texts.stats())
            _, low, high = (replace(each, documents=stats) for each in self._members(column))
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
                minimum, maximum, exact & minimum.valid, exact & maximum.valid, unknown
            )

        found: BoundColumns = self.once(("column", column, stored), read)
        return found

    def _ordinary(
        self,
        column: ColumnPath,
        members: JsonMembers,
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
                document = _parsed(members.documents, row, decimals=True)
                value = find_in((document or {}).get(_SIDES[side]), column)
            values[row] = bound_of(value, type_, up=side == 1, widened=widened)
        return RawColumn.of(values, stored)


def _side(
    members: JsonMembers,
    member: ColumnPath,
    tagged: BoundTexts | None,
    path: Path,
    leaf: ShreddedType,
) -> RawColumn:
    """One side's bound: that of the statistics, else that of our tags."""
    bound, there = BoundTexts(members.texts()).find(path, leaf)
    for row in np.flatnonzero(members.tags == UNUSUAL).tolist():
        text = find_in(_parsed(members.documents, row, decimals=False), member)
        known = plain_bounds(text).get(path)
        if known is not None:
            there[row] = True
            bound.put(np.array([row]), RawColumn.of([raw_of(leaf, known)], leaf))
    if tagged is not None:
        more, more_there = tagged.find(path, leaf)
        rows = np.flatnonzero(more_there & ~there)
        bound.put(rows, more.take(rows))
    return bound


def _parsed(stats: StringColumn, row: int, *, decimals: bool) -> dict[str, Any] | None:
    """One file's statistics by the plain parser."""
    text = stats.text(row)
    return parse_stats(None if text is None else text.decode(), decimals=decimals)


def _coded(texts: StringColumn, code: Callable[[str | None], int]) -> Int64s:
    """The number of each text; few are different."""
    encoded = texts.array().dictionary_encode("encode")
    codes = np.array([code(text) for text in encoded.dictionary.to_pylist()], np.int64)
    found: Int64s = codes[encoded.indices.to_numpy(zero_copy_only=False)]
    return found
