"""Signatures of the functions that expressions may call: Spark's casts and result types."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from variantlake.expressions.functions.java_patterns import (
    re2_of_group,
    re2_of_pieces,
    re2_pattern,
)
from variantlake.expressions.functions.patterns import check_replacement
from variantlake.expressions.functions.time_signatures import (
    DATE,
    TIME_SIGNATURES,
    FunctionSignature,
    Types,
    share,
)
from variantlake.expressions.tree import Call, Expression, Literal
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


def _tried(function: str, arguments: list[Expression]) -> Expression:
    """Type `try_add` and its like: NULL instead of an error of the operation itself."""
    strict = call(function.removeprefix("try_"), *arguments)
    if scalar(strict) == DATE:  # there Spark tries the operands too
        raise refused(f"{function} of DATE")
    return replace(strict, function=function) if isinstance(strict, Call) else strict


def _of_days(function: str, arguments: list[Expression]) -> Expression | None:
    """Type the sum or difference of a DATE and a number of days; None for other operands."""
    left, right = arguments
    if function == "add" and type_of(right) == DATE:
        left, right = right, left
    if type_of(left) != DATE or scalar(right).kind not in INT_DIGITS:
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


def _is_variant_null(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    if type_text(argument) != "variant":
        raise refused(f"{function} of {type_text(argument).upper()}")
    return Call(function, (argument,), BOOLEAN)


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


def _strings(result: ShreddedType) -> Types:
    def types(function: str, arguments: list[Expression]) -> Expression:
        arguments = list(map(as_string, arguments))
        for argument in arguments:
            no_char(argument)
            if scalar(argument) != STRING:
                raise refused(f"{function} of {scalar(argument).ddl}")
        return Call(function, tuple(arguments), result)

    return types


def _with_constants(result: ShreddedType, *kinds: type) -> Types:
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


def _checked(types: Types, check: Callable[..., object]) -> Types:
    """Type a function whose constants `check` must accept."""

    def checked(function: str, arguments: list[Expression]) -> Expression:
        found = types(function, arguments)
        check(*(each.value for each in arguments[1:] if isinstance(each, Literal)))
        return found

    return checked


def _check_part(pattern: str, *_place: object) -> None:
    re2_of_pieces(pattern)


def _check_digest(bits: int) -> None:
    if bits not in (0, 224, 256, 384, 512):
        raise refused(f"a hash of {bits} bits")


def _hex(function: str, arguments: list[Expression]) -> Expression:
    (argument,) = arguments
    own = type_of(argument)
    if own is not None and own.kind in INT_DIGITS:
        return Call(function, (cast(argument, BIGINT),), STRING)
    return _strings(STRING)(function, arguments)


_SIGNATURES: dict[str, FunctionSignature] = {
    **TIME_SIGNATURES,
    **share(("add", "subtract", "multiply"), _arithmetic, "double"),
    **share(("divide",), _divide, "double"),
    **share(("div", "remainder", "pmod"), _whole_division, "double"),
    **share(("try_add", "try_subtract", "try_multiply", "try_remainder"), _tried, "double"),
    **share(("round", "bround"), _to_scale, "double"),
    **share(("negate",), _negated, "double"),
    **share(("abs",), _sign, "double"),
    **share(("sqrt", "sign"), _root, "double"),
    **share(("isnan",), _is_nan, "double"),
    **share(("greatest", "least"), _extreme, "double"),
    **share(("bit_and", "bit_or", "bit_xor", "bit_not"), _bits, "double"),
    **share(("floor", "ceil"), _rounded, "double"),
    **share(("is_variant_null",), _is_variant_null, None),
    **share(("coalesce",), _alike, None),
    **share(("case",), _case, None),
    **share(("length", "octet_length", "bit_length"), _strings(INT), None),
    **share(("upper", "lower", "concat", "concat_ws", "reverse"), _strings(STRING), None),
    **share(("md5", "sha1"), _strings(STRING), "string"),
    **share(("sha2",), _checked(_with_constants(STRING, int), _check_digest), "string"),
    **share(("crc32",), _strings(BIGINT), "string"),
    **share(("hex",), _hex, None),
    **share(TRIMS, _with_constants(STRING, str), None),
    **share(("like", "contains", "endswith"), _with_constants(BOOLEAN, str), None),
    **share(("rlike",), _checked(_with_constants(BOOLEAN, str), re2_pattern), None),
    **share(("regexp_extract",), _checked(_with_constants(STRING, str, int), re2_of_group), None),
    **share(("regexp_count",), _checked(_with_constants(INT, str), re2_of_pieces), None),
    **share(
        ("regexp_replace",), _checked(_with_constants(STRING, str, str), check_replacement), None
    ),
    **share(("split_at",), _checked(_with_constants(STRING, str, int, bool), _check_part), None),
    **share(("split_size",), _checked(_with_constants(INT, str), _check_part), None),
    **share(("split_contains",), _checked(_with_constants(BOOLEAN, str, str), _check_part), None),
    **share(("substring_index",), _with_constants(STRING, str, int), None),
    **share(("locate",), _with_constants(INT, str), None),
    **share(("replace", "translate"), _with_constants(STRING, str, str), None),
    **share(("repeat",), _with_constants(STRING, int), None),
    **share(("substring",), _with_constants(STRING, int, int), None),
    **share(("lpad", "rpad"), _with_constants(STRING, int, str), None),
    **share(("split_part",), _with_constants(STRING, str, int), None),
}
