"""Groups rows in the driver: one row for each group, so that Spark has nothing left to merge.

Spark takes a quarter of a second to start tasks, exchange their rows and merge them. In that time
threads of one process group millions of rows, so the driver does it if the scan reads few bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from variantlake.errors import VariantLakeError
from variantlake.parallel.prefetch import ahead
from variantlake.spark.scan.aggregate_task import AggregateTask, partial_rows

if TYPE_CHECKING:
    from variantlake.engine.grouped import PartialGroups

MOST_GROUPS = 1 << 20
"""More groups would fill the driver's memory: they are left to Spark, which can spill."""

MOST_VALUES = 1 << 23
"""The same limit for distinct values, which the driver counts and does not hand on."""


def groups_here(task: AggregateTask, known: PartialGroups | None) -> pa.RecordBatch | None:
    """Compute one row for each group, from all parts of an aggregate and the log's groups.

    None if there are too many groups, or if reading a file fails: Spark then reads the file itself
    and reports the error.
    """
    from variantlake.engine.grouped import merged, merged_if_many

    files = iter([part for own in task.parts for part in own])
    held: list[PartialGroups] = [] if known is None else [known]
    try:
        for found in ahead(files, task.groups_of):
            held = merged_if_many([*held, *found])
            if held and _are_many(held[0]):
                return None
        whole = merged(held) if held else None
        if whole is not None and _are_many(whole):
            return None
        if whole is None:
            return pa.RecordBatch.from_pylist([], task.schema)
        return partial_rows(whole, task.schema)
    except (VariantLakeError, OSError, pa.ArrowException):
        return None


def _are_many(part: PartialGroups) -> bool:
    return part.count > MOST_GROUPS or part.size > MOST_VALUES
