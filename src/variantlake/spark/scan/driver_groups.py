"""Groups of rows made in the driver: one row of each, so that Spark has nothing left to merge.

To start tasks, to exchange their rows and to merge them takes Spark a quarter of a second, in which
threads of one process group millions of rows. So the driver does it if few bytes are read.
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
"""Groups of more would fill the driver's memory: Spark, which can spill, makes them."""

MOST_VALUES = 1 << 23
"""The same for different values, which are counted and not handed on."""


def groups_here(task: AggregateTask, known: PartialGroups | None) -> pa.RecordBatch | None:
    """The rows of all parts of an aggregate and of what the log knows, no two of one group.

    None if there are too many groups, or if a file is not read: when Spark reads it, it says
    what is wrong.
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
