from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.kernels.columns.groups import number_codes, number_values


def numbered(values: list[int]) -> tuple[list[int], list[int]]:
    """The number of each value, in the order in which they come, and where each comes first."""
    known: dict[int, int] = {}
    ids = [known.setdefault(value, len(known)) for value in values]
    return ids, [values.index(value) for value in known]


def by_table(values: list[int], size: int) -> tuple[int, list[int], list[int]]:
    ids, first = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    count = number_codes(np.array(values, np.int64), np.full(size, -1), ids, first)
    return count, ids.tolist(), first[: max(count, 0)].tolist()


def by_hash(values: list[int]) -> tuple[int, list[int], list[int]]:
    ids, first = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    table = np.full(1 << (2 * len(values)).bit_length(), -1)
    count = number_values(np.array(values, np.int64), table, ids, first)
    return count, ids.tolist(), first[: max(count, 0)].tolist()


@settings(deadline=None)
@given(st.lists(st.integers(0, 20)))
def test_codes_are_numbered_as_they_come(values: list[int]) -> None:
    ids, first = numbered(values)
    assert by_table(values, 21) == (len(first), ids, first)


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)))
def test_any_numbers_are_numbered_as_they_come(values: list[int]) -> None:
    ids, first = numbered(values)
    assert by_hash(values) == (len(first), ids, first)


@pytest.mark.parametrize("wrong", [-1, 4, 2**62])
def test_a_code_beyond_the_table_is_refused(wrong: int) -> None:
    assert by_table([0, 3, wrong, 1], 4)[0] == -1


def test_values_chosen_to_fall_together_are_left_to_others() -> None:
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    wanted = [(high << 47) * inverse % (1 << 64) for high in range(1 << 12)]
    values = [value - (1 << 64) if value >= 1 << 63 else value for value in wanted]
    assert by_hash(values)[0] == -1
    assert by_hash(list(range(1 << 12)))[0] == 1 << 12
