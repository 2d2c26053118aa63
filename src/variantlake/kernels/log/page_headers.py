"""The page headers of column chunks, in a file whose bytes are in memory.

Checks what writers write. Whatever is unusual or wrong is left to the twin, parquet.metadata.pages,
which words the errors. Spec: Parquet, `parquet.thrift`, PageHeader.
"""

from __future__ import annotations

from variantlake.kernels.log.compact_protocol import I32, STRUCT, field_header, number, skip
from variantlake.kernels.native.declared import (
    Bytes,
    Int64s,
    bytes_in,
    i64,
    int64,
    int64s,
    int64s_in,
    uint64,
)
from variantlake.kernels.native.jit import entry, tiny

_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
_KIND, _UNPACKED, _PACKED, _DATA_COUNT, _DICTIONARY_COUNT, _V2_COUNT = 0, 1, 2, 3, 4, 5
"""Slots of a header; one that is not set is -1."""
HEADER = 6

_LARGEST_HEADER = 1 << 16


@tiny
def _count(data: Bytes, at: int, out: Int64s, slot: int, stack: Int64s) -> int:
    """Read the count of values, field 1 of a kind of page, into out[slot]; its end, or -1."""
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
        if field == 1:
            if wire != I32:
                return -1
            at = number(data, at, wire, out, slot)
        else:
            at = skip(data, at, wire, stack)


@tiny
def _page_header(data: Bytes, at: int, out: Int64s, stack: Int64s) -> int:
    """Read the header at data[at] into its slots; returns where the page's data starts, or -1."""
    for slot in range(HEADER):
        out[uint64(slot)] = -1
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
        if field >= 1 and field <= 3:
            if wire != I32:
                return -1
            at = number(data, at, wire, out, field - 1)
        elif field == 5 or field == 7 or field == 8:
            if wire != STRUCT:
                return -1
            slot = int64(_DATA_COUNT)
            if field == 7:
                slot = int64(_DICTIONARY_COUNT)
            elif field == 8:
                slot = int64(_V2_COUNT)
            at = _count(data, at, out, slot, stack)
        else:
            at = skip(data, at, wire, stack)


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
    """The bytes that a chunk takes in memory, or -1; `free_values` as for `check_page_headers`."""
    position, end = start, start + size
    if start < 0 or size < 0 or count < 0 or end > data.size:
        return -1
    values = unpacked = entry_size = int64(0)
    while values < count and position < end:
        at = _page_header(data, position, out, stack)
        if at < 0 or at > end or at - position > _LARGEST_HEADER:
            return -1
        unpacked_size, packed = out[uint64(_UNPACKED)], out[uint64(_PACKED)]
        if unpacked_size < 0 or packed < 0 or packed > end - at:
            return -1
        kind = out[uint64(_KIND)]
        if kind == _DICTIONARY_PAGE:
            entries = out[uint64(_DICTIONARY_COUNT)]
            if entries < 0 or entries > unpacked_size:
                return -1
            entry_size = unpacked_size // max(entries, 1)
        elif kind == _DATA_PAGE or kind == _DATA_PAGE_V2:
            own = out[uint64(_DATA_COUNT if kind == _DATA_PAGE else _V2_COUNT)]
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


@entry(i64(bytes_in, int64s_in, int64s_in, int64s))
def check_page_headers(data: Bytes, places: Int64s, free_values: Int64s, scratch: Int64s) -> int:
    """About how many bytes some column chunks take in memory, if all their headers are in order.

    data: uint8, the whole file. places: int64, of each chunk where its pages start, their bytes,
    and its values. free_values: int64, of each chunk the values that it may have beyond 1024 for
    each byte, -1 for any. scratch: int64, HEADER + STACK words. -1 for what is not usual, or wrong.
    Allocates nothing, never raises. Twin: parquet.metadata.pages.check_pages.
    """
    out, stack = scratch[:HEADER], scratch[HEADER:]
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
