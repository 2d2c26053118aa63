"""Lines and columns of bytes in a source's text, counted only when an error needs them."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

from variantlake.ingest.sources.blocks import Block
from variantlake.ingest.sources.sources import Source
from variantlake.ingest.sources.streams import BOM, fill, open_source
from variantlake.kernels.json.lines import find_places

_READ_BYTES = 1 << 20
_INNER_BYTES = bytes(range(0x80, 0xC0))
"""The bytes that continue a character."""


class TextPosition(TypedDict):
    """A position for errors: both numbers are 1-based, columns in characters."""

    line: int
    column: int


class PlaceCounter:
    """Finds the places of ascending offsets in one source's text.

    The first one costs reading the source up to it, the next ones only the text in between.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._offset: int | None = None
        self._line, self._column = 1, 1

    def place(self, block: Block, offset: int) -> TextPosition:
        """Return the place of `offset`, which is in the block and not before the last one.

        Between calls for different blocks, the caller passes the blocks in between to `leave`.
        """
        if self._offset is None:
            self._read_up_to(offset)
        else:
            # As bytes: the text between two bad lines is short, for which NumPy is slower.
            self._pass(block.text[self._offset - block.offset : offset - block.offset].tobytes())
        self._offset = offset
        return TextPosition(line=self._line, column=self._column)

    def places(
        self, block: Block, offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the lines and columns of ascending offsets, at least one, as for `place`."""
        self.place(block, int(offsets[0]))
        lines, columns = np.empty_like(offsets), np.empty_like(offsets)
        place = np.array([offsets[0] - block.offset, self._line, self._column], np.int64)
        find_places(block.text, offsets - block.offset, lines, columns, place)
        self._offset = int(offsets[-1])
        self._line, self._column = int(place[1]), int(place[2])
        return lines, columns

    def leave(self, block: Block) -> None:
        """Finish this block; costs nothing if no place was requested."""
        if self._offset is not None:
            self.place(block, block.offset + block.size)

    def _read_up_to(self, offset: int) -> None:
        with open_source(self._source) as stream:
            buffer = bytearray(_READ_BYTES)
            first, left = True, offset
            while left > 0:
                read = fill(stream, memoryview(buffer)[: min(left, len(buffer))])
                if not read:
                    break
                left -= read
                # The mark is not a character of the first line.
                skip = len(BOM) if first and buffer.startswith(BOM) else 0
                self._pass(bytes(memoryview(buffer)[skip:read]))
                first = False

    def _pass(self, text: bytes) -> None:
        newlines = text.count(b"\n")
        if newlines:
            self._line += newlines
            self._column = 1
            text = text[text.rfind(b"\n") + 1 :]
        self._column += len(text.translate(None, _INNER_BYTES))


def place_of(source: Source, offset: int) -> TextPosition:
    """Find the place of one byte of a source's text, by reading the source up to it."""
    return PlaceCounter(source).place(Block(source, np.empty(0, np.uint8), 0, offset), offset)
