"""Read JSON text into a tape. Twin: encoding.json."""

from __future__ import annotations

from typing import Literal

import numpy as np

from variantlake.encoding.limits import MAX_DEPTH
from variantlake.kernels.json.json_rows import (
    DEPTH_WORDS,
    LAST_WINS,
    NODES,
    TOO_LARGE,
    DocumentSpans,
    Outcome,
    read_rows,
)
from variantlake.kernels.json.numbers import ARENA, UNDECIDED_COUNT, finish_doubles
from variantlake.kernels.native.declared import Bytes, Int64s
from variantlake.kernels.tape.buffers import BufferPool
from variantlake.kernels.tape.keys import KeyTable
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING

__all__ = ["TOO_LARGE", "JsonReader"]

_FORGET_KEYS = 1 << 16
"""Beyond this many names the documents' keys are data: the reader begins a new table."""


class JsonReader:
    """Reads batches of JSON documents into tapes; keeps its key dictionary between them.

    One thread at a time. A row that is not JSON, or that a Variant cannot hold, gets a nonzero
    status and no nodes; `bad_document.json_error` returns the exact error for its text.
    """

    def __init__(self, *, duplicate_keys: Literal["error", "last"] = "error") -> None:
        self._last_wins = duplicate_keys == "last"
        self._keys = KeyTable()
        self._stack: Int64s = np.empty(DEPTH_WORDS, np.int64)
        self._pool = BufferPool()

    def read(self, text: Bytes, starts: Int64s, ends: Int64s) -> Tape:
        """Read the documents text[starts[r]:ends[r]].

        text: uint8, contiguous; copied unless 64 bytes of any content follow the last document.
        starts, ends: int64, one a row. Batches of 1 to 4 MB keep the tape in the processor's cache.
        """
        text = np.ascontiguousarray(text)
        starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
        rows = len(starts)
        total = int((ends - starts).sum()) if rows else 0
        if rows and len(text) < int(ends.max()) + PADDING:
            text = np.concatenate([text, np.zeros(PADDING, np.uint8)])
        if self._keys.count > _FORGET_KEYS:
            self._keys = KeyTable()
        table, buffers = self._keys, self._pool.take()
        arena = buffers.grow_arena(total + 2 * PADDING)
        # A typical document has a node per 20 bytes; the loop adds more if the rows need them.
        nodes = buffers.grow_nodes(0, total // 8 + 2 * rows + 4 * MAX_DEPTH)
        table.state[[NODES, ARENA, UNDECIDED_COUNT]] = 0
        table.state[LAST_WINS] = self._last_wins
        first, status, position = (np.empty(rows + extra, np.int64) for extra in (1, 0, 0))
        documents, outcome = DocumentSpans(text, starts, ends), Outcome(first, status, position)
        row = 0
        while True:
            row = read_rows(
                documents, row, nodes, arena, table.keys, table.key_bytes, table.slots,
                table.seen, self._stack, table.state, outcome,
            )  # fmt: skip
            if row == rows:
                break
            length = int(ends[row] - starts[row])
            table.reserve(length // 4 + 2, length + PADDING)
            used = int(table.state[NODES])
            nodes = buffers.grow_nodes(used, used + length // 2 + MAX_DEPTH + 2)
        if table.state[UNDECIDED_COUNT]:
            finish_doubles(text, nodes[: int(first[rows])])
        tape = Tape(text, arena, nodes, first, status, position, table, table.count)
        buffers.lend(tape)
        return tape
