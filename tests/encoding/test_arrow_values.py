"""Whole Variants to Arrow values: what the type cannot hold exactly is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shredding.strategies import keys, scalars, trees
from variantlake.encoding.scalar import NULL
from variantlake.encoding.tree import Tree, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue, LimitExceeded

INT = pa.int64()
NESTED = pa.struct([("a", pa.struct([("b", pa.list_(INT))]))])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, pa.int8()),
        ({}, pa.struct([])),
        ([], pa.list_(pa.null())),
        ([None, None], pa.list_(pa.null())),
        ([1, 300, None], pa.list_(pa.int16())),
        ([1, Decimal("2.50")], pa.list_(pa.decimal128(9, 2))),
        ([10**18, Decimal("0.5")], pa.list_(pa.decimal128(38, 1))),
        ({"b": 1, "a": [{"x": "s"}, {"y": True}]},
         pa.struct([("a", pa.list_(pa.struct([("x", pa.string()), ("y", pa.bool_())]))),
                    ("b", pa.int8())])),
        ([[1], [], [2]], pa.list_(pa.list_(pa.int8()))),
    ],
)  # fmt: skip
def test_the_type_that_fits(value: Any, expected: pa.DataType) -> None:
    arrow = Variant.of(value).to_arrow()
    assert arrow.type == expected
    arrow.validate(full=True)


def test_values_of_the_type_that_fits() -> None:
    value = {"a": [{"x": "s"}, {"y": True}, None], "b": Decimal("1.50"), "c": None}
    assert Variant.of(value).to_arrow().as_py() == {
        "a": [{"x": "s", "y": None}, {"x": None, "y": True}, None],
        "b": Decimal("1.50"),
        "c": None,
    }


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([1, "x"], "$[0]"),
        ({"a": [1, {}]}, "$['a'][0]"),
        ({"a": [[1], [1.5]]}, "$['a'][0][0]"),
        ([10**37, Decimal("0.123")], "$[0]"),
    ],
)
def test_elements_without_a_common_type_are_refused(value: Any, path: str) -> None:
    with pytest.raises(InvalidValue, match="in common") as caught:
        Variant.of(value).to_arrow()
    assert caught.value.path == path
    assert "type" in caught.value.hint


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (5, INT, 5),
        (Decimal("5.00"), INT, 5),
        (7, pa.decimal128(10, 2), Decimal("7.00")),
        (dt.datetime(2024, 2, 29, tzinfo=dt.UTC), pa.timestamp("ns", "UTC"), None),
        ("x", pa.large_string(), "x"),
        (None, pa.struct([("a", INT)]), None),
        ({"a": 1}, pa.struct([("b", pa.string()), ("a", INT)]), {"b": None, "a": 1}),
        ({"a": [1, None]}, pa.struct([("a", pa.list_(INT))]), {"a": [1, None]}),
    ],
)
def test_values_of_a_given_type(value: Any, kind: pa.DataType, expected: Any) -> None:
    arrow = Variant.of(value).to_arrow(kind)
    assert arrow.type == kind
    assert expected is None or arrow.as_py() == expected
    arrow.validate(full=True)


@pytest.mark.parametrize(
    ("value", "kind", "path"),
    [
        ("5", INT, "$"),
        (1.0, INT, "$"),
        (1, pa.float64(), "$"),
        (Decimal("1.5"), INT, "$"),
        (300, pa.int8(), "$"),
        (5, pa.string(), "$"),
        ({"a": 1}, pa.struct([("b", INT)]), "$['a']"),
        ({"a": {"b": [1, "x"]}}, NESTED, "$['a']['b'][0]"),
        ([1], pa.struct([("b", INT)]), "$"),
        ({}, pa.list_(INT), "$"),
        ({}, INT, "$"),
    ],
)  # fmt: skip
def test_what_a_type_does_not_hold_exactly_is_refused(
    value: Any, kind: pa.DataType, path: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        Variant.of(value).to_arrow(kind)
    assert caught.value.path == path


def test_what_nests_too_deeply_is_refused() -> None:
    value: Any = None
    for _ in range(200):
        value = [value]
    with pytest.raises(LimitExceeded):
        Variant.of(value).to_arrow()


def without_nulls(tree: Tree) -> Tree:
    """Arrow does not tell a missing field from a null one."""
    if isinstance(tree, dict):
        return {name: without_nulls(child) for name, child in tree.items() if child != NULL}
    return [without_nulls(child) for child in tree] if isinstance(tree, list) else tree


@given(trees | st.dictionaries(keys, scalars) | scalars.map(lambda one: [one, NULL, one]))
def test_what_has_a_type_comes_back(tree: Tree) -> None:
    variant = Variant.of_tree(tree)
    try:
        arrow = variant.to_arrow()
    except InvalidValue:
        return
    arrow.validate()  # not in full: a Variant may hold times that no day has
    back = Variant.of(arrow).tree()
    assert logical_key(without_nulls(back)) == logical_key(without_nulls(variant.tree()))
    again = Variant.of(variant.to_arrow(arrow.type)).tree()
    assert logical_key(again) == logical_key(back)
