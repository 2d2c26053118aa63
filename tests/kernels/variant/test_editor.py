"""The kernel that changes values inside of Variants equals its plain twin, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.encoding.layouts import Layouts
from tests.strategies import MORE, layouts, trees, variants
from variantlake.encoding.edit import Change, Edit, edited
from variantlake.encoding.json import parse_json
from variantlake.encoding.tree import Tree, decode, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    DuplicateKey,
    LimitExceeded,
    MalformedVariant,
    PathTypeMismatch,
    UnknownVariantType,
    VariantLakeError,
)
from variantlake.kernels.variant.editor import edit_variants
from variantlake.paths import Path

SET, INSERT, DELETE, APPEND = Change
Row = tuple[bytes, bytes] | None


def array_of(rows: Sequence[Row]) -> pa.StructArray:
    members = [None if row is None else {"metadata": row[0], "value": row[1]} for row in rows]
    nullable = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    return cast("pa.StructArray", pa.array(members, nullable))


def rows_of(array: Any) -> list[Row]:
    return [row and (row["metadata"], row["value"]) for row in array.to_pylist()]


def by_twin(row: Row, edit: Edit, new: Tree | None) -> Row | type[VariantLakeError]:
    if row is None:
        return None
    try:
        return edited(*row, edit, new)
    except VariantLakeError as error:
        return type(error)


def given_for(edit: Edit, new: Variant) -> pa.StructArray | None:
    return None if edit.change is DELETE else array_of([(new.metadata, new.value)])


def agree(rows: list[Row], edit: Edit, new: Variant) -> None:
    tree = None if edit.change is DELETE else new.tree()
    expected = [by_twin(row, edit, tree) for row in rows]
    bad = [each for each in expected if isinstance(each, type)]
    values = given_for(edit, new)
    if bad:
        with pytest.raises(bad[0]) as caught:
            edit_variants(array_of(rows), edit, values)
        assert caught.value.row == expected.index(bad[0])
    kept = [row for row, each in zip(rows, expected, strict=True) if not isinstance(each, type)]
    found = rows_of(edit_variants(array_of(kept), edit, values))
    assert found == [each for each in expected if not isinstance(each, type)]


steps = st.lists(
    st.sampled_from(["a", "b", "id", "", "\uffff", "\U00010000"]) | st.integers(0, 3),
    min_size=1,
    max_size=3,
)
edits = st.builds(
    lambda change, path, create: Edit(change, Path(tuple(path)), create),
    st.sampled_from(Change),
    steps,
    st.booleans(),
)


@settings(max_examples=60 * MORE, deadline=None)
@given(st.lists(st.none() | variants, max_size=4), edits, variants)
@example([None], Edit(APPEND, Path()), Variant.of(1))
def test_kernel_agrees_with_twin(values: list[Variant | None], edit: Edit, new: Variant) -> None:
    agree([None if each is None else (each.metadata, each.value) for each in values], edit, new)


@settings(max_examples=40 * MORE, deadline=None)
@given(trees, layouts, edits, variants)
def test_every_layout_is_changed(tree: Tree, layout: Layouts, edit: Edit, new: Variant) -> None:
    agree([layout.encode(tree)], edit, new)


@settings(max_examples=75 * MORE, deadline=None)
@given(
    variants,
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=3),
    edits,
)
def test_damaged_bytes_agree_with_twin(
    variant: Variant, damage: list[tuple[int, int]], edit: Edit
) -> None:
    whole = bytearray(variant.metadata + variant.value)
    for place, byte in damage:
        whole[place % len(whole)] = byte
    cut = len(variant.metadata)
    agree([(bytes(whole[:cut]), bytes(whole[cut:]))], edit, Variant.of({"k": [1]}))


@settings(max_examples=40 * MORE, deadline=None)
@given(st.lists(st.tuples(variants, st.none() | variants), min_size=1, max_size=4), steps)
def test_each_row_has_its_own_value(
    rows: list[tuple[Variant, Variant | None]], path: list[str | int]
) -> None:
    edit = Edit(SET, Path(tuple(path)))
    array = array_of([(row.metadata, row.value) for row, _ in rows])
    values = array_of([None if new is None else (new.metadata, new.value) for _, new in rows])
    if len(rows) == 1:
        return  # one value is that of all rows
    expected: list[Row] = []
    for row, new in rows:
        done = None if new is None else by_twin((row.metadata, row.value), edit, new.tree())
        expected.append(None if isinstance(done, type) else done)
    assert rows_of(edit_variants(array, edit, values, lenient=True)) == expected


def test_a_damaged_new_value_is_refused() -> None:
    array = array_of([(b"\x01\x00\x00", b"\x02\x00\x00")])
    with pytest.raises(MalformedVariant) as caught:
        edit_variants(array, Edit(SET, Path(("a",))), array_of([(b"\x01\x00\x00", b"\x02\x09")]))
    assert caught.value.row == 0


def test_lenient_rows_become_null() -> None:
    rows = [parse_json(text) for text in ('{"a":1}', "[1]", '{"b":2}', '{"a":{"b":1}}')]
    array = array_of([(row.metadata, row.value) for row in rows])
    new = array_of([(b"\x01\x00\x00", b"\x0c\x07")])
    found = rows_of(edit_variants(array, Edit(INSERT, Path(("a", "b"))), new, lenient=True))
    assert [row and Variant(*row).to_json() for row in found] == [
        None, None, '{"a":{"b":7},"b":2}', None,
    ]  # fmt: skip
    with pytest.raises(PathTypeMismatch):
        edit_variants(array, Edit(INSERT, Path(("a", "b"))), new)
    with pytest.raises(DuplicateKey):
        edit_variants(array, Edit(INSERT, Path(("a",))), new)


def test_rows_outgrow_their_room() -> None:
    """Padding, dictionaries of more than 255 keys and long values make rows grow many times."""
    wide = Variant.of({f"k{i:03}": i for i in range(300)})
    array = array_of([(wide.metadata, wide.value)] * 20 + [(b"\x01\x00\x00", b"\x03\x00\x00")] * 20)
    for path, new in ((("zz", 5000), Variant.of({"deep": {"er": "x" * 70_000}})),):
        result = edit_variants(
            array, Edit(SET, Path(path)), array_of([(new.metadata, new.value)]), lenient=True
        )
        expected = by_twin((wide.metadata, wide.value), Edit(SET, Path(path)), new.tree())
        assert rows_of(result) == [expected] * 20 + [None] * 20


def test_a_slice_and_either_order_of_the_parts_are_taken() -> None:
    rows = [parse_json(f'{{"a":{i}}}') for i in range(10)]
    whole = pa.StructArray.from_arrays(
        [pa.array([row.value for row in rows]), pa.array([row.metadata for row in rows])],
        ["value", "metadata"],
    )
    result = edit_variants(whole.slice(3, 4), Edit(DELETE, Path(("a",))), None)
    assert [decode(*row) for row in rows_of(result) if row] == [{}] * 4


def test_types_of_a_later_version_are_carried_along() -> None:
    value = b"\x02\x01\x00\x00\x02" + bytes([30 << 2, 7])
    metadata = parse_json('{"a":1}').metadata
    null = array_of([(b"\x01\x00\x00", b"\x00")])
    (row,) = rows_of(edit_variants(array_of([(metadata, value)]), Edit(SET, Path(("b",))), null))
    assert row is not None
    assert bytes([30 << 2, 7]) in row[1]
    with pytest.raises(UnknownVariantType):
        decode(*row)


def test_too_deep_values_are_refused() -> None:
    deep: Tree = []
    for _ in range(998):
        deep = [deep]
    new = Variant.of_tree(deep)
    array = array_of([(b"\x01\x00\x00", b"\x02\x00\x00")])
    values = array_of([(new.metadata, new.value)])
    (row,) = rows_of(edit_variants(array, Edit(SET, Path(("a",))), values))
    assert row is not None
    assert logical_key(decode(*row)) == logical_key({"a": deep})
    with pytest.raises(LimitExceeded):
        edit_variants(array, Edit(SET, Path(("a", "b"))), values)
