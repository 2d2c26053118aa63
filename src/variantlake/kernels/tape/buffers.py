"""Reuse the memory of tapes that nobody holds any more: fresh pages cost as much as reading."""

from __future__ import annotations

import weakref

import numpy as np

from variantlake.kernels.native.declared import Bytes, Records
from variantlake.kernels.tape.nodes import NODE
from variantlake.kernels.tape.tape import Tape

_KEPT = 2
"""A loop over tapes still holds one tape while it reads the next."""


class Buffers:
    """The nodes and the arena of one tape at a time."""

    def __init__(self) -> None:
        self.nodes: Records = np.empty(0, NODE).view(np.recarray)
        self.arena: Bytes = np.empty(0, np.uint8)
        self._tape: weakref.ref[Tape] | None = None

    @property
    def free(self) -> bool:
        """Whether nobody holds the tape made of these buffers any more."""
        return self._tape is None or self._tape() is None

    def lend(self, tape: Tape) -> None:
        """Lend the buffers to `tape` for its lifetime."""
        self._tape = weakref.ref(tape)

    def grow_nodes(self, used: int, wanted: int) -> Records:
        """Make room for `wanted` nodes; keep the first `used`."""
        if len(self.nodes) < wanted:
            size = max(wanted, 2 * len(self.nodes)) if used else wanted
            grown = np.empty(size, NODE).view(np.recarray)
            grown[:used] = self.nodes[:used]
            self.nodes = grown
        return self.nodes

    def grow_arena(self, wanted: int) -> Bytes:
        """Make room for `wanted` bytes; keep none of the old ones."""
        if len(self.arena) < wanted:
            self.arena = np.empty(wanted, np.uint8)
        return self.arena


class BufferPool:
    """The buffers of one reader."""

    def __init__(self) -> None:
        self._buffers: list[Buffers] = []

    def take(self) -> Buffers:
        """Return buffers that no living tape needs."""
        for buffers in self._buffers:
            if buffers.free:
                return buffers
        taken = Buffers()
        # Drop older buffers: tapes that are still held keep theirs alive.
        self._buffers = [taken, *self._buffers[: _KEPT - 1]]
        return taken
