"""Find dates and instants that Spark moves when it pushes a condition into a Parquet file.

The literal passes through Java's old Date or Timestamp, with the calendar before 1582 and the
history of a time zone. A day that either lacks becomes a later one, and the rows between the two
would be lost (EXACTNESS, rule 39). Spark keeps literals outside the ranges of `_MOVED`, and moves
those inside to others inside. So a file without a value inside gives the same rows for both.
"""

from __future__ import annotations

import datetime as dt

import numpy as np

from variantlake.expressions.tree import Literal
from variantlake.parquet.stats.fact_columns import Bools, BoundColumns
from variantlake.types import Kind, ShreddedType


def _range(first: str, last: str, unit: int = 1) -> tuple[int, int]:
    """Two dates as counts since 1970, of which a day has `unit`."""
    start, stop = (
        (dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days * unit for day in (first, last)
    )
    return start, stop


_MOVED = {
    Kind.DATE: (
        # The reform of the calendar skipped 5 to 14 October.
        _range("1582-10-05", "1582-10-25"),
        # Days that time zones skipped: of Manila, Kwajalein, Kiritimati and Enderbury, and Apia.
        _range("1844-12-31", "1845-01-01"),
        _range("1993-08-21", "1993-08-22"),
        _range("1994-12-31", "1995-01-02"),
        _range("2011-12-30", "2011-12-31"),
    ),
    # Until 1900 zones also have local mean time, in which the two libraries differ.
    Kind.TIMESTAMP: (_range("1582-10-01", "1900-01-02", 86_400_000_000),),
}
"""For each kind the ranges of values in which Spark may move a literal, ends included."""


def may_move(literal: Literal) -> bool:
    """Whether Spark may push another date or instant instead of this one."""
    ranges = _MOVED[Kind.DATE] if literal.type == "date" else _MOVED[Kind.TIMESTAMP]
    return literal.type in ("date", "timestamp") and any(
        isinstance(literal.value, int) and first <= literal.value <= last for first, last in ranges
    )


def without_moved(stored: ShreddedType, bounds: BoundColumns) -> Bools:
    """The files whose bounds prove that no value is where Spark may move a literal."""
    low, high = bounds.minimum, bounds.maximum
    sure = np.ones(len(low.valid), np.bool_)
    for first, last in _MOVED.get(stored.kind, ()):
        sure &= (low.valid & (low.values > last)) | (high.valid & (high.values < first))
    return sure
