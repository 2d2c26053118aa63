from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.expressions.arrays import entry_codes, of_rows, plain
from variantlake.kernels.columns.entries import (
    COPIED,
    COUNTERS,
    bytes_of,
    combine_entries,
    copy_texts,
    count_codes,
    keep_codes,
    place_texts,
)

NO_BITS = np.empty(0, np.uint8)

codes = st.lists(st.integers(0, 4) | st.none(), max_size=300)


@settings(deadline=None)
@given(rows=codes, start=st.integers(0, 20), index=st.sampled_from([pa.int8(), pa.int32()]))
def test_each_row_has_what_stands_at_its_entry(
    rows: list[int | None], start: int, index: pa.DataType
) -> None:
    indices: Any = pa.array(rows, index)
    array = pa.DictionaryArray.from_arrays(indices, pa.array(list("abcde")))
    part, own = array.slice(start), rows[start:]
    wanted = [5 if code is None else code for code in own]
    assert entry_codes(part).tolist() == wanted
    values = np.array([7, 0, 255, 3, 9, 100], np.uint8)
    assert of_rows(values, part).tolist() == values[wanted].tolist()


@pytest.mark.parametrize("wrong", [-1, 6, 2**31 - 1, -(2**31)])
def test_an_index_beyond_the_dictionary_is_refused(wrong: int) -> None:
    indices = np.array([0, wrong, 1], np.int32)
    assert bytes_of(indices, NO_BITS, 0, np.zeros(6, np.uint8), np.empty(3, np.uint8)) == -1
    assert combine_entries(indices, NO_BITS, 0, 5, np.zeros(3, np.int32)) == -1
    kept = np.ones(3, np.uint8)
    assert keep_codes(indices, np.zeros(6, np.uint8), kept) == -1
    assert count_codes(indices, kept, 6, np.zeros(6 * COUNTERS, np.int64)) == -1
    # Of a row that is NULL the index means nothing.
    bits = np.array([0b101], np.uint8)
    assert combine_entries(indices, bits, 0, 5, np.zeros(3, np.int32)) == 0


@pytest.mark.parametrize(
    ("bits", "offset", "room"),
    [([255], 6, 3), ([255], -1, 3), ([], 0, 2), ([], -1, 3)],
    ids=["few bits", "before them", "little room", "before none"],
)
def test_arrays_that_do_not_fit_are_refused(bits: list[int], offset: int, room: int) -> None:
    indices, valid = np.zeros(3, np.int32), np.array(bits, np.uint8)
    assert bytes_of(indices, valid, offset, np.zeros(6, np.uint8), np.empty(room, np.uint8)) == -1
    assert combine_entries(indices, valid, offset, 5, np.zeros(room, np.int32)) == -1


def test_values_without_one_for_null_are_refused() -> None:
    assert bytes_of(np.zeros(1, np.int32), NO_BITS, 0, NO_BITS, np.empty(1, np.uint8)) == -1


def test_counts_and_marks_without_room_are_refused() -> None:
    codes, one = np.zeros(2, np.int32), np.ones(1, np.uint8)
    assert keep_codes(codes, one, one.copy()) == -1
    assert count_codes(codes, one, 1, np.zeros(COUNTERS, np.int64)) == -1
    both = np.ones(2, np.uint8)
    assert count_codes(codes, both, 1, np.zeros(COUNTERS - 1, np.int64)) == -1
    assert count_codes(codes, both, -1, np.zeros(COUNTERS, np.int64)) == -1


texts_ = st.lists(st.text(max_size=3) | st.text("aé€", min_size=20, max_size=50), max_size=9)


@settings(deadline=None)
@given(entries=texts_, start=st.integers(0, 20), skipped=st.integers(0, 2), data=st.data())
def test_texts_of_a_dictionary_stand_in_their_rows(
    entries: list[str], start: int, skipped: int, data: st.DataObject
) -> None:
    own: Any = pa.array(entries, pa.string()).slice(skipped)
    code = st.integers(0, len(own) - 1) if len(own) else st.none()
    rows = data.draw(st.lists(code | st.none() if data.draw(st.booleans()) else code, max_size=99))
    array = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), own).slice(start)
    found = plain(array)
    found.validate(full=True)
    assert found.equals(array.dictionary_decode())


@pytest.mark.parametrize("wrong", [-1, 2, 2**31 - 1, -(2**31)])
def test_a_text_beyond_the_dictionary_is_refused(wrong: int) -> None:
    codes, ends = np.array([0, wrong], np.int32), np.array([0, 2, 3], np.int32)
    offsets, text = np.zeros(3, np.int32), np.zeros(9 + COPIED, np.uint8)
    assert place_texts(codes, ends, offsets) == -1
    assert copy_texts(codes, ends, np.zeros(3, np.uint8), offsets, text) == -1


def test_texts_that_do_not_fit_are_refused() -> None:
    codes, ends = np.array([0, 1], np.int32), np.array([0, 2, 3], np.int32)
    data, offsets, text = np.zeros(3, np.uint8), np.zeros(3, np.int32), np.zeros(35, np.uint8)
    assert place_texts(codes, ends, offsets[:2]) == -1
    assert place_texts(codes, np.array([0, 2, 1], np.int32), offsets) == -1
    assert place_texts(codes, np.array([0, 2**31 - 1, 2**31 - 1], np.int32), offsets) == 2**31 - 1
    assert place_texts(np.zeros(2, np.int32), np.array([0, 2**31 - 1], np.int32), offsets) == -1
    assert place_texts(codes, ends, offsets) == 3
    assert copy_texts(codes, ends, data, offsets, text) == 0
    assert copy_texts(codes, ends, data, offsets, text[:-1]) == -1
    assert copy_texts(codes, ends, data[:-1], offsets, text) == -1
    assert copy_texts(codes, ends, data, offsets[:2], text) == -1
    assert copy_texts(codes, ends, data, np.array([0, -1, 3], np.int32), text) == -1
    assert copy_texts(codes, np.array([-1, 2, 3], np.int32), data, offsets, text) == -1
