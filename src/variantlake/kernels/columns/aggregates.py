"""Aggregate rows by groups: counts, sums of small numbers, least and greatest numbers."""

from __future__ import annotations

from variantlake.kernels.native.declared import Bytes, BytesIn, Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry


@entry
def count_groups(ids: Int64sIn, size: int, counts: Int64s) -> int:
    """Add the rows of each group to its counts; returns 0, or -1.

    ids: int64, the group of each row, below `size`. counts: int64, `size` for each counter; the
    number of counters is a power of two, and their sum is the count of a group. Adjacent rows are
    often of one group, and adding to one counter would stall. Allocates nothing, never raises.
    """
    if size <= 0:
        return 0 if ids.size == 0 else -1
    counters = int64(counts.size) // size
    if counters < 1 or counters & (counters - 1) != 0:
        return -1
    for row in range(ids.size):
        group = ids[uint64(row)]
        if group < 0 or group >= size:
            return -1
        counts[uint64((int64(row) & (counters - 1)) * size + group)] += 1
    return 0


@entry
def add_groups(ids: Int64sIn, numbers: Int64sIn, sums: Int64s) -> int:
    """Add the number of each row to the sum of its group; returns 0, or -1.

    ids, numbers: int64, one for each row. sums: int64, one for each group; they wrap around.
    Allocates nothing, never raises.
    """
    if numbers.size != ids.size:
        return -1
    for row in range(ids.size):
        group = ids[uint64(row)]
        if group < 0 or group >= sums.size:
            return -1
        sums[uint64(group)] += numbers[uint64(row)]
    return 0


@entry
def reach_groups(
    ids: Int64sIn, numbers: Int64sIn, there: BytesIn, flip: int, greatest: Int64s, has: Bytes
) -> int:
    """Raise the greatest number of each group to those of its rows; returns 0, or -1.

    ids, numbers: int64, one for each row. there: uint8, 0 for a row to leave out; empty to leave
    out none. flip: 0, or -1 to find the least: all bits of numbers and greatest are then inverted.
    greatest: int64, one for each group. has: uint8, set to 1 for a group with a row that counts.
    Allocates nothing, never raises.
    """
    if numbers.size != ids.size or has.size < greatest.size:
        return -1
    if there.size != 0 and there.size != ids.size:
        return -1
    for row in range(ids.size):
        if there.size != 0 and there[uint64(row)] == 0:
            continue
        group = ids[uint64(row)]
        if group < 0 or group >= greatest.size:
            return -1
        number = numbers[uint64(row)] ^ flip
        greatest[uint64(group)] = max(greatest[uint64(group)], number)
        has[uint64(group)] = 1
    return 0
