"""What the log alone proves about a file's rows: their number, and aggregates over them.

Skipping needs to know what *may* be in a file, so a bound that is too wide does no harm there. An
answer needs more: a count without deleted rows, a bound that one of the remaining rows has
(EXACTNESS, rules 9, 21, 22 and 23). What is not certain is unknown here, and the caller reads the
file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt

from variantlake.expressions.bounds import equal
from variantlake.expressions.tree import Predicate, Ref
from variantlake.expressions.typing import spark_type
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, Int64s, RawColumn
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.exact.exactness import ConversionKind
from variantlake.planning.exact.readings import NullColumn, PhysicalColumn, PlacedRows, Reader
from variantlake.planning.files import FileColumns
from variantlake.planning.stats.domains import NO_TYPES, OperandDomains
from variantlake.planning.stats.skipping import Skipper, domains_in
from variantlake.shredding.schema import Object
from variantlake.types import Kind, ShreddedType

_REACHED = frozenset(
    {
        *(Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64),
        *(Kind.DECIMAL, Kind.DATE, Kind.STRING, Kind.FLOAT, Kind.DOUBLE),
    }
)
"""Kinds whose exact bounds are values of rows. Timestamps in statistics are cut (rule 22)."""

_CUT = 1000
"""The unit, in microseconds, to which statistics of timestamps are cut."""


@dataclass(frozen=True, slots=True)
class LogAggregate:
    """An aggregate that the log may know: `count(*)` without `ref`, else one of a column or path.

    `ref` is by the names that files use.
    """

    function: OneOf["count", "min", "max"]
    ref: Ref | None = None


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """What the log answers of a query; indices are rows of the FileColumns.

    In `answered` files all remaining rows fulfil the condition, and every aggregate and every key
    is known. `read` are the other files that may hold a match. `keys` and `values` have, for each
    of `answered`, the Raw value of each key and aggregate, None for NULL (a minimum of no values).
    """

    answered: Int64s
    read: Int64s
    keys: tuple[tuple[Raw | None, ...], ...]
    values: tuple[tuple[Raw | None, ...], ...]


@dataclass(frozen=True, slots=True)
class ConstantFiles:
    """The files in which all remaining rows have one value: `values`, or NULL where `nulls`."""

    values: RawColumn
    nulls: Bools


class ExactFacts:
    """What is certain about each of many files. `partition_types` as in `Skipper`."""

    def __init__(
        self, files: FileColumns, partition_types: Mapping[str, str] | None = None
    ) -> None:
        self._files = files
        self._types = partition_types or NO_TYPES
        records, deleted = files.facts.num_records, files.deleted
        sound = (records != UNKNOWN) & (deleted >= 0) & (deleted <= records)
        self.rows: Int64s = np.where(sound, records - deleted, UNKNOWN)
        """The number of rows of each file that are not deleted; -1 if unknown."""
        self._whole: Bools = sound & (deleted == 0)
        self._counts: dict[Ref, Int64s] = {}

    def answerable(
        self,
        predicate: Predicate | None,
        aggregates: Sequence[LogAggregate],
        keys: Sequence[Ref] = (),
    ) -> KnownFiles:
        """Find the files for which the log answers an aggregation with these keys of GROUP BY.

        A file without remaining rows is neither answered nor read: it adds to no group.
        """
        matching, certain = self.matching(predicate)
        constants = [self.constant(key) for key in keys]
        for each in constants:
            certain &= each.values.valid | each.nulls
        columns = []
        for aggregate in aggregates:
            if not certain.any():
                break
            values, nulls = self._aggregate(aggregate)
            certain &= values.valid | nulls
            columns.append(values)
        answered = np.flatnonzero(certain)
        return KnownFiles(
            answered,
            np.flatnonzero(matching & ~certain),
            _by_file([each.values for each in constants], answered),
            _by_file(columns if len(answered) else [], answered),
        )

    def matching(self, predicate: Predicate | None) -> tuple[Bools, Bools]:
        """The files that may hold rows of a condition, and those whose rows all surely fulfil it.

        For the latter the number of remaining rows is known.
        """
        skipper = Skipper(predicate, self._types)
        matching = skipper.may_match(self._files) & (self.rows != 0)
        certain = matching & (self.rows != UNKNOWN)
        for may_fail in skipper.may_fail(self._files):
            certain &= ~may_fail
        return matching, certain

    def _aggregate(self, aggregate: LogAggregate) -> tuple[RawColumn, Bools]:
        """The value in each file where it is certain, and the files where it is surely NULL."""
        if aggregate.ref is None:
            return RawColumn(self.rows, self.rows != UNKNOWN), self.rows < UNKNOWN
        counts = self.count(aggregate.ref)
        if aggregate.function == "count":
            return RawColumn(counts, counts != UNKNOWN), counts < UNKNOWN
        return self.extreme(aggregate.ref, aggregate.function), counts == 0

    def count(self, ref: Ref) -> Int64s:
        """The number of remaining rows of each file that have a value; -1 if unknown."""
        if ref not in self._counts:
            self._counts[ref] = self._path(ref) if ref.path is not None else self._column(ref)
        return self._counts[ref]

    def extreme(self, ref: Ref, side: OneOf["min", "max"]) -> RawColumn:
        """The least or greatest value among the remaining rows, as the requested type."""
        requested = spark_type(ref.type)
        # Every row has a sole value, whichever rows were deleted.
        only = self.constant(ref).values
        if requested is None or requested.kind not in _REACHED or ref.char_length:
            return only
        found = self.domains(ref)
        bound = found.minimum if side == "min" else found.maximum
        return RawColumn(_plain(bound.values, requested), only.valid | self._is_reached(ref))

    def reached(self, ref: Ref, side: OneOf["min", "max"]) -> RawColumn:
        """A value that the least remaining value is not above, or the greatest not below.

        It is that value itself if known. Timestamps in statistics are cut to milliseconds.
        """
        requested = spark_type(ref.type)
        if requested is None or requested.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            return self.extreme(ref, side)
        found = self.domains(ref)
        bound, cut = (found.minimum, _CUT) if side == "min" else (found.maximum, -_CUT)
        inside = np.clip(bound.values, -(2**63) + _CUT, 2**63 - 1 - _CUT)
        return RawColumn(inside + cut, self._is_reached(ref))

    def _is_reached(self, ref: Ref) -> Bools:
        """The files in which remaining rows have both bounds, apart from the cut of timestamps."""
        found = self.domains(ref)
        reached = found.minimum.valid & found.maximum.valid & found.exact & ~found.nan
        return reached & self._whole & (self.count(ref) > 0)

    def constant(self, ref: Ref) -> ConstantFiles:
        """The files in which every row has the same value, or none has one."""
        counts = self.count(ref)
        requested = spark_type(ref.type)
        certain = requested is not None and (requested.kind in _REACHED or self._partition(ref))
        if requested is None or not certain or ref.char_length:
            return ConstantFiles(RawColumn.unknown(self._files.rows, requested), counts == 0)
        found = self.domains(ref)
        sole = found.exact & ~found.nan & equal(found.minimum, found.maximum)
        known = sole & (counts > 0) & (counts == self.rows)
        return ConstantFiles(RawColumn(_plain(found.minimum.values, requested), known), counts == 0)

    def _partition(self, ref: Ref) -> bool:
        return len(ref.column) == 1 and self._files.is_partition(ref.column[0])

    def domains(self, ref: Ref) -> OperandDomains:
        """The values that the rows of each file may hold."""
        return domains_in(self._files, ref, self._types)

    def _settled(self, counts: Int64s) -> Int64s:
        """Translate counts of values in all rows of a file to counts in the remaining rows.

        Whether deleted rows had a value is known only if no row has one, or every row has one.
        """
        records = self._files.facts.num_records
        every = counts == records
        sure = (self._whole | (counts == 0) | every) & (counts >= 0) & (counts <= records)
        return np.where(sure & (self.rows >= 0), np.where(every, self.rows, counts), UNKNOWN)

    def _column(self, ref: Ref) -> Int64s:
        """Count the values of an ordinary column, a partition column or a whole Variant."""
        facts = self._files.facts
        if self._partition(ref):
            found = self.domains(ref)
            counts = np.where(found.minimum.valid & ~found.nulls, self.rows, UNKNOWN)
            return np.where(~found.values, 0, counts)
        known = facts.variant(ref.column) if ref.type == "variant" else facts.column(ref.column)
        if known is None:
            return np.full(self._files.rows, UNKNOWN, np.int64)
        nulls = np.asarray(known.nulls, np.int64)
        return self._settled(np.where(nulls < 0, UNKNOWN, facts.num_records - nulls))

    def _path(self, ref: Ref) -> Int64s:
        """Count the rows in which a path has a value; known if its typed column has them all."""
        counts = np.full(self._files.rows, UNKNOWN, np.int64)
        reader = Reader(ref)
        for placed in reader.places(self._files.facts.variant(ref.column)):
            counts[placed.rows] = _presence(placed) if ref.type == "variant" else _typed(placed)
        if ref.type != "variant":
            readings = reader.read_all(self._files.facts)
            kept = np.array([_is_total(reading) for reading in readings.choices], np.bool_)
            absent = np.array([isinstance(each, NullColumn) for each in readings.choices])
            counts = np.where(kept[readings.codes], counts, UNKNOWN)
            counts[absent[readings.codes]] = 0
        return self._settled(counts)


def _plain(values: npt.NDArray[Any], type_: ShreddedType) -> npt.NDArray[Any]:
    """Replace -0.0 by 0.0: bounds of zero are widened to it even if it is known to be absent."""
    return values + 0.0 if type_.kind in (Kind.FLOAT, Kind.DOUBLE) else values


def _is_total(reading: object) -> bool:
    """Whether a path is a column whose every value gives a value of the requested type."""
    return (
        isinstance(reading, PhysicalColumn)
        and reading.conversion.kind is not ConversionKind.TRY_CAST
    )


def _typed(placed: PlacedRows) -> Int64s:
    """Count rows with a typed value; the counts of an array say nothing about its elements."""
    if placed.place.leaf is None or placed.place.inside:
        return np.full(len(placed.rows), UNKNOWN, np.int64)
    return placed.counts.typed


def _presence(placed: PlacedRows) -> Int64s:
    """Count rows that have the path with any value, including a Variant null."""
    place, counts = placed.place, placed.counts
    parts = (counts.typed, counts.nulls, counts.residuals)
    known = (parts[0] != UNKNOWN) & (parts[1] != UNKNOWN) & (parts[2] != UNKNOWN)
    if isinstance(place.node, Object):
        known &= counts.residuals == 0  # a partial object counts as both
    if place.rest or place.inside:
        known &= False
    return np.where(known, sum(parts), UNKNOWN)


def _by_file(columns: Sequence[RawColumn], files: Int64s) -> tuple[tuple[Raw | None, ...], ...]:
    if not columns:
        return ((),) * len(files)
    rows = files.tolist()
    return tuple(zip(*([column.raw(row) for row in rows] for column in columns), strict=True))
