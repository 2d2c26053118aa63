"""Timestamps of nanoseconds as those of a table, which has microseconds: exact, cut, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import InvalidValue
from variantlake.shredding.arrays import AnyArray, map_leaves


def batch_in_micros(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without the digits below microseconds, of timestamps at any depth."""
    columns = [
        map_leaves(column, _cut) if "timestamp[ns" in str(column.type) else column
        for column in batch.columns
    ]
    fields = zip(batch.schema, columns, strict=True)
    schema = pa.schema([field.with_type(column.type) for field, column in fields])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_micros(array: AnyArray, column: str) -> None:
    """Raise InvalidValue, with its row, for a timestamp that microseconds cannot hold exactly."""
    if not pa.types.is_timestamp(array.type):
        return
    cut = _cut(array)
    lost: Any = pc.not_equal(array, cut.cast(array.type))
    rows = np.flatnonzero(lost.fill_null(False).to_numpy(zero_copy_only=False))
    if rows.size:
        raise lossy_timestamp(column, int(rows[0]))


def lossy_timestamp(column: str, row: int) -> InvalidValue:
    """The error for a timestamp with digits below microseconds."""
    return InvalidValue(
        f"column {column!r}: a timestamp has digits below microseconds, and a table holds none",
        row=row,
        hint="truncate_timestamps=True cuts them",
        cli_hint="--truncate-timestamps cuts them",
    )


def _cut(array: Any) -> AnyArray:
    if not pa.types.is_timestamp(array.type) or array.type.unit != "ns":
        return array  # type: ignore[no-any-return]  # the stubs of is_timestamp narrow it away
    counts = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // 1000
    wanted: Any = pa.timestamp("us", array.type.tz)
    found: AnyArray = pa.array(counts, pa.int64(), mask=_mask(array)).cast(wanted)
    return found


def _mask(array: Any) -> Any:
    return array.is_null().to_numpy(zero_copy_only=False)
