"""Read files of one JSON array, as blocks of complete elements, or of one document."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.errors import InvalidJson, LimitExceeded, VariantLakeError
from variantlake.ingest.sources.blocks import BLOCK_BYTES, Block
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.ingest.sources.document_hints import expected
from variantlake.ingest.sources.positions import place_of
from variantlake.ingest.sources.sources import Source
from variantlake.ingest.sources.streams import BOM, Stream, fill, open_source
from variantlake.kernels.json.elements import ElementFinder
from variantlake.kernels.tape.words import PADDING

_BLANKS = b" \t\r\n"
_STEP_BYTES = 64 << 10
"""The bytes to read at once when looking for the start of the array."""

Places = npt.NDArray[np.int64]


def read_elements(
    source: Source, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[Block, Places, Places]]:
    """Yield the elements of the array: blocks, with the starts and ends of elements in them.

    A blank file has none.

    This does not check that an element is JSON: its quotes and brackets tell where it ends. Memory
    stays within about twice the longest element or block.

    Raises:
        InvalidJson: The file is not an array, ends within it, or has more text after it. No mode of
            a load skips this error, because the ends of elements are unknown then.
        LimitExceeded: An element has more than MAX_VALUE_BYTES.
        MalformedFile, MissingSource, StoreFailed: As `open_source`.
    """
    with open_source(source) as stream:
        entered = _enter(source, stream)
        if entered is None:
            return
        rest, offset = entered
        finder = ElementFinder()
        while not finder.closed:
            room = len(rest) + max(block_bytes, len(rest))
            buffer = bytearray(room + PADDING)
            buffer[: len(rest)] = rest
            filled = len(rest) + fill(stream, memoryview(buffer)[len(rest) : room])
            text = np.frombuffer(buffer, np.uint8)
            starts, ends = finder.find(text, filled)
            kept = finder.start if finder.start >= 0 else finder.position
            if kept:
                yield Block(source, text, kept, offset), starts, ends
            if filled - kept > MAX_VALUE_BYTES and not finder.closed:
                raise LimitExceeded(
                    f"the element has more than {MAX_VALUE_BYTES:,} bytes",
                    hint="is a quote or a bracket left open in it?",
                    file=source.label,
                    **place_of(source, offset + kept),
                )
            if filled < room and not finder.closed:
                raise _refused(source, offset + filled, "the file ends within the array")
            rest = buffer[kept:filled]
            finder.move(kept)
            offset += kept
        while rest:
            _only_blanks(source, rest, offset)
            offset += len(rest)
            rest = rest[: fill(stream, memoryview(rest))]


def read_document(source: Source) -> tuple[Block, Places, Places]:
    """Read the only document of a file, as a block with its start and end.

    This does not check that it is JSON.

    Raises:
        LimitExceeded: It has more than MAX_VALUE_BYTES.
        MalformedFile, MissingSource, StoreFailed: As `open_source`.
    """
    buffer, size = bytearray(min(source.size, MAX_VALUE_BYTES) + _STEP_BYTES), 0
    with open_source(source) as stream:
        while read := fill(stream, memoryview(buffer)[size:-PADDING]):
            size += read
            if size > MAX_VALUE_BYTES:
                raise LimitExceeded(
                    f"the document has more than {MAX_VALUE_BYTES:,} bytes",
                    file=source.label,
                    **expected(source.format, DocumentFormat.LINES),
                )
            if size == len(buffer) - PADDING:  # compressed, or grown since
                buffer += bytes(len(buffer))
    start = len(BOM) if buffer.startswith(BOM) else 0
    text = buffer[:size].rstrip(_BLANKS)
    start = max(start, len(text) - len(text[start:].lstrip(_BLANKS)))
    block = Block(source, np.frombuffer(buffer, np.uint8), size, 0)
    return block, np.array([start], np.int64), np.array([max(len(text), start)], np.int64)


def _enter(source: Source, stream: Stream) -> tuple[bytearray, int] | None:
    """Read up to the array's bracket; returns the text read after it, and that text's offset.

    None if the file is blank.
    """
    buffer = bytearray(_STEP_BYTES)
    offset = 0
    while read := fill(stream, memoryview(buffer)):
        start = len(BOM) if offset == 0 and buffer.startswith(BOM) else 0
        text = buffer[start:read]
        content = text.lstrip(_BLANKS)
        if content:
            place = offset + start + len(text) - len(content)
            if content[0] != ord("["):
                raise _refused(source, place, "the file is not a JSON array: it must start with [")
            return content[1:], place + 1
        offset += read
    return None


def _only_blanks(source: Source, text: bytearray, offset: int) -> None:
    content = text.lstrip(_BLANKS)
    if content:
        place = offset + len(text) - len(content)
        raise _refused(source, place, "there is more text after the array")


def _refused(source: Source, offset: int, message: str) -> VariantLakeError:
    return InvalidJson(
        message,
        file=source.label,
        **expected(source.format, DocumentFormat.LINES, DocumentFormat.WHOLE),
        **place_of(source, offset),
    )
