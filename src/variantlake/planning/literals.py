"""Which type Spark compares in, and a literal as that type.

Bounds of the requested type decide a comparison only when Spark compares in this type itself, or
in one that holds every value of it unchanged (EXACTNESS, rule 17): as doubles,
`9007199254740993::bigint = 9007199254740992.0D` is true. Pairs whose common type depends on ANSI
mode, and strings compared with anything else, have none here: the file is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import isnan

from variantlake.parquet.stats.bounds import Raw
from variantlake.planning.casts import INT_DIGITS, spark_type
from variantlake.planning.predicates import Literal
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

_DOUBLE = ShreddedType(Kind.DOUBLE)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_EXACT_AS_DOUBLE = (Kind.INT8, Kind.INT16, Kind.INT32)


def comparison_type(requested: str, literals: Iterable[Literal]) -> ShreddedType | None:
    """The type in which Spark compares `asked` values with all of these literals.

    None when it is not known for sure, or does not hold every value of `asked` unchanged.
    """
    own = spark_type(requested)
    common = own
    for literal in literals:
        other = spark_type(literal.type)
        if common is None or other is None:
            return None
        common = _common(common, other)
    if own is None or common is None or not _holds(common, own):
        return None
    return common


def literal_as(literal: Literal, common: ShreddedType) -> Raw | None:
    """The literal's value as Spark casts it to `common`, a type of `comparison_type`; None is NULL.

    Integers stay exact, also where the comparison is one of decimals.
    """
    if literal.value is None:
        return None
    if common.kind in _FLOATS:
        return float(literal.value)
    return literal.value


@cache
def _common(left: ShreddedType, right: ShreddedType) -> ShreddedType | None:
    """Spark's common type of two operands, where ANSI mode makes no difference to it."""
    if left == right:
        return left
    kinds = {left.kind, right.kind}
    if kinds <= INT_DIGITS.keys():
        return left if INT_DIGITS[left.kind] >= INT_DIGITS[right.kind] else right
    if kinds <= INT_DIGITS.keys() | {Kind.DECIMAL}:
        return _wider_decimal(_as_decimal(left), _as_decimal(right))
    if Kind.DOUBLE in kinds and kinds <= INT_DIGITS.keys() | {Kind.DECIMAL, *_FLOATS}:
        return _DOUBLE
    if kinds == {Kind.FLOAT, Kind.DECIMAL}:
        return _DOUBLE
    return None


def _as_decimal(type_: ShreddedType) -> ShreddedType:
    if type_.kind is Kind.DECIMAL:
        return type_
    return ShreddedType(Kind.DECIMAL, INT_DIGITS[type_.kind], 0)


def _wider_decimal(left: ShreddedType, right: ShreddedType) -> ShreddedType | None:
    scale = max(left.scale, right.scale)
    precision = scale + max(left.precision - left.scale, right.precision - right.scale)
    # Beyond 38 digits Spark gives up digits of the fraction, and with them exactness.
    return ShreddedType(Kind.DECIMAL, precision, scale) if precision <= MAX_PRECISION else None


def _holds(wide: ShreddedType, narrow: ShreddedType) -> bool:
    """Whether every value of `narrow` is one of `wide`, unchanged, given they have met in it."""
    if wide.kind is Kind.DOUBLE:
        return narrow.kind in (*_FLOATS, *_EXACT_AS_DOUBLE)
    return True


def order_key(value: Raw) -> tuple[int, Raw]:
    """A key that orders values of one comparison as Spark does: NaN is the greatest double.

    Doubles compare by value, so -0.0 equals 0.0, and strings by code points, which is the order of
    their UTF-8 bytes.
    """
    if isinstance(value, float) and isnan(value):
        return (1, 0.0)
    return (0, value)
