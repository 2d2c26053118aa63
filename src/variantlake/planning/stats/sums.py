"""Limit the sums of a column by the bounds of files: some cannot overflow in any order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from variantlake.expressions.tree import Ref
from variantlake.expressions.typing import spark_type
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.exact.casts import type_limits
from variantlake.planning.files import FileColumns
from variantlake.planning.stats.skipping import domains_in


def greatest_sum(
    files: FileColumns, read: Int64s, ref: Ref, partition_types: Mapping[str, str]
) -> int | None:
    """An upper limit for the sum of a numeric column's absolute values; None if unknown.

    It covers all rows of the files `read`, even if a condition leaves some out. No sum of some of
    these rows is farther from zero.
    """
    type_ = spark_type(ref.type)
    records = files.facts.num_records[read]
    if type_ is None or (records == UNKNOWN).any():
        return None
    widest = _farthest(*type_limits(type_))
    domains = domains_in(files, ref, partition_types).take(read)
    total = 0
    for row, count in enumerate(records.tolist()):
        if not domains.values[row]:
            continue
        farthest = _farthest(domains.minimum.raw(row), domains.maximum.raw(row))
        if farthest is None:
            farthest = widest
        if farthest is None:
            return None
        total += farthest * count
    return total


def _farthest(low: Raw | None, high: Raw | None) -> int | None:
    """A whole number that no absolute value exceeds; None if a bound is unknown."""
    if not isinstance(low, int | Decimal) or not isinstance(high, int | Decimal):
        return None
    return max(-math.floor(low), math.ceil(low), -math.floor(high), math.ceil(high))
