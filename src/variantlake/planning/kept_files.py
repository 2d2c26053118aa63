"""Find the files of a very large table that a condition keeps, part by part.

The parts of a checkpoint are read one after the other, or several at a time, with only the columns
that the condition needs. Only the files that it does not skip go on to the plan. The work is the
same in this process and in the tasks of a job.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from variantlake.delta.log.files.logical_files import LogicalFiles
from variantlake.delta.log.files.parted_files import PartedFiles, check_unique, is_unread
from variantlake.delta.log.files.path_index import PathIndex
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import VariantLakeError, in_file
from variantlake.expressions.tree import Predicate
from variantlake.parquet.stats.fact_columns import Int64s, map_parts
from variantlake.planning.files import LeftOut
from variantlake.planning.log_files import LogFiles
from variantlake.planning.stats.skipping import NOT_SKIPPED, Skipper

_FEW = 8
"""If at most one file in so many is kept, the texts of the kept files are copied into memory."""


_Kept = tuple[LogicalFiles, LeftOut]

_REMEMBERED, _REMEMBERED_FILES = 16, 1 << 16
"""The most conditions whose files are cached with the version, and the most files of each."""


@dataclass(frozen=True, slots=True)
class KeepFiles:
    """The task of a job: finds the files that a condition keeps in each of a table's `shares`.

    `bare` is the version without its files.
    """

    bare: Snapshot
    shares: Sequence[PartedFiles]
    predicate: Predicate | None
    partition_types: Mapping[str, str] | None

    def __call__(self, number: int) -> Iterator[bytes]:
        """Yield the number and the result of `kept`, or the VariantLakeError that it raises."""
        found: _Kept | VariantLakeError
        try:
            found = self.kept(number)
        except VariantLakeError as error:  # if raised, the task is retried, and we get only a text
            found = error
        yield pickle.dumps((number, found))

    def kept(self, number: int) -> _Kept:
        """The files of one share that are kept, and the counts of the others."""
        share, skipper = self.shares[number], Skipper(self.predicate, self.partition_types)
        found: list[LogicalFiles] = []
        left_out = LeftOut()
        for files in share.read():
            if not files.num_rows:
                continue
            columns = LogFiles(self.bare, files=files)
            skipped = skipper.skipped_by(columns)
            rows = np.flatnonzero(skipped == NOT_SKIPPED)
            left_out = left_out.plus(_left_out(skipped, columns.sizes))
            columns.of_log.forget()
            if len(rows):
                found.append(_apart(files, rows, stays=share.is_local))
        return LogicalFiles.joined(found), left_out


Run = Callable[[KeepFiles], Iterable[bytes]]
"""Runs a task for each of its shares, as a job, and returns all that they yield."""


def without_skipped(
    files: LogFiles,
    predicate: Predicate | None,
    partition_types: Mapping[str, str] | None = None,
    run: Run | None = None,
) -> LogFiles:
    """Return the files of a version that a condition keeps, or all if they are in memory.

    `run` runs a job; without it threads of this process share the parts. The files that are
    `left_out` are counted. Raises as `PartedFiles.read`, and MalformedLog for a kept file that the
    log has twice.
    """
    snapshot, parted = files.snapshot, files.snapshot.files
    if predicate is None or not is_unread(parted):
        return files
    key = ("kept", predicate, tuple(sorted((partition_types or {}).items())))
    known = files.memo.get(key)
    if isinstance(known, LogFiles):
        return known
    task = KeepFiles(snapshot.without_files(), parted.shares(), predicate, partition_types)
    if run is None:
        numbers = range(len(task.shares))
        found = map_parts(task.kept, numbers, parted.most_rows)
    else:
        found = _in_order(run(task))
    left_out = LeftOut()
    for _, more in found:
        left_out = left_out.plus(more)
    kept = LogicalFiles.joined(each for each, _ in found)
    with in_file(snapshot.store.uri):
        check_unique(kept, PathIndex())
    columns = LogFiles(snapshot.with_files(kept), left_out=left_out)
    if kept.num_rows <= _REMEMBERED_FILES:
        while len(files.memo) >= _REMEMBERED:
            files.memo.pop(next(iter(list(files.memo)), None), None)  # other threads may add
        files.memo[key] = columns
    return columns


def _in_order(payloads: Iterable[bytes]) -> list[_Kept]:
    """The results of tasks, by their numbers; a task that ran twice counts once."""
    outcomes: dict[int, _Kept | VariantLakeError] = dict(map(pickle.loads, payloads))  # our own
    found: list[_Kept] = []
    for _, outcome in sorted(outcomes.items(), key=lambda each: each[0]):
        if isinstance(outcome, VariantLakeError):
            raise outcome
        found.append(outcome)
    return found


def _left_out(skipped: Int64s, sizes: Int64s) -> LeftOut:
    out = skipped != NOT_SKIPPED
    numbers, counts = np.unique(skipped[out], return_counts=True)
    by = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    return LeftOut(int(out.sum()), int(sizes[out].sum()), by)


def _apart(files: LogicalFiles, rows: Int64s, *, stays: bool) -> LogicalFiles:
    """Take some of the files; copy their texts if these are few, or cannot stay where they are."""
    kept = files.take(rows)
    if stays and len(rows) * _FEW > files.num_rows:
        return kept
    return LogicalFiles.of(kept.whole().combine_chunks())
