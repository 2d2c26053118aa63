"""Ranges on the raw column: EXACTNESS, rule 13."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning import model
from tests.planning.builders import lit, path
from tests.planning.stats.test_soundness import OPS, literals
from tests.strategies import MORE
from variantlake.expressions.tree import Compare, CompareOp, In, IsNull, Literal, Not, Predicate
from variantlake.planning.exact.exactness import IDENTITY, Conversion, ConversionKind
from variantlake.planning.exact.implied import RawBound, implied_bounds
from variantlake.planning.exact.readings import PhysicalColumn
from variantlake.types import INT64, STRING, Kind, ShreddedType

CENTS = ShreddedType(Kind.DECIMAL, 18, 2)


def cast(stored: ShreddedType, requested: str) -> PhysicalColumn:
    return PhysicalColumn(("typed_value",), stored, Conversion(ConversionKind.CAST, requested))


def implied(
    op: CompareOp, value: Any, type_: str, stored: ShreddedType, requested: str
) -> list[str]:
    ref = path("$.a", requested)
    bounds = implied_bounds(Compare(op, ref, lit(value, type_)), ref, cast(stored, requested))
    return [bound.sql("c") for bound in bounds]


@pytest.mark.rule(13)
@pytest.mark.parametrize(
    ("op", "value", "stored", "requested", "expected"),
    [
        (">=", 5, CENTS, "bigint", ["c >= CAST('4.00' AS DECIMAL(18,2))"]),
        ("<", 5, CENTS, "bigint", ["c <= CAST('6.00' AS DECIMAL(18,2))"]),
        ("=", -5, CENTS, "bigint", [
            "c >= CAST('-6.00' AS DECIMAL(18,2))", "c <= CAST('-4.00' AS DECIMAL(18,2))",
        ]),
        ("<>", 5, CENTS, "bigint", []),
        (">=", -(2**63), CENTS, "bigint", []),  # the type itself says it
        (">=", 2**62, CENTS, "bigint", ["c >= CAST('9999999999999999.99' AS DECIMAL(18,2))"]),
        (">", 5, INT64, "decimal(20,0)", ["c >= CAST('4' AS BIGINT)"]),
    ],
)  # fmt: skip
def test_rule_13_a_converted_comparison_implies_a_raw_range(
    op: CompareOp, value: int, stored: ShreddedType, requested: str, expected: list[str]
) -> None:
    assert implied(op, value, "bigint", stored, requested) == expected


@pytest.mark.rule(13)
def test_rule_13_doubles_leave_room_for_rounding() -> None:
    (low,) = implied(">=", 0.3, "double", CENTS, "double")
    assert low == "c >= CAST('0.29' AS DECIMAL(18,2))"
    # As a double this is 0.5, and so are its neighbours.
    fine = ShreddedType(Kind.DECIMAL, 38, 20)
    (low,) = implied(">=", 0.5, "double", fine, "double")
    (high,) = implied("<=", 0.5, "double", fine, "double")
    assert low == "c >= CAST('0.49999999999999994448' AS DECIMAL(38,20))"
    assert high == "c <= CAST('0.50000000000000011103' AS DECIMAL(38,20))"
    assert implied("<=", float("inf"), "double", CENTS, "double") == []
    assert implied("=", float("nan"), "double", CENTS, "double") == []


def test_nothing_is_implied_without_an_order_or_a_need() -> None:
    ref = path("$.a")
    as_it_is = PhysicalColumn(("typed_value",), INT64, IDENTITY)
    assert implied_bounds(Compare("=", ref, lit(5)), ref, as_it_is) == ()
    assert implied_bounds(Not(IsNull(ref)), ref, cast(CENTS, "bigint")) == ()
    assert implied_bounds(Compare("=", ref, lit(5)), path("$.b"), cast(CENTS, "bigint")) == ()
    assert implied_bounds(Compare("=", ref, lit("5", "string")), ref, cast(CENTS, "bigint")) == ()
    assert implied("=", "x", "string", INT64, "string") == []
    assert implied("=", "x", "string", STRING, "string") == []


STORED = [
    CENTS,
    INT64,
    ShreddedType(Kind.DECIMAL, 9, 2),
    ShreddedType(Kind.DECIMAL, 38, 20),
    ShreddedType(Kind.INT16),
]
ASKED = ["tinyint", "int", "bigint", "double", "decimal(5,0)", "decimal(10,1)", "decimal(38,10)"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, PhysicalColumn, str, Predicate]:
    """A raw value, how it is read, and a condition near to it."""
    stored, requested = draw(st.sampled_from(STORED)), draw(st.sampled_from(ASKED))
    digits = {Kind.INT64: 18, Kind.INT16: 4}.get(stored.kind, stored.precision)
    limit = 10 ** draw(st.integers(1, digits)) - 1
    unscaled = draw(st.integers(-limit, limit))
    raw: Any = unscaled
    if stored.kind is Kind.DECIMAL:
        raw = Decimal(unscaled).scaleb(-stored.scale, model.WIDE)
    near = model.cast(raw, requested)
    same = st.just(Literal(near, requested))
    literal = literals(requested) | same
    ref = path("$.a", requested)
    compare: st.SearchStrategy[Predicate] = st.builds(
        lambda op, value, turned: Compare(op, value, ref) if turned else Compare(op, ref, value),
        OPS,
        literal,
        st.booleans(),
    )
    option = st.lists(literal, min_size=1, max_size=2).map(lambda found: In(ref, tuple(found)))
    return raw, cast(stored, requested), requested, draw(st.one_of(compare, option))


@pytest.mark.rule(13)
@settings(max_examples=200 * MORE, deadline=None)
@given(case=cases())
def test_rule_13_no_wanted_row_lies_outside_of_the_implied_range(
    case: tuple[Any, PhysicalColumn, str, Predicate],
) -> None:
    raw, column, requested, predicate = case
    bounds = implied_bounds(predicate, path("$.a", requested), column)
    if model.evaluate(predicate, model.Row({"a": raw})):
        for bound in bounds:
            assert raw >= bound.value if bound.op == ">=" else raw <= bound.value
    for bound in bounds:
        assert model.fits(bound.value, column.stored)
        assert isinstance(bound, RawBound)
