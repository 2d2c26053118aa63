"""Change a user's SQL text by spans: the text between them stays as it was written.

A tree is never printed: printers of SQL rename functions, requote strings and lose syntax (TRAPS,
SQL).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Splice:
    """`text[start:stop]` becomes `new`; an insertion has `start` = `stop`. In code points."""

    start: int
    stop: int
    new: str


def splice(text: str, changes: Iterable[Splice]) -> str:
    """Make all changes in `text`. Raises ValueError when two of them overlap."""
    parts: list[str] = []
    done = 0
    for change in sorted(set(changes)):
        if change.start < done:
            raise ValueError(f"two changes of the text overlap at {change.start}")
        parts += text[done : change.start], change.new
        done = change.stop
    parts.append(text[done:])
    return "".join(parts)


def origin(changes: Iterable[Splice], offset: int) -> int:
    """Map an offset in the result of `splice` to the offset in the original text.

    An offset within a change's new text maps to the start of the change.
    """
    moved = 0
    for change in sorted(set(changes)):
        start = change.start + moved
        if offset < start:
            break
        if offset < start + len(change.new):
            return change.start
        moved += len(change.new) - (change.stop - change.start)
    return offset - moved


def with_origins(message: str, text: str, changes: Iterable[Splice]) -> str:
    """Map the positions in a message about the result of `splice` to positions in `text`."""
    known = list(changes)
    rewritten = splice(text, known)

    def placed(found: re.Match[str]) -> str:
        lines = rewritten.split("\n")[: int(found[2]) - 1]
        offset = sum(len(line) + 1 for line in lines) + int(found[4])
        before = text[: origin(known, offset)]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
        return f"{found[1]}{line}{found[3]}{column}"

    return _POSITION.sub(placed, message)


_POSITION = re.compile(r"(\bline )(\d+)(,? pos )(\d+)")
"""A position as Spark writes it: lines from 1, characters from 0."""
