"""Evaluate expressions over rows.

A condition takes one of SQL's three values, or a fourth: Spark raises an error for the row. An
error counts only if the condition depends on it: `false AND error` is false (EXACTNESS, rule 1: we
never raise where Spark does not). A condition on one operand is evaluated once per entry of a
dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.expressions.arrays import (
    Values,
    either,
    in_turn,
    of_rows,
    ordered,
    plain,
    valid,
    with_null,
)
from variantlake.expressions.functions.registry import FUNCTIONS
from variantlake.expressions.tree import (
    FLIPPED,
    Aggregate,
    And,
    Call,
    Compare,
    CompareOp,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Ref,
    StartsWith,
    Unknown,
    children,
)
from variantlake.expressions.typing import (
    comparison_type,
    literal_as,
    refused,
    spark_type,
    type_of,
)
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.shredding.arrays import AnyArray, bools_of, valid_of
from variantlake.shredding.fit import raw_array
from variantlake.types import Kind, ShreddedType

Flags = npt.NDArray[np.uint8]
TRUE, FALSE, FAILED = (np.uint8(flag) for flag in (1, 2, 4))

Known = Callable[[Expression], Values | None]
"""Looks up columns and paths, or grouping keys and aggregates; None for other expressions."""

_EXACT = Context(prec=100)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth value of a condition in each row.

    `flags` has a byte a row: TRUE, FALSE, or 0 for null. With FAILED, Spark raises an error, and
    TRUE and FALSE mark what the condition could be without it: `null AND error` is not true.
    """

    flags: Flags

    @classmethod
    def of(cls, true: Bools, false: Bools, failed: Bools) -> Truth:
        """Make it from three arrays of booleans. A failed row could be true or false."""
        flags = true.view(np.uint8) * TRUE | false.view(np.uint8) * FALSE
        return cls(flags | failed.view(np.uint8) * (TRUE | FALSE | FAILED))

    @classmethod
    def of_values(cls, values: Values, answers: Any) -> Truth:
        """Make it from an Arrow array of booleans; NULL is null, failures are those of `values`."""
        there = valid_of(answers)
        true = numpy_array(answers) & there
        return cls.of(true, there & ~true, _failed(values))

    @property
    def values(self) -> Values:
        """The truth values as an Arrow array of booleans."""
        failed = self.flags & FAILED != 0
        null = self.flags & (TRUE | FALSE) == 0
        return Values(arrow_array(self.true, mask=null), failed if failed.any() else None)

    @property
    def true(self) -> Bools:
        """The rows in which the condition is true."""
        found: Bools = self.flags & (TRUE | FAILED) == TRUE
        return found

    @property
    def failed(self) -> Bools:
        """The rows for which Spark raises an error, and which could fulfil the condition."""
        found: Bools = self.flags & (TRUE | FAILED) == TRUE | FAILED
        return found


def of_refs(values: Callable[[Ref], Values]) -> Known:
    """Make the lookup that `evaluate` needs from a function for columns and paths."""
    return lambda expression: values(expression) if isinstance(expression, Ref) else None


def evaluate(expression: Expression, known: Known, rows: int) -> Values:
    """Evaluate an expression over `rows` rows.

    Raises UnsupportedFeature for a value whose result only Spark knows.
    """
    if isinstance(expression, Literal):
        return Values(_constant(expression, rows))
    found = known(expression)
    if found is not None:
        return found
    if isinstance(expression, Call):
        if expression.function not in _TAKE_NULLS and _has_null(expression):
            type_: Any = expression.type.arrow
            return Values(pa.nulls(rows, type_))  # Spark computes no other operand
        values = [evaluate(argument, known, rows) for argument in expression.arguments]
        return FUNCTIONS[expression.function](expression, values)
    if isinstance(expression, Ref | Aggregate):
        raise KeyError(expression)  # cannot happen: a query looks up only what it has computed
    return truth_of(expression, known, rows).values


def truth_of(condition: Expression, known: Known, rows: int) -> Truth:
    """Evaluate a condition over `rows` rows.

    Raises UnsupportedFeature for a comparison that only Spark makes.
    """
    found = known(condition)
    if found is not None:
        return Truth.of_values(found, found.array)
    match condition:
        case And(terms):
            return _all([truth_of(term, known, rows) for term in terms], rows)
        case Or(terms):
            return _not(_all([_not(truth_of(term, known, rows)) for term in terms], rows))
        case Not(term):
            return _not(truth_of(term, known, rows))
    truth = _compared(condition, known, rows)
    if _may_fail(truth.flags) and _is_null_by_operands(condition):
        # A filter in Spark first leaves out the rows in which an operand is NULL.
        for values in _operands(condition, known):
            null = ~valid(values.array) & ~_failed(values)
            truth = Truth(np.where(null, truth.flags & FAILED, truth.flags))
    return truth


def _is_null_by_operands(condition: Expression) -> bool:
    """Whether one operand that is NULL makes the condition NULL."""
    match condition:
        case Compare("<=>") | IsNull():
            return False
        case Call(function):
            return function not in _TAKE_NULLS
    return True


def _has_null(expression: Call) -> bool:
    return any(isinstance(each, Literal) and each.value is None for each in expression.arguments)


def _operands(expression: Expression, known: Known) -> Iterator[Values]:
    """The known operands, such as columns, of which one that is NULL makes the expression NULL."""
    for child in children(expression):
        found = known(child)
        if found is not None:
            yield found
        elif isinstance(child, Call) and child.function not in _TAKE_NULLS:
            yield from _operands(child, known)


_TAKE_NULLS = frozenset({"case", "coalesce", "greatest", "least", "concat_ws"})
"""Functions that may give a value where an operand is NULL."""


def _compared(condition: Expression, known: Known, rows: int) -> Truth:
    """Evaluate a condition that is not made of others by AND, OR and NOT."""

    def values_of(operand: Expression) -> Values:
        return evaluate(operand, known, rows)

    match condition:
        case IsNull(operand):
            return _of_rows(_is_null, values_of(operand))
        case StartsWith(operand, prefix):
            return _of_rows(partial(_starts_with, prefix), values_of(operand))
        case Compare(_, Literal(), Literal()):
            pass
        case Compare(op, operand, Literal() as literal):
            return _of_rows(partial(_compare_with, op, operand, literal), values_of(operand))
        case Compare(op, Literal() as literal, operand):
            op = FLIPPED.get(op, op)
            return _of_rows(partial(_compare_with, op, operand, literal), values_of(operand))
        case In(operand, options):
            return _of_rows(partial(_in, operand, options), values_of(operand))
        case Unknown():
            raise refused(f"the condition {condition}")
    if isinstance(condition, Compare):
        return _compare(condition.op, values_of(condition.left), values_of(condition.right))
    values = values_of(condition)
    return Truth.of_values(values, values.array)


def _constant(literal: Literal, rows: int) -> Any:
    """The literal's value, repeated `rows` times."""
    type_ = spark_type(literal.type)
    if type_ is None:
        return pa.nulls(rows)
    return _one(literal.value, type_).take(arrow_array(np.zeros(rows, np.int64)))


def _one(value: Raw | None, type_: ShreddedType) -> Any:
    if isinstance(value, int) and type_.kind is Kind.DECIMAL:
        value = Decimal(value)
    if isinstance(value, Decimal):
        value = value.quantize(Decimal((0, (1,), -type_.scale)), context=_EXACT)
    return raw_array([value], type_)


def _of_rows(condition: Callable[[Values], Truth], values: Values) -> Truth:
    """Evaluate a condition on one operand: for a dictionary, once per entry and once for NULL."""
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
    flags = both | either & (FALSE | FAILED)
    if _may_fail(flags):
        refuted = np.logical_or.reduce([each.flags & (FALSE | FAILED) == FALSE for each in terms])
        flags = np.where(refuted, FALSE, flags)
    return Truth(flags)


def _may_fail(flags: Flags) -> bool:
    return bool(flags.max(initial=0) >= FAILED)


def _not(term: Truth) -> Truth:
    flags = term.flags
    return Truth((flags & TRUE) * FALSE | (flags & FALSE) // FALSE | flags & FAILED)


def _failed(values: Values) -> Bools:
    return np.zeros(len(values.array), np.bool_) if values.failed is None else values.failed


def _is_null(values: Values) -> Truth:
    null = bools_of(values.array.is_null())
    return Truth.of(null, ~null, _failed(values))


def _starts_with(prefix: str, values: Values) -> Truth:
    return Truth.of_values(values, pc.starts_with(values.array, prefix))


# --- Comparisons ----------------------------------------------------------------------------------


def _compare(op: CompareOp, left: Values, right: Values) -> Truth:
    """Compare two operands of one type."""
    one, other = (_by_order(plain(each.array)) for each in (left, right))
    if op != "<=>":
        return Truth.of_values(Values(one, in_turn([left, right])), _PLAIN[op](one, other))
    equal = pc.or_kleene(_PLAIN[op](one, other), pc.and_(one.is_null(), other.is_null()))
    true = bools_of(equal.fill_null(False))
    return Truth.of(true, ~true, _failed(Values(one, either([left, right]))))


def _compare_with(op: CompareOp, operand: Expression, literal: Literal, values: Values) -> Truth:
    common = comparison_type(type_of(operand), (literal,))
    if common is None:
        raise refused(f"the comparison of {operand} with {literal}")
    value = literal_as(literal, common)
    if value is None:
        return _with_null(op, values)
    found = Truth.of_values(values, _answers(op, _as_common(values.array, common), value, common))
    if op != "<=>":
        return found
    return Truth.of(found.true, ~found.true, found.failed)


def _with_null(op: CompareOp, values: Values) -> Truth:
    """Compare with NULL: null, except for `<=>`."""
    if op == "<=>":
        return _is_null(values)
    return Truth(np.zeros(len(values.array), np.uint8))  # Spark does not compute the operand


def _in(operand: Expression, options: tuple[Literal, ...], values: Values) -> Truth:
    common = comparison_type(type_of(operand), options)
    if common is None:
        raise refused(f"{operand} IN constants of several types")
    wanted = [literal_as(option, common) for option in options]
    valid = valid_of(values.array)
    true = _any(_as_common(values.array, common), wanted, common) & valid
    found = Truth.of(true, valid & ~true, _failed(values))
    return Truth(found.flags & ~FALSE) if None in wanted else found  # never false beside a NULL


def _any(array: AnyArray, wanted: Sequence[Raw | None], common: ShreddedType) -> Bools:
    true = np.zeros(len(array), np.bool_)
    for value in wanted:
        if value is not None:
            true |= numpy_array(_answers("=", array, value, common))
    return true


def _as_common(array: AnyArray, common: ShreddedType) -> AnyArray:
    if array.type == common.arrow:
        return array
    floating = common.kind in _FLOATS
    if floating and pa.types.is_decimal(array.type):
        # Arrow's quotient may be the double next to Spark's.
        raise refused("a comparison of decimals with doubles")
    try:
        return array.cast(common.arrow, safe=not floating)
    except pa.ArrowInvalid:
        # Here Spark rounds a decimal, and gives NULL or an error for one that is too large.
        raise refused(f"a comparison of values that {common.arrow} does not hold") from None


_PLAIN: dict[CompareOp, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<=>": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _answers(op: CompareOp, array: AnyArray, value: Raw, common: ShreddedType) -> Any:
    """Compare an array with a value, as booleans that are NULL where the array is."""
    return _PLAIN[op](_by_order(array), _by_order(_one(value, common))[0])


def _by_order(array: Any) -> Any:
    """Convert values so that Arrow compares them as Spark does: NaN is the greatest double."""
    if pa.types.is_floating(array.type):
        return arrow_array(ordered(array), mask=~valid(array))
    return array.cast(pa.uint8()) if pa.types.is_boolean(array.type) else array
