"""Find calls of `table_changes` in a text: the table, the range, and the span of the call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from variantlake.sql.token_cursor import TokenCursor
from variantlake.sql.tokens import Span, kind_at, tokenize

FUNCTION = "table_changes"
_NAMES = (FUNCTION, "table_changes_by_path")


@dataclass(frozen=True, slots=True)
class TableChanges:
    """`table_changes('table', first [, last])`, with the expressions of the range as written.

    `table_changes_by_path` is the same.
    """

    table: str
    first: str
    last: str | None
    span: Span


def table_changes_in(text: str) -> list[TableChanges]:
    """The calls whose table is a constant, in order."""
    return list(_calls(text)) if FUNCTION in text.lower() else []


def _calls(text: str) -> Iterator[TableChanges]:
    tokens = tokenize(text)
    for at, token in enumerate(tokens):
        if token.text.lower() not in _NAMES or kind_at(tokens, at + 1) is not TokenType.L_PAREN:
            continue
        start = tokens[at + 1].start
        cursor = TokenCursor(text[start:])
        items = cursor.items()
        table = TokenCursor(items[0]).text() if items else None
        if table is None or len(items) not in (2, 3) or cursor.at > len(cursor.tokens):
            continue
        span = token.start, start + cursor.tokens[cursor.at - 1].end + 1
        yield TableChanges(table, items[1], items[2] if len(items) == 3 else None, span)
