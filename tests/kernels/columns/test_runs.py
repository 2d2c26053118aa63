from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.kernels.columns.runs import NULL_CODE, RUN_STATE, TOO_MANY, find_runs


def hybrid(pieces: list[tuple[int, int]], width: int) -> tuple[bytes, list[int]]:
    """Runs (number, length), as a run each or, of a length of 0, as eight packed numbers."""
    data, numbers = b"", []
    for number, length in pieces:
        if length:
            own, head = [number] * length, length << 1
            body = number.to_bytes((width + 7) // 8, "little")
        else:
            own, head = [(number >> k) & 1 for k in range(8)], 3
            whole = sum(each << (k * width) for k, each in enumerate(own))
            body = whole.to_bytes(width, "little")
        data += (bytes([head]) if head < 128 else bytes([head & 127 | 128, head >> 7])) + body
        numbers += own
    return data, numbers


def runs(
    levels: bytes, values: bytes, rows: int, entries: int = 8, room: int = 500
) -> tuple[int, list[tuple[int, int]]]:
    codes, ends = np.zeros(room, np.int32), np.zeros(room, np.int64)
    state = np.zeros(RUN_STATE, np.int64)
    texts = (np.frombuffer(each, np.uint8) for each in (levels, values))
    count = find_runs(next(texts), 1, next(texts), entries, rows, codes, ends, 0, 0, state)
    size = max(count, 0)
    return count, list(zip(codes[:size].tolist(), ends[:size].tolist(), strict=True))


pieces = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 100)), min_size=1, max_size=12)
bits = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 100)), min_size=1, max_size=12)


@pytest.mark.rule(38)
@settings(deadline=None)
@given(pieces=pieces, bits=bits)
def test_runs_are_those_of_the_numbers(
    pieces: list[tuple[int, int]], bits: list[tuple[int, int]]
) -> None:
    values, numbers = hybrid(pieces, 3)
    levels, there = hybrid(bits, 1)
    rest, rows = iter(numbers), []
    for level in there:
        number = next(rest, None) if level else NULL_CODE
        if number is None:
            break
        rows.append(number)
    wanted, end = [], 0
    for code, own in itertools.groupby(rows):
        end += len(list(own))
        wanted.append((code, end))
    assert runs(levels, b"\x03" + values, len(rows)) == (len(wanted), wanted)
    if len(wanted) > 1:
        assert runs(levels, b"\x03" + values, len(rows), room=len(wanted) - 1)[0] == TOO_MANY
    if max(rows, default=0) > 0:
        assert runs(levels, b"\x03" + values, len(rows), entries=max(rows))[0] == -1
    if len(rows) < len(there):
        assert runs(levels, b"\x03" + values, len(there))[0] == -1


def test_any_bytes_give_sound_runs_or_none() -> None:
    chance = random.Random(3)
    for _ in range(3000):
        levels, values = (chance.randbytes(chance.randrange(12)) for _ in range(2))
        count, found = runs(levels, values, 50)
        assert count in (-1, len(found))
        ends = [end for _, end in found]
        assert ends == sorted(set(ends))
        assert not ends or ends[-1] == 50
        assert all(-1 <= code < 8 for code, _ in found)
