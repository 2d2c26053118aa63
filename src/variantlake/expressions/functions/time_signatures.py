"""Signatures of the functions of dates and timestamps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from variantlake.expressions.casts.permitted import explicit_cast
from variantlake.expressions.functions.formats import read_format
from variantlake.expressions.functions.times import later_by_months
from variantlake.expressions.literals import DAY, moment, within
from variantlake.expressions.tree import Call, Expression, Literal, below
from variantlake.expressions.typing import (
    BIGINT,
    INT,
    INT_DIGITS,
    STRING,
    cast,
    refused,
    scalar,
    type_of,
)
from variantlake.types import Kind, ShreddedType

TIMESTAMP, DATE = ShreddedType(Kind.TIMESTAMP), ShreddedType(Kind.DATE)
_TIMESTAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
UNIX_TIMES = ("unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "unix_date")
Types = Callable[[str, list[Expression]], Expression]
"""Makes the typed call of a function from its name and arguments."""


class FunctionSignature(NamedTuple):
    """`types` makes the typed call of a function; `wanted` is the type that it suggests for a path.

    `wanted` is None if Spark takes Variants as they are, or casts them.
    """

    types: Types
    wanted: str | None


def share(names: Sequence[str], types: Types, wanted: str | None) -> dict[str, FunctionSignature]:
    """Give all these functions one signature."""
    return dict.fromkeys(names, FunctionSignature(types, wanted))


def _format(function: str, arguments: list[Expression]) -> Expression:
    """Type `date_format` of a DATE or TIMESTAMP by a constant pattern."""
    time, pattern = _day_of(arguments[0]), arguments[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise refused(f"{function} by other than constants")
    read_format(pattern.value)
    if scalar(time) == DATE:
        time = explicit_cast(time, TIMESTAMP)
    if scalar(time) != TIMESTAMP:
        raise refused(f"{function} of {scalar(time).ddl}")
    return Call(function, (time, pattern), STRING)


def _difference(function: str, arguments: list[Expression]) -> Expression:
    """Type TIMESTAMPDIFF, whole units of constant microseconds from one time to another."""
    *times, unit = arguments
    times = [explicit_cast(each, TIMESTAMP) if scalar(each) == DATE else each for each in times]
    if any(scalar(each) != TIMESTAMP for each in times):
        raise refused(f"{function} of {' and '.join(scalar(each).ddl for each in times)}")
    return Call(function, (*times, unit), BIGINT)


def _day_number(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if scalar(argument).kind not in INT_DIGITS:
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (explicit_cast(argument, INT),), DATE)


def _moment(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if scalar(argument).kind not in INT_DIGITS:
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (cast(argument, BIGINT),), ShreddedType(Kind.TIMESTAMP))


def _since_1970(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    wanted = DATE if function == "unix_date" else TIMESTAMP
    if scalar(argument) != wanted:
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument,), INT if wanted is DATE else BIGINT)


def _of_day(result: ShreddedType) -> Types:
    def types(function: str, arguments: list[Expression]) -> Expression:
        day = _day_of(arguments[0])
        if scalar(day) != DATE:
            raise refused(f"{function} of {scalar(day).ddl}")
        return Call(function, (day,), result)

    return types


def _months(function: str, arguments: list[Expression]) -> Expression:
    """Type `add_months` of a DATE or a timestamp, and a number of months."""
    start, number = _day_of(arguments[0]), arguments[1]
    own = scalar(start)
    if own != DATE and own.kind not in _TIMESTAMPS:
        raise refused(f"{function} of {own.ddl}")
    if isinstance(start, Literal) and isinstance(number, Literal) and start.value is not None:
        unit = DAY if own == DATE else 1
        amounts = (np.array([each], np.int64) for each in (_amount(start) * unit, _amount(number)))
        return Literal(int(later_by_months(*amounts)[0]) // unit, start.type)
    return Call(function, (start, cast(number, INT)), own)


def _part(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    kind = scalar(argument).kind
    days = function in DAY_PARTS
    if kind not in _TIMESTAMPS and not (days and kind is Kind.DATE):
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument,), INT)


def _day_function(function: str, arguments: list[Expression]) -> Expression:
    """Type `date_add` of a DATE and a number of days, or `datediff` of two DATEs."""
    day, other = (_day_of(each) for each in arguments)
    wanted = DATE if function == "datediff" else INT
    if scalar(day) != DATE or (scalar(other) != wanted and wanted is DATE):
        raise refused(f"{function} of {scalar(day).ddl} and {scalar(other).ddl}")
    if wanted is INT:
        if (
            isinstance(day, Literal)
            and isinstance(other, Literal)
            and None not in (day.value, other.value)
        ):
            return within(Literal(_amount(day) + _amount(other), "date"), Kind.INT32)
        return Call(function, (day, cast(other, INT)), DATE)
    return Call(function, (day, other), INT)


def _day_of(given: Expression) -> Expression:
    """Return the expression; a constant text becomes a DATE."""
    if isinstance(given, Literal) and isinstance(given.value, str):
        return moment(given.value, DATE, utc=False)
    return given


def _amount(given: Literal) -> int:
    return int(given.value or 0)


def _later(function: str, arguments: list[Expression]) -> Expression:
    """Type the sum of a timestamp and a constant number of microseconds."""
    operand, micros = arguments
    if scalar(operand).kind not in _TIMESTAMPS or not isinstance(micros, Literal):
        raise refused(f"{function} of {scalar(operand).ddl}")
    if isinstance(operand, Literal) and operand.value is not None:
        return within(Literal(_amount(operand) + _amount(micros), operand.type), Kind.INT64)
    return Call(function, (operand, micros), scalar(operand))


def _to_date(_function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    day = _day_of(argument)
    return day if type_of(day) == DATE else explicit_cast(day, DATE)


def _truncated(function: str, arguments: list[Expression]) -> Expression:
    """Type `date_trunc` of a timestamp or `trunc` of a DATE, to a constant unit."""
    argument, unit = arguments
    wanted = DATE if function == "trunc" else TIMESTAMP
    if scalar(argument) != wanted or not isinstance(unit, Literal):
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument, unit), wanted)


def zoned(expression: Expression) -> bool:
    """Whether the expression's value depends on the session's time zone."""
    return any(isinstance(part, Call) and _is_zoned(part) for part in below(expression))


def _is_zoned(part: Call) -> bool:
    own = type_of(part.arguments[0]) if part.arguments else None
    if part.function in ("cast", "try_cast"):
        return {own, part.type} == {DATE, TIMESTAMP}
    return own == TIMESTAMP and part.function in (
        *_PARTS,
        "date_trunc",
        "timestamp_add",
        "timestamp_diff",
        "date_format",
        "add_months",
    )


DAY_PARTS = (
    *("year", "quarter", "month", "weekofyear", "day", "dayofyear"),
    *("dayofweek", "weekday"),
)
_PARTS = (*DAY_PARTS, "hour", "minute", "second")


TIME_SIGNATURES: dict[str, FunctionSignature] = {
    **share(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), _moment, "double"),
    **share(("date_add", "datediff"), _day_function, "date"),
    **share(("date_trunc", "trunc"), _truncated, "timestamp"),
    **share(("timestamp_add",), _later, "timestamp"),
    **share(("timestamp_diff",), _difference, "timestamp"),
    **share(("date_format",), _format, "timestamp"),
    **share(("date_from_unix_date",), _day_number, "int"),
    **share(_PARTS, _part, "timestamp"),
    **share(UNIX_TIMES, _since_1970, "timestamp"),
    **share(("add_months",), _months, "date"),
    **share(("last_day",), _of_day(DATE), "date"),
    **share(("dayname", "monthname"), _of_day(STRING), "date"),
    **share(("to_date",), _to_date, None),
}
