"""The rows of a row group in stretches: neighbours that are alike in all columns asked for.

A table sorted by some columns has few of them, however many rows it has. What is asked of each row
is asked of each stretch once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from variantlake.expressions.arrays import Values, repeated
from variantlake.expressions.tree import Ref
from variantlake.parquet.stats.fact_columns import Bools, Int64s


@dataclass(frozen=True, slots=True)
class Runs:
    """A column of a row group: a value a run, and the row behind each run."""

    values: Values
    ends: Int64s

    @classmethod
    def of_one(cls, values: Values, rows: int) -> Runs:
        """The same value in all rows."""
        return cls(values, np.array([rows], np.int64))

    def in_rows(self, places: Int64s) -> Values:
        """The column in some rows."""
        sizes = np.diff(self.ends, prepend=0)
        if len(places) == sizes.sum():
            return repeated(self.values, sizes)
        return self.values.take(np.repeat(np.arange(len(sizes)), sizes)[places])


@dataclass(frozen=True, slots=True)
class Stretches:
    """The row behind each stretch, and for each column its value in each stretch."""

    ends: Int64s
    columns: Mapping[Ref, Values]

    @classmethod
    def of(cls, runs: Mapping[Ref, Runs], rows: int) -> Stretches:
        """Of columns of so many rows; without columns all rows are one stretch."""
        ends = np.unique(np.concatenate([[rows], *(each.ends for each in runs.values())]))
        columns = {
            ref: each.values.take(np.searchsorted(each.ends, ends)) for ref, each in runs.items()
        }
        return cls(ends.astype(np.int64), columns)

    @property
    def count(self) -> int:
        """Number of stretches."""
        return len(self.ends)

    @property
    def starts(self) -> Int64s:
        """The first row of each."""
        return np.concatenate([[0], self.ends[:-1]]).astype(np.int64)

    def rows(self, chosen: Bools) -> Int64s:
        """How many of the chosen rows each stretch has; `chosen` is of all rows."""
        if chosen.all():
            return self.ends - self.starts
        return np.add.reduceat(chosen, self.starts, dtype=np.int64)

    def only(self, chosen: Bools, rows: Bools) -> Bools:
        """Those of the rows whose stretch is chosen."""
        return np.repeat(chosen, self.ends - self.starts) & rows
