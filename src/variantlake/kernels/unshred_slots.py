"""The kernels of unshred: many encoded values into one, slot by slot."""

from __future__ import annotations

from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.kernels._jit import (
    Bytes,
    Int32s,
    Int64s,
    bytes_in,
    entry,
    helper,
    i64,
    int32s_in,
    int64,
    int64s,
    int64s_in,
    tiny,
    uint8s,
    uint64,
    void,
)
from variantlake.kernels.emit import copy_reference, put_number, sort_words
from variantlake.kernels.nodes import BINARY, LONGEST_SHORT_STRING, STRING, width_of
from variantlake.kernels.utf8 import valid_utf8
from variantlake.kernels.variant_reader import read_extents
from variantlake.kernels.words import copy_bytes, load8, load32, store8, store32

_SHORT_STRING = 1
_OBJECT = 2
_ARRAY = 3
"""Basic types, the low two bits of a value's first byte."""

_LIMIT = MAX_VALUE_BYTES
_EXTENT = 0xFFFFFFFF


@entry(void(bytes_in, int64s_in, bytes_in, i64, int64s_in, uint8s, uint8s, int64s, int64s))
def write_bytes(
    data: Bytes,
    offsets: Int64s,
    is_set: Bytes,
    is_text: int,
    rows: Int64s,
    marked: Bytes,
    out: Bytes,
    starts: Int64s,
    lengths: Int64s,
) -> None:
    """Encode the strings (is_text 1) or binaries data[offsets[i]:offsets[i + 1]] that are set.

    data: uint8, any bytes, padded; offsets: int64, ascending. out: uint8, the data's bytes and 5 a
    slot, padded. starts, lengths: int64, filled, one a slot; rows: int64, the same, into marked
    (uint8), which is set for a string that is not UTF-8. Allocates nothing, never raises.
    """
    to = int64(0)
    for i in range(rows.size):
        starts[uint64(i)] = to
        lengths[uint64(i)] = 0
        if is_set[uint64(i)] == 0:
            continue
        start, end = offsets[uint64(i)], offsets[uint64(i + 1)]
        count = end - start
        if count > _LIMIT or (is_text == 1 and not valid_utf8(data, start, end)):
            marked[uint64(rows[uint64(i)])] = 1
            continue
        begin = to
        if is_text == 1 and count <= LONGEST_SHORT_STRING:
            store8(out, to, count << 2 | _SHORT_STRING)
            to += 1
        else:
            store8(out, to, (STRING if is_text == 1 else BINARY) << 2)
            store32(out, to + 1, count)
            to += 5
        copy_bytes(out, to, data, start, count)
        to += count
        lengths[uint64(i)] = to - begin


@tiny
def _unsigned(data: Bytes, start: int, width: int) -> int:
    """An unsigned little-endian number of 1 to 4 bytes; reads 4."""
    return load32(data, start) & ((int64(1) << (8 * width)) - 1)


@helper
def _add_residual(
    rest: Bytes,
    start: int,
    end: int,
    ranks: Int32s,
    first: int,
    keys: int,
    extents: Int64s,
    fields: Int64s,
    found: int,
    most: int,
) -> int:
    """Append the fields of the object that fills rest[start:end] to the `found` that are there.

    Returns how many there are then, -1 when it is no object of a dictionary of `keys` keys, whose
    ranks start at ranks[first]. fields: see write_objects.
    """
    header = load8(rest, start)
    if header & 3 != _OBJECT:
        return int64(-1)
    large = header >> 6 & 1
    offset_width, id_width = (header >> 2 & 3) + 1, (header >> 4 & 3) + 1
    ids = start + 2 + 3 * large
    if ids > end:
        return int64(-1)
    count = load8(rest, start + 1) if large == 0 else load32(rest, start + 1)
    offsets = ids + count * id_width
    base = offsets + (count + 1) * offset_width
    if base > end:
        return int64(-1)
    size = _unsigned(rest, base - offset_width, offset_width)
    if base + size != end or count > size or (count == 0 and size != 0):
        return int64(-1)
    if not read_extents(rest, offsets, count, offset_width, size, extents, int64(0)):
        return int64(-1)
    for index in range(count):
        field = _unsigned(rest, ids + index * id_width, id_width)
        if field >= keys:
            return int64(-1)
        extent = extents[uint64(index)]
        from_ = extent >> int64(32)
        at = found + index
        fields[uint64(at)] = int64(ranks[uint64(first + field)]) << int64(32) | at
        fields[uint64(most + at)] = field
        fields[uint64(2 * most + at)] = ~(base + from_)
        fields[uint64(3 * most + at)] = (extent & _EXTENT) - from_
    return found + count


@helper
def _write_object(
    data: Bytes, rest: Bytes, fields: Int64s, found: int, most: int, out: Bytes, to: int
) -> int:
    """Write an object of `found` fields, which are brought in order; returns its end.

    Fields without bytes are left out. -1 when two have one name, even so, or when it is too large.
    fields: see write_objects.
    """
    content, count, largest, previous = int64(0), int64(0), int64(0), int64(-1)
    ascending = True
    for index in range(found):
        if fields[uint64(3 * most + index)] > 0:
            content += fields[uint64(3 * most + index)]
            count += 1
            largest = max(largest, fields[uint64(most + index)])
        ascending = ascending and fields[uint64(index)] > previous
        previous = fields[uint64(index)]
    if content > _LIMIT:
        return int64(-1)
    if not ascending:
        sort_words(fields, int64(0), found)
    width, id_width = width_of(content), width_of(largest)
    large = count > 255
    store8(out, to, _OBJECT | (width - 1) << 2 | (id_width - 1) << 4 | (64 if large else 0))
    store32(out, to + 1, count)
    id_place = to + (5 if large else 2)
    place = id_place + count * id_width
    begin = place + (count + 1) * width
    to = begin
    rank = int64(-1)
    for index in range(found):
        word = fields[uint64(index)]
        if word >> int64(32) == rank:
            return int64(-1)
        rank = word >> int64(32)
        at = word & _EXTENT
        length = fields[uint64(3 * most + at)]
        if length == 0:
            continue
        put_number(out, id_place, fields[uint64(most + at)], id_width)
        put_number(out, place, to - begin, width)
        id_place += id_width
        place += width
        copy_reference(data, rest, fields[uint64(2 * most + at)], length, out, to)
        to += length
    put_number(out, place, to - begin, width)
    return to


@entry(
    void(
        bytes_in,
        int64s_in,
        int64s_in,
        i64,
        bytes_in,
        int64s_in,
        int64s_in,
        bytes_in,
        int64s_in,
        int64s_in,
        int32s_in,
        int64s_in,
        int64s_in,
        uint8s,
        int64s,
        int64s,
        uint8s,
        int64s,
        int64s,
    )
)
def write_objects(
    data: Bytes,
    field_starts: Int64s,
    field_lengths: Int64s,
    children: int,
    rest: Bytes,
    rest_starts: Int64s,
    rest_lengths: Int64s,
    is_set: Bytes,
    dictionaries: Int64s,
    ids: Int64s,
    ranks: Int32s,
    firsts: Int64s,
    rows: Int64s,
    marked: Bytes,
    fields: Int64s,
    extents: Int64s,
    out: Bytes,
    starts: Int64s,
    lengths: Int64s,
) -> None:
    """Write the objects of the slots that are set, of shredded fields and residuals.

    data: uint8, the encoded fields; field_starts, field_lengths: int64, children * slots: where
    the first field of each slot is, then the second; length 0 is missing. rest, rest_starts,
    rest_lengths: the residuals in the same way, any bytes. dictionaries: int64, for each row one
    of those whose keys' ranks are ranks[firsts[d]:firsts[d + 1]] and in which child c has the id
    ids[d * children + c]; -1 where there is none. rows (int64): of each slot, in marked (uint8),
    which is set for what is not written. out: uint8, with room for data, residuals four times, 8
    bytes a field and 9 a slot. starts, lengths: int64, filled. All bytes are padded.

    fields, extents: int64, room to work: four times and twice `most`, at least the children and
    a third of the longest residual. The columns of `fields`: rank << 32 | index, id, place (`p
    >= 0` in data, else `~p` in rest), bytes. Allocates nothing, never raises.
    """
    slots, most = int64(rows.size), int64(fields.size) // 4
    to = int64(0)
    for i in range(slots):
        starts[uint64(i)] = to
        lengths[uint64(i)] = 0
        if is_set[uint64(i)] == 0:
            continue
        row = uint64(rows[uint64(i)])
        d = dictionaries[row]
        found = int64(-1)
        if d >= 0:
            found = int64(0)
            first = firsts[uint64(d)]
            for c in range(children):
                place = uint64(c * slots + i)
                field = ids[uint64(d * children + c)]
                # A missing field is still a name that the residual must not have.
                if field_lengths[place] == 0 and (field < 0 or rest_lengths[uint64(i)] == 0):
                    continue
                if field < 0:
                    found = int64(-1)
                    break
                fields[uint64(found)] = int64(ranks[uint64(first + field)]) << int64(32) | found
                fields[uint64(most + found)] = field
                fields[uint64(2 * most + found)] = field_starts[place]
                fields[uint64(3 * most + found)] = field_lengths[place]
                found += 1
            if found >= 0 and rest_lengths[uint64(i)] > 0:
                start = rest_starts[uint64(i)]
                end = start + rest_lengths[uint64(i)]
                keys = firsts[uint64(d + 1)] - first
                found = _add_residual(
                    rest, start, end, ranks, first, keys, extents, fields, found, most
                )
        end_of_object = int64(-1)
        if found >= 0:
            end_of_object = _write_object(data, rest, fields, found, most, out, to)
        if end_of_object < 0:
            marked[row] = 1
        else:
            lengths[uint64(i)] = end_of_object - to
            to = end_of_object


@entry(
    void(
        bytes_in,
        int64s_in,
        int64s_in,
        int64s_in,
        bytes_in,
        int64s_in,
        uint8s,
        uint8s,
        int64s,
        int64s,
    )
)
def write_arrays(
    data: Bytes,
    element_starts: Int64s,
    element_lengths: Int64s,
    offsets: Int64s,
    is_set: Bytes,
    rows: Int64s,
    marked: Bytes,
    out: Bytes,
    starts: Int64s,
    lengths: Int64s,
) -> None:
    """Write the arrays of the slots that are set.

    data: uint8, padded, the encoded elements; element_starts, element_lengths: int64, where they
    are; length 0 is missing and becomes Variant null. offsets: int64, slots + 1: slot i has the
    elements from offsets[i] to offsets[i + 1]. rows, marked: as for write_objects. out: uint8,
    padded, the bytes of the data, 5 an element, and 9 a slot. starts, lengths: int64, filled.
    Allocates nothing, never raises.
    """
    to = int64(0)
    for i in range(rows.size):
        starts[uint64(i)] = to
        lengths[uint64(i)] = 0
        if is_set[uint64(i)] == 0:
            continue
        start, end = offsets[uint64(i)], offsets[uint64(i + 1)]
        content = int64(0)
        for j in range(start, end):
            content += max(element_lengths[uint64(j)], 1)
        if content > _LIMIT:
            marked[uint64(rows[uint64(i)])] = 1
            continue
        begin = to
        count = end - start
        width = width_of(content)
        large = count > 255
        store8(out, to, _ARRAY | (width - 1) << 2 | (16 if large else 0))
        store32(out, to + 1, count)
        place = to + (5 if large else 2)
        first = place + (count + 1) * width
        to = first
        for j in range(start, end):
            put_number(out, place, to - first, width)
            place += width
            length = element_lengths[uint64(j)]
            if length == 0:
                store8(out, to, 0)
                to += 1
            else:
                copy_bytes(out, to, data, element_starts[uint64(j)], length)
                to += length
        put_number(out, place, to - first, width)
        lengths[uint64(i)] = to - begin


@entry(void(bytes_in, int64s_in, int64s_in, uint8s))
def write_rows(data: Bytes, starts: Int64s, lengths: Int64s, out: Bytes) -> None:
    """Copy the values data[starts[i]:][:lengths[i]] one behind the other.

    data, out: uint8, padded; starts, lengths: int64. Allocates nothing, never raises.
    """
    to = int64(0)
    for i in range(starts.size):
        copy_bytes(out, to, data, starts[uint64(i)], lengths[uint64(i)])
        to += lengths[uint64(i)]
