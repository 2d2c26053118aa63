"""Mix words into 64 bits, and hash bytes: the parts of all digests.

The seeds are fixed, so that two processes, and two versions of the package, get the same hashes. So
nothing here resists an attacker who looks for collisions: digests find accidents.
"""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import Bytes, BytesIn, int64, uint64
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.words import load8, load32, load64, multiply_high

_FIRST = uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_SECOND = uint64(0xD6E8FEB86659FD93)
_BYTES = 0x1F83D9ABFB41BD6B
_LANE = 0x5BE0CD19137E2179


@tiny
def fold(word: int) -> int:
    """Both halves of a product of a word, so that every bit counts."""
    mixed = uint64(word)
    return int64(multiply_high(mixed, _FIRST) ^ (mixed * _FIRST))


@tiny
def blend(state: int, word: int) -> int:
    """Mix a word into a state, as 64 bits; their order counts."""
    mixed = uint64(fold(state ^ word) + state)
    return int64(multiply_high(mixed, _SECOND) ^ (mixed * _SECOND))


@tiny
def fold_two(one: int, two: int) -> int:
    """Both halves of the product of two words."""
    left, right = uint64(one), uint64(two)
    return int64(multiply_high(left, right) ^ (left * right))


@helper
def hash_text(data: Bytes, start: int, size: int, seed: int) -> int:
    """A hash of data[start:start + size]; reads no other byte."""
    state = fold(int64(size) * int64(_BYTES) ^ seed)
    if size >= 8:
        done = int64(0)
        while done + 16 < size:
            first, second = load64(data, start + done), load64(data, start + done + 8)
            state = fold_two(first ^ int64(_LANE), second ^ state)
            done += 16
        # The last 16 bytes, or the first and the last 8 of fewer.
        first = load64(data, start + max(size - 16, int64(0)))
        second = load64(data, start + size - 8)
    else:
        second = int64(0)
        if size >= 4:
            first = load32(data, start) | load32(data, start + size - 4) << int64(32)
        elif size > 0:
            first = load8(data, start) | load8(data, start + (size >> 1)) << int64(8)
            first |= load8(data, start + size - 1) << int64(16)
        else:
            first = int64(0)
    return fold_two(first ^ int64(_LANE), second ^ state)


@entry
def hash_bytes(data: BytesIn, size: int, seed: int) -> int:
    """A hash of data[:size], in four lanes; `seed` may be the hash of what came before.

    Allocates nothing, never raises.
    """
    lane = int64(_LANE)
    one, two = blend(int64(seed), int64(1)), blend(int64(seed), int64(2))
    three, four = blend(int64(seed), int64(3)), blend(int64(seed), int64(4))
    done = int64(0)
    while done + 32 <= size:
        one = fold(one ^ load64(data, done)) + lane
        two = fold(two ^ load64(data, done + 8)) + lane
        three = fold(three ^ load64(data, done + 16)) + lane
        four = fold(four ^ load64(data, done + 24)) + lane
        done += 32
    state = blend(blend(one, two), blend(three, four))
    return hash_text(data, done, int64(size) - done, state)


def hash_name(name: str) -> int:
    """The hash of a column's or a field's name, as an int64."""
    data = np.frombuffer(name.encode(), np.uint8)
    return hash_one(data, data.size)


@entry
def hash_one(data: BytesIn, size: int) -> int:
    """The hash of data[:size] as the name of a field. Twin: tests.twins.digest.hash_text."""
    return hash_text(data, int64(0), int64(size), int64(0))
