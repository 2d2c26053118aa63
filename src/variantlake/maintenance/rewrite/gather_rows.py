"""Gather rows of many small files into batches large enough for a call of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.shredding.values import ValueNotes

Notes = Mapping[ColumnPath, ValueNotes]

GATHERED_ROWS = 16384
GATHERED_BYTES = 16 << 20
"""From this many rows or bytes on, a batch is written."""


@dataclass(slots=True)
class Gathered:
    """Gathers batches of one schema into larger ones, and calls `write` with them.

    A column has notes only if all parts of a batch have notes for it; they are merged.
    """

    write: Callable[[pa.RecordBatch, Notes], None]
    _parts: list[pa.RecordBatch] = field(default_factory=list)
    _notes: dict[ColumnPath, ValueNotes] = field(default_factory=dict)
    _rows: int = 0
    _bytes: int = 0

    def add(self, batch: pa.RecordBatch, notes: Notes) -> None:
        """Add rows, and write the batch if it is large enough."""
        if not self._parts:
            self._notes = dict(notes)
        elif notes != self._notes:
            self._notes = {
                path: own.merge(notes[path]) for path, own in self._notes.items() if path in notes
            }
        self._parts.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GATHERED_ROWS or self._bytes >= GATHERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows gathered so far."""
        if not self._parts:
            return
        parts, self._parts, self._rows, self._bytes = self._parts, [], 0, 0
        self.write(joined(parts), self._notes)


def joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches of one schema into one."""
    if len(parts) == 1:
        return parts[0]
    arrow: Any = pa  # its stubs lack the function
    found: pa.RecordBatch = arrow.concat_batches(list(parts))
    return found
