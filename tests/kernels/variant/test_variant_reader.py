from __future__ import annotations

from typing import cast

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.encoding.layouts import Layouts
from tests.kernels.batches import trees
from tests.strategies import MORE, layouts, variants
from tests.strategies import trees as any_tree
from variantlake.encoding.tree import Tree, decode, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import UnknownVariantType, VariantLakeError
from variantlake.kernels.tape.tape import SQL_NULL
from variantlake.kernels.variant import variant_reader
from variantlake.kernels.variant.variant_reader import VariantReader, bad_variant
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.shredding.layout import VARIANT_TYPE


def array_of(rows: list[tuple[bytes, bytes] | None]) -> pa.StructArray:
    members = [None if row is None else {"metadata": row[0], "value": row[1]} for row in rows]
    nullable = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    return cast("pa.StructArray", pa.array(members, nullable))


def decoded(row: tuple[bytes, bytes]) -> Tree | bool | None:
    """The twin's tree; None when it refuses the row, True when it meets an unknown type."""
    try:
        return decode(*row)
    except UnknownVariantType:
        return True
    except VariantLakeError:
        return None


@settings(max_examples=50 * MORE, deadline=None)
@given(st.lists(st.none() | variants, max_size=5))
def test_every_type_comes_back(values: list[Variant | None]) -> None:
    tape = VariantReader().read(
        array_of([None if v is None else (v.metadata, v.value) for v in values])
    )
    assert tape.status.tolist() == [SQL_NULL if v is None else 0 for v in values]
    for value, tree in zip(values, trees(write_variant(tape)), strict=True):
        assert (value is None) == (tree is None)
        if value is not None and tree is not None:
            assert logical_key(value.tree()) == logical_key(tree)


@settings(max_examples=75 * MORE, deadline=None)
@given(any_tree, layouts)
def test_every_layout_is_read(tree: Tree, layout: Layouts) -> None:
    row = layout.encode(tree)
    (found,) = trees(write_variant(VariantReader().read(array_of([row]))))
    expected = decoded(row)
    assert (found is None) == (expected is None)
    if isinstance(expected, bool) or expected is None or found is None:
        return
    assert logical_key(found) == logical_key(expected)


@settings(max_examples=150 * MORE, deadline=None)
@given(variants, st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3))
@example(Variant(b"\x01\x00\x00", b"\x00"), [])
def test_damaged_bytes_agree_with_twin(variant: Variant, damage: list[tuple[int, int]]) -> None:
    whole = bytearray(variant.metadata + variant.value)
    for place, byte in damage:
        whole[place % len(whole)] = byte
    cut = len(variant.metadata)
    row = bytes(whole[:cut]), bytes(whole[cut:])
    array = array_of([(variant.metadata, variant.value), row])
    tape = VariantReader().read(array)
    expected = decoded(row)
    if expected is True:
        return  # the twin stops there, and says nothing of what comes after
    assert (tape.status[1] == 0) == (expected is not None), row
    if expected is None:
        assert isinstance(bad_variant(array, 1), VariantLakeError)
        assert bad_variant(array, 1).row == 1
    elif not isinstance(expected, bool):
        found = list(trees(write_variant(tape)))[1]
        assert found is not None
        assert logical_key(found) == logical_key(expected)


@settings(max_examples=100 * MORE, deadline=None)
@given(st.binary(max_size=20), st.binary(max_size=30))
@example(b"\x01\x00\x00", b"\x02\x02\x00\x00\x00\x00\x00")
@example(b"\x01\x01\x00\x01a", b"\x02\x02\x00\x00\x00\x01\x02\x00\x00")  # one field twice
@example(b"\x01\x00\x00", b"\x03\x02\x00\x00\x01\x00")  # two elements share their byte
@example(b"\x01\x00\x00", b"\x03\xff")
@example(b"\xc1\xff\xff\xff\xff", b"\x00")
def test_noise_agrees_with_twin(metadata: bytes, value: bytes) -> None:
    expected = decoded((metadata, value))
    tape = VariantReader().read(array_of([(metadata, value)]))
    assert (tape.status[0] == 0) == (expected is not None)


def test_unknown_types_pass_through() -> None:
    # Type id 21, two bytes of data, beside a known sibling.
    value = bytes([0x03, 2, 0, 3, 5, 21 << 2, 7, 7, 3 << 2, 1])
    array = array_of([(b"\x01\x00\x00", value)])
    written = write_variant(VariantReader().read(array))
    assert written.field("value")[0].as_py() == value


def test_containers_nest_up_to_the_limit() -> None:
    def nested(depth: int) -> bytes:
        value = b"\x00"
        for _ in range(depth):
            value = b"\x0f\x01" + bytes(4) + len(value).to_bytes(4, "little") + value
        # offset_size 4 in each header: 0x0f is an array with offset_size_minus_one 3
        return value

    empty = b"\x01\x00\x00"
    tape = VariantReader().read(array_of([(empty, nested(1000)), (empty, nested(1001))]))
    assert tape.status.tolist() == [0, variant_reader.TOO_DEEP]


def test_slices_and_other_binary_types() -> None:
    rows = [(b"\x01\x00\x00", bytes([0x0C, i])) for i in range(6)]
    array = array_of([*rows[:3], None, *rows[3:]])
    large = pa.struct([("value", pa.large_binary()), ("metadata", pa.binary_view())])
    turned = pa.StructArray.from_arrays(
        [
            array.field("value").cast(pa.large_binary()),
            array.field("metadata").cast(pa.binary_view()),
        ],
        fields=list(large),
        mask=array.is_null(),
    )
    for candidate in (array, turned):
        tape = VariantReader().read(candidate[2:6])
        assert tape.nodes["value"][: tape.node_count].tolist() == [2, 3, 4]
        assert tape.status.tolist() == [0, SQL_NULL, 0, 0]
    assert VariantReader().read(array[:0]).rows == 0
    assert write_variant(VariantReader().read(array[:0])).type == VARIANT_TYPE


@pytest.mark.parametrize("count", [1, 400])
def test_metadata_that_repeats_or_changes(count: int) -> None:
    rows = [Variant.of({f"k{row % 3}": row}) for row in range(count)]
    tape = VariantReader().read(array_of([(v.metadata, v.value) for v in rows]))
    for value, tree in zip(rows, trees(write_variant(tape)), strict=True):
        assert tree is not None
        assert logical_key(value.tree()) == logical_key(tree)
