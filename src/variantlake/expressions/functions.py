"""Functions of many rows at a time, as Spark's are in ANSI mode.

Rows for which Spark raises an error are marked (`Values.failed`): it counts only if the row's
value is used. Strings may be dictionaries; functions of them run on the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.expressions.arrays import Values, numbers, of_entries, plain, valid
from variantlake.expressions.tree import Call, Literal
from variantlake.expressions.typing import INT_LIMITS, refused
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.types import Kind, ShreddedType

_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_YEARS = tuple(np.datetime64(f"{year:04}-01-01", "us").astype(np.int64) for year in (1, 10000))


def either(values: Sequence[Values]) -> Bools | None:
    """Rows that fail because one of the operands does."""
    failed = [each.failed for each in values if each.failed is not None]
    return np.logical_or.reduce(failed) if failed else None


def _failing(array: Any, failed: Bools | None, more: Bools | None) -> Values:
    """A result, NULL in rows that fail, with those of its operands."""
    both = failed if more is None else more if failed is None else failed | more
    if both is None or not both.any():
        return Values(array)
    nothing = pa.scalar(None, array.type)
    return Values(pc.if_else(arrow_array(both), nothing, array), both)


# --- Arithmetic -----------------------------------------------------------------------------------

_ARROW: dict[str, Callable[..., Any]] = {
    "add": pc.add_checked,
    "subtract": pc.subtract_checked,
    "multiply": pc.multiply_checked,
    "negate": pc.negate_checked,
    "abs": pc.abs_checked,
}
_PYTHON: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "negate": np.negative,
    "abs": np.absolute,
}


def _arithmetic(expression: Call, values: Sequence[Values]) -> Values:
    arrays = [each.array for each in values]
    try:
        return Values(_ARROW[expression.function](*arrays), either(values))
    except pa.ArrowInvalid:
        if expression.type.kind not in INT_LIMITS:
            raise
    # Some row overflows: which, Python's own integers tell.
    there = np.logical_and.reduce([valid(array) for array in arrays])
    exact = _PYTHON[expression.function](*(numbers(array).astype(object) for array in arrays))
    limit = INT_LIMITS[expression.type.kind]
    beyond = there & np.array([not -limit <= each < limit for each in exact], np.bool_)
    held = arrow_array(np.where(beyond, 0, exact).tolist(), expression.type.arrow, mask=~there)
    return _failing(held, either(values), beyond)


def _division(expression: Call, values: Sequence[Values]) -> Values:
    left, right = (each.array for each in values)
    there = valid(left) & valid(right)
    one, other = numbers(left), numbers(right)
    zero = there & (other == 0)
    divisor = np.where(zero | ~there, other.dtype.type(1), other)
    beyond = zero
    if expression.function == "divide":
        with np.errstate(all="ignore"):
            found = one / divisor
    elif expression.function == "remainder":
        found = np.fmod(one, divisor)
    else:
        least = (one == -INT_LIMITS[Kind.INT64]) & (divisor == -1)
        beyond = zero | (least & there)
        divisor = np.where(least, 1, divisor)
        found = (one - np.fmod(one, divisor)) // divisor
    result = arrow_array(found, expression.type.arrow, mask=~there)
    return _failing(result, either(values), beyond)


def _cast(expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values
    own: Any = given.array.type
    wanted = expression.type
    if wanted.kind in INT_LIMITS and not pa.types.is_boolean(own):
        return _whole(given, wanted)
    if pa.types.is_date(own) or pa.types.is_timestamp(own):
        _check_years(given.array)
    array = given.array
    if wanted.kind is Kind.DATE:
        array = pc.floor_temporal(array, unit="day")
    return Values(array.cast(wanted.arrow, safe=wanted.kind not in _FLOATS), given.failed)


def _whole(given: Values, wanted: ShreddedType) -> Values:
    """Numbers without their fractions; one that the type does not hold is an error."""
    array: Any = given.array
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.int64(), safe=False)
    there, found = valid(array), numbers(array)
    limit = INT_LIMITS[wanted.kind]
    if found.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            fits = (np.floor(found) <= limit - 1) & (np.ceil(found) >= -limit)
            # The greatest BIGINT is no double: the one above it counts as it.
            top = fits & (found >= limit)
            found = np.where(fits & ~top, found, 0).astype(np.int64)
        found = np.where(top, limit - 1, found)
    else:
        fits = (found >= -limit) & (found <= limit - 1)
    held = arrow_array(np.where(fits, found, 0).astype(np.int64), mask=~there).cast(wanted.arrow)
    return _failing(held, given.failed, there & ~fits)


def _rounded(expression: Call, values: Sequence[Values]) -> Values:
    """Of doubles, as a BIGINT: beyond its limits those, as Java has it, and 0 for NaN."""
    (given,) = values
    there = valid(given.array)
    found = (np.floor if expression.function == "floor" else np.ceil)(numbers(given.array))
    limit = INT_LIMITS[Kind.INT64]
    inside = (found >= -limit) & (found < limit)
    whole = np.where(inside, found, 0).astype(np.int64)
    whole = np.where(found >= limit, limit - 1, np.where(found < -limit, -limit, whole))
    return Values(arrow_array(whole, pa.int64(), mask=~there), given.failed)


def _root(_expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values
    with np.errstate(invalid="ignore"):
        found = np.sqrt(numbers(given.array))
    return Values(arrow_array(found, pa.float64(), mask=~valid(given.array)), given.failed)


_BITS: dict[str, Callable[..., Any]] = {
    "bit_and": pc.bit_wise_and,
    "bit_or": pc.bit_wise_or,
    "bit_xor": pc.bit_wise_xor,
    "bit_not": pc.bit_wise_not,
}


def _bit_function(expression: Call, values: Sequence[Values]) -> Values:
    return Values(_BITS[expression.function](*(each.array for each in values)), either(values))


def _extreme(expression: Call, values: Sequence[Values]) -> Values:
    """NULLs are left out."""
    function: Any = (
        pc.max_element_wise if expression.function == "greatest" else pc.min_element_wise
    )
    arrays = [plain(each.array) for each in values]
    if expression.type.kind is Kind.TIMESTAMP:  # which Arrow's function does not take
        arrays = [array.cast(pa.int64()) for array in arrays]
    return Values(function(*arrays).cast(expression.type.arrow), either(values))


# --- Choices --------------------------------------------------------------------------------------


def _case(_expression: Call, values: Sequence[Values]) -> Values:
    *pairs, found = values
    array, failed = plain(found.array), found.failed
    for condition, result in zip(pairs[-2::-2], pairs[-1::-2], strict=True):
        array, failed = _chosen(condition, result, array, failed)
    return Values(array, failed)


def _chosen(
    condition: Values, result: Values, array: Any, failed: Bools | None
) -> tuple[Any, Bools | None]:
    """`result` where the condition is true, the other elsewhere."""
    true: Any = _coalesced(condition.array, pa.scalar(False))
    here = numpy_array(true)
    nothing = np.zeros(len(here), np.bool_)
    own = nothing if result.failed is None else result.failed
    other = nothing if failed is None else failed
    wrong = np.where(here, own, other)
    if condition.failed is not None:
        wrong = wrong | condition.failed
    return _if_else(true, plain(result.array), array), wrong if wrong.any() else None


_if_else: Any = pc.if_else
_coalesced: Any = pc.coalesce


def _coalesce(_expression: Call, values: Sequence[Values]) -> Values:
    array, failed = plain(values[-1].array), values[-1].failed
    for given in reversed(values[:-1]):
        own = np.zeros(len(array), np.bool_) if given.failed is None else given.failed
        there = arrow_array(valid(given.array) | own)
        array, failed = _chosen(Values(there), given, array, failed)
    return Values(array, failed)


# --- Strings --------------------------------------------------------------------------------------


def _length(_expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values
    return Values(of_entries(given.array, pc.utf8_length), given.failed)


def _letters(expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values

    def changed(entries: Any) -> Any:
        if not pc.all(pc.string_is_ascii(entries), min_count=0).as_py():
            # Java's tables of letters are of another version of Unicode than Arrow's.
            raise refused(f"{expression.function} of other than ASCII")
        function: Any = pc.ascii_upper if expression.function == "upper" else pc.ascii_lower
        return function(entries)

    return Values(of_entries(given.array, changed), given.failed)


_TRIMS: dict[str, Any] = {
    "trim": pc.utf8_trim,
    "ltrim": pc.utf8_ltrim,
    "rtrim": pc.utf8_rtrim,
}
_PATTERNS: dict[str, Any] = {
    "like": pc.match_like,
    "contains": pc.match_substring,
    "endswith": pc.ends_with,
}


def _trim(expression: Call, values: Sequence[Values]) -> Values:
    """Without spaces, and with all other white space, as Spark has it."""
    (given,) = values
    function = _TRIMS[expression.function]
    return Values(of_entries(given.array, lambda entries: function(entries, " ")), given.failed)


def _pattern(expression: Call, values: Sequence[Values]) -> Values:
    given, pattern = values[0], _constant(expression)
    function = _PATTERNS[expression.function]
    found = of_entries(given.array, lambda entries: function(entries, pattern))
    return Values(found, given.failed)


def _constant(expression: Call) -> str:
    """The constant that is the second argument."""
    second = expression.arguments[1]
    return str(second.value) if isinstance(second, Literal) else ""


def _concat(_expression: Call, values: Sequence[Values]) -> Values:
    arrays = [plain(each.array) for each in values]
    return Values(pc.binary_join_element_wise(*arrays, ""), either(values))


def _substring(expression: Call, values: Sequence[Values]) -> Values:
    start, *length = (
        int(each.value or 0) for each in expression.arguments[1:] if isinstance(each, Literal)
    )
    first = max(start - 1, 0)
    stop = None if not length else first + length[0]

    def cut(entries: Any) -> Any:
        return pc.utf8_slice_codeunits(entries, first, stop)

    return Values(of_entries(values[0].array, cut), values[0].failed)


# --- Times ----------------------------------------------------------------------------------------

_UNITS = {"timestamp_micros": 1, "timestamp_millis": 1000, "timestamp_seconds": 1_000_000}
_DIVISORS = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60), "second": (1_000_000, 60)}


def _moment(expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values
    unit = _UNITS[expression.function]
    array, beyond = given.array, None
    if unit > 1:
        limit = (2**63 - 1) // unit
        own = numbers(array)
        beyond = valid(array) & ((own > limit) | (own < -limit))
        array = arrow_array(np.where(beyond, 0, own) * unit, pa.int64(), mask=~valid(array))
    return _failing(array.cast(expression.type.arrow), given.failed, beyond)


def _part(expression: Call, values: Sequence[Values]) -> Values:
    """A part of a moment in UTC, or of a day."""
    (given,) = values
    array = given.array
    if expression.function in _DIVISORS:
        unit, size = _DIVISORS[expression.function]
        whole = np.floor_divide(numbers(array.cast(pa.int64())), unit)
        # NumPy divides by a constant in a fifth of the time that it takes for a remainder.
        found = whole - np.floor_divide(whole, size) * size
        return Values(arrow_array(found, pa.int32(), mask=~valid(array)), given.failed)
    _check_years(array)
    if expression.function == "dayofweek":
        part: Any = pc.day_of_week(array, count_from_zero=False, week_start=7)
    else:
        part = getattr(pc, _ARROW_PARTS.get(expression.function, expression.function))(array)
    return Values(part.cast(pa.int32()), given.failed)


_ARROW_PARTS = {"dayofyear": "day_of_year"}


def _moments(array: Any) -> Int64s:
    """Microseconds since 1970 in UTC of days or moments; anything where NULL."""
    if pa.types.is_date(array.type):
        return numbers(array.cast(pa.int32())).astype(np.int64) * 86_400_000_000
    return numbers(array.cast(pa.int64()))


def _check_years(array: Any) -> None:
    """Raise UnsupportedFeature for years that Arrow's calendar may not have as Spark's has them."""
    moments = _moments(array)
    if not ((moments >= _YEARS[0]) & (moments < _YEARS[1])).all():
        raise refused("a year beyond 1 to 9999")


def _shifted_days(expression: Call, values: Sequence[Values]) -> Values:
    arrays: list[Any] = [each.array for each in values]
    there = valid(arrays[0]) & valid(arrays[1])
    one, other = (numbers(array.cast(pa.int32())).astype(np.int64) for array in arrays)
    found = one - other if expression.function == "datediff" else one + other
    if (there & ((found >= 2**31) | (found < -(2**31)))).any():
        raise refused("days beyond those that a DATE holds")
    days = arrow_array(np.where(there, found, 0).astype(np.int32), mask=~there)
    return Values(days.cast(expression.type.arrow), either(values))


def _later(expression: Call, values: Sequence[Values]) -> Values:
    given, micros = values[0], expression.arguments[1]
    own, there = numbers(given.array.cast(pa.int64())), valid(given.array)
    by = int(micros.value or 0) if isinstance(micros, Literal) else 0
    beyond = there & ((own > 2**63 - 1 - by) if by >= 0 else (own < -(2**63) - by))
    found = arrow_array(np.where(beyond, 0, own) + by, pa.int64(), mask=~there)
    return _failing(found.cast(expression.type.arrow), given.failed, beyond)


def _truncated(expression: Call, values: Sequence[Values]) -> Values:
    (given, _), floor = values, cast("Any", pc.floor_temporal)
    _check_years(given.array)
    found = floor(given.array, unit=_constant(expression), week_starts_monday=True)
    return Values(found.cast(expression.type.arrow), given.failed)


FUNCTIONS: dict[str, Callable[[Call, Sequence[Values]], Values]] = {
    **dict.fromkeys(_ARROW, _arithmetic),
    **dict.fromkeys(("divide", "div", "remainder"), _division),
    "cast": _cast,
    "case": _case,
    "coalesce": _coalesce,
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(_BITS, _bit_function),
    **dict.fromkeys(("floor", "ceil"), _rounded),
    "sqrt": _root,
    "timestamp_add": _later,
    "length": _length,
    "upper": _letters,
    "lower": _letters,
    "concat": _concat,
    "substring": _substring,
    **dict.fromkeys(_TRIMS, _trim),
    **dict.fromkeys(_PATTERNS, _pattern),
    **dict.fromkeys(("date_add", "datediff"), _shifted_days),
    **dict.fromkeys(("date_trunc", "trunc"), _truncated),
    **dict.fromkeys(_UNITS, _moment),
    **dict.fromkeys(
        (*_DIVISORS, "year", "month", "day", "quarter", "dayofweek", "dayofyear"), _part
    ),
}
