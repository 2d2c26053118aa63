"""Collect rows by cell, in memory or in a temporary file, and write them cell by cell.

Rows arrive in the order of the input files. Beyond MEMORY they are spilled as Arrow batches to one
file in the folder for temporary files. It has no name, so nothing is left of it after a crash.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from variantlake.errors import StoreFailed
from variantlake.maintenance.rewrite.cells import Cells
from variantlake.maintenance.rewrite.stored_rows import StoredRows
from variantlake.parallel.prefetch import ahead
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.value_notes import NotesCollector
from variantlake.writing.sort_rows import sorted_pieces

MEMORY = 192 << 20
"""Bytes of rows (Arrow) that wait in memory."""

_Waiting = tuple[int, Hashable]
"""A cell, and the `apart` of its rows: see StoredRows."""


@dataclass(slots=True)
class CellRows:
    """Rows by cell; a context manager. `variants` are the paths of the Variant columns."""

    cells: Cells
    variants: tuple[ColumnPath, ...]
    _batches: dict[_Waiting, list[pa.RecordBatch]] = field(default_factory=dict)
    _spilled: dict[_Waiting, list[tuple[int, int]]] = field(default_factory=dict)
    _notes: dict[_Waiting, NotesCollector] = field(default_factory=dict)
    _bytes: int = 0
    _file: Any = None
    _schema: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, rows: StoredRows) -> None:
        """Add rows, which are already split by cell.

        Raises StoreFailed if the temporary file has no space.
        """
        self._schema = rows.batch.schema
        for cell, part in rows.by_cell:
            key = (cell, rows.apart)
            self._batches.setdefault(key, []).append(part)
            if key not in self._notes:
                self._notes[key] = NotesCollector(self.variants)
            self._notes[key].add(rows.notes)
        self._bytes += rows.batch.nbytes
        if self._bytes > MEMORY:
            self._spill()

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="variantlake-")  # noqa: SIM115  # closed
            for key, batches in self._batches.items():
                (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
                data = whole.serialize()
                start = self._file.tell()
                self._file.write(data)
                self._spilled.setdefault(key, []).append((start, data.size))
        except OSError as error:
            raise StoreFailed(
                f"rows that wait for their files cannot be written: {error}",
                file=tempfile.gettempdir(),
                hint="TMPDIR names a folder with more space",
            ) from error
        self._batches.clear()
        self._bytes = 0

    def write(self, write: Callable[[StoredRows], None], finish: Callable[[], None]) -> None:
        """Call `write` with all rows, sorted by the keys within each cell, and drop them.

        `write` gets pieces of some thousand rows; `finish` is called after each file.
        """
        if self._file is not None:
            self._spill()
        by_cell: dict[int, list[_Waiting]] = {}
        for key in dict.fromkeys([*self._spilled, *self._batches]):
            by_cell.setdefault(key[0], []).append(key)
        files = self.cells.file_of
        before: int | None = None
        keys = [key for cell in sorted(by_cell) for key in by_cell[cell]]
        # The next cells are sorted while earlier ones are written.
        sort = lambda given: (given[0], list(sorted_pieces(given[1], self.cells.keys)))
        weigh = lambda given: 2 * sum(int(batch.nbytes) for batch in given[1])
        for key, pieces in ahead(map(self._take_batches, keys), sort, weigh):
            if before is not None and files[key[0]] != before:
                finish()
            before = files[key[0]]
            while pieces:
                write(StoredRows(pieces.pop(0), self._notes[key].by_column, key[1]))
        if before is not None:
            finish()

    def _take_batches(self, key: _Waiting) -> tuple[_Waiting, list[pa.RecordBatch]]:
        """Return the rows of a cell and drop them here."""
        batches = self._batches.pop(key, [])
        for start, size in self._spilled.pop(key, []):
            self._file.seek(start)
            data = pa.py_buffer(self._file.read(size))
            batches.append(pa.ipc.read_record_batch(data, self._schema))
        return key, batches
