"""Strings as views and as dictionaries: what Arrow's own casts give."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from variantlake.expressions.arrays import plain, texts_as

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
TEXTS = st.none() | st.sampled_from(["", "a", "twelve bytes", "more than twelve", "\u00e4" * 40])


@given(st.lists(TEXTS, max_size=40), st.booleans(), st.integers(0, 9), st.integers(0, 9))
@example([None, None], True, 0, 0)
def test_texts_have_another_form_and_no_other_value(
    texts: list[str | None], encoded: bool, first: int, last: int
) -> None:
    array: Any = pa.array(texts, pa.string())
    array = array.dictionary_encode() if encoded else array
    array = array[first : len(array) - last]
    for wanted in (pa.string_view(), DICTIONARY):
        found = texts_as(array, wanted)
        found.validate(full=True)
        assert found.type == wanted
        assert found.to_pylist() == plain(array).to_pylist()


def test_entries_of_a_dictionary_that_are_null_or_a_part_of_others() -> None:
    codes: Any = pa.array([0, 1, None, 0], pa.int32())
    entries = pa.array(["longer than twelve bytes", "x", None, "y" * 20])
    for part in (entries[1:3], entries[2:], entries[:0]):
        own = codes if len(part) else pa.nulls(4, pa.int32())
        array: Any = pa.DictionaryArray.from_arrays(own, part)
        expected = array.to_pylist()
        assert texts_as(array, pa.string_view()).to_pylist() == expected
        assert texts_as(array, DICTIONARY) is array
