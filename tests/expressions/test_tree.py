"""Predicates read like SQL and come apart into what must all hold."""

from __future__ import annotations

import dataclasses

import pytest

from tests.planning.builders import lit, path
from variantlake.expressions.tree import (
    And,
    Compare,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
    Unknown,
    conjuncts,
    refs,
)

A = Compare("=", path("$.a"), lit(1))
B = IsNull(path("$.b", "string"))
C = Unknown("rand() < 0.5")


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (A, "v:a::bigint = 1"),
        (
            Compare("<", lit(5), path("$['odd key'][0].x", "double")),
            "5 < v:['odd key'][0].x::double",
        ),
        (Compare("=", path("$", "string"), lit("it's", "string")), "v::string = 'it\\'s'"),
        (Compare("=", path("$.a", "variant"), lit(None)), "v:a = NULL"),
        (IsNull(path("$.a", "int", strict=False)), "try_variant_get(v, '$.a', 'int') IS NULL"),
        (In(path("$.a"), tuple(map(lit, range(7)))), "v:a::bigint IN (0, 1, 2, 3, 4, … 2 more)"),
        (StartsWith(Ref(("s", "x y"), None, "string"), "p"), "startswith(s.`x y`, 'p')"),
        (And((A, Or((B, C)))), "v:a::bigint = 1 AND (v:b::string IS NULL OR rand() < 0.5)"),
        (
            Or((And((A, B)), Not(C))),
            "(v:a::bigint = 1 AND v:b::string IS NULL) OR NOT (rand() < 0.5)",
        ),
    ],
    ids=str,
)
def test_predicates_read_like_sql(predicate: Predicate, text: str) -> None:
    assert str(predicate) == text


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (Literal(True, "boolean"), "TRUE"),
        (Literal(19723, "date"), "DATE'2024-01-01'"),
        (Literal(10**9, "date"), "date_from_unix_date(1000000000)"),
        (Literal(1, "timestamp"), "TIMESTAMP'1970-01-01 00:00:00.000001Z'"),
        (Literal(0, "timestamp_ntz"), "TIMESTAMP_NTZ'1970-01-01 00:00:00'"),
        (Literal(2**62, "timestamp"), f"timestamp_micros({2**62})"),
        (Literal(b"\x01\xff", "binary"), "X'01FF'"),
    ],
    ids=str,
)
def test_literals_read_like_sql(literal: Literal, text: str) -> None:
    assert str(literal) == text


def test_conjuncts_flatten_nested_ands_only() -> None:
    assert conjuncts(And((A, And((B, Or((A, C)))), And(())))) == (A, B, Or((A, C)))
    assert conjuncts(None) == ()


def test_refs_come_in_order() -> None:
    found = [str(ref) for ref in refs(And((A, Not(Or((B, C, In(path("$.c"), ())))))))]
    assert found == ["v:a::bigint", "v:b::string", "v:c::bigint"]


def test_predicates_are_values() -> None:
    assert len({A, B, Compare("=", path("$.a"), lit(1))}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        A.op = "<"  # type: ignore[misc]  # the point of the test
