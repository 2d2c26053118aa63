"""Map key names to small integers: the dictionary that a reader keeps from batch to batch."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import numpy as np

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int32sIn,
    Int64s,
    KernelArray,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.utf8 import valid_utf8
from variantlake.kernels.tape.words import (
    PADDING,
    copy_bytes,
    equal_block,
    load8,
    load64,
    multiply_high,
    store8,
    trailing_zeros,
)

KEY = np.dtype([("start", "i4"), ("length", "i4"), ("next", "i4"), ("guess", "i4")])
"""One key: its bytes are key_bytes[start:start + length], followed by a quote.

`next` is the key that followed it last time: documents repeat themselves. `guess` is `length` if a
JSON reader can recognise the key by comparing one block. It is NO_GUESS for names that are too
long, or that JSON has to escape.
"""

Keys = Annotated[Any, KernelArray(KEY)]

NO_GUESS = 99
MAX_GUESS = 30
"""A block of 32 bytes holds the name, its quote, and one byte that differs."""

# Places in a reader's state array; KEY_SERIAL holds the latest mark in a KeyTable's `seen`.
KEY_COUNT, KEY_BYTES, KEY_SERIAL, KEY_SEED = 0, 1, 6, 15

_ODD = uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio


@tiny
def mix(state: int, word: int) -> int:
    """Mix a word into a hash state: both halves of a product, so that every bit counts."""
    mixed = uint64(state ^ word)
    return int64(multiply_high(mixed, _ODD) ^ (mixed * _ODD))


@helper
def hash_bytes(source: Bytes, start: int, size: int, seed: int) -> int:
    """Hash source[start:start + size]; `source` is padded.

    `seed` must stay secret: without it, nobody can construct names that collide.
    """
    state = mix(seed, int64(size))
    done = int64(0)
    while done < size:
        word = load64(source, start + done)
        if size - done < 8:
            word &= (int64(1) << ((size - done) * 8)) - 1
        state = mix(state, word) + seed
        done += 8
    return state


def new_seed() -> int:
    """Return a random int64 for hash_bytes."""
    return secrets.randbits(64) - (1 << 63)


@helper
def equal_bytes(one: Bytes, start: int, two: Bytes, other: int, size: int) -> bool:
    """Whether the `size` bytes at both places are equal; both arrays are padded."""
    while size > 32:
        if equal_block(one, start, two, other) != 0xFFFFFFFF:
            return False
        start += 32
        other += 32
        size -= 32
    return trailing_zeros(equal_block(one, start, two, other) ^ 0xFFFFFFFF | 1 << size) == size


@entry
def number_runs(data: BytesIn, offsets: Int32sIn, runs: Int64s) -> None:
    """Number the runs of equal slots data[offsets[i]:offsets[i + 1]] from 0 on.

    data: uint8; offsets: int32, slots + 1, ascending, within it; runs: int64, one a slot, filled.
    Allocates nothing, never raises.
    """
    run, known, known_size = int64(-1), int64(0), int64(-1)
    for i in range(runs.size):
        start = int64(offsets[uint64(i)])
        size = int64(offsets[uint64(i + 1)]) - start
        if start + size + 32 <= data.size:
            same = size == known_size and equal_bytes(data, start, data, known, size)
        else:
            same = size == known_size
            for k in range(size if same else int64(0)):
                same = same and data[uint64(start + k)] == data[uint64(known + k)]
        if not same:
            run += 1
            known_size = size
        known = start
        runs[uint64(i)] = run


@helper
def compare_bytes(
    data: Bytes, start: int, length: int, other: Bytes, other_start: int, other_length: int
) -> int:
    """Compare as unsigned bytes: below 0 if data[start:][:length] sorts first, 0 if equal."""
    shorter = min(length, other_length)
    for k in range(shorter):
        difference = load8(data, start + k) - load8(other, other_start + k)
        if difference != 0:
            return difference
    return length - other_length


@helper
def find_key(
    source: Bytes,
    start: int,
    size: int,
    keys: Records,
    key_bytes: Bytes,
    slots: Int32s,
    state: Int64s,
) -> int:
    """Return the id of the name source[start:start + size], -1 if it is not UTF-8.

    Adds a new name; the caller must ensure that one more key and its bytes fit. slots: an open
    addressing table whose size is a power of two, at most half full; 0 is free.
    """
    mask = int64(slots.size - 1)
    slot = hash_bytes(source, start, size, state[KEY_SEED]) & mask
    while True:
        key = int64(slots[uint64(slot)])
        if key == 0:
            break
        known = keys[uint64(key)]
        if known.length == size and equal_bytes(key_bytes, int64(known.start), source, start, size):
            return key
        slot = (slot + 1) & mask
    if not valid_utf8(source, start, start + size):
        return int64(-1)
    key = int64(state[KEY_COUNT])
    to = state[KEY_BYTES]
    copy_bytes(key_bytes, to, source, start, size)
    plain = size <= MAX_GUESS
    for k in range(size):
        byte = key_bytes[uint64(to + k)]
        if byte < 32 or byte == 34 or byte == 92:
            plain = False
    store8(key_bytes, to + size, 34)
    state[KEY_COUNT] = key + 1
    state[KEY_BYTES] = to + size + 1
    new = keys[uint64(key)]
    new.start = to
    new.length = size
    new.next = key
    new.guess = size if plain else NO_GUESS
    slots[uint64(slot)] = key
    return key


@entry
def fill_slots(keys: Keys, key_bytes: Bytes, slots: Int32s, state: Int64s) -> None:
    """Enter all keys into `slots`, which is larger than before and all zero."""
    mask = int64(slots.size - 1)
    for key in range(1, state[KEY_COUNT]):
        known = keys[uint64(key)]
        start, size = int64(known.start), int64(known.length)
        slot = hash_bytes(key_bytes, start, size, state[KEY_SEED]) & mask
        while slots[uint64(slot)] != 0:
            slot = (slot + 1) & mask
        slots[uint64(slot)] = key


class KeyTable:
    """Names by id. Ids start at 1 (0: no key) and never change; names are distinct valid UTF-8.

    keys: KEY records; key_bytes: uint8, padded; slots: int32; seen: int64 per key, for duplicate
    checks; state: int64, with the places named above; the reader may use the others.
    """

    def __init__(self) -> None:
        self.state: Int64s = np.zeros(16, np.int64)
        self.state[KEY_COUNT] = 1
        self.state[KEY_SEED] = new_seed()
        self.keys: Records = np.zeros(0, KEY).view(np.recarray)
        self.key_bytes: Bytes = np.zeros(PADDING, np.uint8)
        self.slots: Int32s = np.zeros(1, np.int32)
        self.seen: Int64s = np.zeros(0, np.int64)
        self._names: list[bytes] = [b""]
        self._ranks: Int32s = np.zeros(1, np.int32)
        self.reserve(0, 0)
        self.keys[0].guess = NO_GUESS

    @property
    def count(self) -> int:
        """The number of ids in use, 0 included."""
        return int(self.state[KEY_COUNT])

    def reserve(self, more: int, more_bytes: int) -> None:
        """Make room for `more` keys, and for `more_bytes` of names with a quote each."""
        count = self.count + more
        bytes_size = int(self.state[KEY_BYTES]) + more_bytes
        if count <= len(self.keys) and bytes_size <= len(self.key_bytes):
            return
        count = max(1024, 2 * len(self.keys), count)
        bytes_size = max(2 * len(self.key_bytes), bytes_size)
        keys = np.zeros(count, KEY).view(np.recarray)
        keys[: len(self.keys)] = self.keys
        key_bytes = np.zeros(bytes_size + 32 * 1024 + PADDING, np.uint8)
        key_bytes[: len(self.key_bytes)] = self.key_bytes
        seen = np.zeros(count, np.int64)
        seen[: len(self.seen)] = self.seen
        self.keys, self.key_bytes, self.seen = keys, key_bytes, seen
        self.slots = np.zeros(1 << (2 * count).bit_length(), np.int32)
        fill_slots(self.keys, self.key_bytes, self.slots, self.state)

    def names_of(self, ids: Int32s) -> list[bytes]:
        """Return the names of these ids, as UTF-8."""
        some = self.keys[ids]
        spans = zip(some["start"].tolist(), some["length"].tolist(), strict=True)
        return [self.key_bytes[start : start + size].tobytes() for start, size in spans]

    def names(self) -> list[bytes]:
        """Return the UTF-8 names by id; the first stands for no key."""
        known, count = len(self._names), self.count
        if known < count:
            begin, end = int(self.keys["start"][known]), int(self.state[KEY_BYTES])
            new = self.key_bytes[begin : end - 1].tobytes().split(b'"')
            if len(new) != count - known:  # a name contains a quote
                new = self.names_of(np.arange(known, count, dtype=np.int32))
            self._names += new
        return self._names

    def ranks(self) -> Int32s:
        """Return each name's place in byte order, int32, shape (count,); 0 for id 0."""
        names = self.names()
        if len(self._ranks) != len(names):
            order = sorted(range(1, len(names)), key=names.__getitem__)
            ranks = np.zeros(len(names), np.int32)
            ranks[order] = np.arange(len(order), dtype=np.int32)
            self._ranks = ranks
        return self._ranks
