"""Vectorized functions, as in Spark's ANSI mode: numbers, casts and conditionals.

Rows for which Spark raises an error are marked (`Values.failed`); the error counts only if the
row's value is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.expressions.arrays import Values, either, failing, in_turn, numbers, plain, valid
from variantlake.expressions.casts.values import BY_VALUE, cast_values
from variantlake.expressions.functions.formats import format_times
from variantlake.expressions.functions.strings import STRING_FUNCTIONS
from variantlake.expressions.functions.times import TIME_FUNCTIONS, check_years
from variantlake.expressions.tree import Call
from variantlake.expressions.typing import INT_LIMITS, type_of
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.types import Kind, ShreddedType

_FLOATS = (Kind.FLOAT, Kind.DOUBLE)


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
        return Values(_ARROW[expression.function](*arrays), in_turn(values))
    except pa.ArrowInvalid:
        if expression.type.kind not in INT_LIMITS:
            raise
    # Some row overflows; Python's unbounded integers show which.
    there = np.logical_and.reduce([valid(array) for array in arrays])
    exact = _PYTHON[expression.function](*(numbers(array).astype(object) for array in arrays))
    limit = INT_LIMITS[expression.type.kind]
    beyond = there & np.array([not -limit <= each < limit for each in exact], np.bool_)
    held = arrow_array(np.where(beyond, 0, exact).tolist(), expression.type.arrow, mask=~there)
    return failing(held, in_turn(values), beyond)


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
    elif expression.function == "pmod":
        # Java adds bytes and shorts as INT.
        wide = divisor.astype(np.promote_types(divisor.dtype, np.int32))
        rest = np.fmod(one, wide)
        found = np.where(rest < 0, np.fmod(rest + wide, wide), rest)
    else:
        least = (one == -INT_LIMITS[Kind.INT64]) & (divisor == -1)
        beyond = zero | (least & there)
        divisor = np.where(least, 1, divisor)
        found = (one - np.fmod(one, divisor)) // divisor
    result = arrow_array(found, expression.type.arrow, mask=~there)
    return failing(result, in_turn(values[::-1]), beyond)  # Spark computes the divisor first


def _cast(expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values
    own: Any = given.array.type
    wanted, stored = expression.type, type_of(expression.arguments[0])
    if stored is not None and (stored.kind, wanted.kind) in BY_VALUE:
        array = cast_values(given.array, stored, wanted)
        return failing(array, given.failed, valid(given.array) & ~valid(array))
    if pa.types.is_decimal(own) and wanted.kind is Kind.STRING:
        texts = [None if each is None else f"{each:f}" for each in given.array.to_pylist()]
        return Values(arrow_array(texts, pa.string()), given.failed)
    if wanted.kind in INT_LIMITS and not pa.types.is_boolean(own):
        return _whole(given, wanted)
    if pa.types.is_date(own) or pa.types.is_timestamp(own):
        check_years(given.array)
    array = given.array
    if wanted.kind is Kind.DATE:
        array = pc.floor_temporal(array, unit="day")
    return Values(array.cast(wanted.arrow, safe=wanted.kind not in _FLOATS), given.failed)


def _tried(expression: Call, values: Sequence[Values]) -> Values:
    """Compute to NULL instead of failing; an operand that failed still fails."""
    strict = replace(expression, function=expression.function.removeprefix("try_"))
    found = FUNCTIONS[strict.function](strict, [Values(each.array) for each in values])
    return Values(found.array, in_turn(values))


def _is_variant_null(_expression: Call, values: Sequence[Values]) -> Values:
    """Whether a Variant is JSON's null, one zero byte; false for no Variant at all."""
    (given,) = values
    first: Any = pc.binary_slice(pc.struct_field(plain(given.array), "value"), 0, 1)
    null: Any = pc.is_in(first, pa.array([b"\0"], first.type))
    return Values(null, given.failed)


def _whole(given: Values, wanted: ShreddedType) -> Values:
    """Truncate numbers to integers; a number beyond the type's limits fails."""
    array: Any = given.array
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.int64(), safe=False)
    there, found = valid(array), numbers(array)
    limit = INT_LIMITS[wanted.kind]
    if found.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            fits = (np.floor(found) <= limit - 1) & (np.ceil(found) >= -limit)
            # The greatest BIGINT is not a double: the double above it becomes it.
            top = fits & (found >= limit)
            found = np.where(fits & ~top, found, 0).astype(np.int64)
        found = np.where(top, limit - 1, found)
    else:
        fits = (found >= -limit) & (found <= limit - 1)
    held = arrow_array(np.where(fits, found, 0).astype(np.int64), mask=~there).cast(wanted.arrow)
    return failing(held, given.failed, there & ~fits)


def _rounded(expression: Call, values: Sequence[Values]) -> Values:
    """Compute `floor` or `ceil`; a double becomes a BIGINT as in Java: clamped, NaN as 0."""
    (given,) = values
    if expression.type.kind is Kind.DECIMAL:
        return _whole_decimals(expression, values)
    there = valid(given.array)
    found = (np.floor if expression.function == "floor" else np.ceil)(numbers(given.array))
    limit = INT_LIMITS[Kind.INT64]
    inside = (found >= -limit) & (found < limit)
    whole = np.where(inside, found, 0).astype(np.int64)
    whole = np.where(found >= limit, limit - 1, np.where(found < -limit, -limit, whole))
    return Values(arrow_array(whole, pa.int64(), mask=~there), given.failed)


def _whole_decimals(expression: Call, values: Sequence[Values]) -> Values:
    """`floor` and `ceil` of decimals."""
    (given,) = values
    function: Any = pc.floor if expression.function == "floor" else pc.ceil
    wide = pa.decimal128(expression.type.precision + given.array.type.scale, given.array.type.scale)
    return Values(function(given.array.cast(wide)).cast(expression.type.arrow), given.failed)


def _to_scale(expression: Call, values: Sequence[Values]) -> Values:
    """Compute `round`, which rounds half away from zero, or `bround`, half to even."""
    given, (scale,) = values[0], expression.constants
    array: Any = given.array
    if expression.type.kind is Kind.DECIMAL:
        mode: Any = _ARROW_MODES[expression.function]
        wide = array.cast(pa.decimal128(array.type.precision + 1, array.type.scale))
        rounded = pc.round(wide, scale, mode).cast(expression.type.arrow)
        return Values(rounded, given.failed)
    doubles = numbers(array)
    with np.errstate(all="ignore"):
        units = np.abs(doubles) * 10.0**scale
        whole = np.floor(units + 0.5)
        # Below 2^52 both numbers are exact, so their quotient is the nearest double.
        found = np.copysign(whole, doubles) / 10.0**scale + 0.0
        unsure = np.abs(units - np.floor(units) - 0.5) <= units * 2.0**-50
        special = ~np.isfinite(doubles) | (np.abs(doubles) >= _WHOLE_FROM)
    unsure |= units >= _WHOLE_FROM
    found = np.where(special, doubles, found)
    for row in np.flatnonzero(unsure & ~special & valid(array)):
        found[row] = _by_digits(doubles[row], scale, _MODES[expression.function])
    return Values(arrow_array(found, pa.float64(), mask=~valid(array)), given.failed)


def _by_digits(number: float, scale: int, mode: str) -> float:
    """Round a number by the digits that `Double.toString` writes; zero loses its sign."""
    unit = Decimal(1).scaleb(-scale)
    return float(Decimal(repr(float(number))).quantize(unit, mode, _EXACT)) + 0.0


_EXACT = Context(prec=400)
_WHOLE_FROM = 2.0**52
_MODES = {"round": ROUND_HALF_UP, "bround": ROUND_HALF_EVEN}
_ARROW_MODES = {"round": "half_towards_infinity", "bround": "half_to_even"}


def _sign(_expression: Call, values: Sequence[Values]) -> Values:
    (given,) = values
    doubles = numbers(given.array)
    found = np.where(doubles == 0, doubles, np.sign(doubles))
    return Values(arrow_array(found, pa.float64(), mask=~valid(given.array)), given.failed)


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
    return Values(_BITS[expression.function](*(each.array for each in values)), in_turn(values))


def _extreme(expression: Call, values: Sequence[Values]) -> Values:
    """Compute `greatest` or `least`, which ignore NULLs."""
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
    """Take `result` where the condition is true, and `array` elsewhere."""
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


FUNCTIONS: dict[str, Callable[[Call, Sequence[Values]], Values]] = {
    **dict.fromkeys(_ARROW, _arithmetic),
    **dict.fromkeys(("divide", "div", "remainder", "pmod"), _division),
    "cast": _cast,
    **dict.fromkeys((f"try_{each}" for each in ("cast", "remainder", *_ARROW)), _tried),
    "is_variant_null": _is_variant_null,
    "case": _case,
    "coalesce": _coalesce,
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(_BITS, _bit_function),
    **dict.fromkeys(("floor", "ceil"), _rounded),
    **dict.fromkeys(_MODES, _to_scale),
    "sign": _sign,
    "sqrt": _root,
    **STRING_FUNCTIONS,
    **TIME_FUNCTIONS,
    "date_format": format_times,
}
