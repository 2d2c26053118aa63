"""Make errors and quarantine lines for documents that cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.encoding.json import LAST_KEY_HINT, OPEN_STRING
from variantlake.errors import InvalidJson, VariantLakeError
from variantlake.ingest.sources.blocks import Block
from variantlake.ingest.sources.document_hints import expected_at
from variantlake.ingest.sources.positions import PlaceCounter, TextPosition
from variantlake.kernels.json.bad_document import json_error, mistakes_of, reasons
from variantlake.kernels.json.json_reader import TOO_LARGE
from variantlake.kernels.json.json_writer import write_texts
from variantlake.kernels.json.mistakes import NOT_UTF8, UNKNOWN
from variantlake.kernels.native.declared import Int64s
from variantlake.kernels.tape.nodes import BINARY, STRING
from variantlake.kernels.tape.tape import Tape
from variantlake.shown import utf8_text
from variantlake.writing.quarantine import BadRow

_ONE_KEY_HINT = "an object in a Variant cannot have two fields with the same name"
_LIMIT_HINT = "Spark does not take this document either"
_LARGE = 16 << 20
"""The bytes from which a document's line is made separately: an Arrow array has at most 2 GB."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents of one block: document i is `text[starts[i]:ends[i]]` of its text, in order."""

    block: Block
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def text(self, row: int) -> bytes:
        """Return the bytes of a document."""
        return self.block.text[int(self.starts[row]) : int(self.ends[row])].tobytes()


def bad_row(batch: Batch, tape: Tape, row: int, counter: PlaceCounter) -> BadRow:
    """Return a bad row with its error."""
    place = counter.place(batch.block, batch.block.offset + int(batch.starts[row]))
    return _bad_row(batch, tape, row, place)


def quarantine_lines(
    batch: Batch, tape: Tape, rows: Int64s, counter: PlaceCounter
) -> Iterator[bytes | pa.Buffer]:
    """Yield the lines of ascending bad rows, as `BadRow.to_json` writes them, many at a time.

    A kernel finds the mistakes of all rows: a short line takes less than a microsecond.
    """
    block = batch.block
    starts, ends = batch.starts[rows], batch.ends[rows]
    lines, columns = counter.places(block, block.offset + starts)
    # Lines of rare mistakes and large documents are made one by one, in plain Python.
    by_itself = (tape.status[rows] == TOO_LARGE) | (ends - starts > _LARGE)
    ends = np.where(by_itself, starts, ends)
    found = mistakes_of(block.padded, starts, ends, tape.position[rows])
    by_itself |= found.what == UNKNOWN
    messages, numbers = reasons(block.padded, starts, ends, found)
    file = orjson.dumps(utf8_text(block.source.label)).decode()
    heads = [
        f'{{"reason":{orjson.dumps(utf8_text(message)).decode()},"file":{file},"line":'
        for message in messages
    ]
    # In a document's first line, columns count from the document's start.
    is_first_line = found.line == 1
    is_text = found.what != NOT_UTF8
    joined = _joined(
        pa.array(heads, pa.large_string()).take(numbers),
        pa.array(lines + found.line - 1),
        ',"column":',
        pa.array(np.where(is_first_line, columns + found.column - 1, found.column)),
        ',"offset":',
        pa.array(block.offset + starts),
        pa.array([',"base64":', ',"text":']).take(is_text.astype(np.int8)),
        write_texts(block.padded, starts, ends, np.where(is_text, STRING, BINARY).astype(np.uint8)),
        "}\n",
    )
    _, places, content = joined.buffers()
    offsets = np.frombuffer(places, np.int64)
    done = 0
    # The joined lines are one buffer: yield its pieces between the separate lines.
    for at in np.flatnonzero(by_itself).tolist():
        yield content.slice(int(offsets[done]), int(offsets[at] - offsets[done]))
        place = TextPosition(line=int(lines[at]), column=int(columns[at]))
        yield _bad_row(batch, tape, int(rows[at]), place).to_json()
        done = at + 1
    yield content.slice(int(offsets[done]), int(offsets[len(rows)] - offsets[done]))


def _joined(*parts: Any) -> Any:
    """Join the parts of each row to one text."""
    texts = [part if isinstance(part, str) else part.cast(pa.large_string()) for part in parts]
    join = cast("Any", pc).binary_join_element_wise
    return join(
        *(pa.scalar(t, pa.large_string()) if isinstance(t, str) else t for t in texts),
        pa.scalar("", pa.large_string()),
    )


def _bad_row(batch: Batch, tape: Tape, row: int, start: TextPosition) -> BadRow:
    text = batch.text(row)
    error = _error(batch, tape, row, start, text)
    return BadRow(error, batch.block.offset + int(batch.starts[row]), text)


def _error(
    batch: Batch, tape: Tape, row: int, start: TextPosition, text: bytes
) -> VariantLakeError:
    """Make the error for a row's text, which starts at `start`, with its place in the source."""
    found = json_error(text, int(tape.status[row]), int(tape.position[row]))
    source = batch.block.source
    within = (found.line or 1) - 1
    column = found.column or (found.offset or 0) + 1
    found.file = source.label
    found.line = start["line"] + within
    found.column = column if within else start["column"] + column - 1
    end, found.offset = found.offset or 0, None  # line and column replace it
    if found.message == OPEN_STRING:
        end = len(text)
    if found.hint == LAST_KEY_HINT:
        found.hint = _ONE_KEY_HINT
    elif not found.hint and isinstance(found, InvalidJson):
        hints = expected_at(source.format, text, end)
        found.hint, found.cli_hint = hints["hint"], hints["cli_hint"]
    elif not found.hint:
        found.hint = _LIMIT_HINT
    return found
