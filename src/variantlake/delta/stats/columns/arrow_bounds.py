"""Convert bounds in the Arrow type of an ordinary column to the form that planning compares.

Twin: `stats_reader.bound_of`, value by value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.arrays import numpy_array
from variantlake.delta.schema.table_schema import PrimitiveType
from variantlake.delta.stats.stats_reader import INTEGERS, TRUNCATION, is_time
from variantlake.parquet.stats.fact_columns import RawColumn, raw_dtype
from variantlake.types import ShreddedType


def raw_bounds(
    array: Any, type_: PrimitiveType, stored: ShreddedType, *, up: bool, widened: bool
) -> RawColumn:
    """Return bounds that surely enclose a column's values, though writers cut and round bounds.

    `array` has the Arrow type of `type_`. `up` and `widened` as in `bound_of`.
    """
    valid = numpy_array(array.is_valid())
    if type_.name in INTEGERS:
        return RawColumn(_integers(array), valid)
    if type_.name == "date":
        return RawColumn(_integers(array.view(pa.int32())), valid)
    if is_time(type_):
        micros = _integers(array.view(pa.int64()))
        if up:
            valid &= micros <= np.iinfo(np.int64).max - TRUNCATION
            micros = np.where(valid, micros + TRUNCATION, 0)
        return RawColumn(micros, valid)
    if type_.name in ("float", "double"):
        numbers = numpy_array(array.cast(pa.float64())).copy()
        if widened:
            with np.errstate(over="ignore"):
                singles = numbers.astype(np.float32).astype(np.float64)
            numbers = (np.maximum if up else np.minimum)(numbers, singles)
        # Writers disagree on the sign of a zero that bounds zeros of both signs.
        numbers[numbers == 0] = 0.0 if up else -0.0
        return RawColumn(numbers, valid & ~np.isnan(numbers))
    found = RawColumn.unknown(len(array), stored)
    if raw_dtype(stored) is np.object_:
        found.values[valid] = numpy_array(array.drop_null())
        found.valid[:] = valid
    return found


def _integers(array: Any) -> Any:
    return numpy_array(array.cast(pa.int64()))
