"""Typed expressions over the columns of a table and over aggregates, as Spark types them.

A tree is made by `call`, which says what Spark's implicit casts are, and refuses what has no
meaning here that is provably Spark's (ANSI mode, its default, is taken for granted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from variantlake.expressions.tree import Literal, Ref
from variantlake.expressions.typing import INT_DIGITS, common_type, refused, spark_type
from variantlake.parquet.stats.bounds import Raw
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

BOOLEAN, INT, BIGINT, DOUBLE, STRING = (
    ShreddedType(kind) for kind in (Kind.BOOLEAN, Kind.INT32, Kind.INT64, Kind.DOUBLE, Kind.STRING)
)
_TIMESTAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


@dataclass(frozen=True, slots=True)
class Column:
    """A column or path of the table, by its own names.

    `type` is None for what is no scalar here: whole Variants, nested columns, collated strings.
    """

    ref: Ref
    type: ShreddedType | None


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant; `value` None is NULL. `type` is None for a NULL of no type."""

    value: Raw | None
    type: ShreddedType | None


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `functions.FUNCTIONS`, whose arguments have the types that it takes."""

    function: str
    arguments: tuple[Expression, ...]
    type: ShreddedType


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of all rows of a group; `count` without an argument is that of rows."""

    function: OneOf["count", "min", "max", "sum", "avg"]
    argument: Expression | None
    distinct: bool
    type: ShreddedType


Expression = Column | Constant | Call | Aggregate


def column(ref: Ref) -> Column:
    """A column or path, with the type that it has here."""
    return Column(ref, spark_type(ref.type))


def constant(literal: Literal) -> Constant:
    """A constant of a query's text."""
    return Constant(literal.value, spark_type(literal.type))


def below(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of."""
    yield expression
    match expression:
        case Call(_, arguments):
            for argument in arguments:
                yield from below(argument)
        case Aggregate(_, argument) if argument is not None:
            yield from below(argument)


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The parts that all have to hold, nested ANDs flattened; none for no condition."""
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    elif condition is not None:
        yield condition


def scalar(expression: Expression, what: str = "it") -> ShreddedType:
    """The type of an operand. Raises UnsupportedFeature where it has none here."""
    if expression.type is None:
        name = str(expression.ref) if isinstance(expression, Column) else what
        raise refused(f"{name} as an operand")
    return expression.type


# --- Aggregates -----------------------------------------------------------------------------------


def aggregate(function: str, argument: Expression | None, *, distinct: bool = False) -> Aggregate:
    """An aggregate with Spark's result type. Raises UnsupportedFeature for others."""
    if argument is None or (function == "count" and not distinct):
        return Aggregate("count", argument, False, BIGINT)
    own = scalar(argument)
    match function:
        case "count":
            return Aggregate("count", argument, True, BIGINT)
        case "min" | "max":
            return Aggregate(function, argument, False, own)
        case "sum" | "avg" if not distinct and own.kind in INT_DIGITS:
            return Aggregate(function, argument, False, BIGINT if function == "sum" else DOUBLE)
        case "sum" if not distinct and own.kind is Kind.DECIMAL:
            wide = ShreddedType(Kind.DECIMAL, min(own.precision + 10, MAX_PRECISION), own.scale)
            return Aggregate("sum", argument, False, wide)
        case "avg" if not distinct and own.kind is Kind.DECIMAL:
            if own.precision + 4 <= MAX_PRECISION:
                wide = ShreddedType(Kind.DECIMAL, own.precision + 4, own.scale + 4)
                return Aggregate("avg", argument, False, wide)
    raise refused(f"{function} of {'distinct ' if distinct else ''}{own.ddl}")


# --- Functions ------------------------------------------------------------------------------------


def call(function: str, *arguments: Expression) -> Expression:
    """A function of these arguments, with Spark's implicit casts. Raises UnsupportedFeature."""
    types = _TYPES.get(function)
    if types is None:
        raise refused(f"the function {function}")
    return types(function, list(arguments))


def cast(expression: Expression, wanted: ShreddedType) -> Expression:
    """The expression as another type, where every value of its own has one there."""
    if expression.type == wanted:
        return expression
    if isinstance(expression, Constant) and expression.value is None:
        return replace(expression, type=wanted)
    own = scalar(expression)
    if own.kind in INT_DIGITS and (
        wanted.kind is Kind.DOUBLE or INT_DIGITS.get(wanted.kind, 0) > INT_DIGITS[own.kind]
    ):
        return Call("cast", (expression,), wanted)
    if own.kind is Kind.DECIMAL and wanted.kind is Kind.DECIMAL and _widens(own, wanted):
        return Call("cast", (expression,), wanted)
    raise refused(f"{own.ddl} as {wanted.ddl}")


def _widens(own: ShreddedType, wanted: ShreddedType) -> bool:
    whole = wanted.precision - wanted.scale >= own.precision - own.scale
    return whole and wanted.scale >= own.scale


def together(function: str, arguments: list[Expression]) -> list[Expression]:
    """Arguments cast to the one type that Spark finds for all of them."""
    common: ShreddedType | None = None
    for argument in arguments:
        if argument.type is None and isinstance(argument, Constant):
            continue
        own = scalar(argument)
        _no_char(argument)
        found = own if common is None else common_type(common, own)
        if found is None:
            raise refused(f"{function} of {common.ddl if common else ''} and {own.ddl}")
        common = found
    if common is None:
        raise refused(f"{function} of nothing but NULL")
    return [cast(argument, common) for argument in arguments]


def _no_char(expression: Expression) -> None:
    if isinstance(expression, Column) and expression.ref.char_length:
        raise refused(f"{expression.ref}, which is a CHAR, in an expression")


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


def _compared(function: str, arguments: list[Expression]) -> Expression:
    return Call(function, tuple(together(function, arguments)), BOOLEAN)


def _logical(function: str, arguments: list[Expression]) -> Expression:
    if any(scalar(argument).kind is not Kind.BOOLEAN for argument in arguments):
        raise refused(f"{function} of other than booleans")
    return Call(function, tuple(arguments), BOOLEAN)


def _is_null(function: str, arguments: list[Expression]) -> Expression:
    scalar(arguments[0])
    return Call(function, tuple(arguments), BOOLEAN)


def _coalesce(function: str, arguments: list[Expression]) -> Expression:
    found = together(function, arguments)
    return Call(function, tuple(found), scalar(found[0]))


def _case(function: str, arguments: list[Expression]) -> Expression:
    """Conditions and results in turns, and what is given else."""
    conditions, results = arguments[0:-1:2], [*arguments[1:-1:2], arguments[-1]]
    _logical(function, conditions)
    found = together(function, results)
    pairs = [part for pair in zip(conditions, found, strict=False) for part in pair]
    return Call(function, (*pairs, found[-1]), scalar(found[-1]))


_Types = Callable[[str, list[Expression]], Expression]


def _strings(result: ShreddedType) -> _Types:
    def types(function: str, arguments: list[Expression]) -> Expression:
        for argument in arguments:
            _no_char(argument)
            if scalar(argument) != STRING:
                raise refused(f"{function} of {scalar(argument).ddl}")
        return Call(function, tuple(arguments), result)

    return types


def _substring(function: str, arguments: list[Expression]) -> Expression:
    text, *numbers = arguments
    _strings(STRING)(function, [text])
    whole = [isinstance(each, Constant) and isinstance(each.value, int) for each in numbers]
    values = [each.value for each in numbers if isinstance(each, Constant)]
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
    days = function in ("year", "month", "day")
    if kind not in _TIMESTAMPS and not (days and kind is Kind.DATE):
        raise refused(f"{function} of {scalar(argument).ddl}")
    return Call(function, (argument,), INT)


def zoned(expression: Expression) -> bool:
    """Whether the session's time zone decides what the expression gives."""
    return any(
        isinstance(part, Call)
        and part.function in _PARTS
        and part.arguments[0].type == ShreddedType(Kind.TIMESTAMP)
        for part in below(expression)
    )


_PARTS = ("year", "month", "day", "hour", "minute", "second")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

_TYPES: dict[str, _Types] = {
    **dict.fromkeys(("add", "subtract", "multiply"), _arithmetic),
    "divide": _divide,
    **dict.fromkeys(("div", "remainder"), _whole_division),
    **dict.fromkeys(("negate", "abs"), _sign),
    **dict.fromkeys((*COMPARISONS, "same"), _compared),
    **dict.fromkeys(("and", "or", "not"), _logical),
    "is_null": _is_null,
    "coalesce": _coalesce,
    "case": _case,
    "length": _strings(INT),
    **dict.fromkeys(("upper", "lower", "concat"), _strings(STRING)),
    "substring": _substring,
    **dict.fromkeys(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), _moment),
    **dict.fromkeys(_PARTS, _part),
}
