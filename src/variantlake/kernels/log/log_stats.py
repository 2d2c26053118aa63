"""Read what planning needs from a log's texts: members of JSON documents, counts, bounds in Z85.

The texts may hold any bytes. A row in an unusual form gets a status, and the plain reader reads it:
`delta.stats.variant_bounds` for bounds, `delta.stats.tags` for counts.
"""

from __future__ import annotations

from typing import NamedTuple

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32sIn,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.nodes import (
    BINARY,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    OBJECT,
    STRING,
    WIDTHS,
    NodesIn,
)
from variantlake.kernels.tape.words import copy_bytes
from variantlake.types import MAX_PRECISION

MISSING = 255
"""Tag of a member or bound that a text does not have."""
UNUSUAL = 254
"""Tag of a member or bound that only the plain reader can read."""

FLAGS_LIMIT = 1 << 51
"""`delta.stats.tags.FLAGS_LIMIT`."""

_MAX_SCALE = MAX_PRECISION
GROUP_CHARACTERS, GROUP_BYTES = 5, 4
"""Characters and bytes of one group of Z85."""


class TextSpans(NamedTuple):
    """One text a row. data: uint8, any bytes. starts, ends: int64; start is -1 without a text."""

    data: BytesIn
    starts: Int64sIn
    ends: Int64sIn


class BoundColumn(NamedTuple):
    """One bound a row.

    tags: uint8, the Primitive, MISSING or UNUSUAL. values: int64, the value if it fits in eight
    bytes (floats: their bits), else the place of its bytes in `arena` (uint8). extras: int64, the
    scale of a decimal, the number of bytes of a STRING or BINARY.
    """

    tags: Bytes
    values: Int64s
    extras: Int64s
    arena: Bytes


@entry
def find_members(
    nodes: NodesIn, first: Int64sIn, keys: Int32sIn, starts: Int64sIn, found: Int64s
) -> int:
    """Find nested members of documents.

    nodes, first: of a Tape. keys[starts[p]:starts[p + 1]]: int32, the key ids from the root to
    member p. found: int64, rows * members, filled with the index of the node, or -1. Returns the
    number of members found. Allocates nothing, never raises.
    """
    rows, members, total = int64(first.size) - 1, int64(starts.size) - 1, int64(0)
    for row in range(rows):
        begin, end = first[uint64(row)], first[uint64(row + 1)]
        for member in range(members):
            at = begin if begin < end else int64(-1)
            for step in range(starts[uint64(member)], starts[uint64(member + 1)]):
                if at < 0 or nodes[uint64(at)].tag != OBJECT:
                    at = int64(-1)
                    break
                key = int64(keys[uint64(step)])
                child, stop = at + 1, at + int64(nodes[uint64(at)].span)
                at = int64(-1)
                while child < stop:
                    if int64(nodes[uint64(child)].key) == key:
                        at = child
                        break
                    child += int64(nodes[uint64(child)].span)
            found[uint64(row * members + member)] = at
            total += int64(at >= 0)
    return total


@entry
def gather_strings(
    text: BytesIn, arena: BytesIn, places: Int64sIn, offsets: Int64sIn, out: Bytes
) -> None:
    """Copy the strings of STRING nodes one after another.

    text, arena: of a Tape. places: int64, the nodes' `value`. offsets: int64, one more than places:
    where each string goes in `out`, whose length is the last offset plus PADDING. Allocates
    nothing, never raises.
    """
    for row in range(int64(places.size)):
        place, to = places[uint64(row)], offsets[uint64(row)]
        count = offsets[uint64(row + 1)] - to
        if place >= 0:
            copy_bytes(out, to, text, place, count)
        else:
            copy_bytes(out, to, arena, ~place, count)


@tiny
def group_value(text: Bytes, place: int, digits: Int64s) -> int:
    """Return the 32 bits of the five characters at `place`; -1 if they are not Z85."""
    value, bad = int64(0), int64(0)
    for k in range(GROUP_CHARACTERS):
        digit = digits[uint64(text[uint64(place + k)])]
        bad |= digit
        value = value * 85 + digit
    # Digits are below 85; bit 7 marks characters that are not Z85.
    return value if bad & 128 == 0 and value < (int64(1) << 32) else int64(-1)


@helper
def _decode(
    text: Bytes, start: int, first: int, last: int, size: int, scratch: Bytes, digits: Int64s
) -> bool:
    """Write the bytes [first, last) of a Z85 text of `size` bytes, and up to 3 on either side.

    scratch: the bytes, by their place in the whole text. Returns False if the range is outside of
    the text or not Z85.
    """
    if first < 0 or last > size or first > last or last > int64(scratch.size):
        return False
    group = first // GROUP_BYTES
    while group * GROUP_BYTES < last:
        value = group_value(text, start + group * GROUP_CHARACTERS, digits)
        if value < 0:
            return False
        place = group * GROUP_BYTES
        scratch[uint64(place)] = value >> 24
        scratch[uint64(place + 1)] = (value >> 16) & 255
        scratch[uint64(place + 2)] = (value >> 8) & 255
        scratch[uint64(place + 3)] = value & 255
        group += 1
    return True


@tiny
def unsigned(data: Bytes, start: int, width: int) -> int:
    """Return the unsigned little-endian number of 1 to 8 bytes; 8 bytes are two's complement."""
    value = int64(0)
    for k in range(width):
        value |= int64(data[uint64(start + k)]) << (8 * k)
    return value


@helper
def _metadata_size(text: Bytes, start: int, size: int, scratch: Bytes, digits: Int64s) -> int:
    """Return the bytes of the metadata at the start of a Z85 text; -1 if there is none."""
    if not _decode(text, start, int64(0), min(int64(8), size), size, scratch, digits) or size < 3:
        return int64(-1)
    header = int64(scratch[uint64(0)])
    width = (header >> 6) + 1
    if header & 0x0F != 1 or size < 1 + width:
        return int64(-1)
    count = unsigned(scratch, int64(1), width)
    last = 1 + width + count * width
    if not _decode(text, start, last, last + width, size, scratch, digits):
        return int64(-1)
    total = last + width + unsigned(scratch, last, width)
    return total if total < size else int64(-1)


@helper
def _same_prefix(text: Bytes, one: int, other: int, size: int, digits: Int64s) -> bool:
    """Whether the Z85 texts at two places, of at least `size` bytes, begin with the same bytes."""
    characters = size // GROUP_BYTES * GROUP_CHARACTERS
    for k in range(characters):
        if text[uint64(one + k)] != text[uint64(other + k)]:
            return False
    left, right = int64(0), int64(0)
    if size % GROUP_BYTES != 0:
        left = group_value(text, one + characters, digits)
        right = group_value(text, other + characters, digits)
    cut = 8 * (GROUP_BYTES - size % GROUP_BYTES)
    return left >= 0 and right >= 0 and left >> cut == right >> cut


@entry
def find_metadata(
    texts: TextSpans,
    sizes: Int64s,
    same: Int64s,
    scratch: Bytes,
    digits: Int64sIn,
) -> int:
    """Find the size of the metadata in each Z85 text, and the texts that share theirs.

    sizes: int64, filled: -1 if a text is not metadata followed by a value, in whole groups. same:
    int64, filled with an earlier row that has the same metadata, or the row itself. scratch:
    uint8, as long as the longest text. digits: int64, shape (256,), the digit of each character,
    255 for none. Returns how many rows have metadata of their own. Allocates nothing, never raises.
    """
    text, starts, ends = texts
    previous, fresh = int64(-1), int64(0)
    for row in range(int64(starts.size)):
        start, length = starts[uint64(row)], ends[uint64(row)] - starts[uint64(row)]
        sizes[uint64(row)] = -1
        same[uint64(row)] = row
        if start < 0 or length % GROUP_CHARACTERS != 0 or length == 0:
            continue
        if previous >= 0:
            known = sizes[uint64(previous)]
            if length // GROUP_CHARACTERS * GROUP_BYTES > known and _same_prefix(
                text, start, starts[uint64(previous)], known, digits
            ):
                sizes[uint64(row)] = known
                same[uint64(row)] = same[uint64(previous)]
                continue
        size = _metadata_size(
            text, start, length // GROUP_CHARACTERS * GROUP_BYTES, scratch, digits
        )
        sizes[uint64(row)] = size
        if size >= 0:
            previous = int64(row)
            fresh += 1
    return fresh


@tiny
def _values_at(data: BytesIn, begin: int, end: int) -> int:
    """Return where the values of the object at data[begin:end] start.

    Returns -1 if it is not an object, -2 if it is malformed.
    """
    header = int64(data[uint64(begin)])
    if header & 3 != 2:
        return int64(-1)
    count_width = int64(4) if header & 64 != 0 else int64(1)
    ids = begin + 1 + count_width
    if ids > end:
        return int64(-2)
    count = unsigned(data, begin + 1, count_width)
    return ids + count * (((header >> 4) & 3) + 1) + (count + 1) * (((header >> 2) & 3) + 1)


@helper
def child_at(data: BytesIn, begin: int, end: int, field: int) -> int:
    """Return where the value of a field of the object data[begin:end] starts.

    Returns -1 if it is not an object or has no such field, -2 if it is malformed.
    """
    if begin >= end:
        return int64(-2)
    values = _values_at(data, begin, end)
    if values < 0:
        return values
    header = int64(data[uint64(begin)])
    offset_width = ((header >> 2) & 3) + 1
    id_width = ((header >> 4) & 3) + 1
    # A text that was cut short is not to be trusted.
    if values > end or values + unsigned(data, values - offset_width, offset_width) > end:
        return int64(-2)
    count_width = int64(4) if header & 64 != 0 else int64(1)
    count = unsigned(data, begin + 1, count_width)
    ids = begin + 1 + count_width
    offsets = ids + count * id_width
    for k in range(count):
        if unsigned(data, ids + k * id_width, id_width) == field:
            place = values + unsigned(data, offsets + k * offset_width, offset_width)
            return place if place < end else int64(-2)
    return int64(-1)


@helper
def put_bound(
    data: BytesIn, place: int, end: int, row: int, tags: Bytes, values: Int64s, extras: Int64s
) -> int:
    """Fill the bound of a row, which is the scalar at data[place:end].

    values gets the place of the bytes of a value that does not fit eight. Returns how many bytes
    that are, else -1. The tag becomes UNUSUAL or MISSING if there is no scalar.
    """
    tags[uint64(row)] = UNUSUAL
    header = int64(data[uint64(place)])
    tag, width = header >> 2, int64(0)
    if header & 3 == 1:
        tag, width = int64(STRING), header >> 2
    elif header & 3 != 0 or tag >= WIDTHS.size:
        tags[uint64(row)] = MISSING
        return int64(-1)
    else:
        width = WIDTHS[uint64(tag)]
    place += 1
    if tag == DECIMAL4 or tag == DECIMAL8 or tag == DECIMAL16:
        extras[uint64(row)] = int64(data[uint64(place)]) if place < end else int64(255)
        if extras[uint64(row)] > _MAX_SCALE:
            return int64(-1)
        place += 1
        width -= 1
    elif width < 0:
        if place + 4 > end:
            return int64(-1)
        width = unsigned(data, place, int64(4))
        place += 4
    if place + width > end:
        return int64(-1)
    tags[uint64(row)] = tag
    if width > 8 or tag == STRING or tag == BINARY:
        values[uint64(row)] = place
        if tag == STRING or tag == BINARY:
            extras[uint64(row)] = width
        return width
    value = unsigned(data, place, width)
    if width > 0 and width < 8 and value >> (8 * width - 1) != 0:
        value -= int64(1) << (8 * width)
    values[uint64(row)] = value
    return int64(-1)


@helper
def _find_child(
    text: Bytes, start: int, begin: int, size: int, field: int, scratch: Bytes, digits: Int64s
) -> int:
    """Return where the value of a field of the object at byte `begin` starts.

    Returns -1 if that is not an object or has no such field, -2 if it is malformed.
    """
    if (
        not _decode(text, start, begin, min(begin + 8, size), size, scratch, digits)
        or begin + 2 > size
    ):
        return int64(-2)
    values = _values_at(scratch, begin, size)
    if values < 0:
        return values
    if not _decode(text, start, begin, values, size, scratch, digits):
        return int64(-2)
    return child_at(scratch, begin, size, field)


@entry
def find_bounds(
    texts: TextSpans,
    sizes: Int64sIn,
    fields: Int64sIn,
    begin_row: int,
    bounds: BoundColumn,
    state: Int64s,
    scratch: Bytes,
    digits: Int64sIn,
) -> int:
    """Read one field of each object of bounds, for rows from `begin_row` on.

    texts, sizes, scratch, digits: as `find_metadata` takes and fills them. fields: int64, the
    field id, -1 for none. bounds: filled. state[0]: used bytes of the arena. Returns the first row
    that it did not read: the number of rows when it is done, else one for which the arena has no
    room. Allocates nothing, never raises. Twin: delta.stats.variant_bounds.decode_bounds.
    """
    text, starts, ends = texts
    tags, values, extras, arena = bounds
    rows = int64(starts.size)
    for row in range(begin_row, rows):
        tags[uint64(row)] = MISSING
        start, field, begin = starts[uint64(row)], fields[uint64(row)], sizes[uint64(row)]
        if start < 0 or (begin >= 0 and field < 0):
            continue
        size = (ends[uint64(row)] - start) // GROUP_CHARACTERS * GROUP_BYTES
        place = int64(-2)
        if begin >= 0:
            place = _find_child(text, start, begin, size, field, scratch, digits)
        if place == -1:
            continue
        tags[uint64(row)] = UNUSUAL
        if place < 0 or not _decode(
            text, start, place, min(place + 20, size), size, scratch, digits
        ):
            continue
        width = put_bound(scratch, place, size, row, tags, values, extras)
        if width < 0:
            continue
        data, used = values[uint64(row)], state[0]
        if not _decode(text, start, data, data + width, size, scratch, digits):
            tags[uint64(row)] = UNUSUAL
            continue
        if used + width > int64(arena.size):
            return int64(row)
        for k in range(width):
            arena[uint64(used + k)] = scratch[uint64(data + k)]
        values[uint64(row)] = used
        state[0] = used + width
    return rows


@tiny
def _skip_blanks(text: Bytes, p: int, end: int) -> int:
    while p < end:
        byte = int64(text[uint64(p)])
        if byte != 32 and byte != 9 and byte != 10 and byte != 13:
            break
        p += 1
    return p


@entry
def read_counts(
    text: BytesIn,
    starts: Int64sIn,
    ends: Int64sIn,
    limits: Int64sIn,
    sizes: Int64sIn,
    nodes: Int64sIn,
    whole: int,
    counts: Int64s,
) -> int:
    """Read one node's four numbers of each text `[[typed, nulls, residuals, flags], ...]`.

    text: uint8, any bytes. starts, ends: int64, one a row; start is -1 without a text. limits: the
    greatest valid count. sizes: the number of nodes that the text must have. nodes: the one to
    read. whole: 0 to check the text only up to that node. counts: int64, shape (rows * 4,), filled;
    flags is -1 if the text does not have this form, with -1 <= count <= limit and
    0 <= flags < FLAGS_LIMIT. Returns how many texts have it. Allocates nothing, never raises.
    Twin: delta.stats.tags.read_tags.
    """
    good = int64(0)
    for row in range(int64(starts.size)):
        to = 4 * int64(row)
        counts[uint64(to + 3)] = -1
        p, end = starts[uint64(row)], ends[uint64(row)]
        if p < 0:
            continue
        p = _skip_blanks(text, p, end)
        if p >= end or text[uint64(p)] != 91:
            continue
        p = _skip_blanks(text, p + 1, end)
        # Which number comes next: 4 * node + place. A node is closed after its fourth.
        number, sound = int64(0), True
        stop = sizes[uint64(row)] if whole != 0 else nodes[uint64(row)] + 1
        while sound and number < 4 * stop:
            opening = int64(91) if number % 4 == 0 else int64(44)
            if number % 4 == 0 and number > 0:
                if p >= end or text[uint64(p)] != 44:
                    sound = False
                    break
                p = _skip_blanks(text, p + 1, end)
            if p >= end or int64(text[uint64(p)]) != opening:
                sound = False
                break
            p = _skip_blanks(text, p + 1, end)
            negative = p < end and text[uint64(p)] == 45
            if negative:
                p += 1
            begin, value = p, int64(0)
            while p < end and 48 <= text[uint64(p)] <= 57 and p - begin < 18:
                value = value * 10 + int64(text[uint64(p)]) - 48
                p += 1
            if p == begin or (text[uint64(begin)] == 48 and p - begin > 1):
                sound = False
                break
            if negative:
                value = -value
            if number % 4 < 3:
                sound = -1 <= value <= limits[uint64(row)]
            else:
                sound = 0 <= value < FLAGS_LIMIT
            if number // 4 == nodes[uint64(row)]:
                counts[uint64(to + number % 4)] = value
            p = _skip_blanks(text, p, end)
            if number % 4 == 3:
                if p >= end or text[uint64(p)] != 93:
                    sound = False
                    break
                p = _skip_blanks(text, p + 1, end)
            number += 1
        if sound and whole == 0:
            good += 1
            continue
        if sound and p < end and text[uint64(p)] == 93:
            p = _skip_blanks(text, p + 1, end)
            if p == end and nodes[uint64(row)] < sizes[uint64(row)]:
                good += 1
                continue
        counts[uint64(to + 3)] = -1
    return good
