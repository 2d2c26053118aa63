"""Values at some places: what Arrow's `take` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.expressions import arrays
from variantlake.expressions.arrays import Values, at_places, repeated
from variantlake.kernels.columns.places import gather_codes, gather_longs

TYPES: tuple[Any, ...] = (
    pa.int32(),
    pa.date32(),
    pa.int64(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
)
numbers = st.lists(st.integers(-(2**31), 2**31 - 1) | st.none(), min_size=1, max_size=60)


@st.composite
def columns(draw: st.DrawFn) -> Any:
    """An array of a type of fixed width, or of codes, that may begin within its buffers."""
    values = draw(numbers)
    if draw(st.booleans()):
        texts = [None if each is None else f"{each % 5}" for each in values]
        array: Any = pa.array(texts, pa.string()).dictionary_encode()
    else:
        array = pa.array(values, pa.int64()).cast(pa.int32()).cast(pa.int64())
        type_ = draw(st.sampled_from(TYPES))
        array = array.cast(pa.int32()).cast(type_) if type_.bit_width == 32 else array.cast(type_)
    return array.slice(draw(st.integers(0, len(array) - 1)))


@given(columns(), st.data())
def test_rows_at_places_are_those_that_arrow_takes(array: Any, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(array) - 1), max_size=80))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrays, "_FEW", 0)
        found = at_places(array, np.array(places, np.int64))
    found.validate(full=True)
    assert found.type == array.type
    assert found.equals(array.take(pa.array(places, pa.int64())))


@given(columns(), st.data())
def test_repeated_rows_are_those_that_arrow_takes(array: Any, data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 4), min_size=len(array), max_size=len(array)))
    found = repeated(Values(array), np.array(times, np.int64)).array
    found.validate(full=True)
    rows = [row for row, count in enumerate(times) for _ in range(count)]
    assert found.equals(array.take(pa.array(rows, pa.int64())))


@pytest.mark.parametrize("wrong", [-1, 3, 2**62])
def test_a_place_beyond_the_values_is_refused(wrong: int) -> None:
    places, nothing = np.array([0, wrong]), np.empty(0, np.uint8)
    kernels: list[tuple[Any, Any]] = [(gather_codes, np.int32), (gather_longs, np.int64)]
    for kernel, dtype in kernels:
        values, out = np.zeros(3, dtype), np.zeros(2, dtype)
        valid = np.zeros(2, np.uint8)
        assert kernel(values, nothing, 0, places, out, nothing) == -1
        bits = np.array([7], np.uint8)
        assert kernel(values, bits, 0, places, out, valid) == -1
        assert kernel(values, bits, 6, places[:1], out, valid) == -1
