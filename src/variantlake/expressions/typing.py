"""Types of expressions as Spark has them, and the type in which it compares.

Bounds of the requested type decide a comparison only if Spark compares in this type itself, or in
one that holds every value of it unchanged (EXACTNESS, rule 17): as doubles,
`9007199254740993::bigint = 9007199254740992.0D` is true. Pairs whose common type depends on ANSI
mode, and strings compared with anything else, have none here: the file is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import cache

from variantlake.errors import Hints, InvalidSchema, UnsupportedFeature
from variantlake.expressions.tree import Literal
from variantlake.parquet.stats.bounds import Raw
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

SPARK_RUNS_IT = Hints(
    hint="Spark runs it: `variantlake.spark.connect(spark).sql(...)`",
    cli_hint="--engine spark runs it",
)

INT_LIMITS = {Kind.INT8: 2**7, Kind.INT16: 2**15, Kind.INT32: 2**31, Kind.INT64: 2**63}
"""A value v fits where -limit <= v < limit."""

INT_DIGITS = {Kind.INT8: 3, Kind.INT16: 5, Kind.INT32: 10, Kind.INT64: 20}
"""Precision of the decimal type that Spark takes for an integer type in comparisons."""

_DOUBLE = ShreddedType(Kind.DOUBLE)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_INTEGERS = frozenset(map(ShreddedType, INT_DIGITS))
_EXACT_AS_DOUBLE = (Kind.INT8, Kind.INT16, Kind.INT32)


def refused(what: str) -> UnsupportedFeature:
    """The error for what is left to Spark."""
    return UnsupportedFeature(f"the local engine does not take {what}", **SPARK_RUNS_IT)


@cache
def spark_type(name: str) -> ShreddedType | None:
    """The type that Spark's type name means.

    None for a name without a column form here: `variant`, structs, collated strings, unknown ones.
    """
    try:
        parsed = ShreddedType.parse(name)
    except InvalidSchema:
        return None
    return parsed if parsed.info.spark else None


def comparison_type(requested: str, literals: Iterable[Literal]) -> ShreddedType | None:
    """The type in which Spark compares `requested` values with all of these literals.

    None when it is not known for sure, or does not hold every value of `requested` unchanged. Also
    where an integer is compared with a decimal that no integer reaches: Spark takes that for
    certain, of a NULL too (`x < 9223372036854775808` is true in every row).
    """
    own = spark_type(requested)
    common = own
    for literal in literals:
        other = spark_type(literal.type)
        if common is None or other is None or (own in _INTEGERS and _is_beyond(literal)):
            return None
        common = common_type(common, other)
    if own is None or common is None or not _holds(common, own):
        return None
    return common


def _is_beyond(literal: Literal) -> bool:
    value = literal.value
    return isinstance(value, Decimal) and not -(2**63) <= value < 2**63


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
def common_type(left: ShreddedType, right: ShreddedType) -> ShreddedType | None:
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
