"""Trees: decode and encode in every layout, and logical equality."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encoding.layouts import Layouts
from tests.strategies import layouts, scalars, trees
from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.scalar import FALSE, NULL, TRUE, Scalar
from variantlake.encoding.tree import Tree, decode, encode, encode_value, keys_of, logical_key
from variantlake.encoding.value import validate
from variantlake.errors import InvalidValue, LimitExceeded
from variantlake.types import Primitive


@given(trees)
def test_decode_of_encode_is_the_same(tree: Tree) -> None:
    metadata, value = encode(tree)
    validate(metadata, value)
    assert logical_key(decode(metadata, value)) == logical_key(tree)


@given(trees, layouts)
def test_every_layout_decodes_to_the_same(tree: Tree, layout: Layouts) -> None:
    metadata, value = layout.encode(tree)
    assert logical_key(decode(metadata, value)) == logical_key(tree)
    if not layout.utf16_order:
        validate(metadata, value)


@given(trees)
def test_encoding_is_canonical(tree: Tree) -> None:
    """The same bytes whatever the order of the fields was."""

    def reordered(node: Tree) -> Tree:
        if isinstance(node, dict):
            return {name: reordered(node[name]) for name in reversed(node)}
        return [reordered(child) for child in node] if isinstance(node, list) else node

    assert encode(reordered(tree)) == encode(tree)


def test_a_shared_dictionary_serves_many_values() -> None:
    ids = {"a": 0, "b": 7, "c": 300}
    value = encode_value({"c": NULL, "b": {"a": TRUE}}, ids)
    keys = ["a", *map(str, range(6)), "b", *map(str, range(7, 299)), "c"]
    assert decode(encode_metadata(keys), value) == {"b": {"a": TRUE}, "c": NULL}


def test_a_key_outside_of_the_dictionary_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidValue, match="'x'") as caught:
        encode_value({"a": [NULL, {"x": NULL}]}, {"a": 0})
    assert caught.value.path == "$['a'][1]"


def test_a_value_that_does_not_fit_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidValue, match="int8") as caught:
        encode({"a": [NULL, Scalar(Primitive.INT8, 500)]})
    assert caught.value.path == "$['a'][1]"


def test_keys_of_counts_every_field() -> None:
    assert sorted(keys_of([{"a": {"a": NULL}}, {"b": []}])) == ["a", "a", "b"]


def test_a_container_that_holds_itself_meets_the_limit() -> None:
    tree: list[Tree] = []
    tree.append(tree)
    with pytest.raises(LimitExceeded):
        encode(tree)
    with pytest.raises(LimitExceeded):
        encode_value(tree, {})


def number(type_: Primitive, value: float | str) -> Scalar:
    return Scalar(type_, Decimal(value) if isinstance(value, str) else value)


EQUAL = [
    (number(Primitive.INT8, 1), number(Primitive.INT64, 1)),
    (number(Primitive.INT8, 1), number(Primitive.DECIMAL16, "1.00")),
    (number(Primitive.DECIMAL4, "100"), number(Primitive.DECIMAL8, "100.000")),
    (number(Primitive.INT8, 0), number(Primitive.DECIMAL4, "-0.0")),
    (Scalar(Primitive.TIMESTAMP, -1), Scalar(Primitive.TIMESTAMP_NANOS, -1000)),
    (Scalar(Primitive.TIMESTAMP_NTZ, 5), Scalar(Primitive.TIMESTAMP_NTZ_NANOS, 5000)),
    (Scalar(Primitive.DOUBLE, 0.0), Scalar(Primitive.DOUBLE, -0.0)),
    (Scalar(Primitive.DOUBLE, float("nan")), Scalar(Primitive.DOUBLE, -float("nan"))),
    ({"a": NULL, "b": TRUE}, {"b": TRUE, "a": NULL}),
    ([{}], [{}]),
]
UNEQUAL = [
    (number(Primitive.INT8, 1), Scalar(Primitive.DOUBLE, 1.0)),
    (Scalar(Primitive.FLOAT, 1.0), Scalar(Primitive.DOUBLE, 1.0)),
    (number(Primitive.INT8, 1), TRUE),
    (number(Primitive.INT8, 0), FALSE),
    (number(Primitive.INT8, 1), number(Primitive.DECIMAL4, "1.01")),
    (Scalar(Primitive.DATE, 1), number(Primitive.INT32, 1)),
    (Scalar(Primitive.TIME, 1), Scalar(Primitive.TIMESTAMP_NTZ, 1)),
    (Scalar(Primitive.TIMESTAMP, 1), Scalar(Primitive.TIMESTAMP_NTZ, 1)),
    (Scalar(Primitive.TIMESTAMP, 1), Scalar(Primitive.TIMESTAMP_NANOS, 1001)),
    (Scalar(Primitive.STRING, "a"), Scalar(Primitive.BINARY, b"a")),
    (Scalar(Primitive.STRING, "1"), number(Primitive.INT8, 1)),
    (NULL, Scalar(Primitive.STRING, "")),
    ([], {}),
    ([NULL], NULL),
    ([NULL], []),
    ([[], []], [[[]]]),
    ({"a": NULL}, {}),
    ({"a": NULL}, {"A": NULL}),
    ([TRUE, FALSE], [FALSE, TRUE]),
    (["a", [NULL]], ["a", NULL]),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_within_an_equivalence_class(left: Tree, right: Tree) -> None:
    assert logical_key(left) == logical_key(right)
    assert hash(logical_key(left)) == hash(logical_key(right))


@pytest.mark.parametrize(("left", "right"), UNEQUAL)
def test_unequal_across_equivalence_classes(left: Tree, right: Tree) -> None:
    def wrapped(node: object) -> Tree:
        if isinstance(node, list):
            return [wrapped(child) for child in node]
        return Scalar(Primitive.STRING, node) if isinstance(node, str) else node  # type: ignore[return-value] # a scalar or an object

    assert logical_key(wrapped(left)) != logical_key(wrapped(right))


@given(st.lists(scalars, min_size=2, max_size=2))
def test_scalars_of_one_key_have_one_value(pair: list[Scalar]) -> None:
    left, right = pair
    if logical_key(left) == logical_key(right) and not isinstance(left.value, float):
        same = left.value == right.value
        nanos = {left.type, right.type} & {
            Primitive.TIMESTAMP_NANOS,
            Primitive.TIMESTAMP_NTZ_NANOS,
        }
        assert same or nanos
