"""How much of a Variant column lies in residuals, by the tags of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from variantlake.delta.stats.tags import tagged_sizes


def residual_share(column: str, tags: Iterable[Mapping[str, str | None]]) -> float | None:
    """The share of residuals in the bytes of a top column (physical name) of these files.

    None where no file tells, or all are empty.
    """
    residuals = typed = 0
    for each in tags:
        sizes = tagged_sizes((column,), each)
        if sizes is not None:
            residuals += sizes.residuals
            typed += sizes.typed
    return residuals / (residuals + typed) if residuals + typed else None
