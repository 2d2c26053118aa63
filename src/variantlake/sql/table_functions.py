"""Find calls of `table_changes` in a text: the table, the range, and the span of the call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from variantlake.sql.tokens import TEXTS, Span, tokenize

FUNCTION = "table_changes"
_NAMES = (FUNCTION, "table_changes_by_path")


@dataclass(frozen=True, slots=True)
class TableChanges:
    """`table_changes('table', first [, last])`; numbers are versions, texts are times.

    `table_changes_by_path` is the same.
    """

    table: str
    first: int | str
    last: int | str | None
    span: Span


def table_changes_in(text: str) -> list[TableChanges]:
    """The calls whose arguments are constants, in order."""
    if FUNCTION not in text.lower():
        return []
    return list(_calls(tokenize(text)))


def _calls(tokens: Sequence[Token]) -> Iterator[TableChanges]:
    kinds = [token.token_type for token in tokens]
    for at, token in enumerate(tokens):
        is_call = kinds[at + 1 : at + 2] == [TokenType.L_PAREN]
        if not is_call or token.text.lower() not in _NAMES or TokenType.R_PAREN not in kinds[at:]:
            continue
        end = kinds.index(TokenType.R_PAREN, at)
        if any(kind is not TokenType.COMMA for kind in kinds[at + 3 : end : 2]):
            continue
        span = token.start, tokens[end].end + 1
        match [_constant(each) for each in tokens[at + 2 : end : 2]]:
            case [str(table), int() | str() as first]:
                yield TableChanges(table, first, None, span)
            case [str(table), int() | str() as first, int() | str() as last]:
                yield TableChanges(table, first, last, span)


def _constant(token: Token) -> int | str | None:
    if token.token_type in TEXTS:
        return token.text
    return int(token.text) if token.text.isascii() and token.text.isdigit() else None
