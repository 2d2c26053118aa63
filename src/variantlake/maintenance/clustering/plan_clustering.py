"""Plan a run of clustering: choose the files to order, and their new layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import map_values
from variantlake.batches import packed
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY, ClusterPath, cluster_paths
from variantlake.delta.protocol.clustering import clustering_columns, clustering_names
from variantlake.delta.schema.columns_by_path import shown_path
from variantlake.delta.stats.stats_writer import StatsOptions
from variantlake.errors import InvalidValue
from variantlake.expressions.tree import Ref
from variantlake.maintenance.clustering.boxes import boxes_of
from variantlake.maintenance.clustering.choose import choose
from variantlake.maintenance.clustering.order_rows import cells_across
from variantlake.maintenance.clustering.overlap import Extents, cost, cost_ordered
from variantlake.maintenance.rewrite.file_groups import by_partition, file_group
from variantlake.maintenance.rewrite.groups import FileGroup
from variantlake.maintenance.rewrite.layouts import (
    Targets,
    logged_layouts,
    variant_columns,
)
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan
from variantlake.parquet.stats.fact_columns import ColumnPath, Int64s
from variantlake.paths import Path
from variantlake.planning.log_files import LogFiles
from variantlake.scan.footers import Footers
from variantlake.shredding.schema import ShreddingSchema

ORDERED_TAG = "variantlake.clusteredBy"
"""Tag of files that a run has ordered. The plan counts bytes without it as new, for the budget, and
uses it to place ordered files without bounds. Bounds alone tell which other files overlap."""

NEW_BYTES = 2
"""By default, a run rewrites at most this many times the bytes that no run has ordered yet."""

MAX_COMMIT_BYTES = 64 << 30

PART_BYTES = 4 << 30
"""Bytes that one task orders; several tasks order a group of more than twice as many."""

_MAX_FOOTERS = 5_000
"""Our limit on footers to read for facts that the log lacks. With more such files, the plan reads
none, and they get the widest box."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Files of one partition (rows of the snapshot's files), as boxes, and the groups to order."""

    rows: Int64s
    extents: Extents
    sizes: Int64s
    groups: tuple[Int64s, ...]


@dataclass(frozen=True)
class ClusterPlan:
    """The files that one run orders. `new_bytes` are in files that no run has ordered.

    `budget` is in bytes. With `may_part`, several tasks may order a large group, each some of its
    files; all of them split their rows at the same values. A second turn then orders the files of
    each range of values.
    """

    snapshot: Snapshot
    plan: RewritePlan
    paths: tuple[ClusterPath, ...]
    layouts: Mapping[str, ShreddingSchema]
    log: LogFiles
    partitions: tuple[Partition, ...]
    target: int
    budget: int
    new_bytes: int
    may_part: bool = False

    @cached_property
    def groups(self) -> tuple[Int64s, ...]:
        """The rows of the snapshot's files in each group."""
        return tuple(part.rows[rows] for part in self.partitions for rows in part.groups)

    @property
    def bytes(self) -> int:
        """Bytes of all input files."""
        return sum(map(self._size, self.groups))

    def _size(self, rows: Int64s) -> int:
        return int(self.log.sizes[rows].sum())

    @property
    def files_written(self) -> int:
        """About how many files the run will write."""
        return sum(self.files_of(rows) for rows in self.groups)

    def files_of(self, rows: Int64s) -> int:
        """Return about how many files a group becomes."""
        return max(1, -(-self._size(rows) // self.target))

    @property
    def read_share(self) -> tuple[float, float]:
        """The share of bytes that a query for one value along a path reads, now and afterwards.

        The second is an estimate.
        """
        total = sum(int(part.sizes.sum()) for part in self.partitions)
        now = after = 0.0
        for part in self.partitions:
            own = cost(part.extents, part.sizes, np.arange(len(part.rows)), 0)
            now += own
            after += own
            for rows in part.groups:
                after -= cost(part.extents, part.sizes, rows, 0)
                after += cost_ordered(part.extents, part.sizes, rows, self.target, 0)
        return (min(now / total, 1.0), min(after / total, 1.0)) if total else (0.0, 0.0)

    @cached_property
    def is_parted(self) -> bool:
        """Whether several tasks order some group, with enough budget left for the second turn."""
        return (
            self.may_part
            and 2 * self.bytes <= self.budget
            and any(self._tasks(rows) > 1 for rows in self.groups)
        )

    def _tasks(self, rows: Int64s) -> int:
        size = self._size(rows)
        return min(-(-size // PART_BYTES), len(rows)) if size > 2 * PART_BYTES else 1

    def steps(self) -> Iterator[list[FileGroup]]:
        """Yield the groups of each commit; makes them one commit at a time."""
        number = 0
        for groups in packed(self.groups, self._size, MAX_COMMIT_BYTES):
            step: list[FileGroup] = []
            for rows in groups:
                step += self._made(number + len(step), rows)
            yield step
            number += len(step)

    def _made(self, number: int, rows: Int64s) -> list[FileGroup]:
        tasks = self._tasks(rows) if self.is_parted else 1
        group = file_group(self.snapshot, self.log, number, rows, self.layouts)
        cells = cells_across(
            self.snapshot,
            self.log,
            rows,
            group,
            self.paths,
            files=self.files_of(rows) if tasks == 1 else tasks,
            tasks=tasks,
            row_ids=self.plan.row_ids,
        )
        groups = [group]
        if tasks > 1:
            groups = [
                file_group(self.snapshot, self.log, number + task, own, self.layouts)
                for task, own in enumerate(np.array_split(rows, tasks))
            ]
        tags = {ORDERED_TAG: tag_text(self.paths)}
        return [replace(each, cells=cells, tags=tags) for each in groups]


def tag_text(paths: Sequence[ClusterPath]) -> str:
    """Return the value of `ORDERED_TAG` for files ordered by these paths."""
    return ", ".join(path.text for path in paths)


def paths_of(snapshot: Snapshot, layouts: Mapping[str, ShreddingSchema]) -> tuple[ClusterPath, ...]:
    """Return a table's clustering paths: from our property, else from Delta's clustering domain.

    Raises InvalidValue for a table without clustering, InvalidSchema for paths that are no columns.
    """
    text = snapshot.properties.get(PROPERTY)
    if text is not None:
        if not snapshot.files.num_rows:
            layouts = {}  # the first load decides which paths become columns
        return cluster_paths(text, snapshot.schema, snapshot.partition_columns, layouts)
    columns = clustering_columns(snapshot.domains)
    if not columns:
        raise InvalidValue(
            "the table does not name an order for its rows",
            file=snapshot.store.uri,
            hint="Table.set_clustering('event:kind::string') sets it",
            cli_hint="--by 'event:kind::string' names it",
        )
    names = clustering_names(snapshot.schema, snapshot.domains)
    return tuple(
        ClusterPath(shown_path(name), column[0], None, column[1:])
        for name, column in zip(names, columns, strict=True)
    )


def plan_clustering(
    snapshot: Snapshot,
    *,
    chosen: Int64s | None = None,
    budget: int | None = None,
    target: int,
    digest: bool = True,
    may_part: bool = False,
) -> ClusterPlan:
    """Plan a run on this version; `chosen` limits it to some rows of the snapshot's files.

    The default of `budget` (in bytes) is NEW_BYTES times the bytes that no run has ordered. Raises
    as `paths_of` and `RewritePlan.of`.
    """
    plan = RewritePlan.of(snapshot, target_file_size=target, digest=digest)
    log = LogFiles(snapshot)
    found = logged_layouts(snapshot, log, np.arange(log.rows))
    common = Targets(snapshot, found, log.sizes.tolist()).common
    layouts = dict(zip(variant_columns(snapshot), common, strict=True))
    paths = paths_of(snapshot, layouts)
    columns: set[ColumnPath] = {(path.column,) for path in paths if path.path is not None}
    if columns and len(log.lacking(columns)) <= _MAX_FOOTERS:
        refs = [Ref(column, Path(), "variant") for column in columns]
        log = Footers().with_facts(snapshot, log, refs)
    rows = np.arange(log.rows) if chosen is None else chosen
    tags: Any = map_values(snapshot.files["tags"], ORDERED_TAG)
    ordered: Any = pc.fill_null(pc.equal(tags, pa.scalar(tag_text(paths))), False).to_numpy()
    new = int(log.sizes[rows][~ordered[rows]].sum())
    left = NEW_BYTES * new if budget is None else budget
    options = StatsOptions.from_properties(snapshot.properties)
    partitions = []
    for own in by_partition(snapshot, log, rows):
        sizes = log.sizes[own]
        boxes = boxes_of(log, own, paths, ordered[own], options)
        groups = choose(boxes, sizes, left, target)
        left -= int(sum(sizes[group].sum() for group in groups))
        partitions.append(Partition(own, Extents.of(boxes, sizes), sizes, tuple(groups)))
    spent = NEW_BYTES * new if budget is None else budget
    return ClusterPlan(
        snapshot, plan, paths, layouts, log, tuple(partitions), target, spent, new, may_part
    )
