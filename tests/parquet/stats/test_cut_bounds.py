"""Bounds that are cut still enclose what they were cut from."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from variantlake.parquet.stats.cut_bounds import cut_maximum, cut_minimum

any_text = st.text(st.characters(codec="utf-8"), max_size=6)


@pytest.mark.rule(21)
@given(any_text, st.integers(0, 6), any_text)
@example("ab\ud7ffx", 3, "x")  # the successor would be a surrogate
@example("a\U0010ffffb", 2, "\U0010ffff")
def test_a_cut_maximum_is_above_all_strings_with_its_prefix(
    text: str, length: int, tail: str
) -> None:
    cut = cut_maximum(text, length)
    if len(text) <= length:
        assert cut == text
    elif cut is not None:
        assert len(cut) <= length
        assert cut.encode() > text.encode()
        assert cut.encode() > (text[:length] + tail).encode()


@given(any_text, st.integers(0, 6))
def test_a_cut_minimum_is_not_above(text: str, length: int) -> None:
    cut = cut_minimum(text, length)
    assert len(cut) <= length
    assert cut <= text
    assert (cut == text) == (len(text) <= length)


@given(st.binary(max_size=6), st.integers(0, 6), st.binary(max_size=3))
def test_a_cut_maximum_of_bytes_is_above(data: bytes, length: int, tail: bytes) -> None:
    cut = cut_maximum(data, length)
    if len(data) <= length:
        assert cut == data
    elif cut is not None:
        assert len(cut) <= length
        assert cut > data[:length] + tail


def test_what_cannot_be_counted_up_has_no_maximum() -> None:
    assert cut_maximum(b"\xff\xff", 1) is None
    assert cut_maximum("\U0010ffff\U0010ffff", 1) is None
    assert cut_maximum("\ud7ffz", 1) == "\ue000"
