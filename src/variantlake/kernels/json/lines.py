"""Split newline-delimited text into lines, and find the lines and columns of places in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, tiny
from variantlake.kernels.tape.words import load8, match_block, trailing_zeros

_BLOCK = 64


@tiny
def _is_blank(byte: int) -> bool:
    return byte == 32 or byte == 9 or byte == 13


@entry
def find_newlines(text: BytesIn, places: Int64s) -> int:
    """Write the places of the newlines; return how many there are.

    text: uint8, any bytes. places: int64, filled up to its length; if there are more newlines, call
    again with more room. Allocates nothing, never raises.
    """
    count, size = int64(0), int64(text.size)
    p = int64(0)
    while p + _BLOCK <= size:
        marks = match_block(text, p, 10)
        while marks != 0:
            if count < places.size:
                places[uint64(count)] = p + trailing_zeros(marks)
            count += 1
            marks &= marks - 1
        p += _BLOCK
    while p < size:
        if load8(text, p) == 10:
            if count < places.size:
                places[uint64(count)] = p
            count += 1
        p += 1
    return count


@entry
def trim_lines(
    text: BytesIn, breaks: Int64sIn, starts: Int64s, ends: Int64s, numbers: Int64s
) -> int:
    """Split lines at `breaks` and drop the blank ones; return how many remain.

    text: uint8, any bytes. breaks: int64, ascending: the places of newlines, then the text's
    length. starts, ends, numbers: int64, as long as breaks, filled: a line without the blanks
    (space, tab, CR) around it, and the number of newlines before it. Never raises.
    """
    count = int64(0)
    start = int64(0)
    for line in range(breaks.size):
        end = breaks[uint64(line)]
        following = end + 1
        while start < end and _is_blank(load8(text, start)):
            start += 1
        while end > start and _is_blank(load8(text, end - 1)):
            end -= 1
        if end > start:
            starts[uint64(count)] = start
            ends[uint64(count)] = end
            numbers[uint64(count)] = line
            count += 1
        start = following
    return count


@entry
def find_places(
    text: BytesIn, offsets: Int64sIn, lines: Int64s, columns: Int64s, place: Int64s
) -> None:
    """Find the lines and columns of places in a text; columns count characters, from 1.

    text: uint8, UTF-8, but any bytes are safe. offsets: int64, ascending, within the text. lines,
    columns: int64, as long as offsets, filled. place: int64: offset, line and column of a known
    place before them; on return, of the last one. Allocates nothing, never raises.
    """
    p, line, column = place[0], place[1], place[2]
    for row in range(offsets.size):
        offset = offsets[uint64(row)]
        while p < offset:
            byte = int64(load8(text, p))
            if byte == 10:
                line += 1
                column = int64(1)
            elif byte & 0xC0 != 0x80:  # other bytes continue a character
                column += 1
            p += 1
        lines[uint64(row)] = line
        columns[uint64(row)] = column
    place[0], place[1], place[2] = p, line, column


@dataclass(frozen=True, slots=True)
class Lines:
    """The non-blank lines of a text: text[starts[i]:ends[i]], with 0-based number numbers[i]."""

    starts: Int64s
    ends: Int64s
    numbers: Int64s


def split_lines(text: Bytes) -> Lines:
    """Find the lines of `text` (uint8, contiguous).

    Lines end with LF or CRLF, the last one with the text. Blanks around a line are cut off. Blank
    lines are left out, but the line numbers count them.
    """
    text = np.ascontiguousarray(text)
    places = np.empty(len(text) // 128 + 1024, np.int64)
    count = find_newlines(text, places)
    if count > len(places):
        places = np.empty(count + 1, np.int64)
        find_newlines(text, places)
    breaks = np.append(places[:count], len(text))
    starts, ends, numbers = (np.empty(len(breaks), np.int64) for _ in range(3))
    count = trim_lines(text, breaks, starts, ends, numbers)
    return Lines(starts[:count], ends[:count], numbers[:count])
