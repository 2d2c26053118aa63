"""The tape: a columnar record of every node of a batch of documents.

The one thing that readers fill and writers read, so that N readers and M writers are N + M paths.
A node is one scalar, object or array; nodes stand in document order, a container before its
children. Strings stay where they are: a node points into the text that was read, or into an arena
of unescaped text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variantlake.kernels.native.declared import Bytes, Int32s, Int64s, Records
from variantlake.kernels.tape.keys import KeyTable

SQL_NULL = 100
"""Status of a row that is null if it was read: no error, and no nodes."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Tape:
    """Nodes of a batch of rows.

    Its arrays belong to the reader that made it and live as long as the tape: do not keep one of
    them without the tape.

    text: what STRING nodes point to, with words.PADDING bytes after the last row.
    arena: what they point to otherwise.
    nodes: NODE records; row r has nodes[first[r]:first[r + 1]], none when it is bad.
    first: int64, shape (rows + 1,).
    status: int64, shape (rows,); 0 for a good row, SQL_NULL for a null, else the reader's code of
        what is wrong.
    position: int64, shape (rows,); for a bad row the byte within the row where it was noticed.
    keys: the names of the nodes' key ids. Shared with later tapes of the reader, which only add.
    key_count: ids below it may stand in this tape.
    has_lacking: whether a node may be of a type that Spark lacks; documents of JSON hold none.
    """

    text: Bytes
    arena: Bytes
    nodes: Records
    first: Int64s
    status: Int64s
    position: Int64s
    keys: KeyTable
    key_count: int
    has_lacking: bool = False

    @property
    def rows(self) -> int:
        """Rows, bad ones included."""
        return len(self.status)

    @property
    def bad(self) -> npt.NDArray[np.bool_]:
        """Which rows are neither good nor null."""
        found: npt.NDArray[np.bool_] = (self.status != 0) & (self.status != SQL_NULL)
        return found

    @property
    def node_count(self) -> int:
        """Nodes of all rows."""
        return int(self.first[-1])

    def ranks(self) -> Int32s:
        """The place of each key id among all names in unsigned UTF-8 byte order."""
        return self.keys.ranks()[: self.key_count]
