"""Write the batches of one task of a load as Parquet files of bounded size."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from variantlake.errors import VariantLakeError
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.value_notes import NO_NOTES, NotesCollector
from variantlake.parquet.write.file_writer import FileWriter, WriteOptions, WrittenFile
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.values import ValueNotes
from variantlake.storage.store import LocalStore, Store, make_folder, start_flush
from variantlake.storage.unreachable import disk_failure
from variantlake.writing.options.file_sizes import DEFAULT_LIMITS, FileLimits
from variantlake.writing.sort_rows import SortKey, sorted_pieces
from variantlake.writing.void_columns import stored_rows, without_void

SORT_BYTES = 64 << 20
"""Bytes of rows (Arrow) that are sorted in memory at once; a sorted file holds no more."""


_FLUSH_BYTES = 4 << 20
"""Bytes after which the kernel is asked to write out an open file, so that the flush at its end
waits for little more than the last row group."""


_LOAD_FILE = re.compile(
    r"part-\d{5,}-[0-9a-f]{32}-[0-9a-f]{8}-\d{5,}\.[a-z0-9]+\.parquet|variantlake-load-[0-9a-f]{32}\.running"
)


def is_load_file(name: str) -> bool:
    """Whether a file in a table's folder has a name that a load gives its files."""
    return _LOAD_FILE.fullmatch(name) is not None


def load_file(task: int, load_id: str, attempt: str, number: int, codec: str) -> str:
    """The name of a file of a load, by which `delete_load` finds it."""
    return f"part-{task:05d}-{load_id}-{attempt}-{number:05d}.{codec}.parquet"


def task_of(name: str) -> int:
    """The number of the task that wrote a file of a load."""
    return int(name.rpartition("/")[2].split("-")[1])


def new_load_id() -> str:
    """A new id, which the names of all files of one load contain."""
    return uuid.uuid4().hex


def delete_load(store: Store, load_id: str, keep: Collection[str] = ()) -> int:
    """Delete the files of a load from the table's folder, except `keep`; returns how many.

    The log must name none of them.
    """
    paths = [entry.path for entry in store.list_from("") if _belongs(entry.path, load_id)]
    paths = [path for path in paths if path not in keep]
    for path in paths:
        store.delete(path)
    return len(paths)


def count_files(store: Store, load_id: str) -> int:
    """How many files a load has begun; -1 on an object store, where counting costs requests."""
    if not isinstance(store, LocalStore):
        return -1
    with os.scandir(store.root) as entries:
        return sum(_belongs(entry.name, load_id) for entry in entries)


def _belongs(name: str, load_id: str) -> bool:
    return name.startswith("part-") and f"-{load_id}-" in name


def rows_of(files: Iterable[WrittenFile]) -> int:
    """How many rows these files hold."""
    return sum(file.facts.num_records for file in files)


@dataclass(slots=True)
class FileSet:
    """The files of one task, in the order of their rows; a context manager.

    Leaving it by an exception removes every file that it wrote, finished or not. It calls `check`
    before it begins a file, which stops the task by raising. With an `order` each file is sorted,
    and ends early if that takes too much memory. Names sort in the order of tasks and rows, contain
    the load's id, and differ between attempts of a task, because Spark may repeat or duplicate it.
    `watch` is as for FileWriter. `constants` are partition columns that files hold: columns with
    the same value in every row, as arrays of one row.
    """

    store: Store
    load_id: str
    task: int
    schema: pa.Schema
    variant_columns: tuple[tuple[str, ...], ...]
    options: WriteOptions
    limits: FileLimits = DEFAULT_LIMITS
    check: Callable[[], None] | None = None
    order: tuple[SortKey, ...] = ()
    watch: Callable[[pa.Table], None] | None = None
    constants: Sequence[tuple[pa.Field[pa.DataType], AnyArray]] = ()
    finished: list[WrittenFile] = field(default_factory=list)
    _attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _writer: FileWriter | None = None
    _rows: int = 0
    _flushing: int = 0
    _unsorted: list[pa.RecordBatch] = field(default_factory=list)
    _unsorted_bytes: int = 0
    _scratch: str | None = None
    _path: Path = Path()
    _unsorted_notes: NotesCollector = field(init=False)
    _stored: pa.Schema = field(init=False)
    _written: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        self._unsorted_notes = NotesCollector(self.variant_columns)
        self._stored = self._written = without_void(self.schema)
        for item, _ in self.constants:
            self._written = self._written.append(item)

    @property
    def is_open(self) -> bool:
        """Whether some rows are in no finished file yet."""
        return self._writer is not None or bool(self._unsorted)

    @property
    def pending_bytes(self) -> int:
        """Bytes of rows in memory."""
        written = 0 if self._writer is None else self._writer.pending_bytes
        return written + self._unsorted_bytes

    def write(
        self, batch: pa.RecordBatch, notes: Mapping[ColumnPath, ValueNotes] = NO_NOTES
    ) -> None:
        """Write rows to as many files as the limits require; `notes` as for `FileWriter.write`.

        The files have no VOID columns.
        """
        if not self.order:
            self._write(batch, notes)
            return
        self._unsorted.append(batch)
        self._unsorted_notes.add(notes)
        self._unsorted_bytes += batch.nbytes
        if self._unsorted_bytes >= SORT_BYTES:
            self._write_sorted()

    def _write_sorted(self) -> None:
        """Write the rows so far in order, and finish the file."""
        batches, self._unsorted = self._unsorted, []
        notes, self._unsorted_notes = self._unsorted_notes, NotesCollector(self.variant_columns)
        for batch in sorted_pieces(batches, self.order):
            self._write(batch, notes.by_column)
        self._unsorted_bytes = 0
        self._finish()

    def _write(self, batch: pa.RecordBatch, notes: Mapping[ColumnPath, ValueNotes]) -> None:
        while batch.num_rows:
            rows = batch.num_rows
            if self.limits.max_rows is not None:
                rows = min(rows, self.limits.max_rows - self._rows)
            writer = self._writer or self._begin()
            part = batch.slice(0, rows)
            if self._stored is not self.schema:
                part = stored_rows(part, self._stored)
            writer.write(self._with_constants(part), notes)
            self._rows += rows
            batch = batch.slice(rows)
            size = self._size()
            if self._rows == self.limits.max_rows or size >= self.limits.target_bytes:
                self._finish()
            elif size >= self._flushing + _FLUSH_BYTES:
                self._flushing = size
                if isinstance(self.store, LocalStore):
                    start_flush(self._path)

    def _with_constants(self, part: pa.RecordBatch) -> pa.RecordBatch:
        for item, array in self.constants:
            part = part.append_column(item, array.take(np.zeros(part.num_rows, np.int64)))
        return part

    def close(self) -> list[WrittenFile]:
        """Finish the last file; returns all files, in order."""
        if self._unsorted:
            self._write_sorted()
        if self._writer is not None:
            self._finish()
        return self.finished

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if kind is not None:
            if self._writer is not None:
                self._writer.abort()
            for file in self.finished:
                self.store.delete(Path(file.path).name)
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, VariantLakeError):
            raise disk_failure(error, self.store.uri, "the file cannot be written") from error

    def _size(self) -> int:
        """Bytes of the open file so far: its finished row groups."""
        return self._path.stat().st_size

    def _begin(self) -> FileWriter:
        if self.check is not None:
            self.check()
        number = len(self.finished)
        name = load_file(self.task, self.load_id, self._attempt, number, self.options.compression)
        if isinstance(self.store, LocalStore):
            folder = self.store.root
            make_folder(folder)
        else:
            self._scratch = self._scratch or tempfile.mkdtemp(prefix="variantlake-")
            folder = Path(self._scratch)
        self._path = folder / name
        self._writer = FileWriter(
            self._path,
            self._written,
            variant_columns=self.variant_columns,
            options=self.options,
            watch=self.watch,
        )
        self._rows = self._flushing = 0
        return self._writer

    def _finish(self) -> None:
        if self._writer is None:
            return
        written = self._writer.close()
        self._writer = None
        self.finished.append(written)
        path = Path(written.path)
        if isinstance(self.store, LocalStore):
            # A commit that survives a power cut must not name a file that was lost.
            self.store.flush(path.name)
        else:
            self.store.upload(path.name, path)
            path.unlink()
