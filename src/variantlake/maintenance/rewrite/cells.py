"""Divide the space of some keys into cells with about equally many rows.

The space is halved repeatedly at the median of a sample, along one key after the other. This is the
order of a Z-curve over ranks, cut where a bit changes. So each cell is a box, and boxes do not
overlap. With one key, cells are ranges. Rows without a value come after all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.writing.sort_rows import SortKey, key_column

Bools = npt.NDArray[np.bool_]

_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut along one key: rows up to `value` go to `low`, all others and NULL to `high`.

    Each side is another cut, or the number of a cell.
    """

    key: int
    value: Any
    low: Cut | int
    high: Cut | int


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells as a tree of cuts; pickles.

    `file_of` has the file of each cell, by cell number; the cells of a file have consecutive
    numbers. `keys` locate the values in stored rows.
    """

    keys: tuple[SortKey, ...]
    root: Cut | int
    file_of: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.file_of)

    def assign(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Int64s]]:
        """Yield each cell that has rows of a batch, with the places of these rows."""
        columns = [key_column(batch, key) for key in self.keys]
        stack: list[tuple[Cut | int, Int64s]] = [(self.root, np.arange(batch.num_rows))]
        while stack:
            node, rows = stack.pop()
            if not len(rows):
                continue
            if isinstance(node, int):
                yield node, rows
                continue
            is_low = self._is_low(columns[node.key], node.value, rows)
            stack.append((node.high, rows[~is_low]))
            stack.append((node.low, rows[is_low]))

    def parted(self, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """Split the rows of a batch by cell."""
        found = list(self.assign(batch))
        if len(found) == 1:
            return [(found[0][0], batch)]
        # One take for all cells: a take of struct columns costs as much for few rows as for many.
        ordered = batch.take(arrow_array(np.concatenate([_NO_ROWS, *(rows for _, rows in found)])))
        parts, start = [], 0
        for cell, rows in found:
            parts.append((cell, ordered.slice(start, len(rows))))
            start += len(rows)
        return parts

    def _is_low(self, column: Any, value: Any, rows: Int64s) -> Bools:
        values = column if len(rows) == len(column) else column.take(arrow_array(rows))
        found: Any = pc.fill_null(pc.less_equal(values, value), False)
        flags: Bools = found.to_numpy(zero_copy_only=False)
        return flags


def cells_of(keys: tuple[SortKey, ...], sample: list[Any], files: int, per_file: int = 1) -> Cells:
    """Make cells for this many files of equal size, with `per_file` cells each.

    `sample` has the values of a sample of rows, an Arrow array for each key. Fewer cells result
    if too many values are equal.
    """
    builder = _Builder([_Ranks.of(column) for column in sample])
    rows = np.arange(len(sample[0]))
    root = builder.files(rows, files, max(per_file, 1))
    return Cells(keys, root, tuple(builder.file_of))


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The dense ranks of one key in the sample. `values` are by rank; NULL has the last rank."""

    ranks: Int64s
    values: Any

    @classmethod
    def of(cls, column: Any) -> _Ranks:
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_floating(column.type):  # NaN has no order here, so it counts as NULL
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        values = pc.unique(column.drop_null())
        values = values.take(pc.sort_indices(values))
        found: Any = pc.index_in(column, value_set=values)
        return cls(pc.fill_null(found, len(values)).to_numpy().astype(np.int64), values)


class _Builder:
    """Cuts the sample, and numbers cells from low to high."""

    def __init__(self, keys: list[_Ranks]) -> None:
        self._keys = keys
        self.file_of: list[int] = []
        self._files = 0

    def files(self, rows: Int64s, files: int, per_file: int, depth: int = 0) -> Cut | int:
        """Cut rows into files, and files into cells."""
        cut = self._cut(rows, files, depth) if files > 1 else None
        if cut is None:
            # If no cut exists between files, none exists within a file either.
            root = self._cells(rows, per_file if files == 1 else 1, depth)
            self._files += 1
            return root
        key, value, is_low, share = cut
        low = min(max(round(files * share), 1), files - 1)
        first = self.files(rows[is_low], low, per_file, depth + 1)
        second = self.files(rows[~is_low], files - low, per_file, depth + 1)
        return Cut(key, value, first, second)

    def _cells(self, rows: Int64s, cells: int, depth: int) -> Cut | int:
        cut = self._cut(rows, cells, depth) if cells > 1 else None
        if cut is None:
            self.file_of.append(self._files)
            return len(self.file_of) - 1
        key, value, is_low, share = cut
        low = min(max(round(cells * share), 1), cells - 1)
        first = self._cells(rows[is_low], low, depth + 1)
        return Cut(key, value, first, self._cells(rows[~is_low], cells - low, depth + 1))

    def _cut(self, rows: Int64s, parts: int, depth: int) -> tuple[int, Any, Bools, float] | None:
        """Find a cut that leaves about half of the parts on each side; None if there is none.

        Returns the key, the value, the mask of low rows, and their share.
        """
        for turn in range(len(self._keys)):
            number = (depth + turn) % len(self._keys)
            key = self._keys[number]
            ranks = key.ranks[rows]
            rank = _between(ranks, (parts // 2) / parts)
            if rank is None:
                continue
            is_low = ranks <= rank
            return number, key.values[int(rank)], is_low, float(is_low.mean())
        return None


def _between(ranks: Int64s, share: float) -> int | None:
    """Return the last low rank of a cut that makes about `share` of the rows low.

    Each side gets some rows. None if all ranks are equal.
    """
    if not len(ranks) or ranks.min() == ranks.max():
        return None
    ordered = np.sort(ranks)
    there = ordered[min(int(share * len(ordered)), len(ordered) - 1)]
    before = int(np.searchsorted(ordered, there, "left"))
    behind = int(np.searchsorted(ordered, there, "right"))
    wanted = share * len(ordered)
    if behind < len(ordered) and (before == 0 or behind - wanted <= wanted - before):
        return int(there)
    return int(ordered[before - 1])
