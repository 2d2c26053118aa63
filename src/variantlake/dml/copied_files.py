"""Files written anew without some of their rows: column by column, no Variant is rebuilt for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from variantlake.delta.actions.log_lines import AddFile, DeletionVectorDescriptor
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats import z85
from variantlake.dml.deletion_vectors import serialised
from variantlake.dml.taken_rows import TakenRows
from variantlake.ingest.target.write_target import UNSHREDDED, Target
from variantlake.maintenance.rewrite.groups import FileGroup, InputFile
from variantlake.maintenance.rewrite.layouts import (
    FileLayout,
    joined_layout,
    layouts_of,
    variant_columns,
)
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan, rewrite_group
from variantlake.planning.log_files import LogFiles


def copy_files(
    snapshot: Snapshot, target: Target, load_id: str, taken: Sequence[TakenRows]
) -> tuple[AddFile, ...]:
    """Write the rows that stay in these files, a new file for each; row ids stay theirs.

    The new files belong to the load of this id.

    Raises MalformedFile and MissingSource by name, StoreFailed.
    """
    if not taken:
        return ()
    plan = RewritePlan.of(snapshot)
    plan = replace(plan, files=replace(plan.files, load_id=load_id))
    paths = {path: row for row, path in enumerate(snapshot.files["path"].to_pylist())}
    numbers = np.array([paths[each.add.path] for each in taken], np.int64)
    layouts = layouts_of(snapshot, LogFiles(snapshot), numbers)
    adds: list[AddFile] = []
    for number, (each, layout) in enumerate(zip(taken, layouts, strict=True)):
        done = rewrite_group(plan, _group(snapshot, target, number, each, layout))
        adds += [replace(add, data_change=True) for add in done.adds]
    return tuple(adds)


def _group(
    snapshot: Snapshot, target: Target, number: int, taken: TakenRows, layout: FileLayout
) -> FileGroup:
    """One file, with all rows deleted that do not stay, in its own layout where that is known."""
    names = variant_columns(snapshot)
    schemas = [
        own.schema or target.shredding(name) or UNSHREDDED
        for name, own in zip(names, layout, strict=True)
    ]
    told, required = joined_layout(names, schemas, [layout])
    data = serialised(taken.deleted)
    vector = DeletionVectorDescriptor("i", z85.encode(data), len(data), len(taken.deleted))
    file = replace(InputFile.of(taken.add, rows=taken.left), vector=vector)
    return FileGroup(
        number,
        (file,),
        taken.add.partition_values,
        dict(zip(names, schemas, strict=True)),
        told,
        required,
    )
