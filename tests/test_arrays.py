"""`arrow_array` makes what PyArrow makes."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.arrays import arrow_array, arrow_scalar, numpy_array

_DTYPES = ("i1", "i2", "i4", "i8", "u1", "u4", "u8", "f4", "f8", "?")


@given(st.data())
@settings(max_examples=100 * MORE)
def test_numbers_of_numpy_become_what_pyarrow_makes_of_them(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(_DTYPES))
    count = data.draw(st.integers(0, 20))
    values = np.random.default_rng(count).integers(0, 100, 2 * count + 1).astype(dtype)
    values = values[data.draw(st.sampled_from([slice(count), slice(1, None, 2), slice(0, 0)]))]
    flags = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    mask = data.draw(st.sampled_from([None, np.array(flags, np.bool_)]))
    types = [None] if dtype == "?" else [None, pa.int64(), pa.float64(), pa.int8()]
    type_ = data.draw(st.sampled_from(types))
    found, wanted = arrow_array(values, type_, mask=mask), pa.array(values, type_, mask=mask)
    found.validate(full=True)
    assert found.equals(wanted)
    assert found.type == wanted.type


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([], pa.string()),
        (["a", None, "\u00e4"], pa.string()),
        ([None, None], pa.string()),
        ([True, None, False], pa.bool_()),
        ([1, -(1 << 63), None], pa.int64()),
        ([-128, None], pa.int8()),
        ([["a", None], [], None], pa.list_(pa.string())),
        ([{"a": 1}] * 2000, pa.struct([("a", pa.int64())])),
        (("a", "b"), None),
        ([b"\x00", None], pa.binary()),
        ([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
        ([{"a": 1, "b": None}, None], pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ([Decimal("1.50"), None], pa.decimal128(10, 2)),
        ([dt.date(2024, 1, 2)], None),
        ([1.5, float("nan"), None], pa.float64()),
        (np.array(["x", None], object), pa.string()),
    ],
)
def test_values_of_python_become_what_pyarrow_makes_of_them(values: Any, type_: Any) -> None:
    found, wanted = arrow_array(values, type_), pa.array(values, type_)
    found.validate(full=True)
    assert found.type == wanted.type
    assert str(found.to_pylist()) == str(wanted.to_pylist())  # NaN is not equal to itself


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["a"], pa.int64()),
        ([1], pa.string()),
        ([5], pa.bool_()),
        (["a", b"b"], pa.struct([("a", pa.int64())])),
        ([[1, 2], 3], pa.list_(pa.int64())),
        ([[("a", 1), "b"]], pa.map_(pa.string(), pa.int64())),
        ([1 << 40], pa.int32()),
        (["\ud800"], pa.string()),
        (np.array([1 << 40]), pa.int32()),
    ],
)
def test_values_of_another_type_are_errors_of_pyarrow(values: Any, type_: Any) -> None:
    with pytest.raises((pa.ArrowException, ValueError, TypeError)) as wanted:
        pa.array(values, type_)
    with pytest.raises(wanted.type):
        arrow_array(values, type_)


def test_a_scalar_is_what_pyarrow_makes_of_the_value() -> None:
    cases: list[tuple[Any, Any]] = [(1, pa.int64()), (None, pa.string()), ("a", pa.string())]
    for value, type_ in cases:
        wanted: Any = pa.array([value], type_)[0]
        assert arrow_scalar(value, type_).equals(wanted)


@given(st.data())
@settings(max_examples=100 * MORE)
def test_numbers_of_arrow_become_what_pyarrow_makes_of_them(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(_DTYPES))
    chunks = data.draw(st.lists(st.lists(st.none() | st.integers(0, 1), max_size=20), max_size=3))
    type_: Any = pa.from_numpy_dtype(np.dtype(dtype))
    parts: list[Any] = [pa.array([0, *chunk], pa.int64()).cast(type_)[1:] for chunk in chunks]
    column: Any = pa.chunked_array(parts, type_)
    for array in [*parts, column]:
        found = numpy_array(array, 1)
        assert found.dtype == np.dtype(dtype)
        assert found.tolist() == array.fill_null(pa.scalar(1).cast(type_)).to_pylist()


def test_texts_become_objects_as_pyarrow_makes_them() -> None:
    for array in (pa.array(["a", None, "\u00e4"]), pa.array([b"", b"x"]), pa.array(["a"] * 2000)):
        found = numpy_array(array)
        assert found.dtype == np.object_
        assert found.tolist() == array.to_pylist()


def test_the_first_array_of_a_process_does_not_import_pandas() -> None:
    code = """
import sys
import numpy as np, pyarrow as pa
from variantlake.arrays import arrow_array, numpy_array, arrow_scalar
parts = pa.struct([("a", pa.map_(pa.string(), pa.string())), ("b", pa.list_(pa.int32()))])
arrow_array([{"a": [("k", None)], "b": [1, None]}, None], parts)
numpy_array(arrow_array(np.arange(3), mask=np.array([True, False, True])))
arrow_scalar(True, pa.bool_())
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
