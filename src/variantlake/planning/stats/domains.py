"""The values that an operand may take in each file, on which skipping is based.

A domain over-approximates: it may allow values that no row has, but never excludes one that a row
has. Unknown facts give the widest domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from variantlake.delta.schema.table_schema import PrimitiveType
from variantlake.delta.stats.partition_values import partition_raw
from variantlake.expressions.bounds import equal
from variantlake.expressions.casts.monotone import Beyond, monotone_cast
from variantlake.expressions.tree import Ref
from variantlake.expressions.typing import spark_type
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import (
    Bools,
    BoundColumns,
    Int64s,
    NodeCounts,
    RawColumn,
    RowColumns,
)
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.exact.casts import cast_column
from variantlake.planning.exact.readings import (
    MIXED,
    NO_STATISTICS,
    TWIN_KEY,
    UNCHECKED,
    LayoutPosition,
    PlacedRows,
    Reader,
)
from variantlake.planning.files import FileColumns, PartitionColumn
from variantlake.types import Kind, ShreddedType

NO_TYPES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class OperandDomains(RowColumns):
    """The values of one operand, as the requested type, in each of many files.

    `values` and `nulls` tell whether some row of the file may have a value, or may be NULL. All
    values lie within `minimum`..`maximum` (not valid: unbounded), in Spark's order; if `nan` is
    true, there may also be NaN. `exact` is true if neither bound was cut. `why` has indices of
    REASONS, which tell users why there are no bounds.
    """

    values: Bools
    nulls: Bools
    minimum: RawColumn
    maximum: RawColumn
    exact: Bools
    nan: Bools
    why: npt.NDArray[np.int8]

    @classmethod
    def anything(cls, rows: int, requested: ShreddedType | None, why: str) -> OperandDomains:
        """The widest domain in every row; writable."""
        return cls(
            np.ones(rows, np.bool_),
            np.ones(rows, np.bool_),
            RawColumn.unknown(rows, requested),
            RawColumn.unknown(rows, requested),
            np.zeros(rows, np.bool_),
            np.zeros(rows, np.bool_),
            np.full(rows, REASONS.index(why), np.int8),
        )

    def explain(self, why: str, rows: Bools | Int64s) -> None:
        """Set the reason of these rows."""
        self.why[rows] = REASONS.index(why)

    def only_nulls(self, rows: Bools | Int64s) -> None:
        """Set the domain of these rows to NULL alone."""
        self.values[rows], self.nulls[rows] = False, True
        for flags in (self.minimum.valid, self.maximum.valid, self.exact, self.nan):
            flags[rows] = False
        self.explain(NO_VALUE, rows)

    def reason(self, row: int) -> str:
        """Why there are no bounds in this row; empty if there are."""
        return REASONS[self.why[row]]


NO_VALUE = "no row has a value"
NO_BOUNDS = "the file has no bounds for it"
NO_COUNTS = "the file has no null counts for it"
NO_ORDER = "its conversion does not keep the order of the stored values"
NO_COLUMN = "the path is not a typed column in this file"
REASONS = (
    "",
    NO_STATISTICS,
    NO_VALUE,
    NO_BOUNDS,
    NO_COUNTS,
    NO_ORDER,
    NO_COLUMN,
    TWIN_KEY,
    MIXED,
    UNCHECKED,
)

_MICROS_PER_DAY = 86_400 * 1_000_000


def domains_of(
    ref: Ref, files: FileColumns, partition_types: Mapping[str, str] = NO_TYPES
) -> OperandDomains:
    """The domain of an operand in each file; `partition_types` are Spark types by column."""
    if ref.path is not None:
        return _PathDomains(ref).of(files)
    domains = _column(ref, files, partition_types)
    if ref.char_length:
        _pad(domains.maximum, ref.char_length)
    return domains


def _pad(maximum: RawColumn, length: int) -> None:
    """Raise the maxima of stored strings so that they bound the padded strings.

    Padding makes no string smaller, so minima stay. A string that is not a prefix of the maximum
    stays below it. Of its prefixes, the one that ends before the first character below a space
    becomes the greatest; without such a character, the maximum itself.
    """
    for row in np.flatnonzero(maximum.valid).tolist():
        text = maximum.values[row]
        start = next((at for at, char in enumerate(text) if char < " "), len(text))
        maximum.values[row] = max(text, text[:start].ljust(length))


class _PathDomains:
    """Finds the domains of a path inside a Variant column."""

    def __init__(self, ref: Ref) -> None:
        self._reader = Reader(ref)
        self._requested = spark_type(ref.type)
        self._is_variant = ref.type == "variant"

    def of(self, files: FileColumns) -> OperandDomains:
        domains = OperandDomains.anything(files.rows, self._requested, NO_STATISTICS)
        variants = files.facts.variant(self._reader.ref.column)
        for placed in self._reader.places(variants):
            records = files.facts.num_records[placed.rows]
            domains.put(placed.rows, self._placed(placed, records))
        return domains

    def _placed(self, placed: PlacedRows, records: Int64s) -> OperandDomains:
        counts, place = placed.counts, placed.place
        if self._requested is None:
            return self._existence(place, counts, records)
        rows = np.arange(len(records))
        clean = counts.clean
        stored = place.leaf
        domains = OperandDomains.anything(len(records), self._requested, NO_COLUMN)
        if place.twin:
            domains.explain(TWIN_KEY, rows)
        elif stored is not None:
            domains.explain(UNCHECKED, ~clean)
            domains.explain(MIXED, counts.residuals > 0)
            known = np.flatnonzero(clean)
            if not len(known):
                return domains
            nulls = (counts.typed != records) | (counts.typed == UNKNOWN) | (place.inside > 0)
            bounds = placed.only(clean).bounds(stored)
            domains.put(known, _translated(bounds, stored, self._requested, nulls[known]))
            domains.only_nulls(clean & (counts.typed == 0))
        if stored is None:
            for empty in (False, True):
                alike = np.flatnonzero(clean & ((counts.typed == 0) == empty))
                if len(alike):
                    own = placed.record(int(alike[0]), counts, None)
                    if self._reader.absence(place, own):
                        domains.only_nulls(alike)
        return domains

    def _existence(
        self, place: LayoutPosition, counts: NodeCounts, records: Int64s
    ) -> OperandDomains:
        """The domains of a path as a Variant: NULL only if missing; a Variant null is a value."""
        domains = OperandDomains.anything(len(records), None, NO_COUNTS)
        if not self._is_variant or place.rest or place.inside:
            return domains
        typed, nulls, residuals = counts.typed, counts.nulls, counts.residuals
        known = (typed != UNKNOWN) & (nulls != UNKNOWN) & (residuals != UNKNOWN)
        # A partial object counts as typed and as residual, so only the first two add up.
        domains.values[known] = ((typed != 0) | (nulls != 0) | (residuals != 0))[known]
        domains.nulls[known] = ((records == UNKNOWN) | (typed + nulls != records))[known]
        domains.explain(NO_BOUNDS, known)
        return domains


def _column(ref: Ref, files: FileColumns, partition_types: Mapping[str, str]) -> OperandDomains:
    """The domains of an ordinary column or a partition column."""
    requested = spark_type(ref.type)
    if len(ref.column) == 1 and (partition := files.partition(ref.column[0])) is not None:
        named = partition_types.get(ref.column[0])
        return _partition(partition, None if named is None else spark_type(named), requested)
    domains = OperandDomains.anything(files.rows, requested, NO_STATISTICS)
    records = files.facts.num_records
    column = files.facts.column(ref.column)
    if column is not None:
        for code, stored in enumerate(column.types):
            rows = np.flatnonzero(column.type == code)
            counted = _counted(column.nulls[rows], records[rows], requested)
            if stored is not None and requested is not None:
                bounds = column.bounds(rows, stored)
                held = np.flatnonzero(counted.values)
                found = _translated(bounds, stored, requested, counted.nulls)
                counted.put(held, found.take(held))
            domains.put(rows, counted)
    variant = files.facts.variant(ref.column)
    if variant is not None:
        rows = np.flatnonzero(variant.layout >= 0)
        domains.put(rows, _counted(variant.nulls[rows], records[rows], requested))
    return domains


def _partition(
    partition: PartitionColumn, type_: ShreddedType | None, requested: ShreddedType | None
) -> OperandDomains:
    """The domains of a partition column, of one value a file; its `type_` is None if not known."""
    domains = OperandDomains.anything(len(partition.codes), requested, NO_STATISTICS)
    for code, text in enumerate(partition.texts):
        rows = np.flatnonzero(partition.codes == code)
        if text is None or text == "":
            domains.only_nulls(rows)  # the protocol: an empty string is NULL, for every type
            continue
        domains.nulls[rows] = False
        domains.explain(NO_ORDER, rows)
        if type_ is None or requested is None:
            continue
        raw = partition_value(text, type_)
        if raw is not None and type_ != requested:
            cast = monotone_cast(type_, requested)
            held = None if cast is None else cast(raw)
            raw = None if isinstance(held, Beyond) else held
            domains.nulls[rows] = raw is None
        value = RawColumn.of([raw], requested)
        domains.explain("" if value.valid[0] else NO_BOUNDS, rows)
        domains.minimum.put(rows, value)
        domains.maximum.put(rows, value)
        domains.exact[rows] = value.valid
    return domains


def partition_value(text: str, type_: ShreddedType) -> Raw | None:
    """Parse a serialised partition value to a raw value; None if its meaning is not certain.

    A timestamp without a zone is in the writer's zone, which no file records.
    """
    name = _DELTA_NAMES.get(type_.kind, type_.ddl.lower())
    value: Raw | None = partition_raw(text, PrimitiveType(name))
    if not isinstance(value, Decimal):
        return value
    cast = monotone_cast(type_, type_)
    try:
        held = None if cast is None else cast(value)
    except ArithmeticError:
        return None
    return held if isinstance(held, Decimal) and held == value else None


_DELTA_NAMES = {
    Kind.INT8: "byte", Kind.INT16: "short", Kind.INT32: "integer", Kind.INT64: "long",
    Kind.DECIMAL: "decimal",
}  # fmt: skip


def _counted(nulls: Int64s, records: Int64s, requested: ShreddedType | None) -> OperandDomains:
    """The domains by null counts, which matter only if 0 or all rows (EXACTNESS, rule 23)."""
    domains = OperandDomains.anything(len(nulls), requested, NO_BOUNDS)
    domains.explain(NO_COUNTS, nulls == UNKNOWN)
    domains.only_nulls((nulls == records) & (nulls > 0))
    domains.nulls[nulls == 0] = False
    return domains


def _translated(
    bounds: BoundColumns, stored: ShreddedType, requested: ShreddedType, nulls: Bools
) -> OperandDomains:
    """Translate bounds of a stored type to the requested type, for files that have values.

    `nulls` marks files in which some row may have none. A value that the requested type cannot hold
    is NULL (or an error, which skipping may leave out).
    """
    if stored.kind is Kind.TIMESTAMP and requested.kind is Kind.DATE:
        return _days(bounds, nulls)
    same = stored == requested
    domains = OperandDomains.anything(len(nulls), requested, NO_BOUNDS)
    rows = np.arange(len(nulls))
    if monotone_cast(stored, requested) is None:
        domains.nulls[:] = nulls if same else True
        domains.explain(NO_BOUNDS if same else NO_ORDER, rows)
        return domains
    low, high = (cast_column(side, stored, requested) for side in (bounds.minimum, bounds.maximum))
    domains.minimum.put(rows, low.values)
    domains.maximum.put(rows, high.values)
    domains.nulls[:] = nulls if same else nulls | ~(low.fits & high.fits)
    domains.exact[:] = bounds.minimum_exact & bounds.maximum_exact
    if stored.kind is Kind.STRING:
        # Cut bounds still enclose: if both are the same text, every value is (EXACTNESS, rule 21).
        domains.exact[:] |= equal(bounds.minimum, bounds.maximum)
    if stored.kind in (Kind.FLOAT, Kind.DOUBLE):
        domains.nan[:] = ~bounds.plain_floats
    domains.explain("", low.fits | high.fits)
    domains.only_nulls(low.above | high.below)
    return domains


def _days(bounds: BoundColumns, nulls: Bools) -> OperandDomains:
    """Translate bounds of timestamps to dates, a day wider on both sides.

    No zone is more than a day from UTC, and not every zone keeps the order (EXACTNESS, rule 16).
    """
    domains = OperandDomains.anything(len(nulls), ShreddedType(Kind.DATE), NO_BOUNDS)
    domains.nulls[:] = nulls
    known = bounds.minimum.valid & bounds.maximum.valid
    low, high = (side.values // _MICROS_PER_DAY for side in (bounds.minimum, bounds.maximum))
    rows = np.arange(len(nulls))
    domains.minimum.put(rows, RawColumn(low - 1, known))
    domains.maximum.put(rows, RawColumn(high + 1, known))
    domains.explain("", known)
    return domains
