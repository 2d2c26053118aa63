"""Read the statistics of some files from JSON texts; kernels extract what one query needs."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from variantlake.arrays import numpy_array
from variantlake.delta.schema.table_schema import PrimitiveType, StructType
from variantlake.delta.stats.columns.arrow_bounds import raw_bounds
from variantlake.delta.stats.columns.json_members import (
    NO_TEXTS,
    JsonMembers,
    StringColumn,
    members_of,
    texts_of,
)
from variantlake.delta.stats.columns.path_bounds import BoundTexts
from variantlake.delta.stats.columns.typed_members import BOUNDED, typed_column
from variantlake.delta.stats.file_texts import FileTexts
from variantlake.delta.stats.stats_reader import bound_of, find_in, parse_stats
from variantlake.delta.stats.variant_bounds import plain_bounds, raw_of
from variantlake.kernels.log.log_stats import MISSING, UNUSUAL
from variantlake.parquet.stats.fact_columns import Bools, ColumnPath, Int64s, RawColumn
from variantlake.paths import Path
from variantlake.types import Primitive, ShreddedType

SIDES = ("minValues", "maxValues")


class StatsColumns(Protocol):
    """Statistics of some files by column; each call computes them anew."""

    @property
    def num_records(self) -> Int64s:
        """Rows of each file, -1 if unknown."""

    @property
    def tight(self) -> Bools:
        """Files whose bounds are tight: some row reaches them."""

    def nulls(self, column: ColumnPath) -> Int64s:
        """Return null counts as written, -1 if unknown."""

    def variant_bounds(
        self, column: ColumnPath, path: Path, leaf: ShreddedType
    ) -> list[tuple[RawColumn, Bools]]:
        """Return for each side a leaf's bounds, and the files with a bound of any type there."""

    def column_bounds(
        self, column: ColumnPath, type_: PrimitiveType, stored: ShreddedType, *, widened: bool
    ) -> list[RawColumn]:
        """Return for each side the bounds of an ordinary column; `widened` as in `bound_of`."""


class TextStats:
    """Statistics of JSON texts, as StatsColumns."""

    def __init__(self, texts: FileTexts, schema: StructType) -> None:
        self._texts = texts
        self._variants = schema.variant_columns(physical=True)
        self._memo: dict[ColumnPath, dict[ColumnPath, JsonMembers]] = {}

    @cached_property
    def _first(self) -> tuple[Int64s, Bools, dict[ColumnPath, JsonMembers]]:
        """What every query needs, read in one pass: row counts, tightness, and Variant columns."""
        paths: list[ColumnPath] = [("numRecords",), ("tightBounds",)]
        for column in self._variants:
            paths += [(name, *column) for name in ("nullCount", *SIDES)]
        members = self._find(paths)
        rows, tight = members.pop(("numRecords",)), members.pop(("tightBounds",))
        return rows.counts(), np.isin(tight.tags, [MISSING, Primitive.TRUE]), members

    def _find(self, paths: list[ColumnPath]) -> dict[ColumnPath, JsonMembers]:
        """Return members without a reference to their texts, which stay packed."""
        found = members_of(texts_of(self._texts.stats()), paths)
        return {
            path: replace(each, documents=NO_TEXTS) for path, each in zip(paths, found, strict=True)
        }

    def _members(self, column: ColumnPath) -> list[JsonMembers]:
        """Return `nullCount`, `minValues` and `maxValues` of a column, without texts."""
        paths = [(name, *column) for name in ("nullCount", *SIDES)]
        *_, first = self._first
        if paths[0] in first:
            return [first[path] for path in paths]
        if column not in self._memo:
            self._memo[column] = self._find(paths)
        return [self._memo[column][path] for path in paths]

    @property
    def num_records(self) -> Int64s:
        """See StatsColumns."""
        return self._first[0]

    @property
    def tight(self) -> Bools:
        """See StatsColumns."""
        return self._first[1]

    def nulls(self, column: ColumnPath) -> Int64s:
        """See StatsColumns."""
        return self._members(column)[0].counts()

    def variant_bounds(
        self, column: ColumnPath, path: Path, leaf: ShreddedType
    ) -> list[tuple[RawColumn, Bools]]:
        """See StatsColumns."""
        documents = texts_of(self._texts.stats())
        return [
            _side(replace(each, documents=documents), (side, *column), path, leaf)
            for side, each in zip(SIDES, self._members(column)[1:], strict=True)
        ]

    def column_bounds(
        self, column: ColumnPath, type_: PrimitiveType, stored: ShreddedType, *, widened: bool
    ) -> list[RawColumn]:
        """See StatsColumns."""
        documents = texts_of(self._texts.stats())
        found = [
            _ordinary(
                replace(each, documents=documents), (side, *column), type_, stored, widened=widened
            )
            for side, each in zip(SIDES, self._members(column)[1:], strict=True)
        ]
        # The caller keeps the bounds, and has asked for the null counts before.
        self._memo.pop(column, None)
        return found


def _side(
    members: JsonMembers, member: ColumnPath, path: Path, leaf: ShreddedType
) -> tuple[RawColumn, Bools]:
    bound, there = BoundTexts(members.texts()).find(path, leaf)
    for row in np.flatnonzero(members.tags == UNUSUAL).tolist():
        text = find_in(_parsed(members.documents, row, decimals=False), member)
        known = plain_bounds(text).get(path)
        if known is not None:
            there[row] = True
            bound.put(np.array([row]), RawColumn.of([raw_of(leaf, known)], leaf))
    return bound, there


def _ordinary(
    members: JsonMembers,
    member: ColumnPath,
    type_: PrimitiveType,
    stored: ShreddedType,
    *,
    widened: bool,
) -> RawColumn:
    """Return one side's bounds of a column; decimals that its type rounds are read row by row."""
    up = member[0] == "maxValues"

    def plain(row: int) -> Any:
        return find_in(_parsed(members.documents, row, decimals=True), member)

    if type_.name not in BOUNDED:
        return RawColumn.unknown(len(members.tags), stored)
    array = typed_column(members, type_, plain)
    found = raw_bounds(array, type_, stored, up=up, widened=widened)
    if type_.name == "decimal":
        # A bound that the type would round is no value of the type, but still bounds its values.
        odd = numpy_array(array.is_null()) & (members.tags != MISSING)
        for row in np.flatnonzero(odd).tolist():
            value = bound_of(plain(row), type_, up=up)
            found.put(np.array([row]), RawColumn.of([value], stored))
    return found


def _parsed(stats: StringColumn, row: int, *, decimals: bool) -> dict[str, Any] | None:
    """Parse one file's statistics with the plain parser."""
    text = stats.text(row)
    return parse_stats(None if text is None else text.decode(), decimals=decimals)
