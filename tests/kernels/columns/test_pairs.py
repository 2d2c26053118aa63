"""The different pairs of groups and codes, beside a set of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.kernels.columns.pairs import list_pairs, mark_numbered_pairs, mark_pairs

Pairs = list[tuple[int, int]]


def column(pairs: Pairs, side: int) -> np.ndarray:
    return np.array([pair[side] for pair in pairs], np.int64)


def listed(there: np.ndarray, size: int, room: int) -> Pairs | None:
    groups, codes = np.empty(room, np.int64), np.empty(room, np.int64)
    found = list_pairs(there, size, groups, codes)
    if found < 0:
        return None
    return list(zip(groups[:found].tolist(), codes[:found].tolist(), strict=True))


@given(st.data(), st.integers(1, 9), st.integers(1, 40))
def test_pairs_are_those_of_a_set(data: st.DataObject, count: int, size: int) -> None:
    some = st.tuples(st.integers(0, count - 1), st.integers(0, size - 1))
    pairs = data.draw(st.lists(some, max_size=50))
    there = np.zeros(count * size, np.uint8)
    assert mark_pairs(column(pairs, 0), column(pairs, 1), size, there) == 0
    wanted = sorted(set(pairs))
    assert listed(there, size, len(wanted)) == wanted
    if wanted:
        assert listed(there, size, len(wanted) - 1) is None


@given(st.data(), st.integers(1, 9), st.integers(1, 40))
def test_other_numbers_take_the_place_of_both(data: st.DataObject, count: int, size: int) -> None:
    numbers = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=9))
    entries = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=9))
    some = st.tuples(st.integers(0, len(numbers) - 1), st.integers(0, len(entries) - 1))
    pairs = data.draw(st.lists(some, max_size=50))
    there = np.zeros(count * size, np.uint8)
    given_ = column(pairs, 0), np.array(numbers), column(pairs, 1), np.array(entries)
    assert mark_numbered_pairs(*given_, size, there) == 0
    wanted = sorted({(numbers[group], entries[code]) for group, code in pairs})
    assert listed(there, size, len(pairs)) == wanted


@pytest.mark.parametrize("pair", [(2, 0), (-1, 0), (0, 3), (0, -1), (2**62, 2**62)])
def test_what_is_beyond_the_table_is_refused(pair: tuple[int, int]) -> None:
    there = np.zeros(6, np.uint8)
    own, other = column([pair], 0), column([pair], 1)
    first = np.zeros(1, np.int64)
    assert mark_pairs(own, other, 3, there) == -1
    assert mark_numbered_pairs(first, own, first, other, 3, there) == -1
    assert mark_numbered_pairs(own, first, other, first, 3, there) == -1
    assert not there.any()
