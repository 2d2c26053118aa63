"""Read a split of newline-delimited JSON as blocks of complete lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.ingest.sources.signatures import Compression
from variantlake.ingest.sources.sources import Source, Split
from variantlake.ingest.sources.streams import BOM, Stream, fill, open_source
from variantlake.kernels.tape.words import PADDING
from variantlake.shredding.schema import ShreddingSchema

BLOCK_BYTES = 4 << 20
"""The text of one block, in bytes: enough to amortise a kernel's call, and small enough for the
cache."""

_NODE_BYTES, _MOST_BYTES = 32 << 10, 16 << 20

_STEP_BYTES = 64 << 10
"""The bytes to read at once when looking for the end of a line."""


def bytes_at_once(schemas: Iterable[ShreddingSchema]) -> int:
    """Return the bytes of rows to shred at a time: BLOCK_BYTES, or more for many columns.

    Each column of a block costs some microseconds, whatever its values: GitHub's webhooks (hundreds
    of paths) take an eighth less processor time in large blocks.
    """
    nodes = sum(1 for schema in schemas for _ in schema.nodes())
    return max(BLOCK_BYTES, min(_MOST_BYTES, nodes * _NODE_BYTES))


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a source's text.

    `text` is uint8, one-dimensional and contiguous. `padded` starts with the same bytes and has
    PADDING more, of any content, for kernels that read in steps. `offset` counts the bytes of the
    source's (decompressed) text before it.
    """

    source: Source
    padded: npt.NDArray[np.uint8]
    size: int
    offset: int

    @property
    def text(self) -> npt.NDArray[np.uint8]:
        """The bytes, without the padding."""
        return self.padded[: self.size]


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line at `offset` that is too long for a document; its text is not kept."""

    source: Source
    offset: int
    limit: int


def read_blocks(split: Split, *, block_bytes: int = BLOCK_BYTES) -> Iterator[Block | LongLine]:
    """Read the lines that start within a split, in blocks of about `block_bytes`.

    A block ends with a newline, unless the source ends without one. It is larger only if a single
    line is; memory stays within about twice the longest line or block. A byte order mark at the
    start of the file is left out. A line of more than MAX_VALUE_BYTES, which is too large for a
    Variant, is returned as a LongLine.

    Raises:
        InvalidJson: A compressed source holds nothing.
        MalformedFile: A compressed source is cut or damaged.
        MissingSource: The source has vanished.
        StoreFailed: An object store fails.
    """
    whole = split.source.compression is not Compression.NONE
    with open_source(split.source) as stream:
        offset = 0
        if split.start:
            offset = _first_line(stream, split)
        if not whole and offset >= split.end:
            return
        end = None if whole else split.end
        yield from _blocks(split.source, stream, offset, end, block_bytes)


def _blocks(
    source: Source, stream: Stream, offset: int, end: int | None, block_bytes: int
) -> Iterator[Block | LongLine]:
    """Yield blocks of the lines that start before `end`; None means the end of the stream.

    A line starts at `offset`, which is the position of `stream`.
    """
    rest = bytearray()  # the start of a line whose end is not read yet
    at_end = False
    while not at_end:
        wanted = block_bytes
        if end is not None:
            # Beyond the end, only the rest of the last line is needed.
            wanted = min(wanted, max(end - offset - len(rest), _STEP_BYTES))
        wanted = max(wanted, len(rest))  # so that a long line is copied only a few times
        room = len(rest) + wanted
        buffer = bytearray(room + PADDING)
        buffer[: len(rest)] = rest
        filled = len(rest) + fill(stream, memoryview(buffer)[len(rest) : room])
        at_end = filled < room
        cut = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        if end is not None and offset + filled >= end:
            # The last line of the range ends with the first newline at or after its last byte.
            newline = buffer.find(b"\n", max(end - 1 - offset, 0), filled)
            if newline >= 0:
                cut, at_end = newline + 1, True
        start = len(BOM) if offset == 0 and buffer.startswith(BOM) else 0
        yield from _pieces(source, buffer, start, cut, offset)
        rest = buffer[cut:filled]
        offset += cut
        if not at_end and len(rest) > MAX_VALUE_BYTES:
            yield LongLine(source, offset, MAX_VALUE_BYTES)
            offset, rest, at_end = _skip_line(stream, offset + len(rest))
            at_end = at_end or (end is not None and offset >= end)


def _pieces(
    source: Source, buffer: bytearray, start: int, stop: int, offset: int
) -> Iterator[Block | LongLine]:
    """Yield the complete lines buffer[start:stop]; a line that is too long as a LongLine."""
    while start < stop:
        # Only blocks beyond the limit can hold such a line.
        long = _long_line(buffer, start, stop) if stop > MAX_VALUE_BYTES else None
        end = stop if long is None else long
        if end > start:
            padded = np.frombuffer(buffer, np.uint8, end - start + PADDING, start)
            yield Block(source, padded, end - start, offset + start)
        if long is None:
            return
        yield LongLine(source, offset + long, MAX_VALUE_BYTES)
        start = (buffer.find(b"\n", long, stop) + 1) or stop


def _long_line(buffer: bytearray, start: int, stop: int) -> int | None:
    """Return the start of the first line of more than MAX_VALUE_BYTES, without its newline."""
    while start < stop:
        newline = buffer.find(b"\n", start, stop)
        line_end = stop if newline < 0 else newline
        if line_end - start > MAX_VALUE_BYTES:
            return start
        start = line_end + 1
    return None


def _skip_line(stream: Stream, offset: int) -> tuple[int, bytearray, bool]:
    """Read from `offset`, within a line, to its end.

    Returns the offset of the next line, the bytes of it that were read, and whether the stream
    ended.
    """
    buffer = bytearray(_STEP_BYTES)
    while read := fill(stream, memoryview(buffer)):
        newline = buffer.find(b"\n", 0, read)
        if newline >= 0:
            return offset + newline + 1, buffer[newline + 1 : read], False
        offset += read
    return offset, bytearray(), True


def _first_line(stream: Stream, split: Split) -> int:
    """Move to the first line that starts at or after `split.start`; returns its offset, or the end.

    A line starts at `split.start` if the byte before is a newline, so search from that byte.
    """
    position = split.start - 1
    stream.seek(position)
    buffer = bytearray(_STEP_BYTES)
    while position < split.end:
        read = fill(stream, memoryview(buffer))
        newline = buffer.find(b"\n", 0, read)
        if newline >= 0:
            position += newline + 1
            stream.seek(position)
            return position
        if not read:
            break
        position += read
    return split.end
