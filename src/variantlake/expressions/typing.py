"""The types that expressions have in Spark, and the types in which Spark compares them.

Bounds of the requested type decide a comparison only if Spark compares in this type itself, or in
one that holds every value of it unchanged (EXACTNESS, rule 17): as doubles,
`9007199254740993::bigint = 9007199254740992.0D` is true. Pairs whose common type depends on ANSI
mode, and strings compared with other types, have no common type here, so the file is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import cache

from variantlake.errors import Hints, InvalidQuery, InvalidSchema, UnsupportedFeature
from variantlake.expressions.tree import (
    Aggregate,
    And,
    Call,
    Compare,
    CompareOp,
    Expression,
    IsNull,
    Literal,
    Or,
    Ref,
    Unknown,
)
from variantlake.parquet.stats.bounds import Raw
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

SPARK_RUNS_IT = Hints(
    hint="Spark runs it: `variantlake.spark.connect(spark).sql(...)`",
    cli_hint="--engine spark runs it",
)

INT_LIMITS = {Kind.INT8: 2**7, Kind.INT16: 2**15, Kind.INT32: 2**31, Kind.INT64: 2**63}
"""A value v fits if -limit <= v < limit."""

INT_DIGITS = {Kind.INT8: 3, Kind.INT16: 5, Kind.INT32: 10, Kind.INT64: 20}
"""Precision of the decimal type that Spark takes for an integer type in comparisons."""

BOOLEAN, INT, BIGINT, DOUBLE, STRING = (
    ShreddedType(kind) for kind in (Kind.BOOLEAN, Kind.INT32, Kind.INT64, Kind.DOUBLE, Kind.STRING)
)
NULL = Literal(None, "void")
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_INTEGERS = frozenset(map(ShreddedType, INT_DIGITS))
_EXACT_AS_DOUBLE = (Kind.INT8, Kind.INT16, Kind.INT32)


def refused(what: str) -> UnsupportedFeature:
    """Make the error for an expression that is left to Spark."""
    return UnsupportedFeature(f"the local engine does not take {what}", **SPARK_RUNS_IT)


def untyped(
    what: str, expression: Expression, wanted: str = "string"
) -> InvalidQuery | UnsupportedFeature:
    """Make the error for an expression without a type here, where one is needed.

    Spark accepts no Variant there either.
    """
    if type_text(expression) != "variant":
        return refused(f"{what} of {expression}, which is {type_text(expression)}")
    hint = _with_a_type(expression, wanted)
    return InvalidQuery(
        f"{what} needs a type, and {expression} is a Variant", hint=hint, cli_hint=hint
    )


def _with_a_type(expression: Expression, wanted: str = "string") -> str:
    if isinstance(expression, Ref) and expression.path is None:
        return f"name a path in it, and its type: {expression}:a.b::{wanted}"
    return f"give it a type: {expression}::{wanted}"


def as_string(expression: Expression) -> Expression:
    """Return an operand of a string function; a path's Variant is read as STRING, as in Spark."""
    if isinstance(expression, Ref) and expression.path and expression.type == "variant":
        return replace(expression, type="string")
    return expression


@cache
def spark_type(name: str) -> ShreddedType | None:
    """Parse Spark's name of a type.

    None for one without a column form here: `variant`, structs, collated strings, unknown names.
    """
    try:
        parsed = ShreddedType.parse(name)
    except InvalidSchema:
        return None
    return parsed if parsed.info.spark else None


def type_of(expression: Expression) -> ShreddedType | None:
    """The type of an expression.

    None if it is not a scalar here: whole Variants, nested columns, collated strings, a NULL
    without a type, and an `Unknown`.
    """
    match expression:
        case Ref() | Literal():
            return spark_type(expression.type)
        case Call() | Aggregate():
            return expression.type
        case Unknown():
            return None
    return BOOLEAN


def type_text(expression: Expression) -> str:
    """Spark's name of the type of an expression."""
    if isinstance(expression, Ref | Literal):
        return expression.type
    type_ = type_of(expression)
    return "unknown" if type_ is None else type_.ddl.lower()


def scalar(expression: Expression) -> ShreddedType:
    """The type of an operand. Raises UnsupportedFeature if it has none here."""
    type_ = type_of(expression)
    if type_ is None:
        error = refused(f"{expression} as an operand")
        if type_text(expression) == "variant":
            error.hint = error.cli_hint = _with_a_type(expression)
        raise error
    return type_


def comparison_type(own: ShreddedType | None, literals: Iterable[Literal]) -> ShreddedType | None:
    """The type in which Spark compares values of type `own` with all of these literals.

    None if it is not certain, or does not hold every value of `own` unchanged. Also None for an
    integer and a decimal beyond all integers: Spark decides that comparison without the value,
    even for NULL (`x < 9223372036854775808` is true in every row).
    """
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
    """Return the literal's value as Spark casts it to `common`, a `comparison_type`; None is NULL.

    Integers stay integers even if decimals are compared.
    """
    if literal.value is None:
        return None
    if common.kind in _FLOATS:
        return float(literal.value)
    return literal.value


@cache
def common_type(left: ShreddedType, right: ShreddedType) -> ShreddedType | None:
    """Spark's common type of two operands; None if there is none, or ANSI mode changes it."""
    if left == right:
        return left
    kinds = {left.kind, right.kind}
    if kinds <= INT_DIGITS.keys():
        return left if INT_DIGITS[left.kind] >= INT_DIGITS[right.kind] else right
    if kinds <= INT_DIGITS.keys() | {Kind.DECIMAL}:
        return _wider_decimal(_as_decimal(left), _as_decimal(right))
    if Kind.DOUBLE in kinds and kinds <= INT_DIGITS.keys() | {Kind.DECIMAL, *_FLOATS}:
        return DOUBLE
    if kinds == {Kind.FLOAT, Kind.DECIMAL}:
        return DOUBLE
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
    """Whether `wide`, their common type, holds every value of `narrow` unchanged."""
    if wide.kind is Kind.DOUBLE:
        return narrow.kind in (*_FLOATS, *_EXACT_AS_DOUBLE)
    return True


# --- Aggregates -----------------------------------------------------------------------------------


def aggregate(function: str, argument: Expression | None, *, distinct: bool = False) -> Aggregate:
    """Make an aggregate with Spark's result type. Raises InvalidQuery and UnsupportedFeature."""
    if argument is None or (function == "count" and not distinct):
        return Aggregate("count", argument, False, BIGINT)
    if function != "count" and type_of(argument) is None:
        raise untyped(function, argument, "double" if function in ("sum", "avg") else "string")
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


# --- Conditions -----------------------------------------------------------------------------------


def condition(expression: Expression) -> Expression:
    """Make a condition of a BOOLEAN expression. Raises UnsupportedFeature for other types."""
    if type_of(expression) != BOOLEAN:
        raise refused(f"{expression} as a condition")
    match expression:
        case Ref():
            return Compare("=", expression, Literal(value=True, type="boolean"))
        case Literal(bool() as value):
            return And(()) if value else Or(())
    return expression


def compare(op: CompareOp, left: Expression, right: Expression) -> Compare:
    """Compare two expressions in their common type. Raises InvalidQuery and UnsupportedFeature."""
    for each in (left, right):
        if type_text(each) == "variant":
            raise untyped("a comparison", each)
    left, right = together("a comparison", [left, right])
    return Compare(op, left, right)


def is_null(operand: Expression) -> IsNull:
    """Test a column or path of any type, or a scalar expression, for NULL."""
    if not isinstance(operand, Ref):
        scalar(operand)
    return IsNull(operand)


# --- Casts ----------------------------------------------------------------------------------------


def cast(expression: Expression, wanted: ShreddedType) -> Expression:
    """Cast to a type that holds all values of the expression's type. Raises UnsupportedFeature."""
    if type_of(expression) == wanted:
        return expression
    if isinstance(expression, Literal) and expression.value is None:
        return replace(expression, type=wanted.ddl.lower())
    own = scalar(expression)
    if own.kind in INT_DIGITS and (
        wanted.kind is Kind.DOUBLE or INT_DIGITS.get(wanted.kind, 0) > INT_DIGITS[own.kind]
    ):
        return Call("cast", (expression,), wanted)
    if own.kind is Kind.FLOAT and wanted.kind is Kind.DOUBLE:
        return Call("cast", (expression,), wanted)
    if wanted.kind is Kind.DECIMAL and own.kind in INT_DIGITS:
        own = ShreddedType(Kind.DECIMAL, INT_DIGITS[own.kind], 0)
    if own.kind is Kind.DECIMAL and wanted.kind is Kind.DECIMAL and _widens(own, wanted):
        return Call("cast", (expression,), wanted)
    raise refused(f"{own.ddl} as {wanted.ddl}")


def _widens(own: ShreddedType, wanted: ShreddedType) -> bool:
    whole = wanted.precision - wanted.scale >= own.precision - own.scale
    return whole and wanted.scale >= own.scale


def together(function: str, arguments: list[Expression]) -> list[Expression]:
    """Cast arguments to the one type that Spark finds for all of them."""
    common: ShreddedType | None = None
    for argument in arguments:
        if argument == NULL:
            continue
        own = scalar(argument)
        no_char(argument)
        found = own if common is None else common_type(common, own)
        if found is None:
            raise refused(f"{function} of {common.ddl if common else ''} and {own.ddl}")
        common = found
    if common is None:
        raise refused(f"{function} of nothing but NULL")
    return [cast(argument, common) for argument in arguments]


def no_char(expression: Expression) -> None:
    """Raise UnsupportedFeature for a CHAR column, which Spark pads."""
    if isinstance(expression, Ref) and expression.char_length:
        raise refused(f"{expression}, which is a CHAR, in an expression")
