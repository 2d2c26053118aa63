"""Blocks of lines to tapes, and bad lines to errors that say where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from variantlake.arrow.blocks import Block, line_number, read_blocks
from variantlake.arrow.sources import Source, Split, split_sources
from variantlake.encoding.json import parse_json
from variantlake.errors import InvalidJson, VariantLakeError
from variantlake.kernels.json_reader import JsonReader
from variantlake.kernels.lines import Lines, split_lines
from variantlake.kernels.profiler import profile
from variantlake.kernels.tape import Tape
from variantlake.shredding.profile import Profile

SAMPLE_ROWS = 4096
"""Documents that schema inference looks at, as Spark does."""

SAMPLE_BYTES = 16 << 20
"""The most text that it looks at."""

_LINE_HINT = "one document stands on one line, as JSON in UTF-8"
_LIMIT_HINT = "Spark does not take this document either"
_SAMPLE_PIECES = 16
_SAMPLE_BLOCK_BYTES = 256 << 10


def read_tapes(splits: Sequence[Split]) -> Iterator[Tape]:
    """The documents of the splits, in order, a block at a time.

    Raises:
        InvalidJson, LimitExceeded: The first bad line, with file, line and column (both 1-based).
        MalformedFile, MissingSource: As `read_blocks`.
    """
    reader = JsonReader()
    for split in splits:
        for block in read_blocks(split):
            lines = split_lines(block.text)
            if not len(lines.starts):
                continue
            tape = reader.read(block.padded, lines.starts, lines.ends)
            if tape.status.any():
                raise bad_line(block, lines, tape)
            yield tape
            del tape  # the reader uses its buffers again once nobody holds the last tape


def bad_line(block: Block, lines: Lines, tape: Tape) -> VariantLakeError:
    """The exact error of a tape's first bad row: the plain parser is asked about the same text."""
    row = int(np.flatnonzero(tape.status)[0])
    start, end = int(lines.starts[row]), int(lines.ends[row])
    text = block.text[:end].tobytes()
    # Blanks before the document were left out of it, and count as columns.
    indent = start - (text.rfind(b"\n", 0, start) + 1)
    try:
        parse_json(text[start:])
    except VariantLakeError as error:
        found = error
    else:
        found = InvalidJson(
            "the document was refused", offset=int(tape.position[row]), hint="this is our mistake"
        )
    found.file = block.source.path
    found.line = line_number(block.source, block.offset) + int(lines.numbers[row])
    found.column = (found.column or (found.offset or 0) + 1) + indent
    found.offset = None  # said by line and column
    if not found.hint:
        found.hint = _LINE_HINT if isinstance(found, InvalidJson) else _LIMIT_HINT
    return found


def sample_profile(sources: Sequence[Source]) -> Profile:
    """What a bounded sample of the documents holds, from several places of several files.

    Bad lines are left out here: the load itself reports them with their position.
    """
    pieces = _sample_pieces(sources)
    rows = -(-SAMPLE_ROWS // len(pieces))
    merged = Profile()
    for piece in pieces:
        merged.merge(_profile_start(piece, rows, SAMPLE_BYTES // len(pieces)))
    return merged


def _sample_pieces(sources: Sequence[Source]) -> list[Split]:
    """Places to look at, spread evenly over the input."""
    total = sum(source.size for source in sources)
    splits = split_sources(sources, max(total // _SAMPLE_PIECES, _SAMPLE_BLOCK_BYTES))
    count = min(len(splits), _SAMPLE_PIECES)
    return [splits[len(splits) * i // count] for i in range(count)]


def _profile_start(piece: Split, rows: int, most_bytes: int) -> Profile:
    merged, reader = Profile(), JsonReader()
    seen = 0
    for block in read_blocks(piece, block_bytes=_SAMPLE_BLOCK_BYTES):
        lines = split_lines(block.text)
        tape = reader.read(block.padded, lines.starts[:rows], lines.ends[:rows])
        merged.merge(profile(tape))
        rows -= tape.rows
        seen += block.size
        if rows <= 0 or seen >= most_bytes:
            break
    return merged
