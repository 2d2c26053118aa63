"""Sample the values by which rows are ordered, from files of any layout."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.tree import Ref
from variantlake.ingest.learning.sample import spread
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.paths import Path
from variantlake.scan.files.casts import extract
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import Item

SAMPLE_ROWS = 200_000
MAX_FILES = 256
"""How many files of a group are sampled, evenly spread."""

_THREADS = 4


def sample_keys(
    snapshot: Snapshot, rows: Int64s, refs: Sequence[Ref], types: Sequence[Any], records: int
) -> list[Any]:
    """Return an Arrow array for each Ref, of these `types`, with the values of every n-th row.

    `rows` choose files of the snapshot; `records` is their number of rows, -1 if unknown, which
    samples every row.

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
    try:
        return _sampled(scan, step)
    except UnsupportedFeature:
        # A residual has a value that only Spark can cast: it counts as NULL in the order of rows.
        whole = [_whole(item) for item in items]
        found = _sampled(replace(scan, items=tuple(whole)), step).combine_chunks()
        arrays = [
            pa.concat_arrays([_castable(chunk, item.ref) for chunk in column.chunks])
            if item.ref.path is not None and column.num_chunks
            else column
            for item, column in zip(items, found.columns, strict=True)
        ]
        return pa.table(arrays, names=found.column_names).cast(scan.schema)


def _sampled(scan: Scan, step: int) -> pa.Table:
    batches, start = [], 0
    for batch in scan.to_batches():
        batches.append(batch.take(np.arange(start, batch.num_rows, step)))
        start = (start - batch.num_rows) % step
    return pa.Table.from_batches(batches, scan.schema)


def _whole(item: Item) -> Item:
    """Replace the item by the Variant at its path, without a cast."""
    return item if item.ref.path is None else replace(item, ref=replace(item.ref, type="variant"))


def _castable(variants: Any, ref: Ref) -> Any:
    """Cast the Variants of a path; NULL in rows that cannot be cast here."""
    try:
        return extract(variants, replace(ref, path=Path(()))).array
    except UnsupportedFeature:
        if len(variants) == 1:
            return extract(pa.nulls(1, variants.type), replace(ref, path=Path(()))).array
        half = len(variants) // 2
        parts = variants.slice(0, half), variants.slice(half)
        return pa.concat_arrays([_castable(part, ref) for part in parts])
