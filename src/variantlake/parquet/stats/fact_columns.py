"""The facts of many files as columns, in which planning reads them from any source.

Rows are files, or the row groups of one. As in `facts`, unknown is -1 for counts, not `valid` for
bounds and False for flags, and always the safe side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import cache
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.errors import InvalidSchema
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.facts import UNKNOWN, ColumnFacts, FileFacts, PathFacts
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import ValueNotes
from variantlake.types import Kind, ShreddedType

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
ColumnPath = tuple[str, ...]

T = TypeVar("T")
R = TypeVar("R")

_OBJECTS: dict[Kind, type] = {
    Kind.DECIMAL: Decimal,
    Kind.STRING: str,
    Kind.BINARY: bytes,
    Kind.UUID: bytes,
}
"""The kinds whose values are Python objects, and their class. All others are machine numbers."""


def raw_dtype(type_: ShreddedType | None) -> type[np.generic]:
    """Return the NumPy type for bounds of a type: float64, int64 (also dates, times), or object."""
    if type_ is None or type_.kind in _OBJECTS:
        return np.object_
    return np.float64 if type_.kind in (Kind.FLOAT, Kind.DOUBLE) else np.int64


MANY_FILES = 1 << 16
"""The number of files from which threads share the work."""

_THREADS = min(4, os.cpu_count() or 1)

_FEW_ROWS = 4
"""Rows are few if they are less than one in this many."""


def map_parts(work: Callable[[T], R], parts: Sequence[T], files: int) -> list[R]:
    """Run `work` on each part; in threads if the parts have MANY_FILES files together."""
    if len(parts) < 2 or files < MANY_FILES:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, parts))


def are_few(rows: Int64s, of: int) -> bool:
    """Whether it pays to select these rows."""
    return len(rows) * _FEW_ROWS < of


def run_of(rows: Int64s) -> slice | None:
    """Return the rows as a slice, which is fast to copy; None unless they rise without gaps."""
    if not len(rows) or rows[-1] - rows[0] != len(rows) - 1:
        return None
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else None


def take_rows(column: npt.NDArray[Any], rows: Int64s) -> npt.NDArray[Any]:
    """Copy these rows of a column."""
    run = run_of(rows)
    return column[rows] if run is None else column[run].copy()


def put_rows(column: npt.NDArray[Any], rows: Int64s, others: npt.NDArray[Any]) -> None:
    """Write `others` into these rows of a column."""
    run = run_of(rows)
    column[rows if run is None else run] = others


def _take_of(column: Any, rows: Int64s) -> Any:
    return column.take(rows) if isinstance(column, RowColumns) else take_rows(column, rows)


def _put(column: Any, rows: Int64s, others: Any) -> None:
    if isinstance(column, RowColumns):
        column.put(rows, others)
    else:
        put_rows(column, rows, others)


def _joined(columns: Sequence[Any]) -> Any:
    first = columns[0]
    return type(first).joined(columns) if isinstance(first, RowColumns) else np.concatenate(columns)


class RowColumns:
    """Base of dataclasses whose fields are columns with the same rows."""

    __slots__ = ()

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the rows of all parts, at least one."""
        columns: Any = cls
        return cls(*(_joined([getattr(e, each.name) for e in parts]) for each in fields(columns)))

    def take(self, rows: Int64s) -> Self:
        """Copy these rows."""
        columns: Any = self
        return type(self)(*(_take_of(getattr(self, each.name), rows) for each in fields(columns)))

    def put(self, rows: Int64s, others: Self) -> None:
        """Write `others` into these rows."""
        columns: Any = self
        for each in fields(columns):
            _put(getattr(self, each.name), rows, getattr(others, each.name))


@dataclass(frozen=True, slots=True)
class RawColumn(RowColumns):
    """One bound of each row: `values` of `raw_dtype`, which mean nothing where not `valid`."""

    values: npt.NDArray[Any]
    valid: Bools

    @classmethod
    def unknown(cls, rows: int, type_: ShreddedType | None) -> RawColumn:
        """Make a writable column without bounds."""
        return cls(np.zeros(rows, raw_dtype(type_)), np.zeros(rows, np.bool_))

    @classmethod
    def of(cls, values: Sequence[Raw | None], type_: ShreddedType) -> RawColumn:
        """Make a column of bounds. Values of another type, and NaN, are unknown.

        Facts may come from a log that any program wrote.
        """
        column = cls.unknown(len(values), type_)
        usable = _usable(type_.kind)
        for row, value in enumerate(values):
            if usable(value):
                column.values[row] = value
                column.valid[row] = True
        return column

    def raw(self, row: int) -> Raw | None:
        """Return the bound of one row as a Python value, None if unknown."""
        if not self.valid[row]:
            return None
        value: Raw = self.values[row : row + 1].tolist()[0]
        return value


def _usable(kind: Kind) -> Callable[[Raw | None], bool]:
    wanted = _OBJECTS.get(kind)
    if wanted is not None:
        return lambda value: isinstance(value, wanted) and value == value  # noqa: PLR0124 - NaN
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return lambda value: isinstance(value, float) and value == value  # noqa: PLR0124 - NaN
    return lambda value: isinstance(value, int) and -(2**63) <= value < 2**63


@dataclass(frozen=True, slots=True)
class BoundColumns(RowColumns):
    """The bounds of some rows; meanings as in PathFacts."""

    minimum: RawColumn
    maximum: RawColumn
    minimum_exact: Bools
    maximum_exact: Bools
    plain_floats: Bools

    @classmethod
    def unknown(cls, rows: int, type_: ShreddedType | None) -> BoundColumns:
        """Make writable columns in which all is unknown."""
        flags = (np.zeros(rows, np.bool_) for _ in range(3))
        return cls(RawColumn.unknown(rows, type_), RawColumn.unknown(rows, type_), *flags)

    @classmethod
    def of(cls, facts: Sequence[PathFacts | ColumnFacts], type_: ShreddedType) -> BoundColumns:
        """Make columns of the bounds of these records."""
        return cls(
            RawColumn.of([each.bounds.minimum for each in facts], type_),
            RawColumn.of([each.bounds.maximum for each in facts], type_),
            np.array([each.bounds.minimum_exact for each in facts], np.bool_),
            np.array([each.bounds.maximum_exact for each in facts], np.bool_),
            np.array([each.plain_floats for each in facts], np.bool_),
        )


LACKING, INTEGERS, REORDERED = 1, 2, 4
"""Bits of notes: a residual may hold types that Spark lacks; decimal columns hold integers, which
only our kernels tell apart; Spark may order the keys of an object differently."""


def note_bits(notes: ValueNotes | None) -> int:
    """Return the notes as bits, UNKNOWN without notes."""
    if notes is None:
        return UNKNOWN
    return LACKING * notes.lacking | INTEGERS * bool(notes.told_apart) | REORDERED * notes.reordered


@dataclass(frozen=True, slots=True)
class NodeCounts(RowColumns):
    """Counts of one node in some rows, and `clean_inside`; int64, meanings as in PathFacts."""

    typed: Int64s
    nulls: Int64s
    residuals: Int64s
    clean_inside: Int64s

    @property
    def clean(self) -> Bools:
        """As `PathFacts.clean`."""
        clean: Bools = (self.residuals == 0) & (self.nulls >= 0)
        return clean

    def with_inside(self, wanted: int) -> NodeCounts:
        """Make residuals UNKNOWN, and so rows not clean, unless `clean_inside` has all `wanted`.

        Rows that are known to have residuals keep their count.
        """
        known = (self.clean_inside & wanted == wanted) | (self.residuals > 0)
        return replace(self, residuals=np.where(known, self.residuals, UNKNOWN))


class VariantColumns(Protocol):
    """One Variant column in all rows. A node is its index in `schemas[…].nodes()`."""

    @property
    def schemas(self) -> Sequence[ShreddingSchema]:
        """The different layouts."""

    @property
    def legacy(self) -> Sequence[bool]:
        """For each of `schemas`, whether its files have Spark's older layout."""

    @property
    def others(self) -> Sequence[bool]:
        """For each of `schemas`, whether its files have leaves that are not part of the Variant."""

    @property
    def layout(self) -> Int64s:
        """The index in `schemas` of each row, int64; -1 if unknown."""

    @property
    def nulls(self) -> Int64s:
        """SQL NULLs in each row, int64; -1 if unknown."""

    @property
    def notes(self) -> Int64s:
        """The `note_bits` of each row, int64; UNKNOWN without notes."""

    def counts(self, rows: Int64s, nodes: Int64s) -> NodeCounts:
        """Return the counts of node `nodes[i]` in row `rows[i]`, whose layout is known."""

    def bounds(self, rows: Int64s, nodes: Int64s, leaf: ShreddedType) -> BoundColumns:
        """Return the bounds of node `nodes[i]` in row `rows[i]`, each a leaf of this type."""


class OrdinaryColumns(Protocol):
    """An ordinary column in all rows. A type without bounds is None."""

    @property
    def types(self) -> Sequence[ShreddedType | None]:
        """The different types."""

    @property
    def type(self) -> Int64s:
        """The index in `types` of each row, int64; -1 if the row has no facts."""

    @property
    def nulls(self) -> Int64s:
        """SQL NULLs in each row, int64; -1 if unknown."""

    def bounds(self, rows: Int64s, stored: ShreddedType) -> BoundColumns:
        """Return the bounds in these rows, which all store this type."""


class FactColumns(Protocol):
    """The facts of many files."""

    @property
    def num_records(self) -> Int64s:
        """Rows of each file, int64; -1 if unknown."""

    def variant(self, column: ColumnPath) -> VariantColumns | None:
        """Return a Variant column; None if no row has facts about it."""

    def column(self, column: ColumnPath) -> OrdinaryColumns | None:
        """Return an ordinary column; None if no row has facts about it."""


# --- From records ---------------------------------------------------------------------------------


class RecordColumns:
    """The facts of files as columns, from records; None is a file without facts."""

    def __init__(self, facts: Sequence[FileFacts | None]) -> None:
        self._facts = facts
        records = [UNKNOWN if each is None else each.num_records for each in facts]
        self.num_records: Int64s = np.array(records, np.int64)

    def variant(self, column: ColumnPath) -> VariantColumns | None:
        """See FactColumns."""
        found = [None if each is None else each.variant(column) for each in self._facts]
        if not any(found):
            return None
        layout = np.full(len(found), -1, np.int64)
        nulls = np.full(len(found), UNKNOWN, np.int64)
        codes: dict[tuple[ShreddingSchema, bool, bool], int] = {}
        # By identity first: hashing a schema of hundreds of fields for each file is slow.
        known: dict[tuple[int, bool, bool], int] = {}
        for row, each in enumerate(found):
            if each is not None:
                form = (each.is_legacy, each.has_others)
                key = (id(each.schema), *form)
                code = known.get(key)
                if code is None:
                    code = known[key] = codes.setdefault((each.schema, *form), len(codes))
                layout[row], nulls[row] = code, each.nulls
        notes = [UNKNOWN if each is None else note_bits(each.notes) for each in found]
        paths = [() if each is None else each.paths for each in found]
        # Ignore facts that contradict their layout.
        sizes = np.array([sum(1 for _ in schema.nodes()) for schema, *_ in codes], np.int64)
        layout[np.array([*map(len, paths)], np.int64) != sizes[layout]] = -1
        schemas, legacy, others = zip(*codes, strict=True)
        bits = np.array(notes, np.int64)
        return _RecordVariants(schemas, legacy, others, layout, nulls, bits, paths)

    def column(self, column: ColumnPath) -> OrdinaryColumns | None:
        """See FactColumns."""
        found = [None if each is None else each.column(column) for each in self._facts]
        if not any(found):
            return None
        codes: dict[ShreddedType | None, int] = {}
        types = [
            -1 if each is None else codes.setdefault(stored_type(each.type), len(codes))
            for each in found
        ]
        nulls = [UNKNOWN if each is None else each.nulls for each in found]
        return _RecordColumn(
            tuple(codes), np.array(types, np.int64), np.array(nulls, np.int64), found
        )


@cache
def stored_type(arrow: pa.DataType) -> ShreddedType | None:
    """Return the type of the bounds of a column of an Arrow type; None if it has none."""
    try:
        return ShreddedType.from_arrow(arrow)
    except InvalidSchema:
        return None


@dataclass(frozen=True, slots=True)
class _Variants:
    """The properties of VariantColumns."""

    schemas: Sequence[ShreddingSchema]
    legacy: Sequence[bool]
    others: Sequence[bool]
    layout: Int64s
    nulls: Int64s
    notes: Int64s


@dataclass(frozen=True, slots=True)
class _RecordVariants(_Variants):
    paths: Sequence[Sequence[PathFacts]]

    def _nodes(self, rows: Int64s, nodes: Int64s) -> list[PathFacts]:
        return [
            self.paths[row][node] for row, node in zip(rows.tolist(), nodes.tolist(), strict=True)
        ]

    def counts(self, rows: Int64s, nodes: Int64s) -> NodeCounts:
        found = self._nodes(rows, nodes)
        return NodeCounts(
            np.array([each.typed for each in found], np.int64),
            np.array([each.nulls for each in found], np.int64),
            np.array([each.residuals for each in found], np.int64),
            np.array([each.clean_inside for each in found], np.int64),
        )

    def bounds(self, rows: Int64s, nodes: Int64s, leaf: ShreddedType) -> BoundColumns:
        return BoundColumns.of(self._nodes(rows, nodes), leaf)


@dataclass(frozen=True, slots=True)
class _RecordColumn:
    types: Sequence[ShreddedType | None]
    type: Int64s
    nulls: Int64s
    facts: Sequence[ColumnFacts | None]

    def bounds(self, rows: Int64s, stored: ShreddedType) -> BoundColumns:
        found = [each for row in rows.tolist() if (each := self.facts[row]) is not None]
        return BoundColumns.of(found, stored)


# --- From two sources -----------------------------------------------------------------------------


class PatchedColumns:
    """The facts of `base`, with those of `patch` for Variant columns in the rows `rows`.

    `patch` has a row for each of `rows`. Where its layout is unknown, those of `base` stay. Its
    `num_records` replace those of `base` where known.
    """

    def __init__(self, base: FactColumns, rows: Int64s, patch: FactColumns) -> None:
        self._base, self._rows, self._patch = base, rows, patch
        self.num_records: Int64s = base.num_records.copy()
        known = patch.num_records >= 0
        self.num_records[rows[known]] = patch.num_records[known]

    def variant(self, column: ColumnPath) -> VariantColumns | None:
        """See FactColumns."""
        base, patch = self._base.variant(column), self._patch.variant(column)
        if patch is None:
            return base
        rows = len(self.num_records)
        if base is None:
            unknown = np.full(rows, UNKNOWN, np.int64)
            base = _RecordVariants((), (), (), unknown, unknown, unknown, ())
        known = np.flatnonzero(patch.layout >= 0)
        layout, nulls, notes = base.layout.copy(), base.nulls.copy(), base.notes.copy()
        layout[self._rows[known]] = patch.layout[known] + len(base.schemas)
        nulls[self._rows[known]] = patch.nulls[known]
        notes[self._rows[known]] = patch.notes[known]
        place = np.full(rows, -1, np.int64)
        place[self._rows[known]] = known
        schemas = (*base.schemas, *patch.schemas)
        legacy, others = (*base.legacy, *patch.legacy), (*base.others, *patch.others)
        return _PatchedVariants(schemas, legacy, others, layout, nulls, notes, base, patch, place)

    def column(self, column: ColumnPath) -> OrdinaryColumns | None:
        """See FactColumns."""
        return self._base.column(column)


@dataclass(frozen=True, slots=True)
class _PatchedVariants(_Variants):
    """`place` is the row of `patch` with the facts of a row, -1 if they are in `base`."""

    base: VariantColumns
    patch: VariantColumns
    place: Int64s

    def _parts(self, rows: Int64s) -> Iterator[tuple[VariantColumns, Int64s, Int64s]]:
        """Yield each source with the indexes in `rows` that it covers, and their rows there."""
        place = self.place[rows]
        kept, patched = np.flatnonzero(place < 0), np.flatnonzero(place >= 0)
        if len(kept) and self.base.schemas:
            yield self.base, kept, rows[kept]
        if len(patched):
            yield self.patch, patched, place[patched]

    def counts(self, rows: Int64s, nodes: Int64s) -> NodeCounts:
        typed, nulls, residuals = (np.full(len(rows), UNKNOWN, np.int64) for _ in range(3))
        result = NodeCounts(typed, nulls, residuals, np.zeros(len(rows), np.int64))
        for source, some, there in self._parts(rows):
            result.put(some, source.counts(there, nodes[some]))
        return result

    def bounds(self, rows: Int64s, nodes: Int64s, leaf: ShreddedType) -> BoundColumns:
        result = BoundColumns.unknown(len(rows), leaf)
        for source, some, there in self._parts(rows):
            result.put(some, source.bounds(there, nodes[some], leaf))
        return result
