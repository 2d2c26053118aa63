"""Limit the paths of a profile where keys are data: ids, dates, names of users.

Inference uses the most frequent paths; the others only cost time and memory. If a sample has many
paths, the profiler drops the rare ones as it reads; a path that returns is counted from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from variantlake.kernels.native.declared import Int32s, Int64s
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.inference.profile import MAX_PROFILE_DEPTH

MANY_PATHS = 1 << 14
"""Up to this many paths are all kept while counting: it costs nothing."""

NAMED_PATHS = 1 << 12
"""Up to this many paths are all kept to the end: the reasons of an inference name them."""

_LEAST_PATHS, _TIMES = 1024, 4
"""How many paths to keep at least, and how many for each column that inference may make."""

_SHARE_PART = 2
"""Drop a path while its share is below a column's least share divided by this."""


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """How many paths to keep, their least share, and the names to keep in any case."""

    most: int
    least_share: float
    names: frozenset[bytes]

    @classmethod
    def of(cls, options: InferenceOptions) -> Self:
        """Return limits that keep every path an inference with these options can use."""
        has_pattern = any(hint.is_pattern for hint in options.hints)
        return cls(
            max(_LEAST_PATHS, _TIMES * options.max_columns),
            0.0 if has_pattern else options.min_share / _SHARE_PART,
            frozenset(step.encode() for hint in options.hints for step in hint.steps),
        )

    def kept(
        self,
        parents: Int32s,
        is_element: npt.NDArray[np.bool_],
        rows: Int64s,
        named: npt.NDArray[np.signedinteger],
    ) -> npt.NDArray[np.bool_]:
        """Return the mask of the paths to keep: the root is the first, parents precede children.

        `rows` is how often each path was seen, `named` the numbers of those with a kept name.
        """
        above = np.maximum(parents, 0)
        # A share is of all rows or, inside an array, of its elements.
        base = np.broadcast_to(rows[:1], rows.shape)
        for _ in range(MAX_PROFILE_DEPTH):
            nearer = np.where(is_element[above], rows[above], base[above])
            if np.array_equal(nearer, base):
                break
            base = nearer
        share = rows / np.maximum(base, 1)
        stays = np.zeros(len(rows), np.bool_)
        stays[np.argsort(-share, kind="stable")[: self.most]] = True
        stays &= share >= self.least_share
        stays[named] = True
        stays[0] = True
        for _ in range(MAX_PROFILE_DEPTH + 1):
            linked = stays & stays[above]
            if np.array_equal(linked, stays):
                break
            stays = linked
        return stays
