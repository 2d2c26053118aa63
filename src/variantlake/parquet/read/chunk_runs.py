"""Read column chunks of texts as runs of equal neighbouring rows.

The runs come from the runs of codes in the pages, or from bounds that enclose one text. As in
`chunk_values`, pyarrow reads anything unusual or damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.kernels.columns.runs import RUN_STATE, find_runs
from variantlake.kernels.log.page_headers import COUNT
from variantlake.parquet.read.chunk_pages import (
    ChunkPages,
    ChunkPlace,
    array_of,
    pages_of,
    text_entries,
)
from variantlake.parquet.stats.bounds import decode_bounds
from variantlake.parquet.stats.fact_columns import Int64s

SHORTEST_RUN = 64
"""The average rows of a run from which runs are faster than rows."""

_RUN_BYTES = 2
"""About the compressed bytes of a run. A chunk with more bytes per run has shorter runs."""

_HEADERS = 1 << 10
"""About the bytes of a chunk's headers and dictionary."""


@dataclass(frozen=True, slots=True)
class CodeRuns:
    """The runs of a chunk: a dictionary array with one text per run, and the ends (exclusive)."""

    values: Any
    ends: Int64s


def read_runs(place: ChunkPlace) -> CodeRuns | None:
    """Read the texts of a chunk as runs.

    Reads nothing if the footer shows that all rows are equal. Returns None if the chunk may have
    so many runs that rows are faster, or if pyarrow has to read it.
    """
    alike = _run_of_all(place)
    if alike is not None:
        return alike
    most = place.group.num_rows // SHORTEST_RUN * _RUN_BYTES + _HEADERS
    if place.chunk.compressed_size > most:
        return None
    found = pages_of(place, None)
    return None if found is None else _runs(found)


def _run_of_all(place: ChunkPlace) -> CodeRuns | None:
    """Return one run if all rows are NULL, or if the bounds enclose only one text.

    Truncated bounds enclose the values too (EXACTNESS, rule 21).
    """
    leaf, chunk, rows = place.leaf, place.chunk, place.group.num_rows
    is_text = leaf.node.physical == "BYTE_ARRAY"
    if leaf.max_repetition or not is_text or not rows or chunk.num_values != rows:
        return None
    nulls = chunk.null_count if leaf.max_definition else 0
    bounds = decode_bounds(chunk, leaf.node, writer_is_exact=False)
    if nulls == rows:
        text = None
    elif nulls == 0 and isinstance(bounds.minimum, str) and bounds.minimum == bounds.maximum:
        text = bounds.minimum
    else:
        return None
    return CodeRuns(
        arrow_array([text], pa.string()).dictionary_encode(), np.array([rows], np.int64)
    )


def _runs_of(rows: int) -> int:
    """Return the most runs that this many rows may have."""
    return rows // SHORTEST_RUN + SHORTEST_RUN


def _runs(chunk: ChunkPages) -> CodeRuns | None:
    if not chunk.is_coded or chunk.leaf.node.physical != "BYTE_ARRAY":
        return None
    pages = chunk.pages[1:].tolist()
    # The first page alone shows whether the runs are too short.
    parts = chunk.bytes.parts(chunk.pages[:2].tolist())
    if parts is None:
        return None
    entries = text_entries(parts[:1], chunk.pages[:1, COUNT])
    if entries is None:
        return None
    most = _runs_of(sum(page[COUNT] for page in pages))
    codes, ends, state = (
        np.empty(most, np.int32),
        np.empty(most, np.int64),
        np.empty(RUN_STATE, np.int64),
    )
    count = start = 0
    parts = parts[1:]
    for number, page in enumerate(pages):
        if number == 1:
            parts += chunk.bytes.parts(pages[1:]) or []
        if number >= len(parts):
            return None
        levels, values = (np.frombuffer(part, np.uint8) for part in parts[number])
        end = start + page[COUNT]
        room = min(most, _runs_of(end))
        count = find_runs(
            levels,
            chunk.leaf.max_definition,
            values,
            len(entries),
            end - start,
            codes[:room],
            ends[:room],
            count,
            start,
            state,
        )
        if count < 0:
            return None
        start = end
    valid = codes[:count] >= 0
    indices = array_of(codes[:count], valid.view(np.uint8), int(np.count_nonzero(valid)))
    return CodeRuns(pa.DictionaryArray.from_arrays(indices, entries, safe=False), ends[:count])
