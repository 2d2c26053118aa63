"""Read the documents of sources into tapes, without bad ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from variantlake.contracts.contract import Contract
from variantlake.errors import InvalidJson, LimitExceeded
from variantlake.ingest.encode.bad_documents import Batch, bad_row, quarantine_lines
from variantlake.ingest.encode.contract_rows import unbroken_places, unbroken_records
from variantlake.ingest.records.records import record_tapes
from variantlake.ingest.sources.blocks import BLOCK_BYTES, Block, LongLine, read_blocks
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.ingest.sources.document_hints import expected
from variantlake.ingest.sources.elements import read_document, read_elements
from variantlake.ingest.sources.positions import PlaceCounter, place_of
from variantlake.ingest.sources.sources import Source, Split, split_sources
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.json_rows import INCOMPLETE, UNEXPECTED
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.profile_limits import ProfileLimits
from variantlake.kernels.variant.profiler import Profiler
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.inference.profile import Profile
from variantlake.storage.store import LocalStore
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRow, BadRowLog

SAMPLE_ROWS = 4096
"""The number of documents for schema inference, as in Spark."""

SAMPLE_BYTES = 8 << 20
"""The most bytes of their text."""

_LAYOUT_BYTES = 256 << 10
_SAMPLE_PIECES = 16
_SAMPLE_FILES = 1024
_SAMPLE_BLOCK_BYTES = 256 << 10


def read_batches(split: Split, *, block_bytes: int = BLOCK_BYTES) -> Iterator[Batch | LongLine]:
    """Read the documents of a split by blocks. Raises as `read_blocks` and `read_elements`."""
    if split.source.format is DocumentFormat.ARRAY:
        for block, starts, ends in read_elements(split.source, block_bytes=block_bytes):
            yield Batch(block, starts, ends)
        return
    if split.source.format is DocumentFormat.WHOLE:
        batch = Batch(*read_document(split.source))
        if batch.starts[0] < batch.ends[0]:  # else it is blank
            yield batch
        return
    for part in read_blocks(split, block_bytes=block_bytes):
        if isinstance(part, LongLine):
            yield part
        else:
            lines = split_lines(part.text)
            yield Batch(part, lines.starts, lines.ends)


def read_tapes(
    splits: Sequence[Split],
    bad_rows: BadRowLog,
    reader: JsonReader | None = None,
    *,
    block_bytes: int = BLOCK_BYTES,
    contract: Contract | None = None,
) -> Iterator[Tape]:
    """The documents of the splits, in order, a block at a time; the bad ones go to `bad_rows`.

    `reader` is one whose buffers may be used again. Documents that break the `contract` are bad.

    In the mode "null" they stay in the tape, as rows with a status; else they are left out.

    Raises:
        InvalidJson, LimitExceeded, ContractBroken: In strict mode the first bad document, with
            file, line and column (both 1-based). In any mode a JSON array that is not one.
        MalformedFile, MissingSource, StoreFailed: As `read_blocks`.
    """
    reader = JsonReader() if reader is None else reader
    for split in splits:
        if not split.source.format.is_json:
            for tape in record_tapes(split.source, bad_rows):
                if contract is not None:
                    tape = unbroken_records(tape, contract, split.source, bad_rows)  # noqa: PLW2901
                yield tape
            continue
        counter, of_broken = PlaceCounter(split.source), PlaceCounter(split.source)
        is_first = True
        for batch in read_batches(split, block_bytes=block_bytes):
            if isinstance(batch, LongLine):
                counter, of_broken = PlaceCounter(split.source), PlaceCounter(split.source)
                if bad_rows.mode is not BadRows.NULL:
                    bad_rows.seen += 1
                    bad_rows.add(_too_long(batch))
                    is_first = False
                    continue
                batch = _nothing(batch)  # noqa: PLW2901 - goes on as a bad document
            tape = reader.read(batch.block.padded, batch.starts, batch.ends)
            bad_rows.seen += tape.rows
            if tape.status.any():
                if bad_rows.mode is not BadRows.STRICT and not split.start and is_first:
                    _check_layout(batch, tape)
                good = tape.status == 0
                bad = np.flatnonzero(~good)
                places = PlaceCounter(split.source)
                first = partial(bad_row, batch, tape, int(bad[0]), places)
                if bad_rows.mode is BadRows.NULL:
                    bad_rows.add_null(len(bad), first)
                else:
                    bad_rows.add_lines(
                        len(bad), first, partial(quarantine_lines, batch, tape, bad, counter)
                    )
                    del first, tape  # see below
                    batch = Batch(batch.block, batch.starts[good], batch.ends[good])  # noqa: PLW2901
                    tape = reader.read(batch.block.padded, batch.starts, batch.ends)
            if contract is not None and (found := contract.breaches(tape)) is not None:
                starts, ends = unbroken_places(batch, found, bad_rows, of_broken)
                del found, tape  # see below
                tape = reader.read(batch.block.padded, starts, ends)
            is_first = False
            counter.leave(batch.block)
            of_broken.leave(batch.block)
            if tape.rows:
                yield tape
            del tape  # the reader uses its buffers again once nobody holds the last tape


def _nothing(line: LongLine) -> Batch:
    """A document of no bytes in the place of one that was not kept."""
    nowhere = np.zeros(1, np.int64)
    block = Block(line.source, np.zeros(PADDING, np.uint8), 0, line.offset)
    return Batch(block, nowhere, nowhere)


def _check_layout(batch: Batch, tape: Tape) -> None:
    """Raise InvalidJson if the first document of a file goes on over its next lines.

    Line by line such a file would be bad from its start to its end.
    """
    if batch.block.source.format is not DocumentFormat.LINES or tape.rows < 2:
        return
    if tape.status[0] not in (INCOMPLETE, UNEXPECTED):
        return
    start = int(batch.starts[0])
    end = min(int(batch.ends[-1]), start + _LAYOUT_BYTES)
    whole = JsonReader().read(batch.block.padded, np.array([start]), np.array([end]))
    passed = int(np.searchsorted(batch.ends, start + int(whole.position[0]), side="right"))
    if whole.status[0] and passed < 3 and not (passed == 2 and tape.status[1]):
        return
    is_array = batch.block.text[start] == ord("[")
    what = "one array of documents" if is_array else "documents over several lines"
    raise InvalidJson(
        f"the file is {what}, not one document a line",
        file=batch.block.source.label,
        **expected(
            DocumentFormat.LINES, DocumentFormat.ARRAY if is_array else DocumentFormat.WHOLE
        ),
        **place_of(batch.block.source, batch.block.offset + start),
    )


def _too_long(line: LongLine) -> BadRow:
    error = LimitExceeded(
        f"the line has more than {line.limit:,} bytes",
        file=line.source.label,
        **expected(DocumentFormat.LINES, DocumentFormat.ARRAY, DocumentFormat.WHOLE),
        **place_of(line.source, line.offset),
    )
    return BadRow(error, line.offset)


def sample_profile(sources: Sequence[Source], options: InferenceOptions) -> Profile:
    """Profile a bounded sample of the documents, from several places of several files.

    The profile has as much as an inference with these options can use. Bad documents are ignored:
    the load reports them with their position.
    """
    reader, profiler = JsonReader(), Profiler(ProfileLimits.of(options))
    for tape in sample_records(sources):
        profiler.add(tape)
    for batch in sample_batches([each for each in sources if each.format.is_json]):
        profiler.add(reader.read(batch.block.padded, batch.starts, batch.ends))
    return profiler.result()


def sample_records(sources: Sequence[Source], rows: int = SAMPLE_ROWS) -> Iterator[Tape]:
    """Read about `rows` documents of sources that are not JSON, from the starts of some of them."""
    others = [source for source in sources if not source.format.is_json]
    chosen = [others[len(others) * i // _SAMPLE_PIECES] for i in range(_SAMPLE_PIECES) if others]
    chosen = list(dict.fromkeys(chosen))
    for source in chosen:
        left = -(-rows // len(chosen))
        # The load reports bad documents with their position.
        with BadRowLog(BadRows.NULL, LocalStore(Path()), "", 0) as ignored:
            for tape in record_tapes(source, ignored):
                yield tape
                left -= tape.rows
                if left <= 0:
                    break


def sample_batches(sources: Sequence[Source], rows: int = SAMPLE_ROWS) -> Iterator[Batch]:
    """Read about `rows` documents, at most about SAMPLE_BYTES, from several places of the sources.

    Raises as `read_batches`.
    """
    pieces = _sample_pieces(sources)
    for piece in pieces:
        yield from _start_of(piece, -(-rows // len(pieces)), SAMPLE_BYTES // len(pieces))


def _sample_pieces(sources: Sequence[Source]) -> list[Split]:
    """Choose places to sample, evenly over the input."""
    total = sum(source.size for source in sources)
    splits = split_sources(sources, max(total // _SAMPLE_PIECES, _SAMPLE_BLOCK_BYTES))
    pieces = _SAMPLE_PIECES
    if all(source.format is DocumentFormat.WHOLE for source in sources):
        # These files have one document each: take many of them, unless they are large.
        pieces = min(max(pieces, len(splits) * SAMPLE_BYTES // max(total, 1)), _SAMPLE_FILES)
    count = min(len(splits), pieces)
    return [splits[len(splits) * i // count] for i in range(count)]


def _start_of(piece: Split, rows: int, most_bytes: int) -> Iterator[Batch]:
    seen = 0
    for batch in read_batches(piece, block_bytes=_SAMPLE_BLOCK_BYTES):
        if isinstance(batch, LongLine):
            break
        yield Batch(batch.block, batch.starts[:rows], batch.ends[:rows])
        rows -= len(batch.starts)
        seen += batch.block.size
        if rows <= 0 or seen >= most_bytes:
            break
