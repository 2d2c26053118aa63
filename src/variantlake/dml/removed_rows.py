"""The rows that a change removes from files, and each file's fate: removed, marked or rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import CHANGE_FEED
from variantlake.delta.protocol.properties import VECTORS
from variantlake.dml.files.vector_stats import wide_stats
from variantlake.dml.read_rows import rows_at
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import NO_ROWS, ScanFile

ALMOST_EMPTY = 16
"""A file that keeps fewer than one in so many rows is rewritten: readers pay for the whole file."""

ROW_TRACKING = "delta.enableRowTracking"


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """The rows that a change removes from one file.

    `rows` are their places, and `before` those of rows deleted earlier, both ascending. `num_rows`
    counts all rows of the file, deleted ones included. With `whole` the change removes all rows
    that are left, and `rows` may be empty.
    """

    add: AddFile
    file: ScanFile
    rows: Int64s
    num_rows: int
    before: Int64s
    whole: bool = False

    @classmethod
    def of(
        cls, snapshot: Snapshot, add: AddFile, file: ScanFile, rows: Int64s, num_rows: int
    ) -> RemovedRows:
        """Make it for rows that are not deleted yet. Raises MalformedLog for the file's vector."""
        before = vector_rows(snapshot, add, num_rows)
        whole = len(rows) + len(before) == num_rows
        return cls(add, file, rows, num_rows, before, whole)

    @property
    def count(self) -> int:
        """The number of rows that the change removes."""
        return self.num_rows - len(self.before) if self.whole else len(self.rows)

    @property
    def left(self) -> int:
        """The number of rows that stay."""
        return self.num_rows - len(self.before) - self.count

    @property
    def deleted(self) -> Int64s:
        """All deleted rows after the change. Not for a `whole` file, whose `rows` may be empty."""
        return np.union1d(self.before, self.rows)

    def places(self) -> Int64s:
        """Return the removed rows, computing them if the file is `whole`."""
        if len(self.rows) == self.count:
            return self.rows
        return np.setdiff1d(
            np.arange(self.num_rows, dtype=np.int64), self.before, assume_unique=True
        )

    def without(self, other: RemovedRows) -> RemovedRows:
        """Return these rows without those of `other`."""
        rows = np.setdiff1d(self.places(), other.places())
        return replace(self, rows=rows, whole=False)


@dataclass(frozen=True, slots=True)
class FileOutcomes:
    """The fate of files with removed rows: `marked` ones get a new deletion vector."""

    gone: tuple[RemovedRows, ...]
    marked: tuple[RemovedRows, ...]
    rewritten: tuple[RemovedRows, ...]


def file_outcomes(snapshot: Snapshot, taken: Sequence[RemovedRows]) -> FileOutcomes:
    """Decide each file's fate by its rows and the table's properties.

    Spec: PROTOCOL, "Writer Requirement for Deletion Vectors".
    """
    gone, marked, rewritten = [], [], []
    vectors = has_vectors(snapshot)
    # With a change feed, a file is marked even if it is almost empty.
    keeps = is_on(snapshot, CHANGE_FEED)
    for each in taken:
        if not each.left:
            gone.append(each)
        elif vectors and (keeps or each.left * ALMOST_EMPTY >= each.num_rows):
            marked.append(each)
        else:
            rewritten.append(each)
    return FileOutcomes(tuple(gone), tuple(marked), tuple(rewritten))


def is_on(snapshot: Snapshot, name: str) -> bool:
    """Whether a table property is true."""
    return snapshot.metadata.configuration.get(name, "").lower() == "true"


def has_vectors(snapshot: Snapshot) -> bool:
    """Whether new deletion vectors may be written: the protocol requires feature and property."""
    return is_on(snapshot, VECTORS) and "deletionVectors" in snapshot.features


def num_rows(add: AddFile, file: ScanFile) -> int:
    """Count the rows of a file, deleted ones included, from the log or else from the footer."""
    rows = add.num_records
    return read_footer(file.path).num_rows if rows is None else rows


def vector_rows(snapshot: Snapshot, add: AddFile, num_rows: int) -> Int64s:
    """Return the deleted rows of a file."""
    vector = add.deletion_vector
    return NO_ROWS if vector is None else deleted_rows(snapshot.store, vector, num_rows)


def with_vector(add: AddFile, vector: DeletionVectorDescriptor, num_rows: int) -> AddFile:
    """Return the file with another deletion vector; its tags and row ids stay."""
    stats = wide_stats(add.stats, num_rows)
    return replace(add, data_change=True, stats=stats, deletion_vector=vector)


def removed_rows_of(snapshot: Snapshot, taken: Sequence[RemovedRows]) -> Iterator[pa.Table]:
    """Read the removed rows of these files, as `rows_at` does."""
    for each in taken:
        yield from rows_at(snapshot, each.file, each.places())
