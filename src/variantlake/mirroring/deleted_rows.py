"""Delete from the mirror the rows that deletion vectors removed from the table's files.

A mirror's file that is not sorted has the rows of its sources one after the other. So the place of
the n-th row of a source is known in the mirror, and no row is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import CHANGE_FEED
from variantlake.dml.files.copied_files import copy_files
from variantlake.dml.files.deletion_vectors import write_vectors
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.removed_rows import (
    RemovedRows,
    file_outcomes,
    is_on,
    vector_rows,
    with_vector,
)
from variantlake.dml.row_actions import removed_rows
from variantlake.errors import MalformedLog, MissingSource
from variantlake.mirroring.groups import MirrorGroup, marked_files, tagged
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import NO_ROWS


class DeletedRows:
    """The rows to delete from the mirror because of new deletion vectors of some groups.

    A group for which they cannot be determined becomes stale, so that its rows are read again;
    `groups` are the others.
    """

    def __init__(self, table: Snapshot, mirror: Snapshot, groups: Sequence[MirrorGroup]) -> None:
        self._table, self._mirror = table, mirror
        self.groups: list[tuple[MirrorGroup, RemovedRows]] = []
        for group in groups:
            places = None if is_on(mirror, CHANGE_FEED) else self._places(group)
            if places is None:
                group.is_stale = True
            else:
                self.groups.append((group, self._removed(group.mirrored[0], places)))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {path: at for at, path in enumerate(self._mirror.files["path"].to_pylist())}

    @cached_property
    def _sizes(self) -> dict[str, int | None]:
        return {decode_path(add.path): add.num_records for add in marked_files(self._table)}

    @property
    def gone(self) -> list[AddFile]:
        """The affected files of the mirror, as they were."""
        return [removed.add for _, removed in self.groups]

    def written(self, files: NewFiles) -> list[AddFile]:
        """The affected files of the mirror without these rows: with a vector, or rewritten."""
        adds: list[AddFile] = []
        for group, removed in self.groups:
            outcome = file_outcomes(self._mirror, [removed])
            vectors, path = write_vectors(
                files.target.store, [each.deleted for each in outcome.marked]
            )
            files.others.extend([] if path is None else [path])
            new = [with_vector(removed.add, vector, removed.num_rows) for vector in vectors]
            new += copy_files(self._mirror, files.plan.load_id, outcome.rewritten)
            if len(new) > 1:
                group.counts = None
            adds += tagged(group, new)
        return adds

    def _removed(self, add: AddFile, places: Int64s) -> RemovedRows:
        number = np.full(len(places), self._numbers[add.path], np.int64)
        (removed,), _ = removed_rows(self._mirror, np.zeros(len(places), np.int64), number, places)
        return removed

    def _places(self, group: MirrorGroup) -> Int64s | None:
        """The rows to delete from the mirror's file; None if they cannot be determined."""
        (add,) = group.mirrored
        if add.num_records is None or group.counts is None:
            return None
        every = np.arange(add.num_records, dtype=np.int64)
        alive = np.setdiff1d(
            every, vector_rows(self._mirror, add, add.num_records), assume_unique=True
        )
        parts, start = [NO_ROWS], 0
        for number, path in enumerate(group.sources):
            count = group.counts[number]
            if path in group.grown:
                ranks = self._ranks(path, group.grown[path], count)
                if ranks is None:
                    return None
                parts.append(alive[start + ranks])
                group.counts[number] -= len(ranks)
            start += count
        places = np.concatenate(parts)
        return places if len(places) else None

    def _ranks(
        self,
        path: str,
        vectors: tuple[DeletionVectorDescriptor | None, DeletionVectorDescriptor],
        count: int,
    ) -> Int64s | None:
        """Which of a source's `count` rows were deleted since; None if that is unknown."""
        size = self._sizes.get(path)
        if size is None:
            return None
        try:
            before, after = (
                NO_ROWS if each is None else deleted_rows(self._table.store, each, size)
                for each in vectors
            )
        except (MissingSource, MalformedLog):  # a vacuum deleted the older one
            return None
        fresh = np.setdiff1d(after, before)
        if len(after) != len(before) + len(fresh) or count != size - len(before):
            return None  # rows were restored
        ranks: Int64s = fresh - np.searchsorted(before, fresh)
        return ranks
