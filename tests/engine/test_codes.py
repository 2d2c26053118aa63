"""Columns as codes: rows with one value have one code, and NULL is a value of its own."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.engine import codes
from variantlake.engine.codes import (
    Coded,
    NumberedPairs,
    coded,
    coded_parts,
    different,
    different_of_parts,
)

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


@settings(deadline=None)
@given(st.data(), st.booleans())
def test_different_pairs_are_those_of_a_set(data: st.DataObject, in_a_table: bool) -> None:
    """Of rows, and of parts whose groups and values got other numbers."""
    count, values = data.draw(st.integers(1, 5)), pa.array(["a", "b", "c"])
    number, entry = st.integers(0, count - 1), st.integers(0, len(values) - 1)
    parts: list[NumberedPairs] = []
    wanted: set[tuple[int, int]] = set()
    for _ in range(data.draw(st.integers(1, 3))):
        numbers, entries = (data.draw(st.lists(each, min_size=1)) for each in (number, entry))
        pairs = data.draw(
            st.lists(st.tuples(st.integers(0, len(numbers) - 1), st.integers(0, len(entries) - 1)))
        )
        groups, own = ([pair[side] for pair in pairs] for side in range(2))
        parts.append(
            NumberedPairs(*(np.array(each, np.int64) for each in (groups, numbers, own, entries)))
        )
        wanted |= {(numbers[group], entries[code]) for group, code in pairs}
    ids = np.concatenate([part.numbers[part.groups] for part in parts])
    every = np.concatenate([part.entries[part.codes] for part in parts])
    with patch.object(codes, "_SMALL", 1 << 16 if in_a_table else -1):
        for found in (
            different(ids, count, Coded(every, values)),
            different_of_parts(parts, count, values),
        ):
            listed = list(zip(*(each.tolist() for each in found), strict=True))
            assert len(listed) == len(set(listed))
            assert set(listed) == wanted


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "dd", None]), min_size=1, max_size=9),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_keys_of_parts_are_those_of_their_rows(parts: list[list[str | None]], one: bool) -> None:
    """Whether they are dictionaries, texts, or some of both."""
    keys = []
    for number, part in enumerate(parts):
        array: Any = pa.array(part, pa.string())
        column = coded(array.dictionary_encode() if number % 2 or one else array)
        keys.append(column.keys_of(np.arange(len(part))))
    found = coded_parts(keys)
    values = found.values.to_pylist()
    assert [values[code] for code in found.codes] == [each for part in parts for each in part]
