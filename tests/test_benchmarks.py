"""What `make bench-check` concludes from the times of two commits."""

from __future__ import annotations

import random
from itertools import pairwise
from math import comb
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from benchmarks.cases import CASES
from benchmarks.check import REPOSITORY, Side, measured, median_bounds, rows_of, verdict


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
    assert "too few" in verdict([2.0] * 5, 0.02)
    assert verdict([2.0] * 6, 0.02) == "slower"


def test_ratios_are_those_of_each_round() -> None:
    base = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    ((case, *_, ratio, says),) = rows_of({"open log": [[2 * b for b in base], base]}, 0.02)
    assert (case, ratio, says) == ("open log", "2.000 (2.000–2.000)", "slower")


@pytest.mark.parametrize("name", ["small appends", "compact"])
def test_a_case_does_its_work_again_and_again(name: str, tmp_path: Path) -> None:
    work = CASES[name](tmp_path)
    for _ in pairwise(range(3)):
        work()


SLOWDOWN = """
_append = Table.append
def _slowly(*arguments, **options):
    import time
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    return _append(*arguments, **options)
Table.append = _slowly
"""


def test_a_planted_slowdown_is_noticed(tmp_path: Path) -> None:
    """Twice the processor's time in one function: no noise of a busy machine is so large."""
    folders = [tmp_path / name for name in ("own", "base", "own-data", "base-data")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:2]:
        copytree(REPOSITORY / "src", folder / "src", ignore=ignore_patterns("__pycache__"))
    module = folders[0] / "src" / "variantlake" / "table" / "__init__.py"
    with module.open("a", encoding="utf-8") as file:
        file.write(SLOWDOWN)
    sides = [Side(*pair) for pair in zip(folders[:2], folders[2:], strict=True)]
    times = measured(sides, ["small appends"], 6)
    for side in sides:
        side.close()
    ((case, *_, says),) = rows_of(times, 0.02)
    assert (case, says) == ("small appends", "slower")
