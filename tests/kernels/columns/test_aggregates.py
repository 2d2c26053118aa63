"""Counts, sums and extremes of groups, beside loops over the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.kernels.columns.aggregates import add_groups, count_groups, reach_groups

numbers = st.integers(-(2**63), 2**63 - 1)
rows = st.lists(st.tuples(st.integers(0, 5), numbers, st.booleans()), max_size=60)
LEAST = np.iinfo(np.int64).min


def columns(some: list[tuple[int, int, bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids, values, there = zip(*some, strict=True) if some else ((), (), ())
    return np.array(ids, np.int64), np.array(values, np.int64), np.array(there, np.uint8)


@given(rows, st.sampled_from([1, 2, 4]))
def test_counts_are_those_of_the_rows(some: list[tuple[int, int, bool]], counters: int) -> None:
    ids, _, _ = columns(some)
    counts = np.zeros(6 * counters, np.int64)
    assert count_groups(ids, 6, counts) == 0
    wanted = [sum(group == each for group, *_ in some) for each in range(6)]
    assert counts.reshape(counters, 6).sum(axis=0).tolist() == wanted


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**40), st.booleans()), max_size=60))
def test_sums_are_those_of_the_rows(some: list[tuple[int, int, bool]]) -> None:
    ids, sizes, _ = columns(some)
    sums = np.zeros(6, np.int64)
    assert add_groups(ids, sizes, sums) == 0
    assert sums.tolist() == [sum(size for own, size, _ in some if own == each) for each in range(6)]


@given(rows, st.booleans(), st.booleans())
def test_extremes_are_those_of_the_rows_that_count(
    some: list[tuple[int, int, bool]], greatest: bool, every: bool
) -> None:
    ids, values, there = columns(some)
    flip = 0 if greatest else -1
    found, has = np.full(6, LEAST, np.int64), np.zeros(6, np.uint8)
    assert reach_groups(ids, values, there[:0] if every else there, flip, found, has) == 0
    for group, number in enumerate((found ^ flip).tolist()):
        own = [value for each, value, counts in some if each == group and (every or counts)]
        assert has[group] == bool(own)
        if own:
            assert number == (max if greatest else min)(own)


@pytest.mark.parametrize("wrong", [-1, 6, 2**62])
def test_a_group_beyond_the_others_is_refused(wrong: int) -> None:
    ids, values = np.array([0, wrong]), np.array([1, 1])
    nothing, has = np.empty(0, np.uint8), np.zeros(6, np.uint8)
    assert count_groups(ids, 6, np.zeros(24, np.int64)) == -1
    assert count_groups(ids[:1], 6, np.zeros(18, np.int64)) == -1
    assert add_groups(ids, values, np.zeros(6, np.int64)) == -1
    assert reach_groups(ids, values, nothing, 0, np.zeros(6, np.int64), has) == -1
    assert reach_groups(ids, values[:1], nothing, 0, np.zeros(6, np.int64), has) == -1
