"""Compare the tags of many files: with the sizes and records of their files, and each other."""

from __future__ import annotations

from variantlake.kernels.log.log_stats import TextSpans
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper

_DIGITS = 18
"""Numbers of up to this many digits fit in an int64."""


@helper
def _digits_end(data: BytesIn, start: int, end: int, wanted: int) -> int:
    """Return where the digits of `wanted` at `start` end; -1 if the text has another number."""
    p, value = start, int64(0)
    while p < end and 48 <= data[uint64(p)] <= 57 and p - start < _DIGITS:
        value = value * 10 + int64(data[uint64(p)]) - 48
        p += 1
    if p == start or value != wanted or (data[uint64(start)] == 48 and p - start > 1):
        return int64(-1)
    return p


@entry
def match_marks(texts: TextSpans, sizes: Int64sIn, records: Int64sIn, good: Bytes) -> int:
    """Compare texts `size:records` with the numbers of their rows.

    sizes, records: int64, one a row. good: uint8, filled: 1 if the text has exactly these numbers,
    neither negative nor of more than 18 digits, else 0. Returns how many do. Allocates nothing,
    never raises. Twin: delta.stats.tags.read_tags.
    """
    data, starts, ends = texts
    count = int64(0)
    for row in range(int64(starts.size)):
        good[uint64(row)] = 0
        start, end = starts[uint64(row)], ends[uint64(row)]
        if start < 0:
            continue
        middle = _digits_end(data, start, end, sizes[uint64(row)])
        if middle < 0 or middle >= end or data[uint64(middle)] != 58:
            continue
        if _digits_end(data, middle + 1, end, records[uint64(row)]) == end:
            good[uint64(row)] = 1
            count += 1
    return count


@entry
def find_same(texts: TextSpans, slots: Int64s, same: Int64s) -> int:
    """Find an earlier row with the same text for each text, usually the first one.

    slots: int64, all -1, their number a power of two. same: int64, filled with a row that has the
    text: the row itself if no earlier one is known, -1 without a text. Returns how many rows got
    themselves. Allocates nothing, never raises.
    """
    data, starts, ends = texts
    fresh, mask = int64(0), int64(slots.size) - 1
    for row in range(int64(starts.size)):
        start, size = starts[uint64(row)], ends[uint64(row)] - starts[uint64(row)]
        same[uint64(row)] = -1
        if start < 0:
            continue
        hashed = size
        for k in range(min(size, int64(8))):
            hashed = hashed * 31 + int64(data[uint64(start + k)])
            hashed = hashed * 31 + int64(data[uint64(start + size - 1 - k)])
        slot = (hashed ^ (hashed >> 16)) & mask
        known, equal = slots[uint64(slot)], False
        if known >= 0 and ends[uint64(known)] - starts[uint64(known)] == size:
            other, k = starts[uint64(known)], int64(0)
            while k < size and data[uint64(start + k)] == data[uint64(other + k)]:
                k += 1
            equal = k == size
        if not equal:
            known = int64(row)
            slots[uint64(slot)] = known
            fresh += 1
        same[uint64(row)] = known
    return fresh
