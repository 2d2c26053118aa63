"""What `make bench-check` concludes from the times of two commits."""

from __future__ import annotations

import random
from itertools import pairwise
from math import comb
from pathlib import Path

import pytest
from benchmarks.cases import CASES
from benchmarks.check import median_bounds, rows_of, verdict


@pytest.mark.parametrize("count", range(6, 40))
def test_bounds_miss_the_median_once_in_twenty_at_most(count: int) -> None:
    ordered = [float(place) for place in range(count)]
    low, high = median_bounds(random.Random(count).sample(ordered, count))
    below = int(low)
    assert high == count - 1 - below
    missed = 2 * sum(comb(count, rank) for rank in range(below + 1)) / 2**count
    closer = missed + 2 * comb(count, below + 1) / 2**count
    assert missed <= 0.05 < closer or below == (count - 1) // 2


def test_few_rounds_say_what_they_can() -> None:
    assert median_bounds([1.0]) == (1.0, 1.0)
    assert median_bounds([3.0, 1.0, 2.0]) == (1.0, 3.0)


def test_a_change_is_told_from_the_noise() -> None:
    noise = [1 + 0.1 * random.Random(seed).uniform(-1, 1) for seed in range(15)]
    assert verdict(noise, 0.02) == "no difference beyond the noise"
    assert verdict([1.2 * each for each in noise], 0.02) == "slower"
    assert verdict([each / 1.2 for each in noise], 0.02) == "faster"
    assert verdict([1.01] * 15, 0.02) == "no difference beyond the noise"


def test_ratios_are_those_of_each_round() -> None:
    base = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    ((case, *_, ratio, says),) = rows_of({"open log": [[2 * b for b in base], base]}, 0.02)
    assert (case, ratio, says) == ("open log", "2.000 (2.000–2.000)", "slower")


@pytest.mark.parametrize("name", ["small appends", "compact"])
def test_a_case_does_its_work_again_and_again(name: str, tmp_path: Path) -> None:
    work = CASES[name](tmp_path)
    for _ in pairwise(range(3)):
        work()
