"""Keys that readers who ignore case would take for one another.

Spark resolves nested Parquet fields without regard to case unless told otherwise: asked for `ID`
in a file if only `id` is a column, it silently returns `id`. So of sibling keys that fold to the
same text, one at most may be a column.
"""

from __future__ import annotations

from collections.abc import Iterable


def fold_key(key: str) -> str:
    """A text equal for all keys that some case-insensitive comparison takes for equal.

    Coarser than each of Unicode case folding, Java's `equalsIgnoreCase` and `toLowerCase`: the
    Kelvin sign is `k`, the long s is `s`, dotless and dotted i are `i`. Too coarse costs a column,
    too fine costs a wrong answer.
    """
    # Java's Character.toLowerCase('\u0130') is a bare i, its String.toLowerCase an i with U+0307.
    return key.upper().casefold().replace("i\u0307", "i")


def folded_twins(names: Iterable[str]) -> dict[str, list[str]]:
    """The names that share their folded form with another name, by that form."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(fold_key(name), []).append(name)
    return {folded: group for folded, group in groups.items() if len(group) > 1}
