"""Read a split of newline-delimited JSON as blocks of complete lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.arrow.sources import Compression, Source, Split, empty_source
from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.errors import LimitExceeded, MalformedFile, MissingSource, VariantLakeError
from variantlake.kernels.words import PADDING

BLOCK_BYTES = 4 << 20
"""Bytes of text in one block: enough to amortise a kernel's call, few enough to stay in cache."""

_BOM = b"\xef\xbb\xbf"
_STEP_BYTES = 64 << 10
"""Read at once where only the end of a line is looked for."""


@dataclass(frozen=True, slots=True)
class Block:
    """Complete lines of one source.

    `text` is uint8, one-dimensional and contiguous; it ends with a newline unless the source ends
    without one. `padded` starts with the same bytes and has PADDING more, of any content, for
    kernels that read in steps. `offset` counts the bytes of the source's (decompressed) text
    before it.
    """

    source: Source
    padded: npt.NDArray[np.uint8]
    size: int
    offset: int

    @property
    def text(self) -> npt.NDArray[np.uint8]:
        """The lines."""
        return self.padded[: self.size]


class _Stream(Protocol):
    """What plain files and decompressing streams share (these do not seek)."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...
    def seek(self, position: int, /) -> int: ...


def read_blocks(
    split: Split, *, block_bytes: int = BLOCK_BYTES, max_line_bytes: int | None = None
) -> Iterator[Block]:
    """The lines that start within a split, in blocks of about `block_bytes`.

    A block is larger only where a single line is; memory stays within about twice the longest
    line or block. A byte order mark at the start of the file is left out. `max_line_bytes` is
    MAX_VALUE_BYTES when None: beyond it no Variant can be written.

    Raises:
        InvalidJson: A compressed source holds nothing.
        LimitExceeded: A line has more than `max_line_bytes` bytes (file and line are given).
        MalformedFile: A compressed source is cut or damaged.
        MissingSource: The source has vanished.
    """
    max_line_bytes = MAX_VALUE_BYTES if max_line_bytes is None else max_line_bytes
    whole = split.source.compression is not Compression.NONE
    with _open(split.source) as stream:
        offset = 0
        if split.start:
            offset = _first_line(stream, split)
        if not whole and offset >= split.end:
            return
        end = None if whole else split.end
        yield from _blocks(
            split.source,
            stream,
            offset,
            end,
            block_bytes=block_bytes,
            max_line_bytes=max_line_bytes,
        )


def line_number(source: Source, offset: int) -> int:
    """The 1-based number of the line that starts at `offset` bytes of the source's text.

    Reads the source up to there: for use only once an error has to be reported.
    """
    lines, left = 1, offset
    buffer = bytearray(BLOCK_BYTES)
    with _open(source) as stream:
        while left > 0:
            read = _fill(stream, memoryview(buffer)[: min(left, len(buffer))])
            if not read:
                break
            lines += buffer.count(b"\n", 0, read)
            left -= read
    return lines


def _blocks(
    source: Source,
    stream: _Stream,
    offset: int,
    end: int | None,
    *,
    block_bytes: int,
    max_line_bytes: int,
) -> Iterator[Block]:
    """Blocks from `offset`, where a line starts and `stream` stands, for lines that start < `end`.

    `end` None means up to the end of the stream.
    """
    rest = bytearray()  # the start of a line whose end is not read yet
    at_end = False
    while not at_end:
        wanted = block_bytes
        if end is not None:
            # Beyond the end only the rest of the last line is wanted.
            wanted = min(wanted, max(end - offset - len(rest), _STEP_BYTES))
        wanted = max(wanted, len(rest))  # a long line is copied few times, not once a block
        room = len(rest) + wanted
        buffer = bytearray(room + PADDING)
        buffer[: len(rest)] = rest
        filled = len(rest) + _fill(stream, memoryview(buffer)[len(rest) : room])
        at_end = filled < room
        if not filled and not offset:
            raise empty_source(source.path)  # compressed; a plain one was refused before
        cut = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        if end is not None and offset + filled >= end:
            # The last line of the range ends with the first newline at or after its last byte.
            newline = buffer.find(b"\n", max(end - 1 - offset, 0), filled)
            if newline >= 0:
                cut, at_end = newline + 1, True
        if filled - cut > max_line_bytes or (cut and _longest_exceeds(buffer, cut, max_line_bytes)):
            raise _too_long(source, buffer, filled, offset, max_line_bytes)
        start = len(_BOM) if offset == 0 and buffer.startswith(_BOM) else 0
        if cut > start:
            padded = np.frombuffer(buffer, np.uint8, cut - start + PADDING, start)
            yield Block(source, padded, cut - start, offset + start)
        rest = buffer[cut:filled]
        offset += cut


def _longest_exceeds(buffer: bytearray, cut: int, max_line_bytes: int) -> bool:
    """Whether a complete line can be over the limit; only blocks beyond the limit are searched."""
    if cut <= max_line_bytes:
        return False
    return _long_line(buffer, cut, max_line_bytes) is not None


def _long_line(buffer: bytearray, stop: int, max_line_bytes: int) -> int | None:
    """Where the first line of more than `max_line_bytes` bytes starts (its newline not counted)."""
    start = 0
    while start < stop:
        newline = buffer.find(b"\n", start, stop)
        line_end = stop if newline < 0 else newline
        if line_end - start > max_line_bytes:
            return start
        start = line_end + 1
    return None


def _too_long(
    source: Source, buffer: bytearray, filled: int, offset: int, max_line_bytes: int
) -> LimitExceeded:
    start = _long_line(buffer, filled, max_line_bytes) or 0
    return LimitExceeded(
        f"the line has more than {max_line_bytes:,} bytes",
        file=source.path,
        line=line_number(source, offset + start),
        column=1,
        hint="one document stands on one line; is this newline-delimited JSON?",
    )


def _first_line(stream: _Stream, split: Split) -> int:
    """Move to the first line that starts at or after `split.start`; its offset, at most the end.

    A line starts there when the byte before is a newline: so the search begins one byte earlier.
    """
    position = split.start - 1
    stream.seek(position)
    buffer = bytearray(_STEP_BYTES)
    while position < split.end:
        read = _fill(stream, memoryview(buffer))
        newline = buffer.find(b"\n", 0, read)
        if newline >= 0:
            position += newline + 1
            stream.seek(position)
            return position
        if not read:
            break
        position += read
    return split.end


def _fill(stream: _Stream, view: memoryview) -> int:
    """Read until `view` is full or the stream ends; the bytes read."""
    filled = 0
    while filled < len(view):
        read = stream.readinto(view[filled:])
        if not read:
            break
        filled += read
    return filled


@contextmanager
def _open(source: Source) -> Iterator[_Stream]:
    """The source's text as a stream; what goes wrong while it is read names the file."""
    try:
        if source.compression is Compression.NONE:
            with Path(source.path).open("rb", buffering=0) as file:
                yield file
        else:
            with (
                pa.OSFile(source.path, "rb") as packed,
                pa.CompressedInputStream(packed, source.compression.value) as stream,
            ):
                yield stream
    except VariantLakeError:
        raise  # some are OSErrors too
    except FileNotFoundError as error:
        raise MissingSource("the source does not exist", file=source.path) from error
    except OSError as error:
        raise MalformedFile(
            f"the source cannot be read: {error}", file=source.path, hint="is the file complete?"
        ) from error
