"""Kernels of check_rows: check dictionaries and encoded values against every rule."""

from __future__ import annotations

from typing import NamedTuple

from variantlake.encoding.limits import MAX_KEYS, MAX_VALUE_BYTES
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
from variantlake.kernels.tape.containers import read_extents, read_header
from variantlake.kernels.tape.keys import compare_bytes, equal_bytes
from variantlake.kernels.tape.nodes import BINARY, DECIMAL4, DECIMAL16, WIDTHS
from variantlake.kernels.tape.utf8 import valid_utf8
from variantlake.kernels.tape.words import load8, load32, load64, load_unsigned
from variantlake.types import MAX_PRECISION

_LIMIT, _KEYS_LIMIT = MAX_VALUE_BYTES, MAX_KEYS
_SORTED = 0x10

_SCALE_LIMIT = MAX_PRECISION
_DIGITS_9, _DIGITS_18, _DIGITS_38_HIGH = 10**9, 10**18, 10**38 >> 64
"""Limits of the unscaled decimals; only the upper half of the widest type is compared."""

_PLACE_BITS = MAX_VALUE_BYTES.bit_length()
_PLACE = (1 << _PLACE_BITS) - 1
_DEPTH_BITS = 2 * _PLACE_BITS
_DEEPEST = 100
"""The twin checks deeper values: beside two places, a word of `work` has few bits for the depth."""


class RowDictionaries(NamedTuple):
    """The key dictionaries of rows.

    metadata: uint8, any bytes, padded. of_row: int64, the number of the row's dictionary, -1 when
    it has none or a broken one. Dictionary d starts at metadata[places[d]] (int64, rows). Its keys
    are keys[firsts[d]:firsts[d + 1]] (int64, rows + 1; int32, as long as metadata): the index of
    each key in the names, or -1.
    """

    metadata: BytesIn
    of_row: Int64s
    places: Int64s
    firsts: Int64s
    keys: Int32s


@helper
def _name_of(
    data: Bytes, start: int, length: int, names: Bytes, name_starts: Int64s, count: int
) -> int:
    """Return the index of a key in the sorted names, -1 if it is not among them."""
    low, high = int64(0), count
    while low < high:
        middle = (low + high) // 2
        at = name_starts[uint64(middle)]
        order = compare_bytes(data, start, length, names, at, name_starts[uint64(middle + 1)] - at)
        if order == 0:
            return middle
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return int64(-1)


@helper
def _read_dictionary(
    metadata: Bytes,
    start: int,
    end: int,
    names: Bytes,
    name_starts: Int64s,
    keys: Int32s,
    first: int,
    has: Bytes,
    has_first: int,
) -> int:
    """Return the number of keys of the dictionary metadata[start:end], -1 if it breaks a rule."""
    count = int64(name_starts.size) - 1
    header = load8(metadata, start)
    width = (header >> 6) + 1
    if header & 0x0F != 1 or end - start < 1 + width or end - start > _LIMIT:
        return int64(-1)
    size = load_unsigned(metadata, start + 1, width)
    place = start + 1 + width
    strings = place + (size + 1) * width
    if strings > end or size > _KEYS_LIMIT or load_unsigned(metadata, place, width) != 0:
        return int64(-1)
    offset = previous = int64(0)
    for index in range(size):
        place += width
        following = load_unsigned(metadata, place, width)
        if following < offset or strings + following > end:
            return int64(-1)
        at, length = strings + offset, following - offset
        if not valid_utf8(metadata, at, at + length):
            return int64(-1)
        if header & _SORTED != 0 and index > 0:
            before = strings + previous
            if compare_bytes(metadata, before, offset - previous, metadata, at, length) >= 0:
                return int64(-1)
        name = _name_of(metadata, at, length, names, name_starts, count)
        keys[uint64(first + index)] = name
        if name >= 0:
            has[uint64(has_first + name)] = 1
        previous, offset = offset, following
    return size if strings + offset == end else int64(-1)


@entry
def read_dictionaries(
    offsets: Int64sIn,
    valid: BytesIn,
    names: BytesIn,
    name_starts: Int64sIn,
    dictionaries: RowDictionaries,
    has: Bytes,
) -> int:
    """Check and read the dictionary of each row; consecutive rows with equal bytes share one.

    offsets: int64, rows + 1, ascending, in the metadata. valid: uint8, 0 to skip a row. names:
    uint8, padded, the names of shredded fields in the order of their bytes; name_starts: int64,
    names + 1. Fills `dictionaries`, all but its `metadata`. has (uint8, rows * names, zero): sets
    has[d * names + n] to 1 if name n is a key of dictionary d. Returns the number of dictionaries.
    Allocates nothing, never raises.
    """
    metadata, of_row, places, firsts, keys = dictionaries
    rows, count = int64(offsets.size) - 1, int64(name_starts.size) - 1
    found, known, known_size = int64(0), int64(-1), int64(-1)
    firsts[uint64(0)] = 0
    for row in range(rows):
        of_row[uint64(row)] = -1
        start, end = offsets[uint64(row)], offsets[uint64(row + 1)]
        if valid[uint64(row)] == 0 or start == end:
            continue
        size = end - start
        if size == known_size and equal_bytes(metadata, start, metadata, known, size):
            of_row[uint64(row)] = found - 1
            continue
        first = firsts[uint64(found)]
        read = _read_dictionary(
            metadata, start, end, names, name_starts, keys, first, has, found * count
        )
        if read < 0:
            # The next dictionary gets the same part of `has`.
            for name in range(count):
                has[uint64(found * count + name)] = 0
            continue
        known, known_size = start, size
        places[uint64(found)] = start
        of_row[uint64(row)] = found
        found += 1
        firsts[uint64(found)] = first + read
    return found


@helper
def _are_in_order(
    data: Bytes,
    ids: int,
    count: int,
    id_width: int,
    metadata: Bytes,
    place: int,
    first: int,
    held: int,
    keys: Int32s,
    members: Bytes,
    partial: bool,
) -> bool:
    """Whether all field ids are in the dictionary at `place` of `held` keys, in order of names.

    If `partial` is set, no name may be one of the members.
    """
    header = load8(metadata, place)
    width = (header >> 6) + 1
    offsets = place + 1 + width
    strings = offsets + (held + 1) * width
    previous, before, before_length = int64(-1), int64(0), int64(0)
    for index in range(count):
        field = load_unsigned(data, ids + index * id_width, id_width)
        if field >= held:
            return False
        if partial:
            name = int64(keys[uint64(first + field)])
            if name >= 0 and members[uint64(name)] != 0:
                return False
        if header & _SORTED != 0:
            if field <= previous:
                return False
            previous = field
            continue
        start = load_unsigned(metadata, offsets + field * width, width)
        length = load_unsigned(metadata, offsets + (field + 1) * width, width) - start
        start += strings
        if (
            index > 0
            and compare_bytes(metadata, before, before_length, metadata, start, length) >= 0
        ):
            return False
        before, before_length = start, length
    return True


@helper
def _is_scalar(data: Bytes, start: int, end: int) -> bool:
    """Whether a valid primitive or short string fills data[start:end], which is not empty.

    Also returns False for some valid decimals close to 38 digits.
    """
    header = load8(data, start)
    if header & 3 == 1:
        return header >> 2 == end - start - 1 and valid_utf8(data, start + 1, end)
    tag = header >> 2
    if tag >= WIDTHS.size:
        return False
    width = int64(WIDTHS[uint64(tag)])
    if width < 0:
        if end - start < 5 or start + 5 + load32(data, start + 1) != end:
            return False
        return tag == BINARY or valid_utf8(data, start + 5, end)
    if start + 1 + width != end:
        return False
    if tag < DECIMAL4 or tag > DECIMAL16:
        return True
    number, limit = load64(data, start + 2), int64(_DIGITS_18)
    if tag == DECIMAL4:
        number, limit = (number << int64(32)) >> int64(32), int64(_DIGITS_9)
    elif tag == DECIMAL16:
        number, limit = load64(data, start + 10), int64(_DIGITS_38_HIGH)
    return load8(data, start + 1) <= _SCALE_LIMIT and -limit < number < limit


@helper
def _is_value(
    data: Bytes,
    origin: int,
    size: int,
    metadata: Bytes,
    place: int,
    first: int,
    held: int,
    keys: Int32s,
    members: Bytes,
    partial: bool,
    work: Int64s,
) -> bool:
    """Whether data[origin:][:size] is a valid value for the dictionary at `place` of `held` keys.

    Also returns False if it nests deeper than _DEEPEST. work: a stack of the values still to check,
    depth << _DEPTH_BITS | start << _PLACE_BITS | end, relative to `origin`.
    """
    if size == 0 or size > _LIMIT:
        return False
    work[uint64(0)] = size
    top = int64(1)
    while top > 0:
        top -= 1
        word = work[uint64(top)]
        start = origin + (word >> int64(_PLACE_BITS) & _PLACE)
        end = origin + (word & _PLACE)
        header = load8(data, start)
        if header & 2 == 0:
            if not _is_scalar(data, start, end):
                return False
            continue
        depth = (word >> int64(_DEPTH_BITS)) + 1
        count, ids, id_width, width, base = read_header(data, start, end)
        if count < 0 or depth > _DEEPEST:
            return False
        if not read_extents(data, ids + count * id_width, count, width, end - base, work, top):
            return False
        if id_width > 0 and not _are_in_order(
            data, ids, count, id_width, metadata, place, first, held, keys, members,
            partial and depth == 1,
        ):  # fmt: skip
            return False
        base -= origin
        for index in range(count):
            extent = work[uint64(top + index)]
            from_, to = base + (extent >> int64(32)), base + (extent & 0xFFFFFFFF)
            work[uint64(top + index)] = (
                depth << int64(_DEPTH_BITS) | from_ << int64(_PLACE_BITS) | to
            )
        top += count
    return True


@entry
def check_values(
    data: BytesIn,
    offsets: Int64sIn,
    present: BytesIn,
    rows: Int64sIn,
    dictionaries: RowDictionaries,
    partial: BytesIn,
    members: BytesIn,
    work: Int64s,
    marked: Bytes,
) -> None:
    """Set `marked` (uint8, one a row) to 1 for each row with a value that may break a rule.

    data: uint8, any bytes, padded; offsets: int64, slots + 1, ascending; present: uint8, one a
    slot, 0 for null. rows: int64, the row of each slot. dictionaries: as read_dictionaries left
    them. partial: uint8, one a slot, 1 if the slot also has shredded fields: the value must then be
    an object without the names marked in `members` (uint8, one a name). work: int64, as long as
    the longest value and 64 more. Allocates nothing, never raises. Twin: encoding.value.validate.
    """
    metadata, of_row, places, firsts, keys = dictionaries
    for i in range(rows.size):
        row = uint64(rows[uint64(i)])
        if present[uint64(i)] == 0 or marked[row] != 0:
            continue
        d = of_row[row]
        start, end = offsets[uint64(i)], offsets[uint64(i + 1)]
        good = False
        if d >= 0:
            first = firsts[uint64(d)]
            held = firsts[uint64(d + 1)] - first
            place = places[uint64(d)]
            beside = partial[uint64(i)] != 0
            good = _is_value(
                data, start, end - start, metadata, place, first, held, keys, members, beside, work
            ) and (not beside or load8(data, start) & 3 == 2)
        if not good:
            marked[row] = 1
