"""Conditions over rows: SQL's three values, and errors that count only if the answer does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from variantlake.expressions.arrays import Values
from variantlake.expressions.rows import evaluate, of_refs, truth_of
from variantlake.expressions.tree import (
    And,
    Call,
    Compare,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
)
from variantlake.expressions.typing import BIGINT, BOOLEAN
from variantlake.paths import Path

GUARD = Ref(("k",), None, "bigint")
CAST = Ref(("v",), Path.parse("$.a"), "bigint")
ROWS = 4
"""The guard is true, false, null, true; the cast gives 5, but for an error in all other rows."""


def operand(ref: Ref) -> Values:
    if ref == GUARD:
        return Values(pa.array([1, 0, None, 1], pa.int64()))
    return Values(pa.array([None, None, None, 5], pa.int64()), np.array([1, 1, 1, 0], np.bool_))


def equal(ref: Ref, value: int) -> Predicate:
    return Compare("=", ref, Literal(value, "bigint"))


def case(condition: Predicate) -> Predicate:
    """`CASE WHEN condition THEN true ELSE false END`."""
    parts = (condition, Literal(True, "boolean"), Literal(False, "boolean"))
    return Call("case", parts, BOOLEAN)


@pytest.mark.rule(1)
@pytest.mark.parametrize(
    ("condition", "true", "failed"),
    [
        (equal(CAST, 5), [3], [0, 1, 2]),
        (Not(equal(CAST, 5)), [], [0, 1, 2]),
        (And((equal(GUARD, 1), equal(CAST, 5))), [3], [0]),
        (And((equal(CAST, 5), equal(GUARD, 1))), [3], [0]),
        (And((equal(GUARD, 7), equal(CAST, 5))), [], []),
        (Not(And((equal(GUARD, 7), equal(CAST, 5)))), [0, 1, 3], [2]),
        (Or((equal(GUARD, 1), equal(CAST, 6))), [0, 3], [1, 2]),
        (Not(Or((equal(GUARD, 1), equal(CAST, 6)))), [], [1]),
        (Compare("<", GUARD, CAST), [3], [0, 1]),
        (Compare("<", CAST, GUARD), [], [0, 1]),
        (Not(Compare("<", Call("add", (CAST, GUARD), BIGINT), CAST)), [3], [0, 1]),
        (IsNull(Call("add", (CAST, GUARD), BIGINT)), [], [0, 1, 2]),
        (IsNull(Call("add", (CAST, Literal(None, "bigint")), BIGINT)), [0, 1, 2, 3], []),
        (In(CAST, (Literal(5, "bigint"), Literal(None, "bigint"))), [3], [0, 1, 2]),
        (Not(In(CAST, (Literal(5, "bigint"), Literal(None, "bigint")))), [], []),
        (Compare("<=>", GUARD, CAST), [], [0, 1, 2]),
        (And((case(equal(CAST, 5)), equal(GUARD, 1))), [3], [0]),
        (Not(case(equal(CAST, 5))), [], [0, 1, 2]),
    ],
    ids=str,
)
def test_rule_1_an_error_counts_only_where_the_answer_depends_on_it(
    condition: Predicate, true: list[int], failed: list[int]
) -> None:
    """`false AND error` is false, `null AND error` is not true: EXACTNESS, rule 1."""
    found = truth_of(condition, of_refs(operand), ROWS)
    assert np.flatnonzero(found.true).tolist() == true
    assert np.flatnonzero(found.failed).tolist() == failed
    assert not (found.true & found.failed).any()


@pytest.mark.rule(1)
@pytest.mark.parametrize(
    ("function", "operands", "failed"),
    [
        ("add", (GUARD, CAST), [0, 1]),
        ("add", (CAST, GUARD), [0, 1, 2]),
        ("div", (CAST, GUARD), [0, 1]),
        ("remainder", (GUARD, CAST), [0, 1, 2]),
        ("greatest", (GUARD, CAST), [0, 1, 2]),
    ],
)
def test_rule_1_a_null_operand_hides_the_errors_of_those_after_it(
    function: str, operands: tuple[Ref, Ref], failed: list[int]
) -> None:
    """Spark computes a divisor first, and all operands of `greatest`."""
    found = evaluate(Call(function, operands, BIGINT), of_refs(operand), ROWS)
    assert found.failed is not None
    assert np.flatnonzero(found.failed).tolist() == failed
