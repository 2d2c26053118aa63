"""Column chunks of texts as runs: rows that hold the same, one after the other.

From the pages' own runs of codes, or from bounds that enclose one text alone. Whatever is wrong is
left to pyarrow, as in `chunk_values`.
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
"""Rows of a run, on average, from which runs are faster than rows."""

_RUN_BYTES = 2
"""A run's bytes, about, and compressed. A chunk of more has shorter runs."""

_HEADERS = 1 << 10
"""Bytes of the headers and dictionaries of a chunk, about."""


@dataclass(frozen=True, slots=True)
class CodeRuns:
    """A chunk of texts as runs: the row behind each, and what its rows hold, a dictionary array."""

    values: Any
    ends: Int64s


def read_runs(place: ChunkPlace) -> CodeRuns | None:
    """The texts of a chunk of a row group as runs.

    Nothing is read if the footer says that all rows are alike. None if there may be many
    runs, which are not faster than rows, and for what pyarrow has to read.
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
    """One run if no row has a text, or all have one that the bounds enclose nothing beside of.

    Cut bounds enclose as well (EXACTNESS, rule 21).
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
    """How many runs so many rows may have."""
    return rows // SHORTEST_RUN + SHORTEST_RUN


def _runs(chunk: ChunkPages) -> CodeRuns | None:
    if not chunk.is_coded or chunk.leaf.node.physical != "BYTE_ARRAY":
        return None
    pages = chunk.pages[1:].tolist()
    # Rows without runs are noticed on the first page.
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
