"""Which files of a partition are rewritten: those that overlap most, within a budget of bytes.

Files go by how much wider they are than they need to be: new rows, which are everywhere, come
before what was ordered long ago. A group is rewritten if that saves queries a fifth of what they
read of it, so that repeated runs come to an end.
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
"""A rewrite pays if what is read afterwards is at most this share of what is read now."""

MAX_FILES = 20_000
"""Files of a partition that one plan orders: the widest."""


def choose(boxes: Boxes, sizes: Int64s, budget: int, target: int) -> list[Int64s]:
    """Groups of files (their places) of one partition, each rewritten as files that do not overlap.

    `sizes` in bytes; all groups together have at most `budget` bytes. `target` is the size of the
    new files. Equal input gives equal groups.
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
    """The places of those that fit one after the other; one that does not is passed over."""
    left, found = budget, []
    for place, size in enumerate(sizes.tolist()):
        if size <= left:
            left -= size
            found.append(place)
    return np.array(found, np.int64)
