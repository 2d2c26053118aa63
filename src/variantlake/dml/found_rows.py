"""Find the rows of a condition without Spark: whole files by partition, or row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.files.logical_files import adds_of, files_of, values
from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.removed_rows import RemovedRows, num_rows, vector_rows
from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.expressions.tree import Predicate, refs
from variantlake.ingest.overwrite import PartitionsWhere
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import NO_ROWS
from variantlake.planning.log_files import LogFiles
from variantlake.scan.table_scan import Scan


def find_rows(scan: Scan) -> list[RemovedRows]:
    """Find the rows for which the scan's condition is true, file by file; without one, all rows.

    NULL is not true. Raises as `Scan.to_batches`.
    """
    snapshot, condition = scan.snapshot, scan.condition
    if condition is None or _is_of_partitions(snapshot, condition):
        return list(_whole_files(snapshot, condition))
    places = list(scan.places())
    adds = _adds(snapshot, np.array([each.number for each in places], np.int64))
    return [
        RemovedRows.of(snapshot, add, each.file, each.places, each.num_rows)
        for add, each in zip(adds, places, strict=True)
    ]


def finds_any(snapshot: Snapshot, condition: Predicate | None, add: AddFile) -> bool:
    """Whether the condition is true for a row of this file, which may be newer than the snapshot.

    Returns True if the condition cannot be evaluated for a row.
    """
    alone = replace(snapshot, files=files_of([add]))
    try:
        return condition is None or any(True for _ in Scan(alone, (), condition).places())
    except (InvalidValue, UnsupportedFeature):
        return True


def _is_of_partitions(snapshot: Snapshot, condition: Predicate) -> bool:
    return all(ref.column[0] in snapshot.partition_columns for ref in refs(condition))


def _whole_files(snapshot: Snapshot, condition: Predicate | None) -> Iterator[RemovedRows]:
    """Find files whose rows all match. Reads a footer only if the log has no row count."""
    numbers = np.arange(snapshot.files.num_rows, dtype=np.int64)
    if condition is not None:
        holds = PartitionsWhere(snapshot, condition)
        partitions = values(snapshot.files["partition_values"])
        chosen = [row for row, partition in enumerate(partitions) if holds(partition or {})]
        numbers = np.array(chosen, np.int64)
    files = LogFiles(snapshot).files(numbers)
    for add, file in zip(_adds(snapshot, numbers), files, strict=True):
        rows = num_rows(add, file)
        yield RemovedRows(add, file, NO_ROWS, rows, vector_rows(snapshot, add, rows), whole=True)


def _adds(snapshot: Snapshot, numbers: Int64s) -> list[AddFile]:
    return list(adds_of(snapshot.files.take(numbers)))
