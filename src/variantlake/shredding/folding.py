"""Fold keys that case-insensitive readers confuse with one another.

By default Spark resolves nested Parquet fields without regard to case: for `ID` in a file with only
a column `id`, it silently returns `id`. So at most one of the sibling keys that fold to the same
text may be a column.
"""

from __future__ import annotations

from collections.abc import Iterable


def fold_key(key: str) -> str:
    """Return a text that is equal for all keys that some case-insensitive comparison finds equal.

    It is coarser than each of Unicode case folding, Java's `equalsIgnoreCase` and `toLowerCase`:
    the Kelvin sign is `k`, the long s is `s`, dotless and dotted i are `i`. A folding that is too
    coarse costs a column, one that is too fine a wrong answer.
    """
    # Java's Character.toLowerCase('\u0130') is a bare i, its String.toLowerCase an i with U+0307.
    return key.upper().casefold().replace("i\u0307", "i")


def folded_twins(names: Iterable[str]) -> dict[str, list[str]]:
    """Group the names that share their folded form with another name, by that form."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(fold_key(name), []).append(name)
    return {folded: group for folded, group in groups.items() if len(group) > 1}
