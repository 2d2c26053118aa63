"""Spark's casts that keep the order of values: exact and monotone functions, or none at all.

A bound of the stored type says something about the requested type only through Spark's own cast,
and only if that cast keeps the order (EXACTNESS, rule 16): `variant_get(1.9, 'int')` is 1 and
`variant_get(1.5, 'decimal(5,0)')` is 2. The functions here are those casts, value by value; a test
compares each with Spark.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache

from variantlake.expressions.typing import INT_LIMITS
from variantlake.parquet.stats.bounds import Raw
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

SAME_ORDER = {
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
    if stored.kind in SAME_ORDER and (
        stored == requested or (stored.kind, requested.kind) == (Kind.FLOAT, Kind.DOUBLE)
    ):
        return lambda value: value
    return None


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
