"""Decimals as doubles: what stands for itself in binary is decided without a text."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.kernels.columns.decimals import round_decimals
from variantlake.kernels.json.doubles import UNDECIDED


def rounded(numbers: list[int], scale: int) -> tuple[int, list[int]]:
    halves = [(each >> shift) & (2**64 - 1) for each in numbers for shift in (0, 64)]
    bits = np.empty(len(numbers), np.int64)
    left = round_decimals(np.array(halves, np.uint64).view(np.int64), scale, bits)
    return left, bits.tolist()


@pytest.mark.parametrize("scale", [1, 2, 17, 36])
def test_whole_numbers_and_halves_are_decided(scale: int) -> None:
    steps = [n * 10**scale // 4 for n in range(-40, 40) if n * 10**scale % 4 == 0]
    left, bits = rounded(steps, scale)
    assert left == 0
    assert np.array(bits).view(np.float64).tolist() == [each / 10**scale for each in steps]


half_ways = st.builds(
    lambda odd, shift, off: ((2 * odd + 1) << shift) + off,
    st.integers(2**52, 2**53 - 1),
    st.integers(0, 70),
    st.integers(-2, 2),
)
"""Whole numbers near the middle of two doubles, which the first bits of them do not decide."""


@given(st.lists(half_ways, max_size=20), st.integers(0, 22))
def test_numbers_between_two_doubles_are_the_nearer_one(numbers: list[int], scale: int) -> None:
    fitting = [each for each in numbers if each * 10**scale < 2**127]
    _, bits = rounded([each * 10**scale for each in fitting], scale)
    for found, number in zip(bits, fitting, strict=True):
        assert found in (UNDECIDED, np.float64(float(number)).view(np.int64))


@given(st.lists(st.integers(-(2**126), 2**126) | st.integers(-999, 999)), st.integers(0, 38))
def test_what_is_decided_is_the_nearest_double(numbers: list[int], scale: int) -> None:
    left, bits = rounded(numbers, scale)
    assert left == bits.count(UNDECIDED)
    exact = [float(Decimal(each).scaleb(-scale, Context(60))) for each in numbers]
    for found, number in zip(bits, exact, strict=True):
        assert found in (UNDECIDED, np.float64(number + 0.0).view(np.int64))
