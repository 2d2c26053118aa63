"""Group the rows of a row group by their values in columns of few distinct values.

Work is then done once per combination of the columns' entries instead of once per row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.expressions.arrays import Values, add_entries, checked, with_null
from variantlake.expressions.tree import Ref
from variantlake.kernels.columns.entries import COUNTERS, count_codes, keep_codes
from variantlake.parquet.stats.fact_columns import Bools, Int64s

MOST = 1 << 12
"""The most combinations of a row group: more may take longer than its rows."""


@dataclass(frozen=True, slots=True)
class Combinations:
    """The number of each row's combination, and each column's value in every combination."""

    codes: npt.NDArray[np.int32]
    columns: Mapping[Ref, Values]
    count: int

    @classmethod
    def of(cls, columns: Mapping[Ref, Values], rows: int) -> Combinations | None:
        """Combine columns of `rows` rows; None if one has no dictionary, or combinations abound.

        Some combinations may have no rows.
        """
        arrays: dict[Ref, Any] = {ref: each.array for ref, each in columns.items()}
        if not all(isinstance(array, pa.DictionaryArray) for array in arrays.values()):
            return None
        if any(each.failed is not None for each in columns.values()):
            return None
        entries = {ref: with_null(array.dictionary) for ref, array in arrays.items()}
        count = math.prod(map(len, entries.values()))
        if count > MOST:
            return None
        codes = np.zeros(rows, np.int32)
        values, behind = {}, count
        for ref, array in arrays.items():
            add_entries(array, codes)
            behind //= len(entries[ref])
            places = np.arange(count) // behind % len(entries[ref])
            values[ref] = Values(entries[ref].take(arrow_array(places)))
        return cls(codes, values, count)

    def rows(self, chosen: Bools) -> Int64s:
        """Count the chosen rows of each combination; `chosen` covers all rows."""
        counts = np.zeros((COUNTERS, self.count), np.int64)
        checked(count_codes(self.codes, chosen.view(np.uint8), self.count, counts.reshape(-1)))
        found: Int64s = counts.sum(axis=0)
        return found

    def only(self, chosen: Bools, rows: Bools) -> Bools:
        """Of `rows`, those whose combination is chosen."""
        found = rows.copy()
        checked(keep_codes(self.codes, chosen.view(np.uint8), found.view(np.uint8)))
        return found
