"""Read many small files as one text: a kernel's call costs the same for one line as for 1,000."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.ingest.sources.signatures import Compression
from variantlake.ingest.sources.sources import Split
from variantlake.ingest.sources.streams import BOM, fill, open_source
from variantlake.kernels.tape.words import PADDING

MAX_FILE_BYTES = 256 << 10
"""Larger files are read by themselves."""

MAX_FILES = 4096
"""The most files of one text."""


@dataclass(frozen=True, slots=True)
class JoinedText:
    """The texts of several files, one after another, separated by newlines.

    `padded` is uint8 as in `Block`, `size` are its bytes of text. `starts` (int64) are the starts
    of the files' texts.
    """

    padded: npt.NDArray[np.uint8]
    size: int
    starts: npt.NDArray[np.int64]

    @property
    def text(self) -> npt.NDArray[np.uint8]:
        """The bytes, without the padding."""
        return self.padded[: self.size]

    def files_of(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of the file at each of these places in the text."""
        found: npt.NDArray[np.int64] = np.searchsorted(self.starts, places, side="right") - 1
        return found


def groups(splits: Sequence[Split], most_bytes: int, *, by_folder: bool) -> Iterator[list[Split]]:
    """Group neighbouring splits that can be read together, in order.

    With `by_folder`, a group has files of one folder only.
    """
    group: list[Split] = []
    size, folder = 0, ""
    for split in splits:
        source = split.source
        joins = (
            source.compression is Compression.NONE
            and source.format is DocumentFormat.LINES
            and not split.start
            and split.end == source.size <= MAX_FILE_BYTES
        )
        above = source.path.rpartition("/")[0] if by_folder else ""
        full = size + split.size > most_bytes or len(group) >= MAX_FILES
        if group and (not joins or full or above != folder):
            yield group
            group, size = [], 0
        if joins:
            group.append(split)
            size, folder = size + split.size, above
        else:
            yield [split]
    if group:
        yield group


def join(splits: Sequence[Split]) -> JoinedText | None:
    """Read the texts of a group; None if a file has grown since it was listed.

    Raises MissingSource, MalformedFile and StoreFailed as `open_source`.
    """
    buffer = bytearray(sum(split.size + 2 for split in splits) + PADDING)
    view = memoryview(buffer)
    starts = np.empty(len(splits), np.int64)
    at = 0
    for number, split in enumerate(splits):
        starts[number] = at
        # Reading one byte more than expected shows whether the file has grown.
        with open_source(split.source) as stream:
            read = fill(stream, view[at : at + split.size + 1])
        if read > split.size:
            return None
        if buffer.startswith(BOM, at):
            buffer[at : at + len(BOM)] = b"   "
        at += read
        buffer[at : at + 1] = b"\n"
        at += 1
    return JoinedText(np.frombuffer(buffer, np.uint8), at, starts)
