"""Make groups of a snapshot's files, by partition, for a rewrite in one layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.rewrite.groups import FileGroup, RewriteInput, Tier
from variantlake.maintenance.rewrite.layouts import (
    FileLayout,
    joined_layout,
    layouts_of,
    variant_columns,
)
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.log_files import LogFiles
from variantlake.shredding.schema import ShreddingSchema


def file_group(
    snapshot: Snapshot,
    log: LogFiles,
    number: int,
    rows: Int64s,
    target: Mapping[str, ShreddingSchema],
    *,
    layouts: Sequence[FileLayout] | None = None,
) -> FileGroup:
    """Make a group of these files (rows of the snapshot's files), for a rewrite in layout `target`.

    `layouts` are the layouts of the files, if the caller knows them already.
    """
    names = variant_columns(snapshot)
    layouts = layouts_of(snapshot, log, rows) if layouts is None else layouts
    wanted = tuple(target[name] for name in names)
    told, required = joined_layout(names, wanted, layouts)
    # A task needs neither statistics nor tags, which are most of an `add`.
    adds = list(adds_of(snapshot.files.take(rows), texts=False))
    records = log.of_log.num_records[rows].tolist()
    files = tuple(
        RewriteInput.of(
            add,
            count,
            Tier.COLUMNS if tuple(each.schema for each in layout) == wanted else Tier.SHRED,
        )
        for add, layout, count in zip(adds, layouts, records, strict=True)
    )
    return FileGroup(number, files, adds[0].partition_values, dict(target), told, required)


def by_partition(snapshot: Snapshot, log: LogFiles, rows: Int64s) -> Iterator[Int64s]:
    """Split `rows` of the snapshot's files by partition; yields each partition's in their order."""
    names = [
        item.physical_name
        for item in snapshot.schema.fields
        if item.name in snapshot.partition_columns
    ]
    if not len(rows):
        return
    codes = [np.zeros(len(rows), np.int64)]
    for name in names:
        column = log.partition(name)
        if column is not None:
            codes.append(column.codes[rows])
    _, number = np.unique(np.stack(codes), axis=1, return_inverse=True)
    order = np.argsort(number.ravel(), kind="stable")
    yield from np.split(rows[order], np.cumsum(np.bincount(number.ravel()))[:-1])
