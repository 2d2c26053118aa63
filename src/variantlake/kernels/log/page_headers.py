"""Read the page headers of column chunks: check those of a whole file, or keep those of one chunk.

Reads what writers usually write. The twin, parquet.metadata.pages, reads anything unusual and
raises the errors. Spec: Parquet, `parquet.thrift`, PageHeader.
"""

from __future__ import annotations

from variantlake.kernels.log.compact_protocol import (
    I32,
    TRUE,
    field_table,
    kept,
    nested,
    read_struct,
)
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper, tiny

KIND, UNPACKED, PACKED, CRC = 0, 1, 2, 3
COUNT, ENCODING = 4, 5
"""Words of a data page or a dictionary page."""
NULLS, LEVELS, OTHER_LEVELS, IS_PACKED = 6, 7, 8, 9
"""Words of a data page of version 2: its nulls; the bytes of its definition and its repetition
levels; 0 if its values are not compressed."""
START = 10
"""Word of the place of the page's bytes in the chunk."""
_PRESENT = 11
SLOTS = 12
"""The number of words of a page; a word is -1 if the header lacks it."""

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3

NO_CRC = -(1 << 40)
_LARGEST_HEADER = 1 << 16
_OF_DATA, _OF_DICTIONARY, _OF_V2 = 16, 17, 18
"""The presence bits of the headers of each kind of page."""

_FIELDS = field_table(
    {
        1: kept(I32, KIND),
        2: kept(I32, UNPACKED),
        3: kept(I32, PACKED),
        4: kept(I32, CRC),
        5: nested(1, _OF_DATA),
        7: nested(1, _OF_DICTIONARY),
        8: nested(2, _OF_V2),
    },
    {1: kept(I32, COUNT), 2: kept(I32, ENCODING)},
    {
        1: kept(I32, COUNT),
        2: kept(I32, NULLS),
        4: kept(I32, ENCODING),
        5: kept(I32, LEVELS),
        6: kept(I32, OTHER_LEVELS),
        7: kept(TRUE, IS_PACKED),
    },
)


@helper
def _header(data: Bytes, at: int, out: Int64s, base: int, stack: Int64s) -> int:
    """Read the page header at data[at] into the slots from `base` on; return its end, or -1."""
    for slot in range(SLOTS):
        out[uint64(base + slot)] = -1
    out[uint64(base + CRC)] = NO_CRC
    out[uint64(base + _PRESENT)] = 0
    at = read_struct(data, at, _FIELDS, out, base, int64(_PRESENT), stack)
    kind = out[uint64(base + KIND)]
    own = int64(_OF_DATA)
    if kind == DICTIONARY_PAGE:
        own = int64(_OF_DICTIONARY)
    elif kind == DATA_PAGE_V2:
        own = int64(_OF_V2)
    elif kind != DATA_PAGE:
        return at
    # If there were several headers, the last one filled the slots.
    return at if out[uint64(base + _PRESENT)] >> _OF_DATA == int64(1) << own - _OF_DATA else -1


@tiny
def _check_chunk(
    data: Bytes,
    start: int,
    size: int,
    count: int,
    free_values: int,
    out: Int64s,
    stack: Int64s,
) -> int:
    """Estimate a chunk's bytes in memory, or return -1; arguments as for `check_page_headers`."""
    position, end = start, start + size
    if start < 0 or size < 0 or count < 0 or end > data.size:
        return -1
    values = unpacked = entry_size = int64(0)
    while values < count and position < end:
        at = _header(data, position, out, int64(0), stack)
        if at < 0 or at > end or at - position > _LARGEST_HEADER:
            return -1
        unpacked_size, packed = out[uint64(UNPACKED)], out[uint64(PACKED)]
        if unpacked_size < 0 or packed < 0 or packed > end - at:
            return -1
        kind = out[uint64(KIND)]
        if kind == DICTIONARY_PAGE:
            entries = out[uint64(COUNT)]
            if entries < 0 or entries > unpacked_size:
                return -1
            entry_size = unpacked_size // max(entries, 1)
        elif kind == DATA_PAGE or kind == DATA_PAGE_V2:
            own = out[uint64(COUNT)]
            if own < 0:
                return -1
            values += own
        unpacked += unpacked_size
        position = at + packed
    if values != count:
        return -1
    if free_values >= 0 and values > free_values + 1024 * unpacked:
        return -1
    return unpacked + values * (entry_size + 8)


@entry
def check_page_headers(
    data: BytesIn, places: Int64sIn, free_values: Int64sIn, scratch: Int64s
) -> int:
    """Check all page headers of some column chunks; estimate the chunks' bytes in memory.

    data: uint8, the whole file. places: int64, for each chunk the start of its pages, their bytes,
    and its number of values. free_values: int64, for each chunk how many values it may have beyond
    1024 per uncompressed byte, -1 for any number. scratch: int64, SLOTS + STACK words. Returns -1
    if a header is unusual or wrong. Allocates nothing, never raises. Twin:
    parquet.metadata.pages.check_pages.
    """
    out, stack = scratch[:SLOTS], scratch[SLOTS:]
    total = int64(0)
    for chunk in range(free_values.size):
        at = 3 * int64(chunk)
        size = _check_chunk(
            data, places[uint64(at)], places[uint64(at + 1)], places[uint64(at + 2)],
            free_values[uint64(chunk)], out, stack,
        )  # fmt: skip
        if size < 0:
            return -1
        total += size
    return total


@entry
def find_pages(chunk: BytesIn, count: int, pages: Int64s, stack: Int64s) -> int:
    """Read the headers of a chunk's pages up to its last value; return the number of pages.

    chunk: uint8, any bytes. count: the number of values of the chunk. pages: int64, SLOTS for each
    page; if there are more pages, call again with more room. stack: int64, STACK words. Returns -1
    if a header is unusual or wrong, or the pages do not have `count` values. Allocates nothing,
    never raises. Twin: parquet.metadata.pages.check_pages.
    """
    position = values = found = int64(0)
    while values < count:
        base = found * SLOTS if (found + 1) * SLOTS <= pages.size else int64(0)
        at = _header(chunk, position, pages, base, stack)
        if at < 0 or at - position > _LARGEST_HEADER:
            return -1
        packed = pages[uint64(base + PACKED)]
        if packed < 0 or pages[uint64(base + UNPACKED)] < 0 or packed > chunk.size - at:
            return -1
        kind, own = pages[uint64(base + KIND)], pages[uint64(base + COUNT)]
        if own < 0:
            return -1
        if kind == DATA_PAGE or kind == DATA_PAGE_V2:
            values += own
        elif kind != DICTIONARY_PAGE or found > 0:
            return -1
        pages[uint64(base + START)] = at
        position = at + packed
        found += 1
    return found if values == count else int64(-1)
