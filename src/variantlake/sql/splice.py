"""Changes of a user's SQL text, by span: the text between them stays as it was written.

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
    """`text` with all changes made. Raises ValueError when two of them overlap."""
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
    """Where in the text stood what is at `offset` of what `splice` made of it.

    What a change put in stood where the change begins.
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
    """A message about what `splice` made of `text`, its positions those in `text` itself."""
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
"""As Spark writes it: lines from 1, characters from 0."""
