"""Spark's casts on bounds: exact and monotone functions, or none at all.

A bound of the stored type says something about the requested type only through Spark's own cast,
and only if that cast keeps the order (EXACTNESS, rule 16): `variant_get(1.9, 'int')` is 1 and
`variant_get(1.5, 'decimal(5,0)')` is 2. The functions here are those casts, value by value; a test
compares each with Spark.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache

import numpy as np

from variantlake.expressions.typing import INT_LIMITS
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, RawColumn
from variantlake.parquet.stats.facts import ColumnFacts, PathFacts
from variantlake.types import Kind, ShreddedType


class Beyond(enum.Enum):
    """A value that the requested type cannot hold: the cast gives NULL or raises."""

    BELOW = "below"
    ABOVE = "above"


Cast = Callable[[Raw], Raw | Beyond]

DOUBLE_SAFE_SCALES = {Kind.INT8: 13, Kind.INT16: 11, Kind.INT32: 6}
"""Digits of fraction with which a decimal in the integer type's range, taken as a double, is never
rounded up to the next integer: 10**-scale is more than half the gap between doubles there."""

_MICROS_PER_SECOND = 1_000_000
_EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
"""Wide enough for any decimal of 38 digits at any other scale."""

_SAME_ORDER = {
    Kind.FLOAT,
    Kind.DOUBLE,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMP_NTZ,
    Kind.STRING,
    Kind.BINARY,
}
"""Types (without integers and decimals) whose bounds order as Spark compares the values."""


@cache
def monotone_cast(stored: ShreddedType, requested: ShreddedType) -> Cast | None:
    """Spark's cast from `stored` to `requested` if it keeps the order, else None.

    The function is monotone, with Beyond.BELOW as the least and Beyond.ABOVE as the greatest
    result. It casts every value that lies between two values that it casts.
    """
    if stored.kind in INT_LIMITS or stored.kind is Kind.DECIMAL:
        return _cast_number(requested, whole=stored.kind in INT_LIMITS)
    if stored.kind in _SAME_ORDER and (
        stored == requested or (stored.kind, requested.kind) == (Kind.FLOAT, Kind.DOUBLE)
    ):
        return lambda value: value
    return None


def keeps_column(stored: ShreddedType, requested: ShreddedType) -> bool:
    """Whether Spark's cast of an ordinary column is `monotone_cast`, with ANSI and without.

    Without ANSI, a cast to a narrower integer keeps the lower bits of a value that does not fit.
    """
    if stored.kind in INT_LIMITS:
        wider = INT_LIMITS.get(requested.kind, 0) >= INT_LIMITS[stored.kind]
        return wider or requested.kind in (Kind.DECIMAL, Kind.DOUBLE)
    pair = (stored.kind, requested.kind)
    return pair in _COLUMN_CASTS or (stored == requested and stored.kind in _SAME_ORDER)


_COLUMN_CASTS = {
    (Kind.DECIMAL, Kind.DECIMAL),
    (Kind.DECIMAL, Kind.DOUBLE),
    (Kind.FLOAT, Kind.DOUBLE),
    (Kind.TIMESTAMP, Kind.DATE),
}


def type_limits(stored: ShreddedType) -> tuple[Raw | None, Raw | None]:
    """The least and the greatest value of an integer or decimal type; None for other types."""
    if stored.kind in INT_LIMITS:
        return -INT_LIMITS[stored.kind], INT_LIMITS[stored.kind] - 1
    if stored.kind is Kind.DECIMAL:
        greatest = Decimal((0, (9,) * stored.precision, -stored.scale))
        return greatest.copy_negate(), greatest
    return None, None


def usable_bounds(
    facts: PathFacts | ColumnFacts, stored: ShreddedType
) -> tuple[Raw | None, Raw | None]:
    """The file's bounds, without those that cannot be values of `stored` or have no order."""
    bounds = RawColumn.of([facts.bounds.minimum, facts.bounds.maximum], stored)
    return bounds.raw(0), bounds.raw(1)


@dataclass(frozen=True, slots=True)
class CastColumn:
    """Bounds cast to another type. `values` is valid if the bound is and the type holds it.

    `below` and `above` mark the bounds that became Beyond.BELOW and Beyond.ABOVE.
    """

    values: RawColumn
    below: Bools
    above: Bools

    @property
    def fits(self) -> Bools:
        """The rows whose bound is known and held."""
        return self.values.valid


def cast_column(column: RawColumn, stored: ShreddedType, requested: ShreddedType) -> CastColumn:
    """`monotone_cast` of each row; nothing is known if there is no such cast."""
    rows = len(column.valid)
    below, above = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    cast = monotone_cast(stored, requested)
    if cast is None:
        return CastColumn(RawColumn.unknown(rows, requested), below, above)
    if stored == requested or stored.kind in _SAME_ORDER:
        return CastColumn(column, below, above)
    if stored.kind in INT_LIMITS and requested.kind in INT_LIMITS:
        limit = INT_LIMITS[requested.kind]
        below = column.valid & (column.values < -limit)
        above = column.valid & (column.values > limit - 1)
        return CastColumn(RawColumn(column.values, column.valid & ~below & ~above), below, above)
    result = RawColumn.unknown(rows, requested)
    known = np.flatnonzero(column.valid)
    for row, value in zip(known.tolist(), column.values[known].tolist(), strict=True):
        held = cast(value)
        if isinstance(held, Beyond):
            (below if held is Beyond.BELOW else above)[row] = True
        else:
            result.values[row] = held
            result.valid[row] = True
    return CastColumn(result, below, above)


def _cast_number(requested: ShreddedType, *, whole: bool) -> Cast | None:
    """The cast of integers, or of decimals."""
    if requested.kind in INT_LIMITS:
        return _to_integer(requested)
    if requested.kind is Kind.DECIMAL:
        return _to_decimal(requested)
    if requested.kind is Kind.DOUBLE:
        return float  # the nearest double, ties to even, as Java's
    return _seconds_to_timestamp if whole and requested.kind is Kind.TIMESTAMP else None


def _to_integer(requested: ShreddedType) -> Cast:
    limit = INT_LIMITS[requested.kind]
    by_double = requested.kind in DOUBLE_SAFE_SCALES

    def cast(value: Raw) -> Raw | Beyond:
        # Towards zero. For all but bigint through a double, as Spark casts a Variant's decimal:
        # 127.999999999999999999 is not a tinyint.
        whole = int(float(value)) if by_double and isinstance(value, Decimal) else int(value)
        return _within(whole, limit)

    return cast


def _to_decimal(requested: ShreddedType) -> Cast:
    unit = Decimal((0, (1,), -requested.scale))
    limit = Decimal(10) ** (requested.precision - requested.scale)

    def cast(value: Raw) -> Raw | Beyond:
        rounded = _EXACT.quantize(
            Decimal(value if isinstance(value, Decimal) else int(value)), unit
        )
        if rounded <= -limit:
            return Beyond.BELOW
        return Beyond.ABOVE if rounded >= limit else rounded

    return cast


def _seconds_to_timestamp(value: Raw) -> Raw | Beyond:
    return _within(int(value) * _MICROS_PER_SECOND, INT_LIMITS[Kind.INT64])


def _within(number: int, limit: int) -> Raw | Beyond:
    if number < -limit:
        return Beyond.BELOW
    return Beyond.ABOVE if number >= limit else number
