"""Bounds of many files against a constant, in Spark's order.

NaN is the greatest double, -0.0 equals 0.0, strings and binary order by their bytes (for strings
the order of code points). No bound is a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, RawColumn

Truths = npt.NDArray[np.uint8]
"""For each file the set of truth values that a condition may take, as the bits of `May`."""


def below(column: RawColumn, key: Raw) -> Bools:
    """Where the bound is less than `key`; False where it is not known."""
    if isinstance(key, float) and math.isnan(key):
        return column.known
    if isinstance(key, Decimal) and column.values.dtype == np.int64:
        key = math.ceil(key)
    return _compared(np.less, column, key)


def above(column: RawColumn, key: Raw) -> Bools:
    """Where the bound is greater than `key`; False where it is not known."""
    if isinstance(key, float) and math.isnan(key):
        return np.zeros(len(column.known), np.bool_)
    if isinstance(key, Decimal) and column.values.dtype == np.int64:
        key = math.floor(key)
    return _compared(np.greater, column, key)


def _compared(compare: Any, column: RawColumn, key: Raw) -> Bools:
    if column.values.dtype != np.object_:
        # NumPy compares integers with a Python int of any size, and small ones with doubles.
        compared: Bools = compare(column.values, key)
        return compared & column.known
    result = np.zeros(len(column.known), np.bool_)
    # In a box: NumPy would take the trailing zeros off a bare string.
    box = np.empty((), np.object_)
    box[()] = key
    result[column.known] = compare(column.values[column.known], box)
    return result


def any_within(low: RawColumn, high: RawColumn, keys: Sequence[Raw]) -> Bools:
    """Where some key lies between the bounds; an unknown one is no limit. No key is a NaN."""
    dtype = low.values.dtype
    if dtype == np.int64:
        # What no integer of 64 bits equals cannot lie on any, and files are about values.
        keys = [int(key) for key in keys if key == _whole(key) and -(2**63) <= key < 2**63]
    ordered = np.empty(len(keys), dtype)
    ordered[:] = sorted(keys)
    first = np.zeros(len(low.known), np.int64)
    last = np.full(len(low.known), len(keys), np.int64)
    first[low.known] = np.searchsorted(ordered, low.values[low.known], "left")
    last[high.known] = np.searchsorted(ordered, high.values[high.known], "right")
    return np.greater(last, first)


def equal(one: RawColumn, other: RawColumn) -> Bools:
    """Where both bounds are known and the same."""
    both = one.known & other.known
    result = np.zeros(len(both), np.bool_)
    result[both] = one.values[both] == other.values[both]
    return result


def _whole(key: Any) -> int:
    return math.floor(key) if not isinstance(key, float) or math.isfinite(key) else 0
