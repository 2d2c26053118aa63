"""Objects and arrays in Variant binary: where the values of one stand, and how one is closed.

Spec: VariantEncoding, "Value encoding".
"""

from __future__ import annotations

from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.kernels.native.declared import Bytes, Int64s, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.emit import put_number, sort_words
from variantlake.kernels.tape.nodes import width_of
from variantlake.kernels.tape.words import (
    PADDING,
    load8,
    load32,
    load64,
    load_unsigned,
    store8,
    store32,
    store64,
)

_OBJECT, _ARRAY = 2, 3
"""Basic types, the low two bits of a value's first byte."""

_LIMIT = MAX_VALUE_BYTES
EXTENT = 0xFFFFFFFF
"""The lower half of a word."""

MARGIN = 64 + PADDING
"""Bytes that one step writes at most beside what it copies."""

NO_ROOM, TOO_LONG = -1, -2
"""Why a container was not closed: the output ends, its values are more than a Variant may have."""


@tiny
def read_header(data: Bytes, start: int, end: int) -> tuple[int, int, int, int, int]:
    """How the container that fills data[start:end] is laid out; its children are not looked at.

    Returns how many they are, -1 if it is malformed; where their ids begin, and the width of
    these, 0 for an array; the width of offsets, which follow; where the first child begins.
    """
    header = load8(data, start)
    id_width, large = int64(0), header >> 4 & 1
    if header & 3 == _OBJECT:
        id_width, large = (header >> 4 & 3) + 1, header >> 6 & 1
    width = (header >> 2 & 3) + 1
    ids = start + 2 + 3 * large
    count, base = int64(-1), end
    if ids <= end:
        count = load8(data, start + 1) if large == 0 else load32(data, start + 1)
        base = ids + count * id_width + (count + 1) * width
        if base > end:
            count = int64(-1)
        else:
            size = load_unsigned(data, base - width, width)
            if base + size != end or count > size or (count == 0 and size != 0):
                count = int64(-1)
    return count, ids, id_width, width, base


@helper
def read_extents(
    data: Bytes, place: int, count: int, width: int, size: int, work: Int64s, top: int
) -> bool:
    """Write start << 32 | end of each of a container's values to work[top:top + count].

    Relative to the first value. The values may stand in any order, and must fill `size` bytes
    without gap or overlap: each ends where the next one in the data starts.
    """
    # Most often they stand in order, and there is nothing to sort.
    offset, index = load_unsigned(data, place, width), int64(0)
    while index < count and (index > 0 or offset == 0):
        following = load_unsigned(data, place + (index + 1) * width, width)
        if following <= offset or following > size:
            break
        work[uint64(top + index)] = offset << 32 | following
        offset = following
        index += 1
    if index == count and offset == size:
        return True
    for child in range(count):
        offset = load_unsigned(data, place + child * width, width)
        work[uint64(top + count + child)] = offset << 32 | child
    sort_words(work, top + count, count)
    for index in range(count):
        offset = work[uint64(top + count + index)] >> int64(32)
        end = size
        if index + 1 < count:
            end = work[uint64(top + count + index + 1)] >> int64(32)
        if offset >= end or (index == 0 and offset != 0):
            return False
        child = work[uint64(top + count + index)] & EXTENT
        work[uint64(top + child)] = offset << 32 | end
    return True


@helper
def close_container(
    is_object: bool,
    work: Int64s,
    entries: int,
    count: int,
    largest: int,
    out: Bytes,
    begin: int,
    base: int,
    to: int,
) -> int:
    """Write the header of the container at out[begin:] whose values are out[base:to].

    They are moved where the header is not as long as the room that was left for it.
    work[entries:entries + count]: id << 32 | offset of each; largest: of the ids. Returns its end,
    or why there is none: TOO_LONG, NO_ROOM.
    """
    content = to - base
    if content > _LIMIT:
        return int64(TOO_LONG)
    width = width_of(content)
    large = count > 255
    head = (5 if large else 2) + (count + 1) * width
    id_width = int64(0)
    if is_object:
        id_width = width_of(largest)
        head += count * id_width
    moved = begin + head - base
    if moved != 0:
        if to + moved + MARGIN > out.size:
            return int64(NO_ROOM)
        # 8 bytes at a time; to the right from the end, if nothing before the first one may go.
        done = int64(0)
        if moved < 0:
            while done < content:
                store64(out, base + moved + done, load64(out, base + done))
                done += 8
        else:
            done = content
            while done >= 8:
                done -= 8
                store64(out, base + moved + done, load64(out, base + done))
            while done > 0:
                done -= 1
                store8(out, base + moved + done, load8(out, base + done))
    if is_object:
        bits = _OBJECT | (width - 1) << 2 | (id_width - 1) << 4 | (64 if large else 0)
    else:
        bits = _ARRAY | (width - 1) << 2 | (16 if large else 0)
    place = begin + (5 if large else 2)
    end = begin + head + content
    # Four bytes at a time: each number overwrites what is too much of the one before.
    first = load64(out, begin + head)
    store8(out, begin, bits)
    store32(out, begin + 1, count)
    if is_object:
        for index in range(count):
            store32(out, place, work[uint64(entries + index)] >> int64(32))
            place += id_width
    for index in range(count):
        store32(out, place, work[uint64(entries + index)] & EXTENT)
        place += width
    put_number(out, place, content, width)
    store64(out, begin + head, first)
    return end
