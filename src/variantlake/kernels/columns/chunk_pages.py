"""Where the pages of a column chunk are, from their headers.

Whatever is unusual or wrong is left to the twin, parquet.metadata.pages, which words the errors.
Spec: Parquet, `parquet.thrift`, PageHeader.
"""

from __future__ import annotations

from variantlake.kernels.log.compact_protocol import (
    FALSE,
    I32,
    STRUCT,
    TRUE,
    field_header,
    number,
    skip,
)
from variantlake.kernels.native.declared import Bytes, Int64s, bytes_in, i64, int64, int64s, uint64
from variantlake.kernels.native.jit import entry, helper, tiny

KIND, UNPACKED, PACKED, CRC = 0, 1, 2, 3
COUNT, ENCODING = 4, 5
"""Of a data page or a dictionary."""
NULLS, LEVELS, OTHER_LEVELS, IS_PACKED = 6, 7, 8, 9
"""Of a data page of the second version: its nulls, the bytes of its levels, 0 where its values are
not compressed."""
START = 10
"""Where the page's bytes are in the chunk."""
SLOTS = 11
"""Words of a page; -1 for what its header does not say, or another kind of number."""

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3

_LARGEST_HEADER = 1 << 16
NO_CRC = -(1 << 40)


@tiny
def _slot_of(kind: int, field: int) -> int:
    """Where a field of a kind's own header goes; -1 for one that is not kept."""
    if field == 1:
        return int64(COUNT)
    if kind != 8:
        return int64(ENCODING) if field == 2 else int64(-1)
    if field == 2:
        return int64(NULLS)
    if field == 4:
        return int64(ENCODING)
    if field == 5:
        return int64(LEVELS)
    return int64(OTHER_LEVELS) if field == 6 else int64(-1)


@helper
def _own_header(data: Bytes, at: int, kind: int, out: Int64s, base: int, stack: Int64s) -> int:
    """Read the header of a kind of page (a field of PageHeader); its end, or -1."""
    field = int64(0)
    while True:
        header = field_header(data, at)
        if header < 0:
            return -1
        at += 1
        if header == 0:
            return at
        wire = header & 15
        field += header >> 4
        slot = _slot_of(kind, field)
        if slot >= 0:
            if wire != I32:
                return -1
            at = number(data, at, wire, out, base + slot)
        elif kind == 8 and field == 7:
            if wire != TRUE and wire != FALSE:
                return -1
            out[uint64(base + IS_PACKED)] = int64(1) if wire == TRUE else int64(0)
        elif wire != TRUE and wire != FALSE:
            at = skip(data, at, wire, stack)
        if at < 0:
            return -1


@helper
def _header(data: Bytes, at: int, out: Int64s, base: int, stack: Int64s) -> int:
    """Read the page header at data[at] into the slots from `base` on; its end, or -1."""
    for slot in range(SLOTS):
        out[uint64(base + slot)] = -1
    out[uint64(base + CRC)] = NO_CRC
    field = int64(0)
    while True:
        header = field_header(data, at)
        if header < 0:
            return -1
        at += 1
        if header == 0:
            return at
        wire = header & 15
        field += header >> 4
        if field >= 1 and field <= 4:
            if wire != I32:
                return -1
            at = number(data, at, wire, out, base + field - 1)
        elif field == 5 or field == 7 or field == 8:
            if wire != STRUCT:
                return -1
            at = _own_header(data, at, field, out, base, stack)
        elif wire != TRUE and wire != FALSE:
            at = skip(data, at, wire, stack)
        if at < 0:
            return -1


@entry(i64(bytes_in, i64, int64s, int64s))
def find_pages(chunk: Bytes, count: int, pages: Int64s, stack: Int64s) -> int:
    """Read the headers of a chunk's pages up to its last value; returns how many pages there are.

    chunk: uint8, any bytes. count: the values of the chunk. pages: int64, SLOTS for each page;
    where there are more pages, call again with more room. stack: int64, STACK words. -1 where pages
    and chunk do not fit together. Allocates nothing, never raises. Twin:
    parquet.metadata.pages.check_pages.
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
