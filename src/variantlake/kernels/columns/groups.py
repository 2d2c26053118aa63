"""Group rows: give all rows with the same code, value or text one number."""

from __future__ import annotations

from variantlake.kernels.digest.mixing import hash_text
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32sIn,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.words import load8, load64

_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)
"""Multiplying by it spreads numbers that are close together."""

FULL = -2
"""The result for more different texts than the table takes."""

CHOSEN = -3
"""The result for texts that collide so often that somebody chose them to."""

PROBES = 16
"""The most steps per row that a search takes; with more, somebody chose the rows to collide."""


@entry
def number_codes(codes: Int64sIn, table: Int64s, ids: Int64s, first: Int64s) -> int:
    """Number the different codes in the order of their first rows; returns how many there are.

    codes: int64, not negative. table: int64, one for each possible code, -1 each; filled with their
    numbers. ids: int64, the number of each row's code. first: int64, as long as the shorter of
    codes and table; the first row of each number. -1 for a code beyond the table.
    Allocates nothing, never raises. Twin: tests.kernels.columns.test_groups.
    """
    count = int64(0)
    for row in range(codes.size):
        code = codes[uint64(row)]
        if code < 0 or code >= table.size:
            return -1
        number = table[uint64(code)]
        if number < 0:
            number = count
            table[uint64(code)] = number
            first[uint64(number)] = int64(row)
            count += 1
        ids[uint64(row)] = number
    return count


@entry
def number_values(values: Int64sIn, table: Int64s, ids: Int64s, first: Int64s) -> int:
    """As `number_codes`, for any numbers, by a hash table.

    table: int64, -1 each, its length a power of two, twice as many as rows or more. -1 if the
    values collide so often that somebody chose them to. Allocates nothing, never raises.
    """
    count, steps = int64(0), int64(0)
    mask = int64(table.size) - 1
    for row in range(values.size):
        value = values[uint64(row)]
        mixed = value * int64(_SPREAD)
        place = (mixed >> 32 ^ mixed >> 15 ^ mixed) & mask
        number = table[uint64(place)]
        while number >= 0 and values[uint64(first[uint64(number)])] != value:
            place = (place + 1) & mask
            number = table[uint64(place)]
            steps += 1
        if steps > PROBES * (row + PROBES):
            return -1
        if number < 0:
            number = count
            table[uint64(place)] = number
            first[uint64(number)] = int64(row)
            count += 1
        ids[uint64(row)] = number
    return count


@helper
def _is_same(data: Bytes, one: int, other: int, size: int) -> bool:
    """Whether data[one:one + size] and data[other:other + size] are the same bytes."""
    done = int64(0)
    while done + 8 <= size:
        if load64(data, one + done) != load64(data, other + done):
            return False
        done += 8
    if done == size:
        return True
    if size >= 8:
        return bool(load64(data, one + size - 8) == load64(data, other + size - 8))
    while done < size:
        if load8(data, one + done) != load8(data, other + done):
            return False
        done += 1
    return True


@entry
def number_texts(
    data: BytesIn, offsets: Int32sIn, seed: int, table: Int64s, ids: Int64s, first: Int64s
) -> int:
    """As `number_values`, for texts by their bytes.

    data: uint8, the texts one after the other. offsets: int32, one more than texts. seed: of the
    hashes, a secret: without it nobody can choose UTF-8 that collides. Other bytes can be chosen
    to, which gives CHOSEN. table: int64, -1 each, its length a power of two; FULL if half of it is
    not enough. -1 if offsets and data do not fit together. Allocates nothing, never raises.
    """
    count, steps = int64(0), int64(0)
    mask = int64(table.size) - 1
    # Beside its number a slot has the hash's upper half: other texts are seldom looked at.
    low = int64(0x7FFFFFFF)
    for row in range(int64(offsets.size) - 1):
        start, end = int64(offsets[uint64(row)]), int64(offsets[uint64(int64(row) + 1)])
        size = end - start
        if start < 0 or size < 0 or end > data.size:
            return -1
        hashed = hash_text(data, start, size, seed)
        mark = hashed >> 32 << 31 & 0x7FFFFFFFFFFFFFFF
        place = hashed & mask
        number = int64(-1)
        while table[uint64(place)] >= 0:
            if table[uint64(place)] & ~low == mark:
                known = table[uint64(place)] & low
                at = int64(first[uint64(known)])
                other = int64(offsets[uint64(at)])
                if int64(offsets[uint64(at + 1)]) - other == size and _is_same(
                    data, start, other, size
                ):
                    number = known
                    break
            place = (place + 1) & mask
            steps += 1
        if steps > PROBES * (row + PROBES):
            return CHOSEN
        if number < 0:
            if 2 * count >= table.size:
                return FULL
            number = count
            table[uint64(place)] = mark | number
            first[uint64(number)] = int64(row)
            count += 1
        ids[uint64(row)] = number
    return count
