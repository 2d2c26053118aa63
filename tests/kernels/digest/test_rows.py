"""Hashes of rows: the plain twin's, whatever the layout, and another one for other values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.shredding import strategies as shredding
from tests.strategies import MORE, layouts, trees
from tests.twins.digest import blend, field_path, tree_sum
from tests.twins.shred import shred
from variantlake.encoding.json import parse_json
from variantlake.encoding.tree import Tree, encode
from variantlake.encoding.variant import Variant
from variantlake.errors import MalformedVariant
from variantlake.kernels.digest.rows import Digest, RowSums
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.schema import Object, ShreddingSchema, Untyped

MASK = (1 << 64) - 1
PATH = field_path(0, b"v")


def variants(values: Sequence[Tree | None]) -> list[Variant | None]:
    return [None if tree is None else Variant(*encode(tree)) for tree in values]


def hashed(array: Any) -> list[int]:
    sums = RowSums()
    sums.start(len(array))
    sums.add_variants("v", array)
    return [int(word) & MASK for word in sums.close()[1]]


def plain(values: Sequence[Tree | None]) -> list[int]:
    return [blend(0 if tree is None else tree_sum(tree, PATH), 1) for tree in values]


def column(array: Any) -> list[int]:
    sums = RowSums()
    sums.start(len(array))
    sums.add_column("c", array)
    return [int(word) for word in sums.close()[1]]


@settings(max_examples=30 * MORE)
@given(st.lists(trees | st.none(), max_size=8))
def test_whole_variants_hash_as_the_twin_says(values: list[Tree | None]) -> None:
    assert hashed(variant_array(variants(values))) == plain(values)


@st.composite
def documents(draw: st.DrawFn) -> tuple[ShreddingSchema, list[Tree | None]]:
    schema = draw(shredding.schemas())
    return schema, draw(st.lists(shredding.trees_for(schema.root) | st.none(), max_size=12))


@settings(max_examples=50 * MORE)
@given(documents(), st.integers(0, 3))
@example((ShreddingSchema(Object((("a", Untyped()),))), [{}, {"a": {}}, {"b": {}}, []]), 0)
def test_shredding_makes_no_difference(
    drawn: tuple[ShreddingSchema, list[Tree | None]], start: int
) -> None:
    schema, values = drawn
    array = shred(variants(values), schema)
    assert hashed(array) == plain(values)
    assert hashed(array.slice(start)) == plain(values[start:])


@settings(max_examples=30 * MORE)
@given(trees, layouts, layouts)
def test_encodings_of_one_value_hash_alike(tree: Tree, one: Any, other: Any) -> None:
    arrays = [
        pa.StructArray.from_arrays(
            [pa.array([part], pa.binary()) for part in layout.encode(tree)],
            names=["metadata", "value"],
        )
        for layout in (one, other)
    ]
    found = []
    for array in arrays:
        try:
            found.append(hashed(array))
        except MalformedVariant:  # a name twice where that is refused
            return
    assert found[0] == found[1] == plain([tree])


DIFFERENT = (
    *("1", "1.5", "-1", "0", "null", "true", "false", "[]", "{}", "[null]", "[[]]", "[{}]", '""'),
    *('"1"', '"a"', '{"a":null}', '{"a":{}}', '{"a":[]}', "[1,2]", "[2,1]", '{"a":1,"b":2}'),
    *('{"a":2,"b":1}', '{"b":1}', "[1,[2]]", "[[1],2]", '"12345678"', '"123456789"', "1e300"),
    *("100000000000000000000", "10000000000000000000.5"),
)


def test_different_values_hash_differently() -> None:
    found = hashed(variant_array([None, *map(parse_json, DIFFERENT)]))
    assert len(set(found)) == len(DIFFERENT) + 1


def test_numbers_of_one_value_hash_alike() -> None:
    """The specification's exact numbers: whatever their width or scale."""
    wide = 10**25
    for same in (
        [7, Decimal(7), Decimal("7.00")],
        [wide, Decimal(f"{wide}.0")],
        [0, Decimal("0.00")],
    ):
        arrays = variant_array([Variant.of(value) for value in same])
        assert len(set(hashed(arrays))) == 1


def test_floats_hash_by_their_bits() -> None:
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0, 1 << 63], np.uint64)
    assert len(set(column(pa.array(bits.view(np.float64))))) == 4


ORDINARY: list[Any] = [
    pa.array([1, None, 3, -1], pa.int8()),
    pa.array(["a", None, "", "long text of more than eight bytes"]),
    pa.array([b"a", b"\x00", b"", None]),
    pa.array([True, False, None, True]),
    pa.array([Decimal("1.10"), None, Decimal(-5), Decimal(0)], pa.decimal128(38, 2)),
    pa.array([dt.date(2026, 1, 2), None, dt.date(1, 1, 1), dt.date(9999, 1, 1)]),
    pa.array([1.5, None, -0.0, 0.0]),
    pa.array([[1, 2], None, [], [None]], pa.list_(pa.int64())),
    pa.array([{"x": 1, "y": None}, None, {"x": None, "y": None}, {"x": None, "y": "a"}]),
    pa.array([[("a", 1)], None, [], [("a", None)]], pa.map_(pa.string(), pa.int64())),
    pa.array([[[1], []], [[], [1]], [None], [[1]]], pa.list_(pa.list_(pa.int32()))),
]


@pytest.mark.parametrize("array", ORDINARY, ids=lambda array: str(array.type))
def test_ordinary_columns_hash_by_their_values(array: Any) -> None:
    found = column(array)
    assert len(set(found)) == len(set(map(str, array.to_pylist())))
    assert column(array.slice(1, 2)) == found[1:3]
    doubled = pa.concat_arrays([array, array])
    assert column(doubled) == found * 2
    shown = pa.array(array.to_pylist(), array.type)
    assert column(shown) == found


def test_widths_and_encodings_of_columns_make_no_difference() -> None:
    integers = pa.array([1, None, -3], pa.int8())
    assert column(integers) == column(integers.cast(pa.int64()))
    assert column(integers) == column(integers.cast(pa.decimal128(20, 4)))
    texts = pa.array(["a", None, "b"])
    for other in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert column(texts) == column(texts.cast(other))
    few = pa.array(["a", None, "b", "a"] * 5)
    assert column(few) == column(few.dictionary_encode())
    assert column(few.slice(2)) == column(few.dictionary_encode().slice(2))


def test_columns_that_are_null_add_nothing() -> None:
    """A file that lacks a column has the digest of one in which it is NULL."""
    sums = RowSums()
    sums.start(2)
    sums.add_column("a", pa.array([1, 2]))
    first = sums.close()[0]
    sums.start(2)
    sums.add_column("b", pa.nulls(2, pa.string()))
    sums.add_column("a", pa.array([1, 2]))
    assert sums.close()[0] == first


def test_order_and_parts_make_no_difference_and_repetition_does() -> None:
    def digest(values: list[int], kept: Any = None) -> Digest:
        sums = RowSums()
        sums.start(len(values))
        sums.add_column("a", pa.array(values, pa.int64()))
        return sums.close(kept)[0]

    assert digest([1, 2, 3]) == digest([3, 1, 2]) == digest([1]) + digest([2, 3])
    assert digest([1, 2, 2]) != digest([1, 1, 2])
    assert digest([1, 2, 9], np.array([True, True, False])) == digest([2, 1])
    assert digest([]) == Digest() == Digest(0, 0, 0)


def test_names_and_rows_of_values_count() -> None:
    def digest(**columns: list[int]) -> Digest:
        sums = RowSums()
        sums.start(2)
        for name, values in columns.items():
            sums.add_column(name, pa.array(values))
        return sums.close()[0]

    assert digest(a=[1, 2], b=[3, 4]) == digest(b=[3, 4], a=[1, 2])
    assert digest(a=[1, 2], b=[3, 4]) != digest(a=[3, 4], b=[1, 2])
    assert digest(a=[1, 2], b=[3, 4]) != digest(a=[1, 2], b=[4, 3])


def test_what_is_no_variant_is_named_with_its_row() -> None:
    schema = parse_ddl("a STRING")
    good: Any = shred(variants([{"b": parse_json("1").tree()}] * 3), schema)
    rows = good.to_pylist()
    rows[2]["value"] = b"\x02\x01\x07\x00\x01\x00"
    bad = pa.array(rows, good.type)
    with pytest.raises(MalformedVariant) as raised:
        hashed(bad)
    assert raised.value.row == 2


def test_stored_variants_hash_by_their_bytes() -> None:
    """All of a row counts, and rows in another order or in slices hash alike."""
    schema = parse_ddl("a STRUCT<b: BIGINT>, c ARRAY<STRING>")
    texts = ['{"a": {"b": 1}, "c": ["x"]}', '{"a": {"b": "s"}, "z": 2}', "null", "[]", '{"c": [1]}']
    array: Any = shred([None, *map(parse_json, texts)], schema)

    def stored(given: Any) -> list[int]:
        sums = RowSums()
        sums.start(len(given))
        sums.add_stored("v", given)
        return sums.close()[1].tolist()

    found = stored(array)
    assert len(set(found)) == len(found)
    assert stored(array.slice(2)) == found[2:]
    other = shred([parse_json(text) for text in reversed(texts)], schema)
    assert stored(other) == found[:0:-1]


def test_variants_in_lists_and_maps_have_their_own_keys() -> None:
    one, two, three = (
        {"metadata": each.metadata, "value": each.value}
        for each in (Variant.of({"a": 1}), Variant.of({"b": [{"c": 2}]}), Variant.of("x"))
    )
    variant = variant_array([]).type
    rows: list[Any] = [None, [], [("k", one), ("l", None), ("m", two)], [("k", three)]]
    values = [None if row is None else [value for _, value in row] for row in rows]
    for array in (
        pa.array(rows, pa.map_(pa.string(), variant)),
        pa.array(values, pa.list_(variant)),
    ):
        whole = RowSums()
        whole.start(len(array))
        whole.add_column("c", array)
        alone = Digest()
        for place in range(len(array)):
            row = RowSums()
            row.start(1)
            row.add_column("c", array.slice(place, 1))
            alone += row.close()[0]
        assert whole.close()[0] == alone
