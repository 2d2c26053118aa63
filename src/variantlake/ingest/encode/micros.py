"""Convert timestamps of nanoseconds to a table's microseconds: exactly, truncated, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.errors import InvalidValue
from variantlake.shredding.arrays import AnyArray, map_leaves


def batch_in_micros(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Truncate timestamps at any depth to microseconds."""
    columns = [
        map_leaves(column, _cut) if "timestamp[ns" in str(column.type) else column
        for column in batch.columns
    ]
    fields = zip(batch.schema, columns, strict=True)
    schema = pa.schema([field.with_type(column.type) for field, column in fields])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_micros(array: AnyArray, column: str) -> None:
    """Raise InvalidValue, with its row, for a timestamp that microseconds cannot hold exactly."""
    if _is_nanos(array):
        rows = np.flatnonzero(_counts(array) % 1000)
        if rows.size:
            raise lossy_timestamp(column, int(rows[0]))


def check_nested_micros(array: AnyArray, column: str) -> None:
    """Check timestamps at any depth as `check_micros` does; nested ones raise without a row."""
    if "timestamp[ns" in str(array.type):
        is_nested = pa.types.is_nested(array.type)
        map_leaves(array, lambda leaf: _checked(leaf, column, names_row=not is_nested))


def _checked(leaf: AnyArray, column: str, *, names_row: bool) -> AnyArray:
    try:
        check_micros(leaf, column)
    except InvalidValue as error:
        error.row = error.row if names_row else None
        error.hint = error.cli_hint = "round the timestamps to microseconds"
        raise
    return leaf


def lossy_timestamp(column: str, row: int) -> InvalidValue:
    """Return the error for a timestamp with digits below microseconds."""
    return InvalidValue(
        f"column {column!r}: a timestamp has digits below microseconds, and a table holds none",
        row=row,
        hint="truncate_timestamps=True cuts them",
        cli_hint="--truncate-timestamps cuts them",
    )


def _cut(array: Any) -> AnyArray:
    if not _is_nanos(array):
        return array  # type: ignore[no-any-return]  # the stubs of is_timestamp narrow it away
    wanted: Any = pa.timestamp("us", array.type.tz)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    found: AnyArray = pa.array(_counts(array) // 1000, pa.int64(), mask=nulls).cast(wanted)
    return found


def _is_nanos(array: Any) -> bool:
    return pa.types.is_timestamp(array.type) and array.type.unit == "ns"


def _counts(array: Any) -> npt.NDArray[np.int64]:
    """Return nanoseconds since the epoch, 0 for NULL."""
    counts: npt.NDArray[np.int64] = array.cast(pa.int64()).fill_null(0).to_numpy()
    return counts
