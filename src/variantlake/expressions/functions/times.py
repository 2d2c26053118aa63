"""Vectorized functions of dates and timestamps, as in Spark's ANSI mode, in UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.expressions.arrays import Values, failing, in_turn, numbers, valid
from variantlake.expressions.tree import Call
from variantlake.expressions.typing import refused
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.types import Kind

_YEARS = tuple(np.datetime64(f"{year:04}-01-01", "us").astype(np.int64) for year in (1, 10000))
_UNITS = {"timestamp_micros": 1, "timestamp_millis": 1000, "timestamp_seconds": 1_000_000}
_UNIX_UNITS = {"unix_micros": 1, "unix_millis": 1000, "unix_seconds": 1_000_000}
_UNIX_UNITS["unix_timestamp"] = _UNIX_UNITS["unix_seconds"]
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
    return failing(array.cast(expression.type.arrow), given.failed, beyond)


def _part(expression: Call, values: Sequence[Values]) -> Values:
    """Extract a part of a timestamp in UTC, or of a date."""
    (given,) = values
    array = given.array
    if expression.function in _DIVISORS:
        unit, size = _DIVISORS[expression.function]
        whole = np.floor_divide(numbers(array.cast(pa.int64())), unit)
        # NumPy divides by a constant in a fifth of the time that it takes for a remainder.
        found = whole - np.floor_divide(whole, size) * size
        return Values(arrow_array(found, pa.int32(), mask=~valid(array)), given.failed)
    check_years(array)
    part = _ARROW_PARTS.get(expression.function) or getattr(pc, expression.function)
    return Values(part(array).cast(pa.int32()), given.failed)


_day_of_week: Any = pc.day_of_week
_ARROW_PARTS: dict[str, Callable[[Any], Any]] = {
    "dayofyear": pc.day_of_year,
    "dayofweek": partial(_day_of_week, count_from_zero=False, week_start=7),
    "weekday": partial(_day_of_week, count_from_zero=True, week_start=1),
    "weekofyear": pc.iso_week,
}
_NAMES = {
    "dayname": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "monthname": (
        "",
        *["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    ),
}


def _name(expression: Call, values: Sequence[Values]) -> Values:
    """The English name of a weekday or a month, in three letters."""
    (given,) = values
    check_years(given.array)
    part = _ARROW_PARTS["weekday"] if expression.function == "dayname" else pc.month
    codes: Any = part(given.array)
    return Values(pa.array(_NAMES[expression.function]).take(codes), given.failed)


def _since_1970(expression: Call, values: Sequence[Values]) -> Values:
    """Whole units since 1970 in UTC, rounded down; `unix_timestamp` rounds towards 1970."""
    (given,) = values
    if expression.function == "unix_date":
        return Values(given.array.cast(pa.int32()), given.failed)
    unit = _UNIX_UNITS[expression.function]
    micros = numbers(given.array.cast(pa.int64()))
    whole = np.floor_divide(micros, unit)
    if expression.function == "unix_timestamp":
        whole += (micros < 0) & (np.fmod(micros, unit) != 0)
    return Values(arrow_array(whole, pa.int64(), mask=~valid(given.array)), given.failed)


def _months(days: Any) -> tuple[Any, Any]:
    """The month of each day, and the number of days before it in the month."""
    months = days.astype("M8[D]").astype("M8[M]")
    return months, days - months.astype("M8[D]").astype(np.int64)


def _last_day(_expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values
    check_years(given.array)
    months, _ = _months(_moments(given.array) // _DAY)
    return Values(_dates(_first_day(months + 1) - 1, valid(given.array)), given.failed)


def _add_months(expression: Call, values: Sequence[Values]) -> Values:
    given, number = values
    there = valid(given.array) & valid(number.array)
    moments = np.where(there, _moments(given.array), 0)
    found = later_by_months(moments, np.where(there, numbers(number.array), 0).astype(np.int64))
    if expression.type.kind is Kind.DATE:
        return Values(_dates(found // _DAY, there), in_turn(values))
    array: Any = arrow_array(found, pa.int64(), mask=~there)
    return Values(array.cast(expression.type.arrow), in_turn(values))


def later_by_months(moments: Int64s, number: Int64s) -> Int64s:
    """Add months: the same day of another month, or its last, at the same time in UTC.

    Moments are microseconds since 1970. Raises UnsupportedFeature for years beyond 1 to 9999.
    """
    _check_moments(moments)
    months, before = _months(moments // _DAY)
    target = months + np.clip(number, -_MONTHS, _MONTHS)
    first, after = _first_day(target), _first_day(target + 1)
    days = first + np.minimum(before, after - first - 1)
    found: Int64s = days * _DAY + moments % _DAY
    _check_moments(found)
    return found


_DAY = 86_400_000_000
_MONTHS = 12 * 10_000


def _first_day(months: Any) -> Int64s:
    days: Int64s = months.astype("M8[D]").astype(np.int64)
    return days


def _dates(days: Int64s, there: Bools) -> Any:
    return arrow_array(days.astype(np.int32), pa.int32(), mask=~there).cast(pa.date32())


def _moments(array: Any) -> Int64s:
    """Convert dates or timestamps to microseconds since 1970 in UTC; arbitrary where NULL."""
    if pa.types.is_date(array.type):
        return numbers(array.cast(pa.int32())).astype(np.int64) * _DAY
    return numbers(array.cast(pa.int64()))


def check_years(array: Any) -> None:
    """Raise UnsupportedFeature for years in which Arrow's calendar may differ from Spark's."""
    _check_moments(_moments(array))


def _check_moments(moments: Int64s) -> None:
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
    return Values(days.cast(expression.type.arrow), in_turn(values))


def _later(expression: Call, values: Sequence[Values]) -> Values:
    given, (by,) = values[0], expression.constants
    own, there = numbers(given.array.cast(pa.int64())), valid(given.array)
    beyond = there & ((own > 2**63 - 1 - by) if by >= 0 else (own < -(2**63) - by))
    found = arrow_array(np.where(beyond, 0, own) + by, pa.int64(), mask=~there)
    return failing(found.cast(expression.type.arrow), given.failed, beyond)


def _difference(expression: Call, values: Sequence[Values]) -> Values:
    """Whole units between two timestamps, rounded towards zero."""
    start, end = values[:2]
    there = valid(start.array) & valid(end.array)
    unit = expression.constants[-1]
    one, other = (np.where(there, _moments(each.array), 0) for each in (start, end))
    if (np.abs(one // 2 - other // 2) >= 2**61).any():
        raise refused("timestamps more than 140,000 years apart")
    apart = other - one
    found = np.sign(apart) * (np.abs(apart) // unit)
    return Values(arrow_array(found, pa.int64(), mask=~there), in_turn(values[:2]))


def _truncated(expression: Call, values: Sequence[Values]) -> Values:
    (given, _), floor = values, cast("Any", pc.floor_temporal)
    check_years(given.array)
    found = floor(given.array, unit=expression.constants[0], week_starts_monday=True)
    return Values(found.cast(expression.type.arrow), given.failed)


TIME_FUNCTIONS: dict[str, Callable[[Call, Sequence[Values]], Values]] = {
    "timestamp_add": _later,
    "timestamp_diff": _difference,
    "date_from_unix_date": lambda expression, values: Values(
        values[0].array.cast(expression.type.arrow), values[0].failed
    ),
    **dict.fromkeys(("date_add", "datediff"), _shifted_days),
    **dict.fromkeys(("date_trunc", "trunc"), _truncated),
    **dict.fromkeys(_UNITS, _moment),
    **dict.fromkeys((*_UNIX_UNITS, "unix_date"), _since_1970),
    **dict.fromkeys((*_DIVISORS, *_ARROW_PARTS, "year", "month", "day", "quarter"), _part),
    **dict.fromkeys(_NAMES, _name),
    "last_day": _last_day,
    "add_months": _add_months,
}
