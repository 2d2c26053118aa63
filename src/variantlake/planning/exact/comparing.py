"""How Spark compares: in which type, and bounds of many files with a constant in Spark's order.

Bounds of the requested type decide a comparison only when Spark compares in this type itself, or
in one that holds every value of it unchanged (EXACTNESS, rule 17): as doubles,
`9007199254740993::bigint = 9007199254740992.0D` is true. Pairs whose common type depends on ANSI
mode, and strings compared with anything else, have none here: the file is kept.

NaN is the greatest double, -0.0 equals 0.0, strings and binary order by their bytes (for strings
the order of code points). No bound is a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, RawColumn
from variantlake.planning.exact.casts import INT_DIGITS, spark_type
from variantlake.planning.predicates import Literal
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

Truths = npt.NDArray[np.uint8]
"""For each file the set of truth values that a condition may take, as the bits of `May`."""

_DOUBLE = ShreddedType(Kind.DOUBLE)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_INTEGERS = frozenset(map(ShreddedType, INT_DIGITS))
_EXACT_AS_DOUBLE = (Kind.INT8, Kind.INT16, Kind.INT32)


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


def below(column: RawColumn, key: Raw) -> Bools:
    """Where the bound is less than `key`; False where it is not known."""
    if isinstance(key, float) and math.isnan(key):
        return column.known
    return _compared(np.less, column, key, math.ceil)


def above(column: RawColumn, key: Raw) -> Bools:
    """Where the bound is greater than `key`; False where it is not known."""
    if isinstance(key, float) and math.isnan(key):
        return np.zeros(len(column.known), np.bool_)
    return _compared(np.greater, column, key, math.floor)


def _compared(compare: Any, column: RawColumn, key: Raw, whole: Callable[[Decimal], int]) -> Bools:
    if isinstance(key, Decimal) and column.values.dtype == np.int64:
        key = whole(key)
    if column.values.dtype != np.object_:
        # NumPy compares integers with a Python int of any size, and small ones with doubles.
        compared: Bools = compare(column.values, key)
        return compared & column.known
    result = np.zeros(len(column.known), np.bool_)
    # In a box: NumPy would take the trailing zeros off a bare string.
    box = np.empty((), np.object_)
    box[()] = key
    result[column.known] = compare(column.values[column.known], box)
    return result


def any_within(low: RawColumn, high: RawColumn, keys: Sequence[Raw]) -> Bools:
    """Where some key lies between the bounds; an unknown one is no limit. No key is a NaN."""
    dtype = low.values.dtype
    if dtype == np.int64:
        # What no integer of 64 bits equals cannot lie on any, and files are about values.
        keys = [int(key) for key in keys if key == _whole(key) and -(2**63) <= key < 2**63]
    ordered = np.empty(len(keys), dtype)
    ordered[:] = sorted(keys)
    first = np.zeros(len(low.known), np.int64)
    last = np.full(len(low.known), len(keys), np.int64)
    first[low.known] = np.searchsorted(ordered, low.values[low.known], "left")
    last[high.known] = np.searchsorted(ordered, high.values[high.known], "right")
    return np.greater(last, first)


def equal(one: RawColumn, other: RawColumn) -> Bools:
    """Where both bounds are known and the same."""
    both = one.known & other.known
    result = np.zeros(len(both), np.bool_)
    result[both] = one.values[both] == other.values[both]
    return result


def _whole(key: Any) -> int:
    return math.floor(key) if not isinstance(key, float) or math.isfinite(key) else 0
