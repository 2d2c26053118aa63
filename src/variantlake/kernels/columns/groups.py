"""Rows by groups: one number for all rows that have the same code."""

from __future__ import annotations

from variantlake.kernels.native.declared import (
    Int64s,
    i64,
    int64,
    int64s,
    int64s_in,
    uint64,
)
from variantlake.kernels.native.jit import entry

_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)
"""Multiplied with it, near numbers are far apart."""

PROBES = 16
"""So many steps a row are as many as a search takes; more mean that the codes were chosen to."""


@entry(i64(int64s_in, int64s, int64s, int64s))
def number_codes(codes: Int64s, table: Int64s, ids: Int64s, first: Int64s) -> int:
    """Number the different codes in the order in which they come; returns how many there are.

    codes: int64, from 0. table: int64, -1 for each code that there may be, filled with its number.
    ids: int64, for each row the number of its code. first: int64, as long as either, the first row
    of each number. A code beyond the table gives -1. Allocates nothing, never raises. Twin:
    tests.kernels.columns.test_groups.
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


@entry(i64(int64s_in, int64s, int64s, int64s))
def number_values(values: Int64s, table: Int64s, ids: Int64s, first: Int64s) -> int:
    """The same for any numbers, by a hash table.

    table: int64, -1 each, its length a power of two, twice as many as rows or more. -1 where the
    values fall together so often that they were chosen to. Allocates nothing, never raises.
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
