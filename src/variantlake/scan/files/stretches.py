"""Divide the rows of a row group into stretches: neighbours that are equal in some columns.

A table sorted by these columns has few stretches, however many rows it has. Work is then done once
per stretch instead of once per row.
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
    """A column of a row group: one value per run, and the row after the end of each run."""

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
    """The row after the end of each stretch, and each column's value in every stretch."""

    ends: Int64s
    columns: Mapping[Ref, Values]

    @classmethod
    def of(cls, runs: Mapping[Ref, Runs], rows: int) -> Stretches:
        """Divide columns of `rows` rows; without columns all rows are one stretch."""
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
        """The first row of each stretch."""
        return np.concatenate([[0], self.ends[:-1]]).astype(np.int64)

    def rows(self, chosen: Bools) -> Int64s:
        """Count the chosen rows of each stretch; `chosen` covers all rows."""
        if chosen.all():
            return self.ends - self.starts
        return np.add.reduceat(chosen, self.starts, dtype=np.int64)

    def only(self, chosen: Bools, rows: Bools) -> Bools:
        """Of `rows`, those whose stretch is chosen."""
        return np.repeat(chosen, self.ends - self.starts) & rows
