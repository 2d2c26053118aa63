"""Write a stream of batches as Parquet files of bounded size: the files of one task of a load."""

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
"""Bytes of rows in memory (Arrow) that are sorted at a time; a sorted file holds no more."""


_FLUSH_BYTES = 4 << 20
"""Bytes of an open file from which the disk begins to write them: then the file's end waits for
little more than its last row group."""


_LOAD_FILE = re.compile(
    r"part-\d{5,}-[0-9a-f]{32}-[0-9a-f]{8}-\d{5,}\.[a-z0-9]+\.parquet|variantlake-load-[0-9a-f]{32}\.running"
)


def is_load_file(name: str) -> bool:
    """Whether a file in a table's folder was made by a load (of this module's names)."""
    return _LOAD_FILE.fullmatch(name) is not None


def load_file(task: int, load_id: str, attempt: str, number: int, codec: str) -> str:
    """The name of a file of a load, by which `delete_load` finds it."""
    return f"part-{task:05d}-{load_id}-{attempt}-{number:05d}.{codec}.parquet"


def task_of(name: str) -> int:
    """The number of the task that wrote a file of a load."""
    return int(name.rpartition("/")[2].split("-")[1])


def new_load_id() -> str:
    """What the names of all files of one load share, and those of no other."""
    return uuid.uuid4().hex


def delete_load(store: Store, load_id: str, keep: Collection[str] = ()) -> int:
    """Remove the files of a load from the table's folder, but those in `keep`; how many.

    None of the removed may be in the log.
    """
    paths = [entry.path for entry in store.list_from("") if _belongs(entry.path, load_id)]
    paths = [path for path in paths if path not in keep]
    for path in paths:
        store.delete(path)
    return len(paths)


def count_files(store: Store, load_id: str) -> int:
    """How many files a load has begun; -1 if counting them costs calls to an object store."""
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

    Leaving it by an exception removes every file that it wrote, finished or not. `check` is called
    before a file is begun, and stops the task by raising. With an `order` each file is sorted,
    and ends early if that takes too much memory. Names sort in the order of tasks and rows,
    carry the load's id, and differ between two attempts of one task, because Spark may repeat or
    double a task. `watch` is as for FileWriter. `constants` are columns that every row has the
    same value in, as arrays of one row: partition columns that files hold.
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
        """Whether rows were given that are in no finished file."""
        return self._writer is not None or bool(self._unsorted)

    @property
    def pending_bytes(self) -> int:
        """Bytes of rows in memory."""
        written = 0 if self._writer is None else self._writer.pending_bytes
        return written + self._unsorted_bytes

    def write(
        self, batch: pa.RecordBatch, notes: Mapping[ColumnPath, ValueNotes] = NO_NOTES
    ) -> None:
        """Add rows, to as many files as the limits ask for; `notes` as for `FileWriter.write`.

        VOID columns are left out of the files.
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
        """Write the rows so far in order, and finish the file: what comes next is not in it."""
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
        """Finish the last file; all files, in order."""
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
            # A commit that outlives a power cut must not name a file that does not.
            self.store.flush(path.name)
        else:
            self.store.upload(path.name, path)
            path.unlink()
