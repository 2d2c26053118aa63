"""Unescape JSON strings into the arena."""

from __future__ import annotations

from variantlake.kernels.json.numbers import ARENA
from variantlake.kernels.native.declared import Bytes, Int64s, int64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.utf8 import valid_utf8
from variantlake.kernels.tape.words import copy_block, load8, scan_string, store8, trailing_zeros


@tiny
def hex4(text: Bytes, start: int) -> int:
    """Parse 4 hexadecimal digits; return -1 if they are not."""
    number = int64(0)
    for k in range(4):
        digit = load8(text, start + k)
        if 48 <= digit <= 57:
            digit -= 48
        elif 97 <= digit <= 102:
            digit -= 87
        elif 65 <= digit <= 70:
            digit -= 55
        else:
            return int64(-1)
        number = number * 16 + digit
    return number


@tiny
def put_utf8(arena: Bytes, to: int, code: int) -> int:
    """Write one code point; return where it ends."""
    if code < 0x80:
        store8(arena, to, code)
        return to + 1
    if code < 0x800:
        store8(arena, to, 0xC0 | (code >> 6))
        store8(arena, to + 1, 0x80 | (code & 63))
        return to + 2
    if code < 0x10000:
        store8(arena, to, 0xE0 | (code >> 12))
        store8(arena, to + 1, 0x80 | ((code >> 6) & 63))
        store8(arena, to + 2, 0x80 | (code & 63))
        return to + 3
    store8(arena, to, 0xF0 | (code >> 18))
    store8(arena, to + 1, 0x80 | ((code >> 12) & 63))
    store8(arena, to + 2, 0x80 | ((code >> 6) & 63))
    store8(arena, to + 3, 0x80 | (code & 63))
    return to + 4


@helper
def unescape(text: Bytes, start: int, end: int, arena: Bytes, state: Int64s) -> int:
    """Unescape the string that starts after a quote, up to its closing quote.

    Returns the place after the closing quote; the result is arena[old state[ARENA]:new]. Returns
    -1 - the place of an error: no end, a control character, a bad escape, surrogate or UTF-8.
    """
    begin = state[ARENA]
    to, p = begin, int64(start)
    high = int64(0)
    while True:
        # Blocks of 32 bytes: the low half marks the ends of plain text, the high half non-ASCII.
        marks = scan_string(text, p)
        high |= marks >> int64(32)
        plain = trailing_zeros(marks | int64(1) << int64(32))
        copy_block(arena, to, text, p)
        to += plain
        p += plain
        if p >= end:
            return -1 - end
        if plain == 32:
            continue
        byte = load8(text, p)
        if byte == 34:
            break
        if byte != 92:
            return -1 - p
        escape = load8(text, p + 1)
        p += 2
        if escape == 117:
            code = hex4(text, p)
            if code < 0 or p + 4 > end:
                return -1 - p
            p += 4
            # A character beyond the basic plane is a pair of surrogates; a lone one is an error.
            if 0xD800 <= code < 0xE000:
                low = hex4(text, p + 2)
                if code >= 0xDC00 or load8(text, p) != 92 or load8(text, p + 1) != 117:
                    return -1 - p
                if low < 0xDC00 or low > 0xDFFF:
                    return -1 - p
                p += 6
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            to = put_utf8(arena, to, code)
            continue
        if escape == 110:
            escape = int64(10)
        elif escape == 116:
            escape = int64(9)
        elif escape == 114:
            escape = int64(13)
        elif escape == 98:
            escape = int64(8)
        elif escape == 102:
            escape = int64(12)
        elif escape != 34 and escape != 92 and escape != 47:
            return -1 - p
        store8(arena, to, escape)
        to += 1
    # One check of the whole suffices: escapes only write valid UTF-8.
    if high != 0 and not valid_utf8(arena, begin, to):
        return -1 - p
    state[ARENA] = to
    return p + 1
