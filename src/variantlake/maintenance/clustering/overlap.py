"""Compute how much files overlap, and how much queries would save if they were ordered.

Two files overlap if their boxes overlap along every path. Boxes that only meet in one value do not
overlap, because no order of rows could separate them better. So files that were ordered against
each other never overlap, and the bounds in the log alone tell which files are left to order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variantlake.maintenance.clustering.boxes import Boxes, Floats
from variantlake.parquet.stats.fact_columns import Int64s

Bools = npt.NDArray[np.bool_]

FILE_BYTES = 4 << 20
"""The cost of opening a file, as the bytes that a query could read in that time."""

_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Extents:
    """For each file and path, the share of all bytes that lies within the file's box.

    `files` has shape (files, paths). A query for a random value along a path reads each file with a
    probability equal to its extent. `mass` has, for each path, the share of all bytes by slot.
    """

    files: Floats
    mass: tuple[Floats, ...]
    boxes: Boxes

    @classmethod
    def of(cls, boxes: Boxes, sizes: Int64s) -> Extents:
        """Compute the extents of all files of a partition; `sizes` in bytes."""
        columns, masses = [], []
        for path in range(boxes.low.shape[1]):
            low, high = boxes.low[:, path], boxes.high[:, path]
            slots = int(high.max(initial=0)) + 1
            change = np.zeros(slots + 1)
            density = sizes / (high - low + 1)
            np.add.at(change, low, density)
            np.add.at(change, high + 1, -density)
            mass = np.maximum(np.cumsum(change[:-1]), 0.0)
            mass /= mass.sum() or 1.0
            upto = np.concatenate([[0.0], np.cumsum(mass)])
            columns.append(upto[high + 1] - upto[low])
            masses.append(mass)
        return cls(np.stack(columns, axis=1), tuple(masses), boxes)

    def covered(self, rows: Int64s) -> Floats:
        """Return, for each path, the share of all bytes that lies within any of these boxes."""
        found = []
        for path, mass in enumerate(self.mass):
            change = np.zeros(len(mass) + 1)
            np.add.at(change, self.boxes.low[rows, path], 1)
            np.add.at(change, self.boxes.high[rows, path] + 1, -1)
            found.append(mass[np.cumsum(change[:-1]) > 0].sum())
        return np.array(found)


def overlapping(boxes: Boxes) -> Bools:
    """Return a mask of the files that overlap another one."""
    if boxes.files < 2:
        return np.zeros(boxes.files, np.bool_)
    if boxes.low.shape[1] == 1:
        return depths(boxes.low[:, 0], boxes.high[:, 0]) > 0
    found = np.zeros(boxes.files, np.bool_)
    for start in range(0, boxes.files, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, boxes.files))
        found[rows] = overlaps(boxes, rows).any(axis=1)
    return found


def overlaps(boxes: Boxes, rows: Int64s) -> Bools:
    """Return for each of `rows` a mask of the files that it overlaps, shape (rows, files)."""
    apart = np.zeros((len(rows), boxes.files), np.bool_)
    inside = np.zeros_like(apart)
    for path in range(boxes.low.shape[1]):
        low, high = boxes.low[:, path], boxes.high[:, path]
        strict = (low[None, :] < high[rows, None]) & (low[rows, None] < high[None, :])
        point = (low == high)[None, :] & (low[rows] == high[rows])[:, None]
        same = point & (low[None, :] == low[rows, None])
        apart |= ~strict & ~same
        inside |= strict
    found: Bools = ~apart & inside
    found[np.arange(len(rows)), rows] = False
    return found


def depths(low: Int64s, high: Int64s) -> Int64s:
    """Return how many other files each file overlaps along one path."""
    is_point = low == high
    points = np.sort(low[is_point])
    own = np.searchsorted(points, high, "right") - np.searchsorted(points, low, "left")
    begun = np.searchsorted(np.sort(low), high, "left")
    ended = np.searchsorted(np.sort(high), low, "right")
    # For an interval, `begun - ended` counts the file itself too. For a point, equal points are
    # ended but not begun, so they are added back.
    found: Int64s = begun - ended + np.where(is_point, own, -1)
    return found


def components(boxes: Boxes) -> list[Int64s]:
    """Split the files into parts that do not overlap along the first path.

    With several paths, a part may join files that another path separates.
    """
    low, high = boxes.low[:, 0], boxes.high[:, 0]
    order = np.lexsort((high, low))
    ends = np.maximum.accumulate(high[order])
    # With several paths files of one value may overlap in the others.
    meets = low[order][1:] < ends[:-1] if boxes.low.shape[1] == 1 else low[order][1:] <= ends[:-1]
    return np.split(order, np.flatnonzero(~meets) + 1)


def cost(extents: Extents, sizes: Int64s, rows: Int64s, opening: int = FILE_BYTES) -> float:
    """Return the bytes that a query for one value along a path reads of these files, on average.

    `opening` is the cost of opening a file, in bytes.
    """
    return float(((sizes[rows] + opening) * extents.files[rows].mean(axis=1)).sum())


def cost_ordered(
    extents: Extents, sizes: Int64s, rows: Int64s, target: int, opening: int = FILE_BYTES
) -> float:
    """Estimate the same `cost` once the files are ordered, as files of `target` bytes."""
    size = int(sizes[rows].sum())
    count = max(1, -(-size // target))
    paths = len(extents.mass)
    share = extents.covered(rows).mean() * count ** (-1 / paths)
    return float((size + opening * count) * share)
