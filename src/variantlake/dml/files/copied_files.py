"""Rewrite files without some of their rows, column by column, without rebuilding Variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.files.deletion_vectors import inline_vector
from variantlake.dml.removed_rows import RemovedRows
from variantlake.maintenance.clustering.plan_clustering import ORDERED_TAG
from variantlake.maintenance.plan_compaction import numbers_in
from variantlake.maintenance.rewrite.file_groups import file_group
from variantlake.maintenance.rewrite.groups import APART_TAG, FileGroup
from variantlake.maintenance.rewrite.layouts import Targets, layouts_of, variant_columns
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan, rewrite_group
from variantlake.planning.log_files import LogFiles


def copy_files(
    snapshot: Snapshot, load_id: str, taken: Sequence[RemovedRows]
) -> tuple[AddFile, ...]:
    """Write the rows that stay in these files, each file to a new one. Rows keep their row ids.

    The names of the new files contain the load id.

    Raises MalformedFile and MissingSource by name, StoreFailed.
    """
    if not taken:
        return ()
    plan = RewritePlan.of(snapshot)
    plan = replace(plan, files=replace(plan.files, load_id=load_id))
    paths = {path: row for row, path in enumerate(snapshot.files["path"].to_pylist())}
    rows = np.array([[paths[each.add.path]] for each in taken], np.int64)
    log = LogFiles(snapshot)
    layouts = layouts_of(snapshot, log, rows.ravel())
    targets = Targets(snapshot, layouts, log.sizes[rows.ravel()].tolist())
    apart = numbers_in(snapshot.files.take(rows.ravel()), APART_TAG)
    adds: list[AddFile] = []
    for number, (each, layout) in enumerate(zip(taken, layouts, strict=True)):
        schemas = dict(zip(variant_columns(snapshot), targets.of(layout), strict=True))
        group = file_group(snapshot, log, number, rows[number], schemas, layouts=[layout])
        done = rewrite_group(plan, replace(_staying(group, each), apart=apart[number]))
        adds += [replace(add, data_change=True) for add in done.adds]
    return tuple(adds)


def _staying(group: FileGroup, taken: RemovedRows) -> FileGroup:
    """Mark the rows to drop as deleted in a group of one file, and keep its tag of clustering."""
    vector = inline_vector(taken.deleted)
    (file,) = group.files
    order = (taken.add.tags or {}).get(ORDERED_TAG)
    tags = {} if order is None else {ORDERED_TAG: order}
    return replace(group, files=(replace(file, rows=taken.left, vector=vector),), tags=tags)
