"""Which paths of a profile are worth keeping where keys are data: ids, dates, names of users.

Inference takes the most frequent paths, so that the others only cost time and memory. Of a sample
with many paths the rare ones are forgotten as it is read; one that comes again is counted anew.
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
"""Fewer are all kept while they are counted: it costs nothing."""

NAMED_PATHS = 1 << 12
"""Fewer are all kept to the end: the reasons of an inference name them."""

_LEAST_PATHS, _TIMES = 1024, 4
"""Kept at least, and for each column that may be made."""

_SHARE_PART = 2
"""A path this many times rarer than a column must be is forgotten, as long as it is."""


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """How many paths are kept, how frequent these are, and which names are kept in any case."""

    most: int
    least_share: float
    names: frozenset[bytes]

    @classmethod
    def of(cls, options: InferenceOptions) -> Self:
        """What an inference with these options can use."""
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
        """Which of the paths stay: the root is the first, and parents come before children.

        `rows` says how often each was seen, `named` are the numbers of those with a kept name.
        """
        above = np.maximum(parents, 0)
        # Shares are of all rows, inside of arrays of their elements.
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
