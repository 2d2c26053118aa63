"""Plan a compaction: which files it joins, in which groups, and how it rewrites their rows.

Files of the same layout are joined with each other, so that no Variant is rebuilt. Remainders of
layouts that are too small for a file of their own are joined into files of one common layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Self

import numpy as np

from variantlake.arrays import map_values
from variantlake.batches import packed
from variantlake.delta.log.files.logical_files import LogicalFiles, adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import ClusterPath
from variantlake.delta.stats.file_facts import FactsReader
from variantlake.delta.stats.tags import PREFIX
from variantlake.errors import InvalidValue
from variantlake.maintenance.clustering.order_rows import cells_across, wanted_paths
from variantlake.maintenance.clustering.plan_clustering import ORDERED_TAG, tag_text
from variantlake.maintenance.dropped_columns import DroppedColumns
from variantlake.maintenance.rewrite.copy_group import MIN_ROW_GROUP_BYTES
from variantlake.maintenance.rewrite.file_groups import by_partition, file_group
from variantlake.maintenance.rewrite.groups import APART_TAG, FileGroup, Tier, check_whole
from variantlake.maintenance.rewrite.layouts import (
    FileLayout,
    Targets,
    layouts_of,
    variant_columns,
)
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.planning.log_files import LogFiles
from variantlake.shredding.schema import ShreddingSchema
from variantlake.units import Size, size_bytes
from variantlake.writing.options.file_sizes import TARGET_FILE_BYTES

MAX_FILES = 2_000
"""The most files of a group, so that 100,000 small files become work for many tasks."""

MAX_DELETED_SHARE = 0.05
"""A file with a larger share of deleted rows is rewritten, as in Delta Spark."""

_NUMBER = re.compile("[0-9]{1,9}")

_SMALL_SHARE = 0.75
"""A file with less than this share of the target size is small."""
_FULL_SHARE = 0.5
"""A group with at least this share of the target size keeps its own layout."""


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """What a compaction rewrites, and how much of it in one commit.

    Files well below `target_file_size` (bytes) are joined up to that size. A file is rewritten in
    any case if more than `max_deleted_share` of its rows are deleted. `purge` rewrites only these
    files and those that hold dropped columns; `every` rewrites all files. A commit takes groups of
    up to `max_bytes_per_commit` and `max_files_per_commit` of input, and at least one group.

    Raises InvalidValue for an option that is out of range.
    """

    target_file_size: int = TARGET_FILE_BYTES
    max_deleted_share: float = MAX_DELETED_SHARE
    purge: bool = False
    every: bool = False
    max_bytes_per_commit: int = 64 << 30
    max_files_per_commit: int = 10_000

    def __post_init__(self) -> None:
        for name in ("target_file_size", "max_bytes_per_commit", "max_files_per_commit"):
            check_whole(name, getattr(self, name))
        share = self.max_deleted_share
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise InvalidValue(f"max deleted share is {share!r}", hint="a number from 0 to 1")

    @classmethod
    def of(cls, target_file_size: Size, max_deleted_share: float, *, purge: bool = False) -> Self:
        """Make the options from a user's arguments."""
        size = size_bytes("target_file_size", target_file_size)
        return cls(size, 0.0 if purge else max_deleted_share, purge=purge)


@dataclass(frozen=True, slots=True)
class _JoinedRows:
    """One group: the files to join (as rows of the snapshot's files) and their `target` layout.

    `layouts` are the files' present layouts; `apart` is that of FileGroup.
    """

    rows: Int64s
    layouts: tuple[FileLayout, ...]
    target: tuple[ShreddingSchema, ...]
    apart: int


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The groups of a compaction, as rows of the snapshot's files. `steps` builds FileGroups."""

    snapshot: Snapshot
    plan: RewritePlan
    options: CompactionOptions
    log: LogFiles
    deleted: Int64s
    groups: tuple[_JoinedRows, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all input files."""
        return int(sum(self.log.sizes[group.rows].sum() for group in self.groups))

    def steps(self) -> Iterator[list[FileGroup]]:
        """Yield the groups of each commit, built on demand."""
        step: list[tuple[int, _JoinedRows]] = []
        files = size = 0
        for number, group in enumerate(self.groups):
            own = int(self.log.sizes[group.rows].sum())
            over = size + own > self.options.max_bytes_per_commit
            if step and (over or files + len(group.rows) > self.options.max_files_per_commit):
                yield [self._made(*each) for each in step]
                step, files, size = [], 0, 0
            step.append((number, group))
            files, size = files + len(group.rows), size + own
        if step:
            yield [self._made(*each) for each in step]

    def why_not(self, group: _JoinedRows) -> str | None:
        """Return why, by the log, row groups of these files cannot be copied as bytes.

        None if nothing in the log prevents it; the footers still may.
        """
        if len(group.rows) == 1:
            return "no other file is joined with it"
        if self.options.purge:
            return "columns are dropped"
        if self.plan.row_ids is not None:
            return "its rows keep their ids"
        if self.deleted[group.rows].any():
            return "rows of files that it is joined with are deleted"
        if not all(tuple(e.schema for e in own) == group.target for own in group.layouts):
            return "files that are joined have other layouts"
        if (self.log.sizes[group.rows] < MIN_ROW_GROUP_BYTES).any():
            return f"files that are joined have less than {MIN_ROW_GROUP_BYTES >> 20} MB"
        if self._order(group):
            return "rows are in an order within files"
        return None

    def _order(self, group: _JoinedRows) -> tuple[ClusterPath, ...]:
        names = variant_columns(self.snapshot)
        return wanted_paths(self.snapshot, dict(zip(names, group.target, strict=True)))

    def _tags(self, group: _JoinedRows) -> dict[str, str]:
        """Return the tag of clustering if it stays true for the files that the group becomes.

        It does if all files have the tag and the rewrite sorts the joined rows by the same paths.
        Neighbours in the log need not be neighbours in the order; otherwise, only the bounds tell.
        """
        tags: Any = self.snapshot.files.take(group.rows)["tags"]
        texts = set(map_values(tags, ORDERED_TAG).to_pylist())
        by = tag_text(self._order(group))
        return {ORDERED_TAG: by} if by and texts == {by} else {}

    def _made(self, number: int, group: _JoinedRows) -> FileGroup:
        names = variant_columns(self.snapshot)
        layouts = dict(zip(names, group.target, strict=True))
        made = file_group(
            self.snapshot, self.log, number, group.rows, layouts, layouts=group.layouts
        )
        made = replace(made, apart=group.apart, tags=self._tags(group))
        if self.why_not(group) is None:
            facts = FactsReader(self.snapshot.schema)
            adds = adds_of(self.snapshot.files.take(group.rows))
            files = tuple(
                replace(file, tier=Tier.COPY, facts=facts.read_facts(add))
                for file, add in zip(made.files, adds, strict=True)
            )
            return replace(made, files=files)
        if not (order := self._order(group)):
            return made
        cells = cells_across(
            self.snapshot,
            self.log,
            group.rows,
            made,
            order,
            files=1,
            row_ids=self.plan.row_ids,
        )
        return replace(made, cells=cells)


def plan_compaction(
    snapshot: Snapshot,
    options: CompactionOptions,
    chosen: Int64s | None = None,
    *,
    digest: bool = True,
    dropped: DroppedColumns | None = None,
) -> CompactionPlan:
    """Plan the compaction of this version. `chosen` limits it to these rows of its files.

    `dropped` remembers the footers that a purge has read. Reads the footers of files whose layout
    is not in the log. Raises as `RewritePlan.of`.
    """
    target = options.target_file_size
    plan = RewritePlan.of(snapshot, target_file_size=target, digest=digest)
    log = LogFiles(snapshot)
    rows = np.arange(snapshot.files.num_rows) if chosen is None else chosen
    sizes, records = log.sizes, log.of_log.num_records
    deleted = log.deleted
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(deleted > 0, np.where(records > 0, deleted / records, 1.0), 0.0)
    live = np.where(records > 0, sizes * (1 - share), sizes).astype(np.int64)
    worn = share > options.max_deleted_share
    small = live < (0 if options.purge else options.target_file_size * _SMALL_SHARE)
    if options.every:
        worn[:] = True
    elif options.purge:
        worn |= (dropped or DroppedColumns()).of(snapshot, log, rows)
    rows = rows[(worn | small)[rows]]
    groups: list[_JoinedRows] = []
    for partition in by_partition(snapshot, log, rows):
        if len(partition) > 1 or worn[partition].any():
            groups += _groups_of(
                snapshot, log, partition, live=live, whole=deleted == 0, options=options
            )
    return CompactionPlan(
        snapshot,
        plan,
        options,
        log,
        deleted,
        tuple(group for group in groups if len(group.rows) > 1 or worn[group.rows].any()),
    )


def _groups_of(
    snapshot: Snapshot,
    log: LogFiles,
    rows: Int64s,
    *,
    live: Int64s,
    whole: Bools,
    options: CompactionOptions,
) -> Iterator[_JoinedRows]:
    """Yield the groups of one partition.

    For all files of the snapshot, `live` is the estimated bytes of their live rows, and `whole`
    marks those without deleted rows.
    """
    layouts = layouts_of(snapshot, log, rows)

    def made(members: list[int], target: tuple[ShreddingSchema, ...], number: int) -> _JoinedRows:
        return _JoinedRows(
            rows[members], tuple(layouts[place] for place in members), target, number
        )

    targets = Targets(snapshot, layouts, live[rows].tolist())
    files = snapshot.files.take(rows)
    apart = numbers_in(files, APART_TAG)
    ours = numbers_in(files, f"{PREFIX}version")
    # Files whose row groups may be copied form groups of their own: ours, and other writers'.
    classes: dict[tuple[int, tuple[ShreddingSchema, ...], int], list[int]] = {}
    for place, layout in enumerate(layouts):
        target = targets.of(layout)
        may_copy = (
            live[rows[place]] >= MIN_ROW_GROUP_BYTES
            and whole[rows[place]]
            and tuple(each.schema for each in layout) == target
        )
        copies = 1 + ours[place] if may_copy else 0
        classes.setdefault((apart[place], target, copies), []).append(place)
    rest: dict[int, list[int]] = {}
    least = options.target_file_size * _FULL_SHARE
    for (number, target, _), places in classes.items():
        sized = zip(places, live[rows[places]].tolist(), strict=True)
        for own in packed(sized, itemgetter(1), options.target_file_size, MAX_FILES):
            members = [place for place, _ in own]
            if len(classes) > 1 and sum(size for _, size in own) < least:
                rest.setdefault(number, []).extend(members)
            else:
                yield made(members, target, number)
    for number, places in rest.items():
        left = sorted(places)
        sized = zip(left, live[rows[left]].tolist(), strict=True)
        for own in packed(sized, itemgetter(1), options.target_file_size, MAX_FILES):
            members = [place for place, _ in own]
            own_targets = {targets.of(layouts[place]) for place in members}
            target = own_targets.pop() if len(own_targets) == 1 else targets.common
            yield made(members, target, number)


def numbers_in(files: LogicalFiles, tag: str) -> list[int]:
    """Return the number in a tag of each file; 0 if the tag is absent or no number."""
    texts = map_values(files["tags"], tag).to_pylist()
    return [int(text) if text and _NUMBER.fullmatch(text) else 0 for text in texts]
