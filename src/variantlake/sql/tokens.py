"""Read a SQL text by its tokens alone, if Spark shows no plan (sqlglot, databricks)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import sqlglot
from sqlglot import exp
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.tokenizer_core import Token, TokenType

from variantlake.quoting import Parts

Span = tuple[int, int]


_DIALECT = sqlglot.Dialect.get_or_raise("databricks")


def _keeping(build: Callable[..., exp.Expr]) -> Callable[..., exp.Expr]:
    """Keep the number of arguments, and the letters of a format as they are written."""
    takes_dialect = "dialect" in build.__code__.co_varnames  # sqlglot asks so, too

    def kept(arguments: list[Any], dialect: sqlglot.Dialect) -> exp.Expr:
        count = len(arguments)
        pattern = arguments[1] if count > 1 else exp.Literal.string("yyyy-MM-dd HH:mm:ss")
        is_text = isinstance(pattern, exp.Literal) and pattern.is_string
        more = {"dialect": dialect} if takes_dialect else {}
        node = build(arguments, **more)
        node.meta.update(arguments=count, format=pattern.name if is_text else None)
        return node

    return kept


class _Parser(DatabricksParser):
    """sqlglot's, whose trees do not tell some functions of Spark from others."""

    # Parsed as other functions are, SUBSTR says where it stands, and SUBSTRING does not.
    FUNCTION_PARSERS: ClassVar = {
        name: parse for name, parse in DatabricksParser.FUNCTION_PARSERS.items() if name != "SUBSTR"
    }
    FUNCTIONS: ClassVar = DatabricksParser.FUNCTIONS | {
        name: _keeping(DatabricksParser.FUNCTIONS[name])
        for name in ("DATE_FORMAT", "FROM_UNIXTIME", "DATEDIFF", "DATE_DIFF")
    }


NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING)

_CLAUSES = frozenset(
    {
        TokenType.SELECT, TokenType.FROM, TokenType.JOIN, TokenType.WHERE, TokenType.GROUP_BY,
        TokenType.HAVING, TokenType.ORDER_BY, TokenType.ON, TokenType.USING, TokenType.WINDOW,
        TokenType.QUALIFY, TokenType.WITH, TokenType.VALUES, TokenType.SORT_BY, TokenType.LATERAL,
        TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.PIPE_GT, TokenType.LIMIT,
    }
)  # fmt: skip

_ENDS = _CLAUSES | {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.SEMICOLON}
_WORD = re.compile(r"[^\W\d]\w*")


@functools.lru_cache(maxsize=8)
def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens; none for a text that sqlglot cannot tokenize.

    Cached, because each of the steps that prepare a query needs the tokens of the same text.
    """
    try:
        return tuple(_tokens(text))
    except sqlglot.errors.SqlglotError:
        return ()


def _tokens(text: str) -> list[Token]:
    """The tokens, with `'it''s'` as one: sqlglot makes two texts of it, and joins them."""
    tokens: list[Token] = []
    for token in _DIALECT.tokenize(text):
        before = tokens[-1] if tokens else None
        if before is None or not _is_doubled_quote(before, token, text):
            tokens.append(token)
            continue
        whole = before.text + text[token.start] + token.text
        comments = before.comments + token.comments
        tokens[-1] = Token(
            token.token_type, whole, token.line, token.col, before.start, token.end, comments
        )
    return tokens


def _is_doubled_quote(before: Token, token: Token, text: str) -> bool:
    """Whether a text directly follows another with the same quote, which is then part of it."""
    return (
        before.token_type is TokenType.STRING is token.token_type
        and before.end + 1 == token.start
        and text[before.end] == text[token.start]
    )


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A SQL text with its tokens, none if sqlglot cannot tokenize it."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Tokenize a text, once."""
        return cls(text, tokenize(text))

    @property
    def tree(self) -> exp.Expr | None:
        """The text's tree, which must not be changed; None if sqlglot does not parse the text."""
        return _tree(self.text)


@functools.lru_cache(maxsize=8)
def _tree(text: str) -> exp.Expr | None:
    try:
        return parse_text(text)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def parse_text(text: str) -> exp.Expr:
    """Parse a text to its tree. Raises SqlglotError if it does not parse, RecursionError."""
    tokens = _tokens(text)
    # After each of these, sqlglot parses all that follows twice.
    if _joins_without_condition(tokens) > _MOST_JOINS:
        raise sqlglot.errors.ParseError(f"more than {_MOST_JOINS} JOINs have no ON of their own")
    trees = [tree for tree in _Parser(dialect=_DIALECT).parse(tokens, text) if tree is not None]
    if not trees:
        raise sqlglot.errors.ParseError("the text says nothing")
    return trees[0] if len(trees) == 1 else exp.Block(expressions=trees)


_MOST_JOINS = 10
"""The most JOINs without a condition in one text."""


def _joins_without_condition(tokens: Sequence[Token]) -> int:
    count, last = 0, None
    waits = [False]  # for each open parenthesis, whether a JOIN in it has no condition yet
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.JOIN:
            count += waits[-1]
            waits[-1] = last is not TokenType.CROSS
        elif kind in (TokenType.ON, TokenType.USING):
            waits[-1] = False
        elif kind is TokenType.L_PAREN:
            waits.append(False)
        elif kind is TokenType.R_PAREN and len(waits) > 1:
            count += waits.pop()
        last = kind
    return count + sum(waits)


def is_read_only(tokens: Sequence[Token]) -> bool:
    """Whether the statement is a query, which Spark does not run before its rows are requested."""
    first = next((token for token in tokens if token.token_type is not TokenType.L_PAREN), None)
    words = {token.token_type for token in tokens}
    return (
        first is not None
        and first.text.upper() in ("FROM", "SELECT", "TABLE", "VALUES", "WITH")
        and TokenType.INSERT not in words
    )


def inner_query(tokens: Sequence[Token]) -> int | None:
    """The first token of the query at the end of INSERT or CREATE TABLE … AS.

    None if the statement is of another kind, or its tokens do not tell.
    """
    words = [token.text.upper() for token in tokens[:5]]
    if words[:1] == ["INSERT"]:
        return _first_query(tokens, 1)
    if words[:1] == ["CREATE"] and "TABLE" in words and "VIEW" not in words:
        for place in range(1, len(tokens)):
            if kind_at(tokens, place) is TokenType.ALIAS and _starts_query(tokens, place + 1):
                return place + 1
    return None


def _first_query(tokens: Sequence[Token], at: int) -> int | None:
    depth = 0
    for place in range(at, len(tokens)):
        kind = tokens[place].token_type
        if not depth and _starts_query(tokens, place):
            return place
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
    return None


def _starts_query(tokens: Sequence[Token], at: int) -> bool:
    while kind_at(tokens, at) is TokenType.L_PAREN:
        at += 1
    if kind_at(tokens, at) is TokenType.WITH:
        return is_word(tokens, at + 1) and tokens[at + 1].text.upper() != "SCHEMA"
    return kind_at(tokens, at) is TokenType.SELECT


def select_items(tokens: Sequence[Token]) -> list[Span]:
    """The items of the outermost SELECT as spans of the text; none if that is not certain."""
    depth = 0
    start: int | None = None
    found = []
    for at, token in enumerate(tokens):
        kind = token.token_type
        if not depth and start is None:
            if kind is TokenType.SELECT:
                start = at + 1
        elif not depth and start is not None and (kind in _ENDS or kind is TokenType.COMMA):
            if at == start:
                return []
            found.append((tokens[start].start, tokens[at - 1].end + 1))
            start = at + 1
            if kind is not TokenType.COMMA:
                return found
        if kind in (TokenType.L_PAREN, TokenType.L_BRACKET):
            depth += 1
        elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET):
            depth -= 1
    if start is not None and start < len(tokens):
        found.append((tokens[start].start, tokens[-1].end + 1))
    return found


def kind_at(tokens: Sequence[Token], at: int) -> TokenType | None:
    """The type of the token at this place; None before the first token and after the last."""
    return tokens[at].token_type if 0 <= at < len(tokens) else None


def name_at(tokens: Sequence[Token], at: int) -> tuple[Parts, int]:
    """The parts of the name that starts here, and its last token."""
    parts = [tokens[at].text]
    while kind_at(tokens, at + 1) is TokenType.DOT and is_word(tokens, at + 2):
        at += 2
        parts.append(tokens[at].text)
    return tuple(parts), at


def is_word(tokens: Sequence[Token], at: int) -> bool:
    """Whether the token here is a name, or a keyword that may be one, and no text or number."""
    if not 0 <= at < len(tokens):
        return False
    token = tokens[at]
    if token.token_type is TokenType.IDENTIFIER:
        return True
    return token.token_type not in TEXTS and bool(_WORD.fullmatch(token.text))


def is_one_key(token: Token) -> bool:
    """Whether a word after the colon of a path is one key.

    Spark reads the text between backticks as a part of the path: `a.b` in them is `a`, then `b`.
    """
    if token.token_type is not TokenType.IDENTIFIER:
        return True
    key = token.text
    return bool(key) and key == key.strip() and not set(key) & set(".[")


def clause_of(tokens: Sequence[Token], at: int) -> TokenType | None:
    """The keyword of the token's clause, at its own depth; None if a parenthesis comes first."""
    depth = 0
    for token in reversed(tokens[:at]):
        kind = token.token_type
        if kind in (TokenType.R_PAREN, TokenType.R_BRACKET):
            depth += 1
        elif kind in (TokenType.L_PAREN, TokenType.L_BRACKET):
            if not depth:
                return None
            depth -= 1
        elif not depth and kind in _CLAUSES:
            return kind
    return None
