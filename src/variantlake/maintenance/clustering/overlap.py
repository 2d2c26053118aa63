"""How much files overlap, and what ordering them would save.

Two files overlap where their boxes do, in every path: meeting in one value is not an overlap,
because no order of rows could part them better. So files that were ordered against each other never
overlap, and the bounds in the log alone tell what is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variantlake.maintenance.clustering.boxes import Boxes, Floats
from variantlake.parquet.stats.fact_columns import Int64s

Bools = npt.NDArray[np.bool_]

FILE_BYTES = 4 << 20
"""What opening a file costs a query, in bytes that it could read meanwhile."""

_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Extents:
    """Which share of all bytes lies along each path where a file may have rows.

    `files` has shape (files, paths). Reading a random value along a path reads each file with the
    probability of its extent.
    """

    files: Floats
    mass: tuple[Floats, ...]
    boxes: Boxes

    @classmethod
    def of(cls, boxes: Boxes, sizes: Int64s) -> Extents:
        """The extents of files of these sizes, which are all of a partition."""
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
        """The share of all bytes that lies, along each path, where one of these files may be."""
        found = []
        for path, mass in enumerate(self.mass):
            change = np.zeros(len(mass) + 1)
            np.add.at(change, self.boxes.low[rows, path], 1)
            np.add.at(change, self.boxes.high[rows, path] + 1, -1)
            found.append(mass[np.cumsum(change[:-1]) > 0].sum())
        return np.array(found)


def overlapping(boxes: Boxes) -> Bools:
    """The files that overlap another one."""
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
    """For each of `rows` which files it overlaps, shape (rows, files)."""
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
    """Along one path, how many other files each one overlaps."""
    is_point = low == high
    points = np.sort(low[is_point])
    own = np.searchsorted(points, high, "right") - np.searchsorted(points, low, "left")
    begun = np.searchsorted(np.sort(low), high, "left")
    ended = np.searchsorted(np.sort(high), low, "right")
    # Of what neither began after nor ended before, a point is counted out twice at its own place.
    found: Int64s = begun - ended + np.where(is_point, own, -1)
    return found


def components(boxes: Boxes) -> list[Int64s]:
    """The files in parts that do not overlap: by the first path, which may join too many."""
    low, high = boxes.low[:, 0], boxes.high[:, 0]
    order = np.lexsort((high, low))
    ends = np.maximum.accumulate(high[order])
    # With several paths files of one value may overlap in the others.
    meets = low[order][1:] < ends[:-1] if boxes.low.shape[1] == 1 else low[order][1:] <= ends[:-1]
    return np.split(order, np.flatnonzero(~meets) + 1)


def cost(extents: Extents, sizes: Int64s, rows: Int64s, opening: int = FILE_BYTES) -> float:
    """What a query for one value along a path reads of these files, on average, in bytes.

    `opening` is what each file costs beside its own bytes.
    """
    return float(((sizes[rows] + opening) * extents.files[rows].mean(axis=1)).sum())


def cost_ordered(
    extents: Extents, sizes: Int64s, rows: Int64s, target: int, opening: int = FILE_BYTES
) -> float:
    """The same when they are ordered, as files of `target` bytes."""
    size = int(sizes[rows].sum())
    count = max(1, -(-size // target))
    paths = len(extents.mass)
    share = extents.covered(rows).mean() * count ** (-1 / paths)
    return float((size + opening * count) * share)
