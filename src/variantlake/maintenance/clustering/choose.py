"""Choose the files of a partition to rewrite: those that overlap most, within a budget of bytes.

Files come first that are much wider than they need to be, so new files, which span everything, come
before files that were ordered long ago. A group is rewritten only if queries then read at least a
fifth less of it, so repeated runs come to an end.
"""

from __future__ import annotations

import numpy as np

from variantlake.maintenance.clustering.boxes import Boxes
from variantlake.maintenance.clustering.overlap import (
    Extents,
    components,
    cost,
    cost_ordered,
    overlapping,
)
from variantlake.parquet.stats.fact_columns import Int64s

PAYS = 0.8
"""A rewrite pays if queries afterwards read at most this share of the bytes they read now."""

MAX_FILES = 20_000
"""Our limit on the files of a partition that one plan considers: the widest ones."""


def choose(boxes: Boxes, sizes: Int64s, budget: int, target: int) -> list[Int64s]:
    """Return groups of one partition's files, by place; each becomes files that do not overlap.

    `sizes` are in bytes; all groups together have at most `budget` bytes. `target` is the size of
    the new files. Equal input gives equal groups.
    """
    if boxes.files < 2:
        return []
    extents = Extents.of(boxes, sizes)
    ideal = (sizes / max(int(sizes.sum()), 1)) ** (1 / boxes.low.shape[1])
    width = extents.files.mean(axis=1) / np.maximum(ideal, 1e-12)
    widest = np.lexsort((sizes, -width))[:MAX_FILES]
    candidates = widest[overlapping(boxes.take(widest))]
    within = candidates[_fitting(sizes[candidates], budget)]
    while len(within):
        kept = within[overlapping(boxes.take(within))]
        if len(kept) == len(within):
            break
        within = kept
    found = []
    for part in components(boxes.take(within)) if len(within) else []:
        rows = np.sort(within[part])
        if len(rows) < 2:
            continue
        if cost_ordered(extents, sizes, rows, target) <= PAYS * cost(extents, sizes, rows):
            found.append(rows)
    return found


def _fitting(sizes: Int64s, budget: int) -> Int64s:
    """Return the places of the files that fit the budget, in this order; skips the others."""
    left, found = budget, []
    for place, size in enumerate(sizes.tolist()):
        if size <= left:
            left -= size
            found.append(place)
    return np.array(found, np.int64)
