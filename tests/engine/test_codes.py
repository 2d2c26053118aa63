"""Columns as codes: rows with one value have one code, and NULL is a value of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.engine import codes
from variantlake.engine.codes import coded

texts = st.lists(st.sampled_from(["", "a", "ab", "\u00e9" * 9, "x" * 70]) | st.none(), max_size=80)


@settings(deadline=None)
@given(values=texts, start=st.integers(0, 9), as_dictionary=st.booleans())
def test_texts_and_null_are_told_apart(
    values: list[str | None], start: int, as_dictionary: bool
) -> None:
    array: Any = pa.array(values, pa.string())
    if as_dictionary:
        array = array.dictionary_encode()
    found = coded(array.slice(start))
    places: Any = pa.array(found.codes)
    assert found.values.take(places).to_pylist() == values[start:]
    if not as_dictionary:
        assert len(set(found.codes.tolist())) == len(set(values[start:]))


def test_the_bytes_of_a_row_that_is_null_are_no_value() -> None:
    """Arrow lets anything stand there."""
    offsets = pa.py_buffer(b"".join(each.to_bytes(4, "little") for each in (0, 1, 2, 2)))
    bits = pa.py_buffer(b"\x06")
    array = pa.Array.from_buffers(pa.string(), 3, [bits, offsets, pa.py_buffer(b"aa")])
    assert array.to_pylist() == [None, "a", ""]
    found = coded(array)
    places: Any = pa.array(found.codes)
    assert found.values.take(places).to_pylist() == [None, "a", ""]


def test_texts_chosen_to_fall_together() -> None:
    """Bytes with a constant of the hash; no valid text has them."""
    chosen = (0x5BE0CD19137E2179).to_bytes(8, "little")
    values = [chosen + (number % 999).to_bytes(8, "big") for number in range(3000)]
    found = coded(pa.array(values, pa.binary()).view(pa.string()))
    places: Any = pa.array(found.codes)
    assert found.values.view(pa.binary()).take(places).to_pylist() == values
    assert len(found.values) == 999
    assert found.first is None


def test_more_texts_than_the_first_table_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "_SLOTS", 4)
    values = [f"text {number % 999}" for number in range(3000)]
    found = coded(pa.array(values))
    places: Any = pa.array(found.codes)
    assert found.values.take(places).to_pylist() == values
    assert len(found.values) == 999
