"""What values an operand may take in one file: the ground that skipping stands on.

A `Domain` over-approximates: it may allow values that no row has, never the other way round.
Unknown facts give the widest domain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from math import isnan

from variantlake.errors import InvalidSchema
from variantlake.parquet.bounds import Raw
from variantlake.parquet.facts import UNKNOWN, ColumnFacts, FileFacts, PathFacts
from variantlake.planning.casts import Beyond, monotone_cast, spark_type, usable_bounds
from variantlake.planning.predicates import Ref
from variantlake.planning.readings import NO_STATISTICS, TWIN_KEY, Place, Reader, not_clean
from variantlake.types import MAX_PRECISION, Kind, ShreddedType


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one operand in one file, as the asked type.

    `values` and `nulls` say whether some row may have a value, may be NULL. All values lie within
    `minimum`..`maximum` (None: unbounded), by Spark's order; where `nan` is true, NaN may stand
    there besides. `exact` is true when neither bound was cut. `why` says, for people, why there
    are no bounds.
    """

    values: bool = True
    nulls: bool = True
    minimum: Raw | None = None
    maximum: Raw | None = None
    exact: bool = False
    nan: bool = False
    why: str = ""


ONLY_NULLS = Domain(values=False, why="no row has a value")
NO_BOUNDS = "the file has no bounds for it"
NO_COUNTS = "the file has no null counts for it"
NO_ORDER = "its conversion does not keep the order of the stored values"

_MICROS_PER_DAY = 86_400 * 1_000_000
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Python's own parsers also take underscores, other digits and more names for infinity.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?|NaN|[+-]?Infinity", re.ASCII)


class PathDomain:
    """The domain of a path inside a Variant column, file by file."""

    def __init__(self, ref: Ref) -> None:
        self._reader = Reader(ref)
        self._asked = spark_type(ref.type)
        self._is_variant = ref.type == "variant"

    def of(self, facts: FileFacts | None) -> Domain:
        """The domain in the file with these facts."""
        found = self._reader.find(facts)
        if found is None or facts is None:
            return Domain(why=NO_STATISTICS)
        place, own = found
        if self._asked is None:
            return self._existence(place, own, facts.num_records)
        stored = place.leaf
        if stored is None or not own.clean:
            if self._reader.absence(place, own):
                return ONLY_NULLS
            return Domain(why=_unbounded(place, own))
        if own.typed == 0:
            return ONLY_NULLS
        nulls = own.typed == UNKNOWN or own.typed != facts.num_records
        return _translation(stored, self._asked).domain(own, nulls=nulls)

    def _existence(self, place: Place, own: PathFacts, rows: int) -> Domain:
        """A path as a Variant is NULL only where it is missing: a Variant null is a value."""
        counts = (own.typed, own.nulls, own.residuals)
        if not self._is_variant or place.rest or UNKNOWN in counts:
            return Domain(why=NO_COUNTS)
        # A partial object counts as typed and as residual, so only the first two add up.
        return Domain(
            values=any(counts),
            nulls=rows == UNKNOWN or own.typed + own.nulls != rows,
            why=NO_BOUNDS,
        )


class ColumnDomain:
    """The domain of an ordinary column or partition column, file by file."""

    def __init__(self, ref: Ref, partition_types: Mapping[str, str]) -> None:
        self._column = ref.column
        self._asked = spark_type(ref.type)
        self._partition_type = (
            spark_type(partition_types[ref.column[0]])
            if len(ref.column) == 1 and ref.column[0] in partition_types
            else None
        )

    def of(self, facts: FileFacts | None, partition: Mapping[str, str | None]) -> Domain:
        """The domain in the file with these facts and partition values (serialised)."""
        if len(self._column) == 1 and self._column[0] in partition:
            return self._partition(partition[self._column[0]])
        if facts is None:
            return Domain(why=NO_STATISTICS)
        column = facts.column(self._column)
        if column is not None:
            return self._ordinary(column, facts.num_records)
        variant = facts.variant(self._column)
        if variant is not None:
            return _counted(variant.nulls, facts.num_records)
        return Domain(why=NO_STATISTICS)

    def _ordinary(self, column: ColumnFacts, rows: int) -> Domain:
        counted = _counted(column.nulls, rows)
        stored = _stored_type(column)
        if self._asked is None or stored is None or not counted.values:
            return counted
        return _translation(stored, self._asked).domain(column, nulls=counted.nulls)

    def _partition(self, text: str | None) -> Domain:
        if text is None or text == "":
            return ONLY_NULLS  # the protocol: an empty string is NULL, for every type
        if self._partition_type is None or self._partition_type != self._asked:
            return Domain(nulls=False, why=NO_ORDER)
        value = partition_value(text, self._partition_type)
        if value is None:
            return Domain(nulls=False, why=NO_BOUNDS)
        if isinstance(value, float) and isnan(value):
            return Domain(nulls=False, why=NO_BOUNDS)
        return Domain(nulls=False, minimum=value, maximum=value, exact=True)


def partition_value(text: str, type_: ShreddedType) -> Raw | None:
    """A serialised partition value as a raw value; None where its meaning is not certain.

    Spec: Delta protocol, "Partition Value Serialization".
    """
    try:
        match type_.kind:
            case Kind.STRING:
                return text
            case Kind.BOOLEAN:
                return {"true": True, "false": False}.get(text)
            case Kind.INT8 | Kind.INT16 | Kind.INT32 | Kind.INT64 | Kind.DECIMAL:
                return _number(text, type_)
            case Kind.FLOAT | Kind.DOUBLE:
                return float(text) if _NUMBER.fullmatch(text) else None
            case Kind.DATE:
                return (date.fromisoformat(text) - _EPOCH.date()).days
            case Kind.TIMESTAMP:
                # Without a zone the text is in the writer's own zone, which nobody wrote down.
                moment = datetime.fromisoformat(text)
                return None if moment.tzinfo is None else (moment - _EPOCH) // _MICROSECOND
            case Kind.TIMESTAMP_NTZ:
                moment = datetime.fromisoformat(text)
                local_epoch = _EPOCH.replace(tzinfo=None)
                return None if moment.tzinfo else (moment - local_epoch) // _MICROSECOND
            case _:
                return None
    except (ValueError, ArithmeticError):
        return None


def _number(text: str, type_: ShreddedType) -> Raw | None:
    """An integer or decimal that its type holds unchanged."""
    cast = monotone_cast(ShreddedType(Kind.DECIMAL, MAX_PRECISION, type_.scale), type_)
    if cast is None or _NUMBER.fullmatch(text) is None:
        return None
    value = Decimal(text)
    held = cast(value)
    return None if isinstance(held, Beyond) or held != value else held


def _counted(nulls: int, rows: int) -> Domain:
    """Null counts inform only when they are 0 or all rows (EXACTNESS, rule 23)."""
    if nulls == UNKNOWN:
        return Domain(why=NO_COUNTS)
    if nulls == 0:
        return Domain(nulls=False, why=NO_BOUNDS)
    return ONLY_NULLS if nulls == rows else Domain(why=NO_BOUNDS)


def _unbounded(place: Place, own: PathFacts) -> str:
    """Why there is no domain for a path that is no clean typed column."""
    if place.twin:
        return TWIN_KEY
    return "the path is no typed column in this file" if place.leaf is None else not_clean(own)


class _Translation:
    """Bounds of a stored type as bounds of the asked one.

    A value that the cast cannot hold is NULL (or an error, which skipping may leave out).
    """

    def __init__(self, stored: ShreddedType, asked: ShreddedType) -> None:
        self._stored = stored
        self._cast = monotone_cast(stored, asked)
        self._same = stored == asked
        self._floats = stored.kind in (Kind.FLOAT, Kind.DOUBLE)
        self._as_days = stored.kind is Kind.TIMESTAMP and asked.kind is Kind.DATE

    def domain(self, facts: PathFacts | ColumnFacts, *, nulls: bool) -> Domain:
        """The domain of a column with values; `nulls` says whether some row may have none."""
        lower, upper = usable_bounds(facts, self._stored)
        if self._as_days:
            return _days(lower, upper, nulls=nulls)
        cast = self._cast
        if cast is None:
            return Domain(nulls=nulls or not self._same, why=NO_BOUNDS if self._same else NO_ORDER)
        low = None if lower is None else cast(lower)
        high = None if upper is None else cast(upper)
        if low is Beyond.ABOVE or high is Beyond.BELOW:
            return ONLY_NULLS
        minimum = None if isinstance(low, Beyond) else low
        maximum = None if isinstance(high, Beyond) else high
        all_fit = self._same or (minimum is not None and maximum is not None)
        return Domain(
            nulls=nulls or not all_fit,
            minimum=minimum,
            maximum=maximum,
            exact=facts.minimum_exact and facts.maximum_exact,
            nan=self._floats and not facts.plain_floats,
            why=NO_BOUNDS if minimum is None and maximum is None else "",
        )


@cache
def _translation(stored: ShreddedType, asked: ShreddedType) -> _Translation:
    return _Translation(stored, asked)


def _days(lower: Raw | None, upper: Raw | None, *, nulls: bool) -> Domain:
    """Timestamps as dates, a day wider on both sides.

    No zone is further away than a day, and not every zone keeps the order (EXACTNESS, rule 16).
    """
    if not isinstance(lower, int) or not isinstance(upper, int):
        return Domain(nulls=nulls, why=NO_BOUNDS)
    return Domain(
        nulls=nulls,
        minimum=lower // _MICROS_PER_DAY - 1,
        maximum=upper // _MICROS_PER_DAY + 1,
    )


def _stored_type(column: ColumnFacts) -> ShreddedType | None:
    try:
        return ShreddedType.from_arrow(column.type)
    except InvalidSchema:
        return None
