"""What groups of rows have: their number, sums of small numbers, the greatest of each."""

from __future__ import annotations

from variantlake.kernels.native.declared import Bytes, BytesIn, Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry


@entry
def count_groups(ids: Int64sIn, size: int, counts: Int64s) -> int:
    """Add the rows of each group to its counts; returns 0, or -1.

    ids: int64, the group of each row, below `size`. counts: int64, `size` for each counter, of
    which there are 1, 2, 4 …: a group's count is the sum of them. Neighbours are often of one
    group, and one counter would wait for itself. Allocates nothing, never raises.
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
    """Raise the greatest of each group to the numbers of its rows; returns 0, or -1.

    ids, numbers: int64, one for each row. there: uint8, 0 for a row that does not count; empty if
    all do. flip: 0, or -1 for the least: numbers and the greatest are then inverted bit by bit.
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
