"""The functions that expressions may call: what each takes, with Spark's casts, and gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from variantlake.expressions.literals import moment, within
from variantlake.expressions.tree import Call, Expression, Literal, below
from variantlake.expressions.typing import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INT_DIGITS,
    STRING,
    as_string,
    cast,
    compare,
    condition,
    is_null,
    no_char,
    refused,
    scalar,
    together,
    type_of,
    type_text,
    untyped,
)
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

_TIMESTAMP, _DATE = ShreddedType(Kind.TIMESTAMP), ShreddedType(Kind.DATE)
_TIMESTAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


def call(function: str, *arguments: Expression) -> Expression:
    """A function of these arguments, with Spark's implicit casts. Raises UnsupportedFeature."""
    signature = _SIGNATURES.get(function)
    if signature is None:
        raise refused(f"the function {function}")
    if signature.wanted is not None:
        for argument in arguments:
            if type_text(argument) == "variant":
                raise untyped(f"an operand of {function}", argument, signature.wanted)
    return signature.types(function, list(arguments))


def _arithmetic(function: str, arguments: list[Expression]) -> Expression:
    if function != "multiply" and (days := _of_days(function, arguments)) is not None:
        return days
    arguments = _as_decimals(arguments)
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


def _of_days(function: str, arguments: list[Expression]) -> Expression | None:
    """A day and a number of days; None for anything else."""
    left, right = arguments
    if function == "add" and type_of(right) == _DATE:
        left, right = right, left
    if type_of(left) != _DATE or scalar(right).kind not in INT_DIGITS:
        return None
    return call("date_add", left, right if function == "add" else call("negate", right))


def _as_decimals(arguments: list[Expression]) -> list[Expression]:
    """Integers beside a decimal as decimals of all their digits; a constant has those it needs."""
    if Kind.DECIMAL not in {scalar(each).kind for each in arguments}:
        return arguments
    return [
        Literal(Decimal(int(each.value)), f"decimal({len(str(abs(int(each.value))))},0)")
        if isinstance(each, Literal) and type(each.value) is int
        else cast(each, ShreddedType(Kind.DECIMAL, INT_DIGITS[scalar(each).kind], 0))
        if scalar(each).kind in INT_DIGITS
        else each
        for each in arguments
    ]


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


def _negated(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if isinstance(argument, Literal) and type(argument.value) is int:
        return Literal(-argument.value, argument.type)
    return _sign(function, arguments)


def _root(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    return Call(function, (cast(argument, DOUBLE),), DOUBLE)


def _is_nan(_function: str, arguments: list[Expression]) -> Expression:
    """False of NULL."""
    (argument,) = arguments
    same = compare("=", cast(argument, DOUBLE), Literal(math.nan, "double"))
    return call("case", is_null(argument), Literal(value=False, type="boolean"), same)


def _sign(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    own = scalar(argument)
    if own.kind not in (*INT_DIGITS, Kind.DOUBLE, Kind.DECIMAL):
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

_STORED = frozenset(
    {
        *((own, wanted) for own in INT_DIGITS for wanted in (Kind.FLOAT, Kind.DOUBLE)),
        (Kind.DOUBLE, Kind.FLOAT),
        *(
            (own, wanted)
            for own, wanted in _CASTS
            if Kind.BOOLEAN not in (own, wanted)
            and not (own in INT_DIGITS and wanted in INT_DIGITS)
        ),
        (Kind.BOOLEAN, Kind.STRING),
    }
)
"""Casts by which Spark stores a value in a column, where the value need not survive as it is."""


def stored_as(expression: Expression, wanted: ShreddedType) -> Expression:
    """What a column of this type stores of an expression, by ANSI's rules of assignment.

    The expression itself if these do not convert it. Raises UnsupportedFeature as `explicit_cast`.
    """
    own = type_of(expression)
    if own is None or (own.kind, wanted.kind) not in _STORED:
        return expression
    if wanted.kind is Kind.FLOAT:
        return Call("cast", (expression,), wanted)
    return explicit_cast(expression, wanted)


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
        arguments = list(map(as_string, arguments))
        for argument in arguments:
            no_char(argument)
            if scalar(argument) != STRING:
                raise refused(f"{function} of {scalar(argument).ddl}")
        return Call(function, tuple(arguments), result)

    return types


def _pattern(function: str, arguments: list[Expression]) -> Expression:
    """Of a string and a constant one."""
    text, pattern = arguments
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise refused(f"{function} by other than a constant")
    return _strings(BOOLEAN)(function, [text, pattern])


def _substring(function: str, arguments: list[Expression]) -> Expression:
    text, *numbers = as_string(arguments[0]), *arguments[1:]
    _strings(STRING)(function, [text])
    whole = [isinstance(each, Literal) and isinstance(each.value, int) for each in numbers]
    values = [each.value for each in numbers if isinstance(each, Literal)]
    if not all(whole) or any(int(value or 0) < 0 for value in values):
        raise refused(f"{function} by other than constants that are not negative")
    return Call(function, (text, *numbers), STRING)


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
    day, other = (_day_of(each) for each in arguments)
    wanted = _DATE if function == "datediff" else INT
    if scalar(day) != _DATE or (scalar(other) != wanted and wanted is _DATE):
        raise refused(f"{function} of {scalar(day).ddl} and {scalar(other).ddl}")
    if wanted is INT:
        if (
            isinstance(day, Literal)
            and isinstance(other, Literal)
            and None not in (day.value, other.value)
        ):
            return within(Literal(_amount(day) + _amount(other), "date"), Kind.INT32)
        return Call(function, (day, cast(other, INT)), _DATE)
    return Call(function, (day, other), INT)


def _day_of(given: Expression) -> Expression:
    """What is given, a text as a day."""
    if isinstance(given, Literal) and isinstance(given.value, str):
        return moment(given.value, _DATE, utc=False)
    return given


def _amount(given: Literal) -> int:
    return int(given.value or 0)


def _later(function: str, arguments: list[Expression]) -> Expression:
    """A moment and a number of microseconds."""
    operand, micros = arguments
    if scalar(operand).kind not in _TIMESTAMPS or not isinstance(micros, Literal):
        raise refused(f"{function} of {scalar(operand).ddl}")
    if isinstance(operand, Literal) and operand.value is not None:
        return within(Literal(_amount(operand) + _amount(micros), operand.type), Kind.INT64)
    return Call(function, (operand, micros), scalar(operand))


def _to_date(_function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    day = _day_of(argument)
    return day if type_of(day) == _DATE else explicit_cast(day, _DATE)


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
    return own == _TIMESTAMP and part.function in (*_PARTS, "date_trunc", "timestamp_add")


DAY_PARTS = ("year", "month", "day", "quarter", "dayofweek", "dayofyear")
_PARTS = (*DAY_PARTS, "hour", "minute", "second")


class _Signature(NamedTuple):
    """A function's result with its arguments, and the type that a path without one should have.

    None if Spark takes Variants as they are, or casts them.
    """

    types: _Types
    wanted: str | None


def _each(names: Sequence[str], types: _Types, wanted: str | None) -> dict[str, _Signature]:
    return dict.fromkeys(names, _Signature(types, wanted))


_SIGNATURES: dict[str, _Signature] = {
    **_each(("add", "subtract", "multiply"), _arithmetic, "double"),
    **_each(("divide",), _divide, "double"),
    **_each(("div", "remainder"), _whole_division, "double"),
    **_each(("negate",), _negated, "double"),
    **_each(("abs",), _sign, "double"),
    **_each(("sqrt",), _root, "double"),
    **_each(("isnan",), _is_nan, "double"),
    **_each(("greatest", "least"), _extreme, "double"),
    **_each(("bit_and", "bit_or", "bit_xor", "bit_not"), _bits, "double"),
    **_each(("floor", "ceil"), _rounded, "double"),
    **_each(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), _moment, "double"),
    **_each(("date_add", "datediff"), _day_function, "date"),
    **_each(("date_trunc", "trunc"), _truncated, "timestamp"),
    **_each(("timestamp_add",), _later, "timestamp"),
    **_each(_PARTS, _part, "timestamp"),
    **_each(("to_date",), _to_date, None),
    **_each(("coalesce",), _alike, None),
    **_each(("case",), _case, None),
    **_each(("length",), _strings(INT), None),
    **_each(("upper", "lower", "concat", *TRIMS), _strings(STRING), None),
    **_each(("like", "contains", "endswith"), _pattern, None),
    **_each(("substring",), _substring, None),
}
