"""Groups of rows made in the driver: one partial row of each, which Spark's aggregate merges.

To start tasks, to exchange their rows and to merge them takes Spark a quarter of a second, in which
threads of one process group millions of rows. So the driver does it where few bytes are read.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from variantlake.errors import VariantLakeError
from variantlake.parquet.read.prefetch import ahead
from variantlake.spark.scan.aggregate_task import AggregateTask, partial_rows

MOST_GROUPS = 1 << 20
"""Groups of more would fill the driver's memory: Spark, which can spill, makes them."""


def groups_here(task: AggregateTask) -> pa.RecordBatch | None:
    """The rows of all parts of an aggregate, no two of one group but for those that `known` has.

    None where there are too many groups, or where a file is not read: when Spark reads it, it says
    what is wrong.
    """
    from variantlake.engine.grouped import merged

    files = iter([part for own in task.parts for part in own])
    held = []
    try:
        for found in ahead(files, task.groups_of):
            held += found
            if sum(part.count for part in held) > MOST_GROUPS:
                held = [merged(held)]
                if held[0].count > MOST_GROUPS:
                    return None
        rows = partial_rows(merged(held), task.schema) if held else None
    except (VariantLakeError, OSError, pa.ArrowException):
        return None
    batches = [each for each in (task.known, rows) if each is not None]
    arrow: Any = pa
    if not batches:
        return pa.RecordBatch.from_arrays(
            [pa.nulls(0, item.type) for item in task.schema], schema=task.schema
        )
    found_rows: pa.RecordBatch = arrow.concat_batches(batches)
    return found_rows
