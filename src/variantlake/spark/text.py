"""Changes of a user's SQL text, by span: the text between them stays as it was written.

A tree is never printed: printers of SQL rename functions, requote strings and lose syntax (TRAPS,
SQL).
"""

from __future__ import annotations

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


def quote_identifier(name: str) -> str:
    """The name as a quoted SQL identifier."""
    return f"`{name.replace('`', '``')}`"


def quote_string(text: str) -> str:
    """The text as a SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
