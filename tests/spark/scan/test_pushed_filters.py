"""Which conditions of ours go down to the files, beside those that Spark pushes itself."""

from __future__ import annotations

import pytest

from variantlake.expressions.tree import Compare, In, Literal, Not, Predicate, Ref
from variantlake.spark.scan.pushed_filters import pushed_sql


@pytest.mark.rule(39)
@pytest.mark.parametrize(
    ("type_", "value", "pushed"),
    [
        ("date", -141_428, False),  # 1582-10-14
        ("date", -141_439, True),
        ("date", 19_000, True),
        ("timestamp", -2_208_988_800_000_001, False),  # before 1900
        ("timestamp", 0, True),
        ("timestamp_ntz", -(10**16), True),
        ("int", -141_428, True),
    ],
)
def test_rule_39_no_condition_of_ours_has_a_literal_that_spark_moves(
    type_: str, value: int, pushed: bool
) -> None:
    ref, literal = Ref(("c",), None, type_), Literal(value, type_)
    conditions: tuple[Predicate, ...] = (
        Compare(">=", ref, literal),
        Not(Compare("=", literal, ref)),
        In(ref, (Literal(0, type_), literal)),
    )
    for condition in conditions:
        assert (pushed_sql(condition, ("c",)) is not None) is pushed
