from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.kernels.columns.groups import (
    CHOSEN,
    FULL,
    number_codes,
    number_texts,
    number_values,
)


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


def by_text(values: list[bytes], slots: int, seed: int = 1) -> tuple[int, list[int], list[int]]:
    ids, first = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    data = np.frombuffer(b"".join(values), np.uint8)
    count = number_texts(data, ends, seed, np.full(slots, -1), ids, first)
    return count, ids.tolist(), first[: max(count, 0)].tolist()


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([b"", b"a", b"b" * 8, b"b" * 17, b"b" * 16])),
    st.integers(-(2**63), 2**63 - 1),
)
def test_texts_are_numbered_as_they_come(values: list[bytes], seed: int) -> None:
    known: dict[bytes, int] = {}
    ids = [known.setdefault(value, len(known)) for value in values]
    wanted = len(known), ids, [values.index(value) for value in known]
    assert by_text(values, 1 << (2 * len(values)).bit_length(), seed) == wanted


def test_more_texts_than_a_table_takes_are_said() -> None:
    values = [b"%d" % number for number in range(9)]
    assert by_text(values, 16)[0] == FULL
    assert by_text(values[:8] * 3, 16)[0] == 8
    assert by_text(values, 32)[0] == 9


def test_texts_chosen_to_fall_together_are_left_to_others() -> None:
    """Bytes that are no UTF-8, with the hash's own constant: a product is 0 with any seed."""
    constant = (0x5BE0CD19137E2179).to_bytes(8, "little")
    chosen = [constant + number.to_bytes(8, "big") for number in range(1 << 12)]
    assert by_text(chosen, 1 << 13)[0] == CHOSEN
    assert by_text([text[1:] for text in chosen], 1 << 13)[0] == 1 << 12
    assert by_text(chosen[:1] * (1 << 12), 1 << 13)[0] == 1


@pytest.mark.parametrize("ends", [[0, 5, 3], [0, 4, 9], [-1, 2, 3], [0, 2**31 - 1, 2]])
def test_offsets_beyond_the_bytes_are_refused(ends: list[int]) -> None:
    ids, first, table = np.zeros(2, np.int64), np.zeros(2, np.int64), np.full(8, -1)
    data = np.zeros(8, np.uint8)
    assert number_texts(data, np.array(ends, np.int32), 0, table, ids, first) == -1
