"""The tape: a columnar record of every node of a batch of documents.

All readers fill it and all writers read it, so that N readers and M writers make N + M paths. A
node is one scalar, object or array. Nodes are in document order, a container before its children.
Strings are not copied: a node points into the input text, or into an arena of unescaped text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variantlake.kernels.native.declared import Bytes, Int32s, Int64s, Records
from variantlake.kernels.tape.keys import KeyTable

SQL_NULL = 100
"""Status of a row that was read as null: it has no error and no nodes."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Tape:
    """Nodes of a batch of rows.

    Its arrays belong to the reader that made it, which reuses them once the tape is gone: do not
    keep an array without its tape.

    text: the bytes that nodes with a `value` from 0 on point to; words.PADDING bytes follow the
        last row.
    arena: the bytes that the other nodes point to.
    nodes: NODE records; row r has nodes[first[r]:first[r + 1]], none when it is bad.
    first: int64, shape (rows + 1,).
    status: int64, shape (rows,); 0 for a good row, SQL_NULL for a null, else the reader's error
        code.
    position: int64, shape (rows,); for a bad row, the byte of the row where the reader noticed it.
    keys: the names of the nodes' key ids; later tapes of the reader share the table and add to it.
    key_count: all key ids of this tape are below it.
    has_lacking: whether a node may be of a type that Spark lacks; JSON documents have none.
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
        """The number of rows, bad ones included."""
        return len(self.status)

    @property
    def bad(self) -> npt.NDArray[np.bool_]:
        """The mask of the rows that are neither good nor null."""
        found: npt.NDArray[np.bool_] = (self.status != 0) & (self.status != SQL_NULL)
        return found

    @property
    def node_count(self) -> int:
        """The number of nodes of all rows."""
        return int(self.first[-1])

    def ranks(self) -> Int32s:
        """Return the place of each key id among all names in unsigned UTF-8 byte order."""
        return self.keys.ranks()[: self.key_count]
