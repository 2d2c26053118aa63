"""Find entries of many small maps by key: the tags of files, most of which have the same keys."""

from __future__ import annotations

from variantlake.kernels.native.declared import (
    BytesIn,
    Int32sIn,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, tiny


@tiny
def _is_key(
    keys: BytesIn, places: Int32sIn, at: int, wanted: BytesIn, first: int, end: int
) -> bool:
    """Whether entry `at` has the key wanted[first:end]."""
    start, size, k = int64(places[uint64(at)]), end - first, int64(0)
    if int64(places[uint64(at + 1)]) - start != size:
        return False
    while k < size and keys[uint64(start + k)] == wanted[uint64(first + k)]:
        k += 1
    return k == size


@entry
def find_entries(
    maps: Int32sIn,
    keys: BytesIn,
    places: Int32sIn,
    wanted: BytesIn,
    ends: Int64sIn,
    found: Int64s,
) -> int:
    """Find the entry of each of some keys in each map.

    maps: int32, one more than maps: where the entries of each begin. keys: uint8, the entries' keys
    one after another; places: int32, one more than entries: where each key begins. wanted: uint8,
    the keys to find; ends: int64, where each of them ends. found: int64, maps * wanted keys, filled
    with the number of an entry, -1 for none. Tries the position in the previous map first, so of
    equal keys it may find any. Returns the number found. Allocates nothing, never raises.
    """
    names, total = int64(ends.size), int64(0)
    for row in range(int64(maps.size) - 1):
        begin, end = int64(maps[uint64(row)]), int64(maps[uint64(row + 1)])
        for name in range(names):
            first = ends[uint64(name - 1)] if name > 0 else int64(0)
            last, place = ends[uint64(name)], int64(row) * names + name
            at = int64(-1)
            if row > 0 and found[uint64(place - names)] >= 0:
                at = found[uint64(place - names)] - int64(maps[uint64(row - 1)]) + begin
            if at < 0 or at >= end or not _is_key(keys, places, at, wanted, first, last):
                at = begin
                while at < end and not _is_key(keys, places, at, wanted, first, last):
                    at += 1
            found[uint64(place)] = at if at < end else int64(-1)
            total += int64(at < end)
    return total
