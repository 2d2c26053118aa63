"""What a change does to single rows of files: which it removes, which it updates."""

from __future__ import annotations

import numpy as np

from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.removed_rows import RemovedRows, num_rows
from variantlake.errors import InvalidQuery
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.log_files import LogFiles

MATCHED, DELETED, UPDATED, INSERTED = 0, 1, 2, 3
"""A row that a source row matched, but no clause changed; a deleted row; an updated row; a new
row."""


def check_once(numbers: Int64s, rows: Int64s, *, multiple: bool) -> None:
    """Raise InvalidQuery if several source rows match one row of the table, as Delta does."""
    if multiple or not len(rows):
        return
    order = np.lexsort((rows, numbers))
    same = (np.diff(numbers[order]) == 0) & (np.diff(rows[order]) == 0)
    if same.any():
        raise InvalidQuery(
            "[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] several source rows match "
            "one row of the table, so it is not clear which of them changes it",
            hint="reduce the source to one row for each row of the table, for example with GROUP"
            " BY",
        )


def removed_rows(
    snapshot: Snapshot, actions: Int64s, numbers: Int64s, rows: Int64s
) -> tuple[list[RemovedRows], list[RemovedRows]]:
    """Return the rows to remove from each file, and those of them that an update brings back.

    For each action, `numbers` is the file's index in `Snapshot.files`, and `rows` the place in it.
    """
    files = np.unique(numbers)
    adds = list(adds_of(snapshot.files.take(files)))
    scanned = LogFiles(snapshot).files(files)
    removed, preimages = [], []
    for number, add, file in zip(files.tolist(), adds, scanned, strict=True):
        here = numbers == number
        count = num_rows(add, file)
        each = RemovedRows.of(snapshot, add, file, np.unique(rows[here]), count)
        removed.append(each)
        updated = np.unique(rows[here & (actions == UPDATED)])
        if len(updated):
            preimages.append(RemovedRows(add, file, updated, count, each.before))
    return removed, preimages
