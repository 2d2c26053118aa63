"""Read bounds of a Variant column that are stored as Variants: one field of many objects at once.

The objects may hold any bytes. A row in an unusual form gets a status, and the plain reader,
`delta.stats.variant_bounds`, reads it.
"""

from __future__ import annotations

from variantlake.kernels.log.log_stats import MISSING, UNUSUAL, TextSpans, unsigned
from variantlake.kernels.native.declared import Bytes, BytesIn, Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.nodes import BINARY, DECIMAL4, DECIMAL8, DECIMAL16, STRING, WIDTHS
from variantlake.types import MAX_PRECISION

_MAX_SCALE = MAX_PRECISION


@helper
def _child_at(data: BytesIn, begin: int, end: int, field: int) -> int:
    """Return where the value of a field of the object data[begin:end] starts.

    Returns -1 if it is not an object or has no such field, -2 if it is malformed.
    """
    if begin >= end:
        return int64(-2)
    header = int64(data[uint64(begin)])
    if header & 3 != 2:
        return int64(-1)
    offset_width = ((header >> 2) & 3) + 1
    id_width = ((header >> 4) & 3) + 1
    count_width = int64(4) if header & 64 != 0 else int64(1)
    ids = begin + 1 + count_width
    if ids > end:
        return int64(-2)
    count = unsigned(data, begin + 1, count_width)
    offsets = ids + count * id_width
    values = offsets + (count + 1) * offset_width
    if values > end or values + unsigned(data, values - offset_width, offset_width) > end:
        return int64(-2)
    for k in range(count):
        if unsigned(data, ids + k * id_width, id_width) == field:
            place = values + unsigned(data, offsets + k * offset_width, offset_width)
            return place if place < end else int64(-2)
    return int64(-1)


@entry
def find_parsed_bounds(
    values: TextSpans, fields: Int64sIn, tags: Bytes, numbers: Int64s, extras: Int64s
) -> int:
    """Read one field of each object of bounds.

    values: the objects, Variants without their metadata. fields: int64, the field id in each row,
    -1 for none. tags, numbers, extras: filled like those of a BoundColumn whose arena is
    values.data. Returns how many rows have a bound. Allocates nothing, never raises.
    Twin: delta.stats.variant_bounds.decode_bounds.
    """
    data, starts, ends = values
    good = int64(0)
    for row in range(int64(starts.size)):
        tags[uint64(row)] = MISSING
        numbers[uint64(row)] = 0
        extras[uint64(row)] = 0
        if starts[uint64(row)] < 0 or fields[uint64(row)] < 0:
            continue
        end = ends[uint64(row)]
        place = _child_at(data, starts[uint64(row)], end, fields[uint64(row)])
        if place == -1:
            continue
        tags[uint64(row)] = UNUSUAL
        if place < 0:
            continue
        header = int64(data[uint64(place)])
        tag, width = header >> 2, int64(0)
        if header & 3 == 1:
            tag, width = int64(STRING), header >> 2
        elif header & 3 != 0 or tag >= WIDTHS.size:
            tags[uint64(row)] = MISSING
            continue
        else:
            width = WIDTHS[uint64(tag)]
        place += 1
        if tag == DECIMAL4 or tag == DECIMAL8 or tag == DECIMAL16:
            extras[uint64(row)] = int64(data[uint64(place)]) if place < end else int64(255)
            if extras[uint64(row)] > _MAX_SCALE:
                continue
            place += 1
            width -= 1
        elif width < 0:
            if place + 4 > end:
                continue
            width = unsigned(data, place, int64(4))
            place += 4
        if place + width > end:
            continue
        if width <= 8 and tag != STRING and tag != BINARY:
            value = unsigned(data, place, width)
            if width > 0 and width < 8 and value >> (8 * width - 1) != 0:
                value -= int64(1) << (8 * width)
            numbers[uint64(row)] = value
        else:
            numbers[uint64(row)] = place
            if tag == STRING or tag == BINARY:
                extras[uint64(row)] = width
        tags[uint64(row)] = tag
        good += 1
    return good
