"""Signatures of the functions that expressions may call: Spark's casts and result types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from variantlake.expressions.casts.permitted import explicit_cast
from variantlake.expressions.functions.java_patterns import re2_pattern
from variantlake.expressions.functions.times import later_by_months
from variantlake.expressions.literals import DAY, moment, within
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
    """Call a function, with Spark's implicit casts. Raises InvalidQuery and UnsupportedFeature."""
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
        # Each keeps its own precision; that of an integer depends on whether it is constant.
        left, right = arguments
        one, other = scalar(left), scalar(right)
        if one.kind is Kind.DECIMAL and other.kind is Kind.DECIMAL and function in _DECIMALS:
            precision, scale = _DECIMALS[function](one, other)
            if precision <= MAX_PRECISION:
                return Call(function, (left, right), ShreddedType(Kind.DECIMAL, precision, scale))
    raise refused(f"{function} of {scalar(arguments[0]).ddl} and {scalar(arguments[1]).ddl}")


def _of_days(function: str, arguments: list[Expression]) -> Expression | None:
    """Type the sum or difference of a DATE and a number of days; None for other operands."""
    left, right = arguments
    if function == "add" and type_of(right) == _DATE:
        left, right = right, left
    if type_of(left) != _DATE or scalar(right).kind not in INT_DIGITS:
        return None
    return call("date_add", left, right if function == "add" else call("negate", right))


def _as_decimals(arguments: list[Expression]) -> list[Expression]:
    """Cast integers beside a decimal to decimals of their full width, constants to their digits."""
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


def _to_scale(function: str, arguments: list[Expression]) -> Expression:
    """Type `round` or `bround` of a number to a constant number of fractional digits."""
    argument, scale = arguments
    own = scalar(argument)
    if not isinstance(scale, Literal) or type(scale.value) is not int or not 0 <= scale.value <= 22:
        raise refused(f"{function} to other than 0 to 22 digits")
    if own.kind in INT_DIGITS:
        return argument
    if own.kind is Kind.DECIMAL:
        digits = min(own.scale, scale.value)
        wide = ShreddedType(Kind.DECIMAL, _room(function, own) + digits, digits)
        return Call(function, (argument, Literal(digits, "int")), wide)
    if own.kind is not Kind.DOUBLE:
        raise refused(f"{function} of {own.ddl}")
    return Call(function, (argument, scale), DOUBLE)


def _room(function: str, own: ShreddedType) -> int:
    """The digits before the point of a rounded decimal: rounding may add one."""
    if own.precision == MAX_PRECISION:
        raise refused(f"{function} of {own.ddl}")
    return own.precision - own.scale + 1


def _negated(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if isinstance(argument, Literal) and type(argument.value) is int:
        return Literal(-argument.value, argument.type)
    return _sign(function, arguments)


def _root(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    return Call(function, (cast(argument, DOUBLE),), DOUBLE)


def _is_nan(_function: str, arguments: list[Expression]) -> Expression:
    """Type `isnan`, which is false for NULL."""
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
        # In Spark, unlike Arrow, NaN is above all other numbers.
        raise refused(f"{function} of {scalar(found).ddl}")
    return found


def _bits(function: str, arguments: list[Expression]) -> Expression:
    found = _alike(function, arguments)
    if scalar(found).kind not in INT_DIGITS:
        raise refused(f"{function} of other than integers")
    return found


def _rounded(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    own = scalar(argument)
    if own.kind in INT_DIGITS:
        return cast(argument, BIGINT)
    if own.kind is Kind.DECIMAL:
        whole = ShreddedType(Kind.DECIMAL, _room(function, own), 0)
        return Call(function, (argument,), whole) if own.scale else argument
    if own.kind not in (Kind.FLOAT, Kind.DOUBLE):
        raise refused(f"{function} of {own.ddl}")
    return Call(function, (cast(argument, DOUBLE),), BIGINT)


def _case(function: str, arguments: list[Expression]) -> Expression:
    """Type CASE: conditions and results alternate, and the result of ELSE comes last."""
    conditions, results = arguments[0:-1:2], [*arguments[1:-1:2], arguments[-1]]
    found = together(function, results)
    decided = map(condition, conditions)
    pairs = [part for pair in zip(decided, found, strict=False) for part in pair]
    return Call(function, (*pairs, found[-1]), scalar(found[-1]))


TRIMS = ("trim", "ltrim", "rtrim")
UNIX_TIMES = ("unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "unix_date")
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


def _with_constants(result: ShreddedType, *kinds: type) -> _Types:
    """Type a function of a string and constants of these types; the last may be left out."""

    def types(function: str, arguments: list[Expression]) -> Expression:
        text, *constants = arguments
        for each, kind in zip(constants, kinds, strict=False):
            if not isinstance(each, Literal) or type(each.value) is not kind:
                raise refused(f"{function} by other than constants")
        (text,) = map(as_string, [text])
        _strings(result)(function, [text])
        return Call(function, (text, *constants), result)

    return types


def _regular_expression(function: str, arguments: list[Expression]) -> Expression:
    found = _with_constants(BOOLEAN, str)(function, arguments)
    re2_pattern(str(arguments[1].value) if isinstance(arguments[1], Literal) else "")
    return found


def _moment(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if scalar(argument).kind not in INT_DIGITS:
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (cast(argument, BIGINT),), ShreddedType(Kind.TIMESTAMP))


def _since_1970(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    wanted = _DATE if function == "unix_date" else _TIMESTAMP
    if scalar(argument) != wanted:
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument,), INT if wanted is _DATE else BIGINT)


def _of_day(result: ShreddedType) -> _Types:
    def types(function: str, arguments: list[Expression]) -> Expression:
        day = _day_of(arguments[0])
        if scalar(day) != _DATE:
            raise refused(f"{function} of {scalar(day).ddl}")
        return Call(function, (day,), result)

    return types


def _months(function: str, arguments: list[Expression]) -> Expression:
    """Type `add_months` of a DATE or a timestamp, and a number of months."""
    start, number = _day_of(arguments[0]), arguments[1]
    own = scalar(start)
    if own != _DATE and own.kind not in _TIMESTAMPS:
        raise refused(f"{function} of {own.ddl}")
    if isinstance(start, Literal) and isinstance(number, Literal) and start.value is not None:
        unit = DAY if own == _DATE else 1
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
    """Return the expression; a constant text becomes a DATE."""
    if isinstance(given, Literal) and isinstance(given.value, str):
        return moment(given.value, _DATE, utc=False)
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
    return day if type_of(day) == _DATE else explicit_cast(day, _DATE)


def _truncated(function: str, arguments: list[Expression]) -> Expression:
    """Type `date_trunc` of a timestamp or `trunc` of a DATE, to a constant unit."""
    argument, unit = arguments
    wanted = _DATE if function == "trunc" else _TIMESTAMP
    if scalar(argument) != wanted or not isinstance(unit, Literal):
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument, unit), wanted)


def zoned(expression: Expression) -> bool:
    """Whether the expression's value depends on the session's time zone."""
    return any(isinstance(part, Call) and _is_zoned(part) for part in below(expression))


def _is_zoned(part: Call) -> bool:
    own = type_of(part.arguments[0]) if part.arguments else None
    if part.function in ("cast", "try_cast"):
        return {own, part.type} == {_DATE, _TIMESTAMP}
    return own == _TIMESTAMP and part.function in (
        *_PARTS,
        "date_trunc",
        "timestamp_add",
        "add_months",
    )


DAY_PARTS = (
    *("year", "quarter", "month", "weekofyear", "day", "dayofyear"),
    *("dayofweek", "weekday"),
)
_PARTS = (*DAY_PARTS, "hour", "minute", "second")


class _Signature(NamedTuple):
    """`types` makes the typed call of a function; `wanted` is the type that it suggests for a path.

    `wanted` is None if Spark takes Variants as they are, or casts them.
    """

    types: _Types
    wanted: str | None


def _each(names: Sequence[str], types: _Types, wanted: str | None) -> dict[str, _Signature]:
    return dict.fromkeys(names, _Signature(types, wanted))


_SIGNATURES: dict[str, _Signature] = {
    **_each(("add", "subtract", "multiply"), _arithmetic, "double"),
    **_each(("divide",), _divide, "double"),
    **_each(("div", "remainder", "pmod"), _whole_division, "double"),
    **_each(("round", "bround"), _to_scale, "double"),
    **_each(("negate",), _negated, "double"),
    **_each(("abs",), _sign, "double"),
    **_each(("sqrt", "sign"), _root, "double"),
    **_each(("isnan",), _is_nan, "double"),
    **_each(("greatest", "least"), _extreme, "double"),
    **_each(("bit_and", "bit_or", "bit_xor", "bit_not"), _bits, "double"),
    **_each(("floor", "ceil"), _rounded, "double"),
    **_each(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), _moment, "double"),
    **_each(("date_add", "datediff"), _day_function, "date"),
    **_each(("date_trunc", "trunc"), _truncated, "timestamp"),
    **_each(("timestamp_add",), _later, "timestamp"),
    **_each(_PARTS, _part, "timestamp"),
    **_each(UNIX_TIMES, _since_1970, "timestamp"),
    **_each(("add_months",), _months, "date"),
    **_each(("last_day",), _of_day(_DATE), "date"),
    **_each(("dayname", "monthname"), _of_day(STRING), "date"),
    **_each(("to_date",), _to_date, None),
    **_each(("coalesce",), _alike, None),
    **_each(("case",), _case, None),
    **_each(("length", "octet_length"), _strings(INT), None),
    **_each(("upper", "lower", "concat", "concat_ws", "reverse", *TRIMS), _strings(STRING), None),
    **_each(("like", "contains", "endswith"), _with_constants(BOOLEAN, str), None),
    **_each(("rlike",), _regular_expression, None),
    **_each(("locate",), _with_constants(INT, str), None),
    **_each(("replace", "translate"), _with_constants(STRING, str, str), None),
    **_each(("repeat",), _with_constants(STRING, int), None),
    **_each(("substring",), _with_constants(STRING, int, int), None),
    **_each(("lpad", "rpad"), _with_constants(STRING, int, str), None),
    **_each(("split_part",), _with_constants(STRING, str, int), None),
}
