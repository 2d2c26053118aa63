"""Decode the texts of a column chunk: those that share a prefix with others, and PLAIN ones.

This is for columns outside of lists. pyarrow reads whatever is unusual or wrong, and words the
errors. Spec: Parquet, "Encodings".
"""

from __future__ import annotations

from variantlake.kernels.columns.differences import differences
from variantlake.kernels.columns.pages import (
    COUNT,
    END_AT,
    PLACE,
    ROWS,
    SPAN,
    VALUES_AT,
    is_within,
)
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.words import copy_bytes, load32, load64, store64


@entry
def text_lengths(data: BytesIn, pages: Int64s, lengths: Int64s, scratch: Int64s) -> int:
    """Decode how many bytes each text shares with the one before, and how many it adds.

    data, pages: as `find_values` filled them in; VALUES_AT becomes the offset of the added bytes.
    lengths: int64, for each page the bytes that its texts share, then those that they add: two
    words for each value of all pages. scratch: int64, a word. Returns the size of all texts, or -1
    if lengths and bytes do not agree. Allocates nothing, never raises. Spec: "Delta Strings
    (DELTA_BYTE_ARRAY)".
    """
    total = start = int64(0)
    for page in range(pages.size // SPAN):
        base = int64(page) * SPAN
        begin, end, count = (
            pages[uint64(base + VALUES_AT)],
            pages[uint64(base + END_AT)],
            pages[uint64(base + COUNT)],
        )
        if begin < 0 or end < begin or end > data.size or count < 0:
            return -1
        if 2 * count > lengths.size - start:
            return -1
        values = data[begin:end]
        at = differences(values, int64(0), count, lengths, start, scratch)
        if at >= 0:
            at = differences(values, at, count, lengths, start + count, scratch)
        if at < 0:
            return -1
        before = added = int64(0)
        for text in range(count):
            shared = lengths[uint64(start + int64(text))]
            own = lengths[uint64(start + count + int64(text))]
            if shared < 0 or shared > before or own < 0 or own > values.size:
                return -1
            before = shared + own
            added += own
            total += before
            if added > values.size - at:
                return -1
        pages[uint64(base + VALUES_AT)] = begin + at
        start += 2 * count
    return total


@helper
def _join_page(
    values: Bytes, lengths: Int64s, valid: Bytes, ends: Int32s, text: Bytes, done: int
) -> int:
    """Write the texts of a page to text[done:]; returns where they end, or -1."""
    count = int64(lengths.size) // 2
    taken = source = alike = at = int64(0)
    before = done
    for row in range(valid.size):
        if valid[uint64(row)] != 0:
            if taken == count:
                return -1
            shared, own = lengths[uint64(taken)], lengths[uint64(count + taken)]
            taken += 1
            size = shared + own
            if shared < 0 or own < 0 or own > values.size - at or size > text.size - done:
                return -1
            if shared > done - before:
                return -1
            # A text begins as the one before it, whose first bytes may be those of older ones: what
            # was just written is slow to read, and by more than words is among it.
            if shared > alike:
                source = before
            alike = shared
            if size + 32 <= text.size - done and own + 32 <= values.size - at:
                copied = int64(0)
                while copied < shared:
                    store64(text, done + copied, load64(text, source + copied))
                    copied += 8
                copy_bytes(text, done + shared, values, at, own)
            else:
                for k in range(shared):
                    text[uint64(done + int64(k))] = text[uint64(source + int64(k))]
                for k in range(own):
                    text[uint64(done + shared + int64(k))] = values[uint64(at + int64(k))]
            before = done
            done += size
            at += own
        ends[uint64(row)] = done
    return done if taken == count else int64(-1)


@entry
def join_texts(
    data: BytesIn,
    pages: Int64sIn,
    lengths: Int64sIn,
    valid: BytesIn,
    offsets: Int32s,
    text: Bytes,
) -> int:
    """Write the texts of pages one after the other; returns their size in bytes, or -1.

    data, pages, lengths: as `text_lengths` leaves them, the pages in the order of their rows.
    valid: uint8, 1 for a row with a text; 0 for rows outside of all pages. offsets: int32, one
    more than rows. text: uint8, room for all texts. Allocates nothing, never raises.
    """
    if valid.size + 1 > offsets.size:
        return -1
    done = next_row = start = int64(0)
    offsets[uint64(0)] = 0
    for page in range(pages.size // SPAN):
        base = int64(page) * SPAN
        if not is_within(data, pages, base, int64(valid.size)):
            return -1
        place, rows = pages[uint64(base + PLACE)], pages[uint64(base + ROWS)]
        count = pages[uint64(base + COUNT)]
        if place < next_row or count < 0 or 2 * count > lengths.size - start:
            return -1
        for row in range(next_row, place):
            offsets[uint64(row + 1)] = done
        next_row = place + rows
        values = data[pages[uint64(base + VALUES_AT)] : pages[uint64(base + END_AT)]]
        own_lengths = lengths[start : start + 2 * count]
        own_valid, ends = valid[place:next_row], offsets[place + 1 : next_row + 1]
        done = _join_page(values, own_lengths, own_valid, ends, text, done)
        if done < 0:
            return -1
        start += 2 * count
    for row in range(next_row, int64(valid.size)):
        offsets[uint64(row + 1)] = done
    return done


@entry
def plain_texts(page: BytesIn, count: int, offsets: Int32s, text: Bytes) -> int:
    """Split a dictionary's texts into their offsets, and their bytes one after the other.

    page: uint8, a PLAIN page of `count` byte arrays. offsets: int32, count + 1. text: uint8, as
    long as the page. Returns the size of all texts in bytes, or -1 if the page does not hold
    `count` of them. Allocates nothing, never raises. Spec: "Plain (PLAIN = 0)".
    """
    if count < 0 or count + 1 > offsets.size or text.size < page.size:
        return -1
    at = done = int64(0)
    offsets[uint64(0)] = 0
    for entry_ in range(count):
        if at + 4 > page.size:
            return -1
        size = load32(page, at)
        at += 4
        if size > page.size - at:
            return -1
        if size + 32 <= page.size - at:  # and so much of the text is left
            copy_bytes(text, done, page, at, size)
        else:
            for k in range(size):
                text[uint64(done + k)] = page[uint64(at + k)]
        done += size
        at += size
        offsets[uint64(entry_ + 1)] = done
    return done if at == page.size else int64(-1)
