"""The functions that expressions may call: what each takes, with Spark's casts, and gives."""

from __future__ import annotations

from collections.abc import Callable

from variantlake.expressions.tree import Call, Expression, Literal, below
from variantlake.expressions.typing import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INT_DIGITS,
    STRING,
    cast,
    condition,
    no_char,
    refused,
    scalar,
    together,
    type_of,
)
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

_TIMESTAMP, _DATE = ShreddedType(Kind.TIMESTAMP), ShreddedType(Kind.DATE)
_TIMESTAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


def call(function: str, *arguments: Expression) -> Expression:
    """A function of these arguments, with Spark's implicit casts. Raises UnsupportedFeature."""
    types = _TYPES.get(function)
    if types is None:
        raise refused(f"the function {function}")
    return types(function, list(arguments))


def _arithmetic(function: str, arguments: list[Expression]) -> Expression:
    left, right = together(function, arguments)
    own = scalar(left)
    if own.kind in INT_DIGITS or own.kind is Kind.DOUBLE:
        return Call(function, (left, right), own)
    if own.kind is Kind.DECIMAL:
        # Each with its own precision: an integer would have one that depends on its being constant.
        left, right = arguments
        one, other = scalar(left), scalar(right)
        if one.kind is Kind.DECIMAL and other.kind is Kind.DECIMAL and function in _DECIMALS:
            precision, scale = _DECIMALS[function](one, other)
            if precision <= MAX_PRECISION:
                return Call(function, (left, right), ShreddedType(Kind.DECIMAL, precision, scale))
    raise refused(f"{function} of {scalar(arguments[0]).ddl} and {scalar(arguments[1]).ddl}")


def _sum_of_decimals(one: ShreddedType, other: ShreddedType) -> tuple[int, int]:
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return whole + scale + 1, scale


_DECIMALS: dict[str, Callable[[ShreddedType, ShreddedType], tuple[int, int]]] = {
    "add": _sum_of_decimals,
    "subtract": _sum_of_decimals,
    "multiply": lambda one, other: (one.precision + other.precision + 1, one.scale + other.scale),
}


def _divide(function: str, arguments: list[Expression]) -> Expression:
    kinds = {scalar(argument).kind for argument in arguments}
    if not kinds <= {*INT_DIGITS, Kind.DOUBLE}:
        raise refused("a division of other than integers and doubles")
    return Call(function, tuple(cast(each, DOUBLE) for each in arguments), DOUBLE)


def _whole_division(function: str, arguments: list[Expression]) -> Expression:
    if not {scalar(argument).kind for argument in arguments} <= INT_DIGITS.keys():
        raise refused(f"{function} of other than integers")
    if function == "div":
        return Call(function, tuple(cast(each, BIGINT) for each in arguments), BIGINT)
    left, right = together(function, arguments)
    return Call(function, (left, right), scalar(left))


def _sign(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    own = scalar(argument)
    if own.kind not in INT_DIGITS and own.kind is not Kind.DOUBLE:
        raise refused(f"{function} of {own.ddl}")
    return Call(function, (argument,), own)


def _alike(function: str, arguments: list[Expression]) -> Expression:
    found = together(function, arguments)
    return Call(function, tuple(found), scalar(found[0]))


def _extreme(function: str, arguments: list[Expression]) -> Expression:
    found = _alike(function, arguments)
    if scalar(found).kind in (Kind.FLOAT, Kind.DOUBLE):
        # Spark has NaN above all other numbers, Arrow has not.
        raise refused(f"{function} of {scalar(found).ddl}")
    return found


def _bits(function: str, arguments: list[Expression]) -> Expression:
    found = _alike(function, arguments)
    if scalar(found).kind not in INT_DIGITS:
        raise refused(f"{function} of other than integers")
    return found


def _rounded(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if scalar(argument).kind in INT_DIGITS:
        return cast(argument, BIGINT)
    if scalar(argument).kind not in (Kind.FLOAT, Kind.DOUBLE):
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (cast(argument, DOUBLE),), BIGINT)


def explicit_cast(expression: Expression, wanted: ShreddedType) -> Expression:
    """`CAST(expression AS wanted)`. Raises UnsupportedFeature for types that only Spark casts."""
    own = type_of(expression)
    if own is not None and (own.kind, wanted.kind) in _CASTS:
        if own.kind is Kind.DECIMAL and own.precision - own.scale >= INT_DIGITS[Kind.INT64] - 1:
            raise refused(f"{own.ddl} as {wanted.ddl}")
        return Call("cast", (expression,), wanted)
    return cast(expression, wanted)


_NUMBERS = (*INT_DIGITS, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)
_CASTS = frozenset(
    {
        *((own, wanted) for own in _NUMBERS for wanted in INT_DIGITS if own is not wanted),
        *((own, Kind.BOOLEAN) for own in INT_DIGITS),
        *((Kind.BOOLEAN, wanted) for wanted in INT_DIGITS),
        *((own, Kind.STRING) for own in (*INT_DIGITS, Kind.BOOLEAN, Kind.DATE)),
        (Kind.DATE, Kind.TIMESTAMP),
        (Kind.TIMESTAMP, Kind.DATE),
    }
)
"""Casts that a user may write: implicit ones are those of `cast` alone."""


def _case(function: str, arguments: list[Expression]) -> Expression:
    """Conditions and results in turns, and what is given else."""
    conditions, results = arguments[0:-1:2], [*arguments[1:-1:2], arguments[-1]]
    found = together(function, results)
    decided = map(condition, conditions)
    pairs = [part for pair in zip(decided, found, strict=False) for part in pair]
    return Call(function, (*pairs, found[-1]), scalar(found[-1]))


TRIMS = ("trim", "ltrim", "rtrim")
_Types = Callable[[str, list[Expression]], Expression]


def _strings(result: ShreddedType) -> _Types:
    def types(function: str, arguments: list[Expression]) -> Expression:
        for argument in arguments:
            no_char(argument)
            if scalar(argument) != STRING:
                raise refused(f"{function} of {scalar(argument).ddl}")
        return Call(function, tuple(arguments), result)

    return types


def _pattern(function: str, arguments: list[Expression]) -> Expression:
    """Of a string and a constant one."""
    text, pattern = arguments
    is_constant = isinstance(pattern, Literal) and isinstance(pattern.value, str)
    if not is_constant or (function == "like" and "\\" in f"{pattern}"):
        raise refused(f"{function} by other than a constant without backslashes")
    return _strings(BOOLEAN)(function, [text, pattern])


def _substring(function: str, arguments: list[Expression]) -> Expression:
    text, *numbers = arguments
    _strings(STRING)(function, [text])
    whole = [isinstance(each, Literal) and isinstance(each.value, int) for each in numbers]
    values = [each.value for each in numbers if isinstance(each, Literal)]
    if not all(whole) or any(int(value or 0) < 0 for value in values):
        raise refused(f"{function} by other than constants that are not negative")
    return Call(function, tuple(arguments), STRING)


def _moment(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if scalar(argument).kind not in INT_DIGITS:
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (cast(argument, BIGINT),), ShreddedType(Kind.TIMESTAMP))


def _part(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    kind = scalar(argument).kind
    days = function in DAY_PARTS
    if kind not in _TIMESTAMPS and not (days and kind is Kind.DATE):
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument,), INT)


def _day_function(function: str, arguments: list[Expression]) -> Expression:
    """A day and a number of days, or another day."""
    day, other = arguments
    wanted = _DATE if function == "datediff" else INT
    if scalar(day) != _DATE or (scalar(other) != wanted and wanted is _DATE):
        raise refused(f"{function} of {scalar(day).ddl} and {scalar(other).ddl}")
    if wanted is INT:
        return Call(function, (day, cast(other, INT)), _DATE)
    return Call(function, (day, other), INT)


def _truncated(function: str, arguments: list[Expression]) -> Expression:
    """A moment or a day, and the unit whose begin is meant."""
    argument, unit = arguments
    wanted = _DATE if function == "trunc" else _TIMESTAMP
    if scalar(argument) != wanted or not isinstance(unit, Literal):
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument, unit), wanted)


def zoned(expression: Expression) -> bool:
    """Whether the session's time zone decides what the expression gives."""
    return any(isinstance(part, Call) and _is_zoned(part) for part in below(expression))


def _is_zoned(part: Call) -> bool:
    own = type_of(part.arguments[0]) if part.arguments else None
    if part.function == "cast":
        return {own, part.type} == {_DATE, _TIMESTAMP}
    return own == _TIMESTAMP and part.function in (*_PARTS, "date_trunc")


DAY_PARTS = ("year", "month", "day", "quarter", "dayofweek", "dayofyear")
_PARTS = (*DAY_PARTS, "hour", "minute", "second")

_TYPES: dict[str, _Types] = {
    **dict.fromkeys(("add", "subtract", "multiply"), _arithmetic),
    "divide": _divide,
    **dict.fromkeys(("div", "remainder"), _whole_division),
    **dict.fromkeys(("negate", "abs"), _sign),
    "coalesce": _alike,
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "bit_not"), _bits),
    **dict.fromkeys(("floor", "ceil"), _rounded),
    "case": _case,
    "length": _strings(INT),
    **dict.fromkeys(("upper", "lower", "concat", *TRIMS), _strings(STRING)),
    **dict.fromkeys(("like", "contains", "endswith"), _pattern),
    **dict.fromkeys(("date_add", "datediff"), _day_function),
    **dict.fromkeys(("date_trunc", "trunc"), _truncated),
    "substring": _substring,
    **dict.fromkeys(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), _moment),
    **dict.fromkeys(_PARTS, _part),
}
