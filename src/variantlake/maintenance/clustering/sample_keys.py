"""A sample of the values that rows are ordered by, from files of any layout."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.reshredding.sample import spread
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.predicates import Ref
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import Item

SAMPLE_ROWS = 200_000
MAX_FILES = 256
"""Files of a group that are looked at, spread over all of them."""

_THREADS = 4


def sample_keys(
    snapshot: Snapshot, rows: Int64s, refs: Sequence[Ref], types: Sequence[Any], records: int
) -> list[Any]:
    """Arrow arrays of these `types`, one for each Ref: values of every so-manieth row.

    `rows` are those of the snapshot's files, `records` the rows of all of them, -1 where unknown.
    Raises MalformedFile and MissingSource naming a file that cannot be read.
    """
    chosen = spread(rows.tolist(), MAX_FILES)
    share = len(chosen) / max(len(rows), 1)
    step = max(1, int(records * share) // SAMPLE_ROWS) if records > 0 else 1
    items = tuple(Item(str(number), ref) for number, ref in enumerate(refs))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="variantlake-sample") as pool:
        tables = list(pool.map(lambda row: _of_file(snapshot, row, items, step), chosen))
    whole = pa.concat_tables(tables)
    return [whole.column(number).combine_chunks().cast(type_) for number, type_ in enumerate(types)]


def _of_file(snapshot: Snapshot, row: int, items: tuple[Item, ...], step: int) -> pa.Table:
    scan = Scan(replace(snapshot, files=snapshot.files.slice(row, 1)), items)
    batches, start = [], 0
    for batch in scan.to_batches():
        batches.append(batch.take(np.arange(start, batch.num_rows, step)))
        start = (start - batch.num_rows) % step
    return pa.Table.from_batches(batches, scan.schema)
