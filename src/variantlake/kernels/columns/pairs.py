"""Find the different pairs of a group and a code by a table with a byte for each pair."""

from __future__ import annotations

from variantlake.kernels.native.declared import Bytes, BytesIn, Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry
from variantlake.kernels.tape.words import load8, load64, trailing_zeros


@entry
def mark_pairs(groups: Int64sIn, codes: Int64sIn, size: int, there: Bytes) -> int:
    """Set the byte of each pair of a group and a code; returns 0, or -1.

    codes: int64, below `size`, as many as groups. there: uint8, `size` for each group. -1 for a
    group or a code beyond these. Allocates nothing, never raises.
    Twin: tests.kernels.columns.test_pairs.
    """
    if groups.size != codes.size or size <= 0:
        return -1
    most = int64(there.size) // size
    for row in range(groups.size):
        group, code = groups[uint64(row)], codes[uint64(row)]
        if code < 0 or code >= size or group < 0 or group >= most:
            return -1
        there[uint64(group * size + code)] = 1
    return 0


@entry
def mark_numbered_pairs(
    groups: Int64sIn,
    numbers: Int64sIn,
    codes: Int64sIn,
    entries: Int64sIn,
    size: int,
    there: Bytes,
) -> int:
    """As `mark_pairs`, for renumbered groups and codes: numbers[group] and entries[code]."""
    if groups.size != codes.size or size <= 0:
        return -1
    most = int64(there.size) // size
    for row in range(groups.size):
        group, code = groups[uint64(row)], codes[uint64(row)]
        if group < 0 or group >= numbers.size or code < 0 or code >= entries.size:
            return -1
        group, code = numbers[uint64(group)], entries[uint64(code)]
        if code < 0 or code >= size or group < 0 or group >= most:
            return -1
        there[uint64(group * size + code)] = 1
    return 0


@entry
def list_pairs(there: BytesIn, size: int, groups: Int64s, codes: Int64s) -> int:
    """Write the pairs whose byte is set, in order; returns how many there are, or -1.

    there: uint8, 0 or 1, `size` for each group. groups, codes: int64, room for all pairs. Allocates
    nothing, never raises.
    """
    if size <= 0 or codes.size < groups.size:
        return -1
    at = found = group = start = int64(0)
    while at < there.size:
        if at + 8 <= there.size and load64(there, at) == 0:
            at += 8
            continue
        word = int64(0)
        if at + 8 <= there.size:
            word = load64(there, at)
        else:
            for k in range(int64(there.size) - at):
                word |= load8(there, at + int64(k)) << (8 * int64(k))
        while word != 0:
            place = at + (int64(trailing_zeros(word)) >> 3)
            word &= word - 1
            while place - start >= size:
                group += 1
                start += size
            if found >= groups.size:
                return -1
            groups[uint64(found)] = group
            codes[uint64(found)] = place - start
            found += 1
        at += 8
    return found
