"""Memory of tapes, used again once nobody holds the tape: fresh pages cost as much as reading."""

from __future__ import annotations

import weakref

import numpy as np

from variantlake.kernels.native.declared import Bytes, Records
from variantlake.kernels.tape.nodes import NODE
from variantlake.kernels.tape.tape import Tape

_KEPT = 2
"""A loop over tapes holds one while it asks for the next."""


class Buffers:
    """The nodes and the arena of one tape at a time."""

    def __init__(self) -> None:
        self.nodes: Records = np.empty(0, NODE).view(np.recarray)
        self.arena: Bytes = np.empty(0, np.uint8)
        self._tape: weakref.ref[Tape] | None = None

    @property
    def free(self) -> bool:
        """Nobody holds the tape that was made of it."""
        return self._tape is None or self._tape() is None

    def lend(self, tape: Tape) -> None:
        """Belong to `tape` as long as it lives."""
        self._tape = weakref.ref(tape)

    def grow_nodes(self, used: int, wanted: int) -> Records:
        """Make room for `wanted` nodes; the first `used` are kept."""
        if len(self.nodes) < wanted:
            size = max(wanted, 2 * len(self.nodes)) if used else wanted
            grown = np.empty(size, NODE).view(np.recarray)
            grown[:used] = self.nodes[:used]
            self.nodes = grown
        return self.nodes

    def grow_arena(self, wanted: int) -> Bytes:
        """Make room for `wanted` bytes; nothing is kept."""
        if len(self.arena) < wanted:
            self.arena = np.empty(wanted, np.uint8)
        return self.arena


class BufferPool:
    """The buffers of one reader."""

    def __init__(self) -> None:
        self._buffers: list[Buffers] = []

    def take(self) -> Buffers:
        """Buffers that no living tape needs."""
        for buffers in self._buffers:
            if buffers.free:
                return buffers
        taken = Buffers()
        # Those of tapes that are kept go with their tapes.
        self._buffers = [taken, *self._buffers[: _KEPT - 1]]
        return taken
