"""How far long work is, in the one form that every `progress=` is called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far long work is; `str` says it in a few words.

    `done` of `total` things called `unit` (`"bytes"`, `"rows"`, `"files"`) are `step` (`"read"`,
    `"copied"`, `"deleted"`). `total` is None while nobody knows it. Work that writes files says in
    `files_written` how many it has begun, if that can be seen.

    >>> str(Progress(2, 5, "files", "copied"))
    '2 of 5 files copied'
    """

    done: int
    total: int | None
    unit: str
    step: str
    files_written: int = 0

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.done:,}{of} {self.unit} {self.step}"


OnProgress = Callable[[Progress], object]
"""What a caller gives as `progress=`."""


def count_rows_read(progress: OnProgress | None) -> Callable[[int], None] | None:
    """Takes the rows that were read since the last call, and reports those read so far."""
    if progress is None:
        return None
    rows = 0

    def count(more: int) -> None:
        nonlocal rows
        rows += more
        progress(Progress(rows, None, "rows", "read"))

    return count
