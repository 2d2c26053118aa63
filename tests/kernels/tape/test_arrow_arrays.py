"""Arrow arrays to what kernels read, and what they wrote to Arrow arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from variantlake.kernels.tape.arrow_arrays import (
    are_within,
    array_of,
    bitmap_of,
    buffer_of,
    larger_buffer,
    list_of,
    new_buffer,
    plain_binary,
    slots_of,
    struct_of,
)

TEXTS = ["", "a", "é", "long" * 9]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str
)
def test_slots_of_a_slice(kind: pa.DataType) -> None:
    array = pa.array([text.encode() for text in ["before", *TEXTS, "after"]], pa.binary()).cast(
        kind
    )
    data, offsets = slots_of(array[1:-1])
    slots = [data[offsets[i] : offsets[i + 1]].tobytes().decode() for i in range(len(TEXTS))]
    assert slots == TEXTS
    assert are_within(offsets, data)


def test_no_slots() -> None:
    data, offsets = slots_of(pa.array([], pa.string()))
    assert (len(data), offsets.tolist()) == (0, [0])


@pytest.mark.parametrize("offsets", [[0, 2, 1], [-1, 0, 1], [0, 1, 5]])
def test_slots_that_do_not_lie_in_the_data(offsets: list[int]) -> None:
    assert not are_within(np.array(offsets, np.int32), np.zeros(4, np.uint8))


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())],
    ids=str,
)
def test_bytes_of_any_kind(kind: pa.DataType) -> None:
    array = pa.array([b"x", None, b""], pa.binary()).cast(kind)
    assert plain_binary(array).equals(pa.array([b"x", None, b""], pa.binary()))


def test_what_was_written_becomes_arrays() -> None:
    good = np.array([True, False, True])
    content = buffer_of(np.arange(3, dtype=np.int32))
    numbers: Any = array_of(pa.int32(), 3, [bitmap_of(good), content], nulls=1)
    assert numbers.to_pylist() == [0, None, 2]
    assert bitmap_of(np.ones(9, bool)) is None
    kind = pa.struct([pa.field("n", pa.int32())])
    structs: Any = struct_of(kind, 3, None, [numbers])
    assert structs.to_pylist() == [{"n": 0}, {"n": None}, {"n": 2}]
    offsets = buffer_of(np.array([0, 2, 3], np.int32))
    lists: Any = list_of(pa.list_(pa.int32()), 2, None, offsets, numbers)
    lists.validate(full=True)
    assert lists.to_pylist() == [[0, None], [2]]


def test_a_larger_buffer_begins_as_the_smaller_one() -> None:
    _, out = new_buffer(4)
    out[:] = [1, 2, 3, 4]
    buffer, larger = larger_buffer(out, 3)
    assert (buffer.size, larger[:3].tolist()) == (8, [1, 2, 3])
