"""Find the elements of a JSON array that is read in pieces."""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int64s,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry
from variantlake.kernels.tape.words import load8

# Places in the state of an ElementFinder.
DEPTH = 0
"""The number of open containers within the current element."""
PHASE = 1
IN_STRING = 2
ESCAPED = 3
START = 4
"""Where the current element starts; -1 between elements."""
POSITION = 5
"""Where the scan goes on."""

FIRST, NEXT, CLOSED = 0, 1, 2
"""What comes next: the first element or the array's end; an element; nothing."""


@entry
def find_elements(text: BytesIn, size: int, state: Int64s, starts: Int64s, ends: Int64s) -> int:
    """Find the elements that end in text[state[POSITION]:size]; return how many.

    text: uint8, inside an array, after its `[`. state: int64, shape (6,), kept between calls.
    starts, ends: int64, filled; the scan stops when they are full. An element ends just before the
    next comma or bracket, so it includes white space before that. Does not check that an element is
    JSON: an empty one counts too. Allocates nothing, never raises.
    """
    depth, phase = state[DEPTH], state[PHASE]
    in_string, escaped = state[IN_STRING], state[ESCAPED]
    start, p = state[START], state[POSITION]
    count = int64(0)
    while p < size and count < starts.size and phase != CLOSED:
        byte = int64(load8(text, p))
        # Brackets and commas inside strings are text.
        if in_string != 0:
            if escaped != 0:
                escaped = int64(0)
            elif byte == 92:
                escaped = int64(1)
            elif byte == 34:
                in_string = int64(0)
        elif start < 0 and (byte == 32 or byte == 10 or byte == 13 or byte == 9):
            pass
        elif start < 0 and phase == FIRST and byte == 93:
            # `[]` has no elements, but `[1,]` has an empty second one, which is an error later.
            phase = int64(CLOSED)
        else:
            if start < 0:
                start = p
            if byte == 34:
                in_string = int64(1)
            elif byte == 123 or byte == 91:
                depth += 1
            elif depth > 0 and (byte == 125 or byte == 93):
                depth -= 1
            elif depth == 0 and (byte == 44 or byte == 93):
                starts[uint64(count)] = start
                ends[uint64(count)] = p
                count += 1
                start = int64(-1)
                phase = int64(NEXT) if byte == 44 else int64(CLOSED)
        p += 1
    state[DEPTH], state[PHASE] = depth, phase
    state[IN_STRING], state[ESCAPED] = in_string, escaped
    state[START], state[POSITION] = start, p
    return count


class ElementFinder:
    """Finds the elements of one array, piece by piece of its text.

    `position` and `start` count from the start of the text that `find` gets. When the caller drops
    bytes from the front of that text, it must call `move`.
    """

    def __init__(self) -> None:
        self._state: Int64s = np.zeros(6, np.int64)
        self._state[START] = -1

    @property
    def closed(self) -> bool:
        """Whether the scan has reached the array's own `]`."""
        return bool(self._state[PHASE] == CLOSED)

    @property
    def position(self) -> int:
        """Where the scan goes on."""
        return int(self._state[POSITION])

    @property
    def start(self) -> int:
        """Where the element that has not ended yet begins; -1 if there is none."""
        return int(self._state[START])

    def move(self, count: int) -> None:
        """Adjust the positions to a next text that begins `count` bytes later."""
        self._state[POSITION] -= count
        if self._state[START] >= 0:
            self._state[START] -= count

    def find(self, text: Bytes, size: int) -> tuple[Int64s, Int64s]:
        """Return starts and ends of further elements that end in text[:size]."""
        starts, ends = [], []
        room = size // 64 + 1024
        while True:
            first, last = np.empty(room, np.int64), np.empty(room, np.int64)
            count = find_elements(text, size, self._state, first, last)
            starts.append(first[:count])
            ends.append(last[:count])
            if count < room:
                return np.concatenate(starts), np.concatenate(ends)
