"""Find why and where a JSON document was refused: the mistake that the plain parser meets first.

A JsonReader reports the byte where it stopped. Up to there this module only follows brackets, keys
and ends of values. It reads the tokens after the last whole value by the grammar; one of them is
the mistake. Twin: encoding.json.
"""

from __future__ import annotations

from typing import NamedTuple

from variantlake.encoding.limits import MAX_DEPTH, MAX_NUMBER_DIGITS
from variantlake.kernels.json.grammar import (
    ALSE_WORD,
    COLON,
    COMMA,
    MINUS,
    NEWLINE,
    NINE,
    NULL_WORD,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    SMALL_F,
    SPACE,
    TO_CLOSE,
    TRUE_WORD,
    ZERO,
    is_blank,
)
from variantlake.kernels.json.open_containers import (
    BACKSLASH,
    BEHIND,
    CONTAINER,
    ROOT_DONE,
    Memory,
    find_open,
    first_repeat,
)
from variantlake.kernels.json.strings import hex4
from variantlake.kernels.native.declared import Bytes, BytesIn, Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.utf8 import utf8_end
from variantlake.kernels.tape.words import load8, load32

# What is wrong.
UNKNOWN = 0
"""This module found no mistake: ask the plain parser."""
NOT_UTF8 = 1
BYTE_ORDER_MARK = 2
BEHIND_END = 3
"""Something follows the document."""
NO_VALUE = 4
NO_COMMA_OR_BRACE = 5
NO_COMMA_OR_BRACKET = 6
NO_KEY = 7
NO_COLON = 8
REPEATED_KEY = 9
OPEN_STRING = 10
CONTROL_CHARACTER = 11
UNKNOWN_ESCAPE = 12
NO_HEX_DIGITS = 13
LONE_SURROGATE = 14
NO_DIGITS = 15
NUMBER_GOES_ON = 16
MANY_DIGITS = 17
TOO_DEEP = 18

AT_END = -1
"""Replaces the unexpected character at the end of the text."""

# Places in the state array, after those of open_containers.
WHAT, AT, MARK, ENTERED, KEY, KEY_END, REPEATED, OPEN = 16, 17, 18, 19, 20, 21, 22, 23
"""The mistake, its place, and the place of the unexpected character; whether it is within a child
of the innermost container, and where that child's key starts and ends; the word of the repeated
key; the number of words of open containers."""

_POINT, _PLUS, _SMALL_E, _SMALL_U = 46, 43, 101, 117
_LOWER = 32
_ESCAPE = 18
"""The most bytes that a backslash, a u and four characters take."""
_MARK = 0xBFBBEF


@helper
def _stop(memory: Memory, what: int, at: int, mark: int) -> int:
    """Note the mistake; return -1, which callers return instead of the end of a token."""
    state = memory.state
    state[WHAT] = what
    state[AT] = at
    state[MARK] = mark
    return int64(-1)


@tiny
def _skip(text: Bytes, p: int, end: int) -> int:
    """Return where white space from p on ends."""
    while p < end and is_blank(load8(text, p)):
        p += 1
    return p


@tiny
def _is_digit(byte: int) -> bool:
    return ZERO <= byte <= NINE


@tiny
def _is_hex(byte: int) -> bool:
    return ZERO <= byte <= NINE or 97 <= (byte | _LOWER) <= 102


@tiny
def _is_short_escape(byte: int) -> bool:
    """Whether the byte is an escape after a backslash: a quote, a slash, a backslash or bfnrt."""
    return (
        byte == QUOTE
        or byte == 47
        or byte == BACKSLASH
        or byte == 98
        or byte == 102
        or byte == 110
        or byte == 114
        or byte == 116
    )


@helper
def _unit(text: Bytes, p: int, end: int, quote: int, memory: Memory) -> int:
    """Return the code unit of the escape at p, a backslash and u; -1 if it is wrong."""
    number = int64(hex4(text, p + 2)) if p + 6 <= end else int64(-1)
    if number < 0:
        q = p + 2
        while q < p + 5 and q < end and _is_hex(load8(text, q)):
            q += 1
        if _skip(text, q, end) >= end:
            return _stop(memory, OPEN_STRING, quote, quote)
        return _stop(memory, NO_HEX_DIGITS, p, p)
    return number


@helper
def _string(text: Bytes, quote: int, end: int, memory: Memory) -> int:
    """Return where the string that starts at `quote` ends, or -1.

    If only white space follows up to the end, the string is open: readers of lines cut it off.
    """
    p = quote + 1
    while True:
        while p < end:
            byte = int64(load8(text, p))
            if byte == QUOTE or byte == BACKSLASH or byte < SPACE:
                break
            p += 1
        if p < end and load8(text, p) == QUOTE:
            return p + 1
        if p >= end or load8(text, p) != BACKSLASH:
            if _skip(text, p, end) >= end:
                return _stop(memory, OPEN_STRING, quote, quote)
            return _stop(memory, CONTROL_CHARACTER, p, p)
        if p + 1 >= end or load8(text, p + 1) != _SMALL_U:
            if p + 1 < end and _is_short_escape(load8(text, p + 1)):
                p += 2
                continue
            if _skip(text, p + 1, end) >= end:
                return _stop(memory, OPEN_STRING, quote, quote)
            return _stop(memory, UNKNOWN_ESCAPE, p, p + 1)
        unit = _unit(text, p, end, quote, memory)
        if unit < 0:
            return int64(-1)
        start = p
        p += 6
        if 0xD800 <= unit <= 0xDFFF:
            low = int64(0)
            if p + 1 < end and load8(text, p) == BACKSLASH and load8(text, p + 1) == _SMALL_U:
                low = _unit(text, p, end, quote, memory)
                if low < 0:
                    return int64(-1)
                p += 6
            if unit > 0xDBFF or low < 0xDC00 or low > 0xDFFF:
                return _stop(memory, LONE_SURROGATE, start, start)


@helper
def _number(text: Bytes, start: int, end: int, memory: Memory) -> int:
    """Return where the number ends, or -1."""
    p = start + 1 if load8(text, start) == MINUS else int64(start)
    if p >= end or not _is_digit(load8(text, p)):
        return _stop(memory, NO_DIGITS, start, start)
    digits = int64(0)  # as Jackson counts: a whole part of 0 has none
    if load8(text, p) == ZERO:
        p += 1
    else:
        while p < end and _is_digit(load8(text, p)):
            p += 1
            digits += 1
    if p + 1 < end and load8(text, p) == _POINT and _is_digit(load8(text, p + 1)):
        p += 1
        while p < end and _is_digit(load8(text, p)):
            p += 1
            digits += 1
    if p < end and load8(text, p) | _LOWER == _SMALL_E:
        q = p + 1
        if q < end and (load8(text, q) == _PLUS or load8(text, q) == MINUS):
            q += 1
        if q < end and _is_digit(load8(text, q)):
            p = q
            while p < end and _is_digit(load8(text, p)):
                p += 1
                digits += 1
    if p < end:
        byte = int64(load8(text, p))
        if (
            _is_digit(byte)
            or byte == _POINT
            or byte == _PLUS
            or byte == MINUS
            or byte | _LOWER == _SMALL_E
        ):
            return _stop(memory, NUMBER_GOES_ON, p, p)
    if digits > MAX_NUMBER_DIGITS:
        return _stop(memory, MANY_DIGITS, start, start)
    return p


@helper
def _value(text: Bytes, p: int, end: int, depth: int, memory: Memory) -> int:
    """Return where the scalar at p ends, or -1."""
    if p >= end:
        return _stop(memory, NO_VALUE, p, p)
    byte = int64(load8(text, p))
    if byte == QUOTE:
        return _string(text, p, end, memory)
    if byte == OPEN_OBJECT or byte == OPEN_ARRAY:
        if depth >= MAX_DEPTH * CONTAINER:
            return _stop(memory, TOO_DEEP, p, p)
        return _stop(memory, UNKNOWN, p, p)
    if byte == MINUS or _is_digit(byte):
        return _number(text, p, end, memory)
    word = int64(load32(text, p))
    if p + 4 <= end and (word == NULL_WORD or word == TRUE_WORD):
        return p + 4
    if p + 5 <= end and byte == SMALL_F and load32(text, p + 1) == ALSE_WORD:
        return p + 5
    return _stop(memory, NO_VALUE, p, p)


@helper
def _child(text: Bytes, p: int, end: int, depth: int, memory: Memory) -> int:
    """Return where the value of the innermost container's next child begins, -1 if there is none.

    `p` is after the last child or the open bracket.
    """
    containers, state = memory.containers, memory.state
    p = _skip(text, p, end)
    bracket = int64(load8(text, containers[uint64(depth - CONTAINER)]))
    if p < end and load8(text, p) == bracket + TO_CLOSE:
        return _stop(memory, UNKNOWN, p, p)
    if containers[uint64(depth - 1)] > 0:
        if p >= end or load8(text, p) != COMMA:
            what = NO_COMMA_OR_BRACE if bracket == OPEN_OBJECT else NO_COMMA_OR_BRACKET
            return _stop(memory, what, p, p)
        p = _skip(text, p + 1, end)
    if bracket == OPEN_OBJECT:
        if p >= end or load8(text, p) != QUOTE:
            return _stop(memory, NO_KEY, p, p)
        q = _string(text, p, end, memory)
        if q < 0:
            return q
        state[KEY] = p
        state[KEY_END] = q
        state[ENTERED] = 1
        p = _skip(text, q, end)
        if p >= end or load8(text, p) != COLON:
            return _stop(memory, NO_COLON, p, p)
        p = _skip(text, p + 1, end)
    state[ENTERED] = 1
    return p


@helper
def _read_on(text: Bytes, start: int, end: int, depth: int, memory: Memory) -> None:
    """Read the tokens after the last whole value, up to the mistake."""
    containers, state = memory.containers, memory.state
    p = state[BEHIND]
    if p == start and p + 3 <= end and load32(text, p) & 0xFFFFFF == _MARK:
        _stop(memory, BYTE_ORDER_MARK, p, p)
        return
    while True:
        state[ENTERED] = 0
        if depth > 0:
            p = _child(text, p, end, depth, memory)
            if p < 0:
                return
        else:
            p = _skip(text, p, end)
            if state[ROOT_DONE] != 0:
                _stop(memory, BEHIND_END if p < end else UNKNOWN, p, p)
                return
        p = _value(text, p, end, depth, memory)
        if p < 0:
            return
        if depth > 0:
            containers[uint64(depth - 1)] += 1
        else:
            state[ROOT_DONE] = 1


@helper
def _find_mistake(text: Bytes, start: int, end: int, stop: int, memory: Memory) -> None:
    """Find the mistake in text[start:end], which a reader read up to `stop`."""
    state, names = memory.state, memory.names
    state[OPEN] = 0
    valid = utf8_end(text, start, end)
    if valid < end:
        _stop(memory, NOT_UTF8, valid, end)
        return
    depth = find_open(text, start, stop, memory)
    state[OPEN] = depth
    name = first_repeat(text, memory, depth)
    if name >= 0:
        state[REPEATED] = name
        _stop(memory, REPEATED_KEY, names[uint64(name)], end)
        return
    _read_on(text, start, end, depth, memory)


@helper
def _character(text: Bytes, p: int) -> int:
    """Return the code point that begins at p in UTF-8 text."""
    byte = int64(load8(text, p))
    if byte < 0x80:
        return byte
    more = int64(1) if byte < 0xE0 else int64(2) if byte < 0xF0 else int64(3)
    code = byte & (0x3F >> more)
    for k in range(1, more + 1):
        code = code << 6 | (load8(text, p + k) & 0x3F)
    return code


class Mistakes(NamedTuple):
    """The mistake of each document, all int64, filled.

    what: one of the codes above. at: bytes of the document before the mistake. mark: the unexpected
    code point, or AT_END; for REPEATED_KEY, NO_HEX_DIGITS and LONE_SURROGATE the number of bytes to
    quote from `at` on, which may exceed the document. line, column: the place of `at`, in
    characters, from 1.
    """

    what: Int64s
    at: Int64s
    mark: Int64s
    line: Int64s
    column: Int64s


@entry
def find_mistakes(
    text: BytesIn, starts: Int64sIn, ends: Int64sIn, stops: Int64sIn, memory: Memory, out: Mistakes
) -> None:
    """Find the mistakes in the documents text[starts[r]:ends[r]], all of which a reader refused.

    text: uint8, any bytes, padded by PADDING after the largest end. stops: int64, bytes of each
    document before the place where the reader stopped. memory: enough for the longest document.
    Allocates nothing, never raises. Twin: encoding.json.parse_json.
    """
    state = memory.state
    what, ats, marks, lines, columns = out
    for row in range(starts.size):
        start, end = starts[uint64(row)], ends[uint64(row)]
        _find_mistake(text, start, end, min(start + stops[uint64(row)], end), memory)
        at, mark = state[AT], state[MARK]
        marks[uint64(row)] = _character(text, mark) if mark < end else int64(AT_END)
        if state[WHAT] == REPEATED_KEY:
            word = state[REPEATED]
            marks[uint64(row)] = memory.names[uint64(word + 1)] - memory.names[uint64(word)]
        elif state[WHAT] == NO_HEX_DIGITS or state[WHAT] == LONE_SURROGATE:
            marks[uint64(row)] = _ESCAPE
        if at >= end:  # report the end before trailing white space
            at = end
            while at > start and is_blank(load8(text, at - 1)):
                at -= 1
        line, column = int64(1), int64(1)
        for p in range(start, at):
            byte = int64(load8(text, p))
            if byte == NEWLINE:
                line += 1
                column = int64(1)
            elif byte & 0xC0 != 0x80:
                column += 1
        what[uint64(row)] = state[WHAT]
        ats[uint64(row)] = at - start
        lines[uint64(row)] = line
        columns[uint64(row)] = column
