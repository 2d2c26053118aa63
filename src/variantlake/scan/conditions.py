"""A condition over rows, in SQL's three values and a fourth: rows for which Spark raises an error.

An error counts only where the condition depends on it: `false AND error` is false (EXACTNESS, rule
1: we never raise where Spark does not).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import UnsupportedFeature
from variantlake.expressions.arrays import Values, of_rows, with_null
from variantlake.expressions.tree import (
    FLIPPED,
    And,
    Compare,
    CompareOp,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from variantlake.expressions.typing import comparison_type, literal_as
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.shredding.arrays import AnyArray, bools_of, valid_of
from variantlake.shredding.fit import raw_array
from variantlake.types import Kind, ShreddedType

Flags = npt.NDArray[np.uint8]
TRUE, FALSE, FAILED = (np.uint8(flag) for flag in (1, 2, 4))


@dataclass(frozen=True, slots=True)
class Truth:
    """Rows in which a condition is true, in which false, and in which Spark raises; else null.

    `flags` has a byte a row, of TRUE, FALSE and FAILED.
    """

    flags: Flags

    @classmethod
    def of(cls, true: Bools, false: Bools, failed: Bools) -> Truth:
        """Of three arrays."""
        flags = true.view(np.uint8) * TRUE | false.view(np.uint8) * FALSE
        return cls(flags | failed.view(np.uint8) * FAILED)

    @property
    def true(self) -> Bools:
        """The rows that fulfil the condition."""
        return _has(self.flags, TRUE)

    @property
    def false(self) -> Bools:
        """The rows that fulfil its opposite."""
        return _has(self.flags, FALSE)

    @property
    def failed(self) -> Bools:
        """The rows for which Spark raises an error."""
        return _has(self.flags, FAILED)


def _has(flags: Flags, flag: np.uint8) -> Bools:
    found: Bools = (flags & flag) != 0
    return found


_EXACT = Context(prec=100)

Operand = Callable[[Ref], Values]


def evaluate(predicate: Predicate, operand: Operand, rows: int) -> Truth:
    """The condition over `rows` rows, whose operands `operand` gives.

    Raises UnsupportedFeature for a comparison that only Spark makes.
    """
    match predicate:
        case And(terms):
            return _all([evaluate(term, operand, rows) for term in terms], rows)
        case Or(terms):
            return _not(_all([_not(evaluate(term, operand, rows)) for term in terms], rows))
        case Not(term):
            return _not(evaluate(term, operand, rows))
        case IsNull(ref):
            return _of_rows(_is_null, operand(ref))
        case StartsWith(ref, prefix):
            return _of_rows(partial(_starts_with, prefix), operand(ref))
        case Compare(op, Ref() as ref, Literal() as literal):
            return _of_rows(partial(_compare, op, ref, literal), operand(ref))
        case Compare(op, Literal() as literal, Ref() as ref):
            return _of_rows(partial(_compare, FLIPPED.get(op, op), ref, literal), operand(ref))
        case In(ref, options):
            return _of_rows(partial(_in, ref, options), operand(ref))
    raise UnsupportedFeature(f"the local engine does not take the condition {predicate}")


def _of_rows(condition: Callable[[Values], Truth], values: Values) -> Truth:
    """A condition on one operand; on a dictionary's entries, and on NULL, once each."""
    array: Any = values.array
    if not isinstance(array, pa.DictionaryArray) or values.failed is not None:
        return condition(values)
    found = condition(Values(with_null(array.dictionary)))
    return Truth(of_rows(found.flags, array))


def _all(terms: Sequence[Truth], rows: int) -> Truth:
    both, either = np.full(rows, TRUE), np.zeros(rows, np.uint8)
    for term in terms:
        both &= term.flags
        either |= term.flags
    false = either & FALSE
    return Truth(both & TRUE | false | either & FAILED & ~(false << 1))


def _not(term: Truth) -> Truth:
    return Truth.of(term.false, term.true, term.failed)


def _failed(values: Values) -> Bools:
    return np.zeros(len(values.array), np.bool_) if values.failed is None else values.failed


def _is_null(values: Values) -> Truth:
    failed = _failed(values)
    null = bools_of(values.array.is_null())
    return Truth.of(null & ~failed, ~null & ~failed, failed)


def _truth(values: Values, answers: Any) -> Truth:
    """From an Arrow array of booleans, null where a value is."""
    valid = valid_of(answers)
    true = bools_of(answers.fill_null(False)) & valid
    return Truth.of(true, valid & ~true, _failed(values))


def _starts_with(prefix: str, values: Values) -> Truth:
    return _truth(values, pc.starts_with(values.array, prefix))


def _compare(op: CompareOp, ref: Ref, literal: Literal, values: Values) -> Truth:
    common = comparison_type(ref.type, (literal,))
    if common is None:
        raise UnsupportedFeature(f"the comparison of {ref} with {literal} is left to Spark")
    value = literal_as(literal, common)
    if value is None:
        return _with_null(op, values)
    same = op if op != "<=>" else "="
    answers = _answers(same, _as_common(values.array, common), value, common)
    found = _truth(values, answers)
    if op != "<=>":
        return found
    return Truth.of(found.true, ~found.true & ~found.failed, found.failed)


def _with_null(op: CompareOp, values: Values) -> Truth:
    """A comparison with NULL: null, but for `<=>`."""
    if op == "<=>":
        return _is_null(values)
    nothing = np.zeros(len(values.array), np.bool_)
    return Truth.of(nothing, nothing, _failed(values))


def _in(ref: Ref, options: tuple[Literal, ...], values: Values) -> Truth:
    common = comparison_type(ref.type, options)
    if common is None:
        raise UnsupportedFeature(f"{ref} IN constants of several types is left to Spark")
    wanted = [literal_as(option, common) for option in options]
    valid = valid_of(values.array)
    true = _any(_as_common(values.array, common), wanted, common) & valid
    false = valid & ~true & (None not in wanted)
    return Truth.of(true, false, _failed(values))


def _any(array: AnyArray, wanted: Sequence[Raw | None], common: ShreddedType) -> Bools:
    true = np.zeros(len(array), np.bool_)
    for value in wanted:
        if value is not None:
            true |= bools_of(_answers("=", array, value, common).fill_null(False))
    return true


def _as_common(array: AnyArray, common: ShreddedType) -> AnyArray:
    if array.type == common.arrow:
        return array
    floating = common.kind in (Kind.DOUBLE, Kind.FLOAT)
    if floating and pa.types.is_decimal(array.type):
        # Arrow's quotient may be the double next to Spark's.
        raise UnsupportedFeature("decimals cast to doubles are compared by Spark")
    try:
        return array.cast(common.arrow, safe=not floating)
    except pa.ArrowInvalid:
        # Spark rounds a decimal here, and makes NULL or an error of what is too large.
        raise UnsupportedFeature(
            f"values that {common.arrow} does not hold are compared by Spark"
        ) from None


_PLAIN: dict[CompareOp, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _answers(op: CompareOp, array: AnyArray, value: Raw, common: ShreddedType) -> Any:
    """Booleans, null where the value is; doubles as Spark orders them: NaN is the greatest."""
    if common.kind in (Kind.DOUBLE, Kind.FLOAT):
        return _float_answers(op, array, float(value))
    if common.kind is Kind.BOOLEAN:
        return _PLAIN[op](array.cast(pa.uint8()), pa.scalar(int(bool(value)), pa.uint8()))
    if common.kind is Kind.DECIMAL and isinstance(value, int):
        value = Decimal(value)
    if isinstance(value, Decimal):
        value = value.quantize(Decimal((0, (1,), -common.scale)), context=_EXACT)
    return _PLAIN[op](array, raw_array([value], common)[0])


def _float_answers(op: CompareOp, array: AnyArray, value: float) -> Any:
    numbers = array.fill_null(0.0).to_numpy(zero_copy_only=False)
    nan, is_nan = np.isnan(numbers), bool(np.isnan(value))
    equal = nan if is_nan else numbers == value
    less = ~nan if is_nan else numbers < value
    found = {
        "=": equal,
        "<>": ~equal,
        "<": less,
        "<=": less | equal,
        ">": ~(less | equal),
        ">=": ~less,
    }[op]
    return pa.array(found, mask=bools_of(array.is_null()))
