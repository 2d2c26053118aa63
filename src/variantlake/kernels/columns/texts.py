"""Texts of a column chunk: what they share with the one before, and those of a dictionary.

Of columns outside of lists. Whatever is unusual or wrong is left to pyarrow, which words the
errors. Spec: Parquet, "Encodings".
"""

from __future__ import annotations

from variantlake.kernels.columns.differences import differences
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry
from variantlake.kernels.tape.words import copy_bytes, load32, load64, store64


@entry
def text_lengths(values: BytesIn, count: int, lengths: Int64s, scratch: Int64s) -> int:
    """Decode how much each of a page's `count` texts shares with the one before, and adds to it.

    values: uint8, any bytes. lengths: int64, 2 * count: what is shared, then what is added.
    scratch: int64, two words, of which the second gets the bytes of all texts together. Returns
    where the bytes that are added begin, -1 if lengths and bytes do not fit together. Allocates
    nothing, never raises. Spec: "Delta Strings (DELTA_BYTE_ARRAY)".
    """
    if count < 0 or 2 * count > lengths.size:
        return -1
    at = differences(values, int64(0), count, lengths, int64(0), scratch)
    if at >= 0:
        at = differences(values, at, count, lengths, count, scratch)
    if at < 0:
        return -1
    before = added = total = int64(0)
    for text in range(count):
        shared, own = lengths[uint64(text)], lengths[uint64(count + int64(text))]
        if shared < 0 or shared > before or own < 0 or own > values.size:
            return -1
        before = shared + own
        added += own
        total += before
        if added > values.size - at:
            return -1
    scratch[uint64(1)] = total
    return at


@entry
def join_texts(
    values: BytesIn, at: int, lengths: Int64sIn, valid: BytesIn, offsets: Int32s, text: Bytes
) -> int:
    """Write the texts of a page one after the other; returns their bytes, or -1.

    values, lengths: as `text_lengths` has found them, `at` what it returned. valid: uint8, 1 for a
    row with a text. offsets: int32, one more than rows. text: uint8, room for all texts. Allocates
    nothing, never raises.
    """
    count = int64(lengths.size) // 2
    if at < 0 or valid.size + 1 > offsets.size:
        return -1
    done = before = taken = source = alike = int64(0)
    offsets[uint64(0)] = 0
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
        offsets[uint64(int64(row) + 1)] = done
    return done if taken == count else int64(-1)


@entry
def plain_texts(page: BytesIn, count: int, offsets: Int32s, text: Bytes) -> int:
    """Take a dictionary's texts apart: their offsets, and their bytes one after the other.

    page: uint8, a PLAIN page of `count` byte arrays. offsets: int32, count + 1. text: uint8, as
    long as the page. Returns the bytes of all texts, -1 if they do not fit. Allocates nothing,
    never raises. Spec: "Plain (PLAIN = 0)".
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
