"""The files that a plan chooses from, as columns; a file becomes an object only if it is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, overload

import numpy as np

from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.parquet.stats.fact_columns import FactColumns, Int64s, RecordColumns, map_parts
from variantlake.parquet.stats.facts import FileFacts

NO_ROWS: Int64s = np.zeros(0, np.int64)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScanFile:
    """One data file as a scan sees it.

    `size` is in bytes, `modified` in milliseconds since the epoch. `partition` holds the serialised
    partition values by physical name. `vector` marks the deleted rows. `facts` is None if nothing
    is known about the file, or only the FileColumns that it comes from have its facts.
    """

    path: str
    size: int
    facts: FileFacts | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    modified: int = 0
    vector: DeletionVectorDescriptor | None = None


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """The serialised values of a partition column: `texts[codes[row]]`, code -1 if unknown."""

    texts: Sequence[str | None]
    codes: Int64s


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files of a table version that its FileColumns lack, because a condition skips them.

    `by` maps the index of the conjunct that skips files first to their number.
    """

    files: int = 0
    bytes: int = 0
    by: Mapping[int, int] = field(default_factory=dict)

    def plus(self, other: LeftOut) -> LeftOut:
        """The files of both."""
        by = Counter(self.by)
        by.update(other.by)
        return LeftOut(self.files + other.files, self.bytes + other.bytes, dict(by))


class FileColumns(Protocol):
    """Many files."""

    @property
    def rows(self) -> int:
        """Number of files."""

    @property
    def sizes(self) -> Int64s:
        """Bytes of each file, int64."""

    @property
    def facts(self) -> FactColumns:
        """What is known about the files."""

    @property
    def deleted(self) -> Int64s:
        """The number of rows that each file's deletion vector deletes, int64; 0 without one."""

    @property
    def memo(self) -> MutableMapping[object, object]:
        """A cache of what planning derived from exactly these files."""

    @property
    def pieces(self) -> Sequence[FileColumns]:
        """The same files in consecutive pieces, if they were loaded in pieces; else empty.

        Work piece by piece needs the memory of only one, and a later version of the table reuses
        what is known about the pieces that it shares.
        """

    @property
    def left_out(self) -> LeftOut:
        """The other files of the version."""

    def is_partition(self, column: str) -> bool:
        """Whether this is the physical name of a partition column."""

    def partition(self, column: str) -> PartitionColumn | None:
        """A partition column by its physical name; None for any other column."""

    def files(self, rows: Int64s) -> Iterator[ScanFile]:
        """The files in these rows."""


class FileRows(Sequence[ScanFile]):
    """Some rows of FileColumns, which become files on access."""

    def __init__(self, columns: FileColumns, rows: Int64s) -> None:
        self.columns = columns
        self.rows = rows

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return int(self.columns.sizes[self.rows].sum())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ScanFile]:
        return self.columns.files(self.rows)

    @overload
    def __getitem__(self, index: int) -> ScanFile: ...
    @overload
    def __getitem__(self, index: slice) -> FileRows: ...
    def __getitem__(self, index: int | slice) -> ScanFile | FileRows:
        if isinstance(index, slice):
            return FileRows(self.columns, self.rows[index])
        return next(self.columns.files(self.rows[[index]]))


class RecordFiles:
    """FileColumns of files that are already objects."""

    def __init__(self, files: Sequence[ScanFile]) -> None:
        self._files = files
        self.rows = len(files)
        self.sizes: Int64s = np.array([file.size for file in files], np.int64)
        self.facts: FactColumns = RecordColumns([file.facts for file in files])
        vectors = [file.vector for file in files]
        self.deleted: Int64s = np.array(
            [each.cardinality if each else 0 for each in vectors], np.int64
        )
        self.memo: MutableMapping[object, object] = {}
        self.pieces: Sequence[FileColumns] = ()
        self.left_out = LeftOut()

    def is_partition(self, column: str) -> bool:
        """See FileColumns."""
        return any(column in file.partition for file in self._files)

    def partition(self, column: str) -> PartitionColumn | None:
        """See FileColumns."""
        codes: dict[str | None, int] = {}
        found = [
            codes.setdefault(file.partition[column], len(codes)) if column in file.partition else -1
            for file in self._files
        ]
        return PartitionColumn(tuple(codes), np.array(found, np.int64)) if codes else None

    def files(self, rows: Int64s) -> Iterator[ScanFile]:
        """See FileColumns."""
        return (self._files[row] for row in rows.tolist())


def by_piece(files: FileColumns, work: Callable[[FileColumns], T]) -> list[T]:
    """Apply `work` to each piece, or to all files at once; threads share work on many files."""
    return map_parts(work, files.pieces or (files,), files.rows)


def pieces_with(files: FileColumns, rows: Int64s) -> Iterator[tuple[FileColumns, int, Int64s]]:
    """Yield the pieces that hold some of these ascending rows, their starts, and their rows."""
    start = 0
    for piece in files.pieces or (files,):
        end = start + piece.rows
        first, last = np.searchsorted(rows, (start, end))
        if first < last:
            yield piece, start, rows[first:last] - start
        start = end
