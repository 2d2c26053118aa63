"""Decode the pages of a column chunk: dictionary codes, integers, decimals.

This is for columns outside of lists, by which queries group and filter. pyarrow reads whatever is
unusual or wrong, and words the errors. Spec: Parquet, "Encodings", "Data Pages".
"""

from __future__ import annotations

from typing import Any

from variantlake.kernels.columns.differences import differences
from variantlake.kernels.columns.hybrid import hybrid, packed, varint
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
from variantlake.kernels.tape.words import load8, load32, load64, store64

# --- Values ---------------------------------------------------------------------------------------

LEVELS_AT, VALUES_AT, END_AT, PLACE, ROWS, COUNT = 0, 1, 2, 3, 4, 5
"""Words of each page: offsets of its definition levels, of its values and of their end; its first
row, its number of rows, and how many of these have a value."""
FIRST_ENTRY, ENTRIES = 6, 7
"""Words of a page of codes: where its dictionary begins among all entries, and its size."""
FORM = 8
"""Word of a page of integers: its encoding."""
SPAN = 9
"""How many words describe a page."""

AS_CODES, AS_DIFFERENCES, AS_THEY_ARE = 0, 1, 2
"""The encodings of pages of integers: by dictionary, DELTA_BINARY_PACKED, PLAIN."""

_ALL_VALID = 0x0101010101010101
_EVEN_BYTES, _EVEN_PAIRS = uint64(0x00FF00FF00FF00FF), uint64(0x0000FFFF0000FFFF)


@helper
def is_within(data: Bytes, pages: Int64s, base: int, rows: int) -> bool:
    """Whether a page lies within the data, and its rows are among the first `rows`."""
    levels, values, end = (
        pages[uint64(base + LEVELS_AT)],
        pages[uint64(base + VALUES_AT)],
        pages[uint64(base + END_AT)],
    )
    place, own = pages[uint64(base + PLACE)], pages[uint64(base + ROWS)]
    if levels < 0 or values < levels or end < values or end > data.size:
        return False
    return bool(place >= 0 and own >= 0 and own <= rows - place)


@helper
def _flagged(
    levels: Bytes, most: int, width: int, rows: int, valid: Bytes, place: int, scratch: Int64s
) -> int:
    """As `_valued`, for levels of 1 to 7 bits, of which a word holds eight."""
    at = done = found = beyond = int64(0)
    mask = (int64(1) << width) - 1
    while done < rows:
        at = varint(levels, at, scratch, int64(0))
        if at < 0:
            return -1
        header, left = scratch[uint64(0)], int64(levels.size) - at
        if header & 1 == 0:
            if header == 0 or left < 1:
                return -1
            level = load8(levels, at)
            run = min(header >> 1, rows - done)
            there = int64(1) if level == most else int64(0)
            for k in range(run):
                valid[uint64(place + done + int64(k))] = there
            beyond |= most - level
            found += run * there
            done += run
            at += 1
            continue
        groups = header >> 1
        if groups > 1 << 31 or groups == 0 or groups * width > left:
            return -1
        run = min(groups * 8, rows - done)
        eight = at
        while run >= 8 and eight + 8 <= levels.size:
            word, flags = load64(levels, eight), int64(0)
            for k in range(8):
                level = word >> (width * int64(k)) & mask
                there = int64(1) if level == most else int64(0)
                flags |= there << (8 * int64(k))
                beyond |= most - level
            store64(valid, place + done, flags)
            found += (flags * int64(_ALL_VALID)) >> 56
            eight += width
            done += 8
            run -= 8
        for k in range(run):
            level = packed(levels, eight * 8 + width * int64(k), width)
            there = int64(1) if level == most else int64(0)
            valid[uint64(place + done + int64(k))] = there
            beyond |= most - level
            found += there
        done += run
        at += groups * width
    return found if beyond >= 0 else int64(-1)


@helper
def _valued(
    levels: Bytes,
    most: int,
    rows: int,
    valid: Bytes,
    place: int,
    numbers: Int32s,
    scratch: Int64s,
) -> int:
    """Mark the rows of a page that have a value; returns their number, or -1."""
    width = int64(0)
    while most >> width:
        width += 1
    if 0 < width < 8:
        return _flagged(levels, most, width, rows, valid, place, scratch)
    if width > 31 or hybrid(levels, width, rows, numbers, int64(0), scratch) < 0:
        return -1
    found = highest = int64(0)
    for row in range(rows):
        level = int64(numbers[uint64(row)])
        highest = max(highest, level)
        there = int64(1) if level == most else int64(0)
        valid[uint64(place + int64(row))] = there
        found += there
    return found if highest <= most else int64(-1)


@helper
def _marked(
    data: Bytes, pages: Int64s, most: int, valid: Bytes, numbers: Int32s, scratch: Int64s
) -> int:
    """See `find_values`."""
    total = int64(0)
    for page in range(pages.size // SPAN):
        base = int64(page) * SPAN
        if not is_within(data, pages, base, int64(valid.size)):
            return -1
        rows, place = pages[uint64(base + ROWS)], pages[uint64(base + PLACE)]
        if rows > numbers.size:
            return -1
        levels = data[pages[uint64(base + LEVELS_AT)] : pages[uint64(base + VALUES_AT)]]
        found = int64(-1)
        header, at = int64(1), int64(0)
        if most < 128:
            at = varint(levels, int64(0), scratch, int64(0))
            header = scratch[uint64(0)]
        if most == 0 or (0 < at < levels.size and header & 1 == 0 and header >> 1 >= rows):
            # One run of all rows, as if no value were missing.
            level = int64(0) if most == 0 else load8(levels, at)
            there = int64(1) if level == most else int64(0)
            for row in range(rows):
                valid[uint64(place + int64(row))] = there
            found = rows * there if level <= most else int64(-1)
        else:
            found = _valued(levels, most, rows, valid, place, numbers, scratch)
        if found < 0:
            return -1
        pages[uint64(base + COUNT)] = found
        total += found
    return total


@entry
def find_values(
    data: BytesIn, pages: Int64s, most: int, valid: Bytes, numbers: Int32s, scratch: Int64s
) -> int:
    """Mark the rows of pages that have a value; returns their number, or -1.

    data: uint8, any bytes. pages: int64, SPAN words each; COUNT is filled in. most: the definition
    level of a value; 0 if all rows have one. valid: uint8, 1 for a row with a value, else 0; rows
    outside of all pages keep theirs. numbers: int32, room for the rows of a page. scratch: int64,
    a word. Allocates nothing, never raises.
    """
    return _marked(data, pages, most, valid, numbers, scratch)


@helper
def _spread(valid: Bytes, place: int, rows: int, count: int, values: Any) -> int:
    """Move the `count` values of a page to its rows that have one; 0 elsewhere. Returns 0, or -1.

    valid: uint8, as `find_values` fills it. values: int32 or int64; the page's begin at `place`.
    """
    left, above = count, rows
    while above > left >= 0:
        if left >= 8 and load64(valid, place + above - 8) == int64(_ALL_VALID):
            # Read all before writing any: the two places may share rows.
            own, new = place + left - 8, place + above - 8
            one, two = values[uint64(own)], values[uint64(own + 1)]
            three, four = values[uint64(own + 2)], values[uint64(own + 3)]
            five, six = values[uint64(own + 4)], values[uint64(own + 5)]
            seven, eight = values[uint64(own + 6)], values[uint64(own + 7)]
            values[uint64(new)], values[uint64(new + 1)] = one, two
            values[uint64(new + 2)], values[uint64(new + 3)] = three, four
            values[uint64(new + 4)], values[uint64(new + 5)] = five, six
            values[uint64(new + 6)], values[uint64(new + 7)] = seven, eight
            left -= 8
            above -= 8
            continue
        above -= 1
        there = int64(valid[uint64(place + above)])
        left -= there
        # Without a branch: which rows have a value cannot be foretold.
        value = int64(values[uint64(place + max(left, int64(0)))])
        values[uint64(place + above)] = value * there
    return 0 if left == above else int64(-1)


@entry
def decode_codes(
    data: BytesIn,
    pages: Int64s,
    most: int,
    valid: Bytes,
    numbers: Int32s,
    scratch: Int64s,
    codes: Int32s,
) -> int:
    """Decode the codes of pages as numbers of entries among all; returns their number, or -1.

    Calls `find_values` first, whose arguments the others are. codes: int32, one for each row; 0
    for a row without a value; rows outside of all pages keep theirs. Also -1 for a code beyond
    its dictionary. Allocates nothing, never raises. Spec: "Dictionary Encoding".
    """
    total = int64(-1)
    if valid.size <= codes.size:
        total = _marked(data, pages, most, valid, numbers, scratch)
    if total < 0:
        return -1
    for page in range(pages.size // SPAN):
        base = int64(page) * SPAN
        count, place = pages[uint64(base + COUNT)], pages[uint64(base + PLACE)]
        rows = pages[uint64(base + ROWS)]
        if not is_within(data, pages, base, int64(valid.size)) or count < 0 or count > rows:
            return -1
        values = data[pages[uint64(base + VALUES_AT)] : pages[uint64(base + END_AT)]]
        if count > 0:
            if values.size == 0:
                return -1
            width = load8(values, int64(0))
            if width > 31 or hybrid(values[1:], width, count, codes, place, scratch) < 0:
                return -1
            highest, first = int64(0), pages[uint64(base + FIRST_ENTRY)]
            for row in range(count):
                code = int64(codes[uint64(place + int64(row))])
                highest = max(highest, code)
                codes[uint64(place + int64(row))] = code + first
            if highest >= pages[uint64(base + ENTRIES)]:
                return -1
        if count < rows and _spread(valid, place, rows, count, codes) < 0:
            return -1
    return total


@helper
def _looked_up(
    values: Bytes,
    count: int,
    entries: Int64s,
    first: int,
    size: int,
    numbers: Int32s,
    scratch: Int64s,
    integers: Int64s,
    place: int,
) -> int:
    """Decode `count` codes as the integers of `size` entries that begin at `first`; 0, or -1."""
    if count == 0:
        return 0
    if values.size == 0 or count > numbers.size:
        return -1
    width = load8(values, int64(0))
    if width > 31 or hybrid(values[1:], width, count, numbers, int64(0), scratch) < 0:
        return -1
    highest = int64(0)
    for row in range(count):
        highest = max(highest, int64(numbers[uint64(row)]))
    if highest >= size or first < 0 or size > int64(entries.size) - first:
        return -1
    for row in range(count):
        code = first + int64(numbers[uint64(row)])
        integers[uint64(place + int64(row))] = entries[uint64(code)]
    return 0


@helper
def _plain_integers(values: Bytes, count: int, width: int, integers: Int64s, place: int) -> int:
    """Read `count` integers of 4 or 8 bytes; returns 0, or -1 unless they fill the page."""
    if values.size != count * width:
        return -1
    if width == 8:
        for row in range(count):
            integers[uint64(place + int64(row))] = load64(values, 8 * int64(row))
        return 0
    for row in range(count):
        word = int64(load32(values, 4 * int64(row))) & 0xFFFFFFFF
        integers[uint64(place + int64(row))] = (word ^ 0x80000000) - 0x80000000
    return 0


@entry
def decode_integers(
    data: BytesIn,
    pages: Int64s,
    most: int,
    valid: Bytes,
    numbers: Int32s,
    scratch: Int64s,
    entries: Int64sIn,
    width: int,
    integers: Int64s,
) -> int:
    """Decode the integers of pages by their FORM; returns their number, or -1.

    Calls `find_values` first, whose arguments all but the last three are. entries: int64, of all
    dictionaries. width: 4 or 8, the bytes of a PLAIN integer. integers: int64, one for each row;
    0 for a row without a value; rows outside of all pages keep theirs. Also -1 for a code beyond
    its dictionary. Allocates nothing, never raises. Spec: "Delta Encoding
    (DELTA_BINARY_PACKED)", "Plain (PLAIN = 0)", "Dictionary Encoding".
    """
    total = int64(-1)
    if valid.size <= integers.size and (width == 4 or width == 8):
        total = _marked(data, pages, most, valid, numbers, scratch)
    if total < 0:
        return -1
    for page in range(pages.size // SPAN):
        base = int64(page) * SPAN
        count, place = pages[uint64(base + COUNT)], pages[uint64(base + PLACE)]
        rows, form = pages[uint64(base + ROWS)], pages[uint64(base + FORM)]
        if not is_within(data, pages, base, int64(valid.size)) or count < 0 or count > rows:
            return -1
        values = data[pages[uint64(base + VALUES_AT)] : pages[uint64(base + END_AT)]]
        found = int64(-1)
        if form == AS_DIFFERENCES:
            found = differences(values, int64(0), count, integers, place, scratch)
        elif form == AS_THEY_ARE:
            found = _plain_integers(values, count, width, integers, place)
        elif form == AS_CODES:
            first, size = pages[uint64(base + FIRST_ENTRY)], pages[uint64(base + ENTRIES)]
            found = _looked_up(
                values, count, entries, first, size, numbers, scratch, integers, place
            )
        if found < 0:
            return -1
        if count < rows and _spread(valid, place, rows, count, integers) < 0:
            return -1
    return total


@helper
def _big_endian(data: Bytes, at: int, width: int) -> int:
    """Read a signed big-endian number of 1 to 8 bytes."""
    if width == 8:
        word = uint64(load64(data, at))
        word = (word & _EVEN_BYTES) << uint64(8) | word >> uint64(8) & _EVEN_BYTES
        word = (word & _EVEN_PAIRS) << uint64(16) | word >> uint64(16) & _EVEN_PAIRS
        return int64(word << uint64(32) | word >> uint64(32))
    number = load8(data, at)
    number -= 2 * (number & 128)
    for k in range(1, width):
        number = number << 8 | load8(data, at + int64(k))
    return number


@entry
def decode_decimals(
    data: BytesIn,
    pages: Int64s,
    most: int,
    valid: Bytes,
    numbers: Int32s,
    scratch: Int64s,
    width: int,
    words: Int64s,
) -> int:
    """Decode the decimals of pages, `width` bytes each; returns their number, or -1.

    Calls `find_values` first, whose arguments all but the last two are. width: 1 to 16. words:
    int64, two for each row, the lower half of its unscaled number first; 0 for a row without a
    value; rows outside of all pages keep theirs. Allocates nothing, never raises. Spec: "DECIMAL",
    "Plain (PLAIN = 0)".
    """
    total = int64(-1)
    if 0 < width <= 16 and 2 * valid.size <= words.size:
        total = _marked(data, pages, most, valid, numbers, scratch)
    if total < 0:
        return -1
    upper = max(width - 8, int64(0))
    for page in range(pages.size // SPAN):
        base = int64(page) * SPAN
        at, place = pages[uint64(base + VALUES_AT)], pages[uint64(base + PLACE)]
        rows, count = pages[uint64(base + ROWS)], pages[uint64(base + COUNT)]
        if not is_within(data, pages, base, int64(valid.size)):
            return -1
        if count * width != pages[uint64(base + END_AT)] - at:
            return -1
        for row in range(rows):
            slot = place + int64(row)
            low = high = int64(0)
            if valid[uint64(slot)] != 0:
                low = _big_endian(data, at + upper, width - upper)
                high = _big_endian(data, at, upper) if upper > 0 else low >> 63
                at += width
            words[uint64(2 * slot)] = low
            words[uint64(2 * slot + 1)] = high
    return total
