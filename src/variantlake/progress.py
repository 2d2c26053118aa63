"""Progress of long work, as every `progress=` callback receives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of long work; `str` makes a short sentence of it.

    `done` of `total` `unit` (`"bytes"`, `"rows"`, `"files"`) are `step` (`"read"`, `"copied"`,
    `"deleted"`). `total` is None while it is unknown. `files_written` is the number of files that
    the work has begun to write, 0 if it cannot count them.

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
"""The type of `progress=`."""


def count_rows_read(progress: OnProgress | None) -> Callable[[int], None] | None:
    """Return a function that takes the rows read since its last call, and reports the total."""
    if progress is None:
        return None
    rows = 0

    def count(more: int) -> None:
        nonlocal rows
        rows += more
        progress(Progress(rows, None, "rows", "read"))

    return count
