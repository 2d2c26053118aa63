"""Objects and arrays in Variant binary: find the values of one, and close one that is written.

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
"""The most bytes that one step writes in addition to those it copies."""

NO_ROOM, TOO_LONG = -1, -2
"""Why a container was not closed: the output is full, its values pass a Variant's limit."""


@tiny
def read_header(data: Bytes, start: int, end: int) -> tuple[int, int, int, int, int]:
    """Read the layout of the container that fills data[start:end], without its children.

    Returns the number of children, -1 if it is malformed; where their ids begin, and the width of
    these, 0 for an array; the width of the offsets, which follow; where the first child begins.
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

    Both are relative to the first value. The values may be in any order, but must fill `size` bytes
    without gap or overlap; returns False if they do not. Uses work up to top + 2 * count.
    """
    # The values are usually in order: no need to sort.
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

    Moves the values if the header does not have the length that the caller reserved.
    work[entries:entries + count]: id << 32 | offset of each value; largest: the largest id. Returns
    the container's end, or TOO_LONG or NO_ROOM.
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
        # 8 bytes at a time. A move to the right starts at the end, and must write nothing before
        # the first value: its last bytes go one by one.
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
    # Each store writes four bytes, and the next number overwrites the excess; the last excess may
    # reach the first value, which is put back.
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
