"""Look up, number, count and copy the dictionary entries of rows."""

from __future__ import annotations

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int32sIn,
    Int64s,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, tiny
from variantlake.kernels.tape.words import copy_bytes, load8


@tiny
def _entry_of(indices: Int32s, bits: Bytes, offset: int, entries: int, row: int) -> int:
    """The number of a row's entry; `entries` if the row is NULL."""
    found = int64(indices[uint64(row)])
    if bits.size == 0:
        return found
    at = offset + row
    there = load8(bits, at >> 3) >> (at & 7) & 1
    return entries + (found - entries) * there


@entry
def bytes_of(indices: Int32sIn, bits: BytesIn, offset: int, values: BytesIn, out: Bytes) -> int:
    """Write the byte that `values` has for each row's entry; returns 0, or -1.

    indices: int32. bits: uint8, Arrow's validity bitmap, in which bit `offset` is the first row;
    empty if all rows are valid. values: uint8, one for each entry, then one for NULL. -1 for an
    index beyond the dictionary. Allocates nothing, never raises.
    """
    if out.size < indices.size or offset < 0 or values.size == 0:
        return -1
    if bits.size > 0 and (offset + int64(indices.size) + 7) >> 3 > bits.size:
        return -1
    last = int64(values.size) - 1
    for row in range(indices.size):
        found = _entry_of(indices, bits, offset, last, int64(row))
        if found < 0 or found > last:
            return -1
        out[uint64(row)] = values[uint64(found)]
    return 0


@entry
def combine_entries(
    indices: Int32sIn, bits: BytesIn, offset: int, entries: int, out: Int32s
) -> int:
    """Replace each row's number in `out` by that of its pair with the entry; returns 0, or -1.

    entries: the size of the dictionary; a row that is NULL has the entry after the last. out:
    int32, not negative; times entries + 1 it must fit. A number n and an entry e become
    n * (entries + 1) + e. The other arguments are those of `bytes_of`.
    """
    if out.size < indices.size or offset < 0:
        return -1
    if bits.size > 0 and (offset + int64(indices.size) + 7) >> 3 > bits.size:
        return -1
    least = greatest = done = int64(0)
    if bits.size > 0 and offset & 7 == 0:
        # A byte of the bitmap at a time.
        for block in range(indices.size // 8):
            byte = load8(bits, (offset >> 3) + int64(block))
            for k in range(8):
                row = int64(block) * 8 + int64(k)
                there = byte >> int64(k) & 1
                found = entries + (int64(indices[uint64(row)]) - entries & -there)
                least, greatest = min(least, found), max(greatest, found)
                out[uint64(row)] = int64(out[uint64(row)]) * (entries + 1) + found
        done = int64(indices.size) // 8 * 8
    for row in range(done, indices.size):
        found = _entry_of(indices, bits, offset, entries, int64(row))
        # Without a way out of the loop a processor does several rows at a time.
        least, greatest = min(least, found), max(greatest, found)
        out[uint64(row)] = int64(out[uint64(row)]) * (entries + 1) + found
    return 0 if least >= 0 and greatest <= entries else -1


@entry
def keep_codes(codes: Int32sIn, values: BytesIn, kept: Bytes) -> int:
    """Clear the byte in `kept` of each row whose code has 0 in `values`; returns 0, or -1.

    codes: int32. values: uint8, 0 or 1, one for each code. kept: uint8, 0 or 1. -1 for a code
    beyond the values. Allocates nothing, never raises.
    """
    if kept.size < codes.size:
        return -1
    for row in range(codes.size):
        code = int64(codes[uint64(row)])
        if code < 0 or code >= values.size:
            return -1
        kept[uint64(row)] &= values[uint64(code)]
    return 0


COUNTERS = 4
"""Counters for each code: adjacent rows are often equal, and adding to one counter would stall."""


@entry
def count_codes(codes: Int32sIn, kept: BytesIn, size: int, counts: Int64s) -> int:
    """Count the rows that are `kept` by their codes; returns 0, or -1.

    codes: int32, below `size`. kept: uint8, 0 or 1 for each row. counts: int64, COUNTERS times
    `size`: the sum of its COUNTERS is the count of a code. -1 for a code of `size` or more.
    Allocates nothing, never raises.
    """
    if kept.size < codes.size or size < 0 or counts.size < COUNTERS * size:
        return -1
    for row in range(codes.size):
        code = int64(codes[uint64(row)])
        if code < 0 or code >= size:
            return -1
        counts[uint64((int64(row) & (COUNTERS - 1)) * size + code)] += int64(kept[uint64(row)])
    return 0


COPIED = 32
"""How many bytes one step copies: after the last text there must be room for so many."""


@entry
def place_texts(codes: Int32sIn, entries: Int32sIn, offsets: Int32s) -> int:
    """Compute the offsets of the rows' texts in one buffer; returns its size in bytes, or -1.

    codes: int32. entries: int32, the offsets of a dictionary's texts, one more than there are.
    offsets: int32, one more than rows. -1 for a code beyond the dictionary, for offsets that
    decrease, or for 2^31 bytes or more. Allocates nothing, never raises.
    """
    if offsets.size < codes.size + 1:
        return -1
    total = int64(0)
    offsets[uint64(0)] = 0
    for row in range(codes.size):
        code = int64(codes[uint64(row)])
        if code < 0 or code + 1 >= entries.size:
            return -1
        size = int64(entries[uint64(code + 1)]) - int64(entries[uint64(code)])
        total += size
        if size < 0 or total > 0x7FFFFFFF:
            return -1
        offsets[uint64(int64(row) + 1)] = total
    return total


@entry
def copy_texts(
    codes: Int32sIn, entries: Int32sIn, data: BytesIn, offsets: Int32sIn, text: Bytes
) -> int:
    """Copy the rows' texts to the offsets of `place_texts`; returns 0, or -1.

    data: uint8, the texts of the dictionary. text: uint8, the size of all texts and COPIED bytes
    more, which mean nothing. The other arguments are those of `place_texts`. Allocates nothing,
    never raises.
    """
    for row in range(codes.size):
        code = int64(codes[uint64(row)])
        if code < 0 or code + 1 >= entries.size or int64(row) + 1 >= offsets.size:
            return -1
        start, to = int64(entries[uint64(code)]), int64(offsets[uint64(row)])
        size = int64(entries[uint64(code + 1)]) - start
        if start < 0 or size < 0 or size > data.size - start:
            return -1
        if to < 0 or size + COPIED > text.size - to:
            return -1
        if size + COPIED <= data.size - start:
            copy_bytes(text, to, data, start, size)
        else:
            for k in range(size):
                text[uint64(to + int64(k))] = data[uint64(start + int64(k))]
    return 0
