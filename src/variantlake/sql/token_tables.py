"""Find the tables of a SQL text by its tokens alone, if Spark shows no plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token, TokenType

from variantlake.quoting import Parts
from variantlake.sql.splice import Splice
from variantlake.sql.tokens import (
    NAMES,
    TEXTS,
    ParsedText,
    Span,
    clause_of,
    is_word,
    kind_at,
    name_at,
)


@dataclass(frozen=True, slots=True)
class TableName:
    """A place in the text where a table may be read: its name, and a version or time of it.

    `start` and `stop` are the span of this. `called` is the name that may qualify columns.
    `aliased` tells that it is an alias, which ends at `end` (or that TABLE, which takes none, comes
    before); `sampled` that TABLESAMPLE follows.
    """

    parts: Parts
    version: int | None
    timestamp: str | None
    start: int
    stop: int
    called: str
    end: int
    aliased: bool
    sampled: bool

    def moved(self, by: int) -> TableName:
        """The same place in a text that starts elsewhere."""
        return replace(self, start=self.start + by, stop=self.stop + by, end=self.end + by)


def table_names(parsed: ParsedText) -> Iterator[TableName]:
    """Yield the names of tables in FROM, JOIN and TABLE, without common table expressions."""
    tokens = parsed.tokens
    hidden = _common_tables(tokens)
    for at, token in enumerate(tokens):
        if not _may_be_table(tokens, at):
            continue
        parts, last = name_at(tokens, at)
        if len(parts) == 1 and any(
            name == parts[0].lower() and start <= at < stop for name, start, stop in hidden
        ):
            continue
        version, timestamp, last = _time_travel(parsed, last)
        stop = tokens[last].end + 1
        after_table = kind_at(tokens, at - 1) is TokenType.TABLE  # which takes no alias
        alias = _alias(tokens, last + 1)
        sampled = kind_at(tokens, last + 1) is TokenType.TABLE_SAMPLE
        yield TableName(
            parts,
            version,
            timestamp,
            token.start,
            stop,
            parts[-1] if alias is None else alias.text,
            stop if alias is None else alias.end + 1,
            after_table or alias is not None,
            sampled,
        )


def sure_names(tokens: Sequence[Token], names: Iterable[TableName]) -> frozenset[str]:
    """The names (in lower case) that a text uses for tables alone, not for subqueries or columns.

    Wherever such a name is before a dot, it means one of these tables, or none at all.
    """
    tables = list(names)
    called = {name.called.lower() for name in tables}
    other = {
        token.text.lower()
        for at, token in enumerate(tokens)
        if token.text.lower() in called
        and kind_at(tokens, at + 1) is not TokenType.DOT
        and not any(name.start <= token.start < name.end for name in tables)
    }
    return frozenset(called - other)


def qualifier_splices(tokens: Sequence[Token], names: Iterable[TableName]) -> list[Splice]:
    """Changes for columns that are qualified by more than the last part of a table's name.

    A view's alias has one part, the table's last: in ``delta.`/t`.event``, the changes remove those
    before it.
    """
    tables = list(names)
    changes = short_qualifiers(tokens, [name.parts for name in tables if not name.aliased])
    return [
        change
        for change in changes
        if not any(table.start <= change.start < table.stop for table in tables)
    ]


def short_qualifiers(tokens: Sequence[Token], names: Iterable[Parts]) -> list[Splice]:
    """Changes that leave only the last part of these tables' names before their columns."""
    whole = [tuple(map(str.lower, name)) for name in names]
    qualifiers = {name[at:] for name in whole for at in range(len(name) - 1)}
    changes = []
    for at, token in enumerate(tokens):
        within = kind_at(tokens, at - 1) in (TokenType.DOT, TokenType.COLON)
        if within or not is_word(tokens, at):
            continue
        parts, last = name_at(tokens, at)
        star = [kind_at(tokens, last + n) for n in (1, 2)] == [TokenType.DOT, TokenType.STAR]
        for length in range(len(parts) if star else len(parts) - 1, 1, -1):
            if tuple(map(str.lower, parts[:length])) in qualifiers:
                # Two tokens for each part: a word and a dot.
                changes.append(Splice(token.start, tokens[at + 2 * (length - 1)].start, ""))
                break
    return changes


def _alias(tokens: Sequence[Token], at: int) -> Token | None:
    """The table's alias here: any word that does not continue the query, or one after AS."""
    if kind_at(tokens, at) is TokenType.ALIAS:
        return tokens[at + 1] if is_word(tokens, at + 1) else None
    if not is_word(tokens, at):
        return None
    token = tokens[at]
    quoted = token.token_type is TokenType.IDENTIFIER
    return token if quoted or token.text.upper() not in _GOES_ON else None


_BEFORE_QUERY = (
    None, TokenType.L_PAREN, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ALL,
    TokenType.DISTINCT,
)  # fmt: skip

_GOES_ON = frozenset(
    {
        "ANTI", "CLUSTER", "CROSS", "DISTRIBUTE", "EXCEPT", "FOR", "FROM", "FULL", "GROUP",
        "HAVING", "INNER", "INSERT", "INTERSECT", "INTO", "JOIN", "LATERAL", "LEFT", "LIMIT",
        "MAP", "MINUS", "NATURAL", "OFFSET", "ON", "ORDER", "OUTER", "PIVOT", "QUALIFY", "REDUCE",
        "RIGHT", "SELECT", "SEMI", "SET", "SETMINUS", "SORT", "TABLESAMPLE", "TIMESTAMP", "UNION",
        "UNPIVOT", "USING", "VALUES", "VERSION", "WATERMARK", "WHEN", "WHERE", "WINDOW", "WITH",
    }
)  # fmt: skip
"""Words after a table that are not an alias. We read aliases of such names only in quotes; if Spark
reads a text in another way, it refuses the changed text, which then runs as it was."""


def _may_be_table(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name starts here after FROM, JOIN, TABLE, or a comma in FROM."""
    if tokens[at].token_type not in NAMES:
        return False
    if kind_at(tokens, at + 1) is TokenType.L_PAREN:
        return False  # a function
    before = kind_at(tokens, at - 1)
    if before is TokenType.COMMA:
        return clause_of(tokens, at - 1) in (TokenType.FROM, TokenType.JOIN)
    if before is TokenType.L_PAREN:
        return kind_at(tokens, at - 2) in (TokenType.FROM, TokenType.JOIN)
    if before is TokenType.TABLE:
        return kind_at(tokens, at - 2) in _BEFORE_QUERY
    return before in (TokenType.FROM, TokenType.JOIN)


def _common_tables(tokens: Sequence[Token]) -> list[tuple[str, int, int]]:
    """The names that WITH defines, each with the tokens from and before which it is visible."""
    depths = []
    depth = 0
    for token in tokens:
        if token.token_type is TokenType.R_PAREN:
            depth -= 1
        depths.append(depth)
        if token.token_type is TokenType.L_PAREN:
            depth += 1
    found = []
    for at, token in enumerate(tokens):
        if kind_at(tokens, at - 1) not in (TokenType.WITH, TokenType.RECURSIVE, TokenType.COMMA):
            continue
        body = _definition(tokens, depths, at)
        if body is None or not is_word(tokens, at):
            continue
        home = depths[at]
        close = next((i for i in range(body + 1, len(tokens)) if depths[i] == home), len(tokens))
        end = next((i for i in range(close, len(tokens)) if depths[i] < home), len(tokens))
        recursive = any(other.token_type is TokenType.RECURSIVE for other in tokens[:at])
        found.append((token.text.lower(), at if recursive else close, end))
    return found


def _definition(tokens: Sequence[Token], depths: Sequence[int], at: int) -> int | None:
    """The opening parenthesis of the query of `name AS (`, None if that is not here."""
    after = at + 1
    if kind_at(tokens, after) is TokenType.L_PAREN:
        closing = (i for i in range(after + 1, len(tokens)) if depths[i] == depths[at])
        after = next(closing, after) + 1
    if (
        kind_at(tokens, after) is TokenType.ALIAS
        and kind_at(tokens, after + 1) is TokenType.L_PAREN
    ):
        return after + 1
    return None


def _time_travel(parsed: ParsedText, last: int) -> tuple[int | None, str | None, int]:
    """The version or the time's expression after a table, and the last token of that."""
    tokens, at = parsed.tokens, last + 1
    if kind_at(tokens, at) is TokenType.FOR:
        at += 1
    words = " ".join(token.text.upper() for token in tokens[at : at + 3])
    # sqlglot makes one token of some of the words.
    kind = re.match(r"(SYSTEM_)?(VERSION|TIMESTAMP|TIME) AS OF\b", words)
    if kind is None:
        return None, None, last
    at += 3 if tokens[at + 1].text.upper() == "AS" else 2
    if kind[2] == "VERSION":
        if at < len(tokens) and _VERSION.fullmatch(tokens[at].text):
            return int(tokens[at].text), None, at
        return None, None, last
    stop = _expression_end(tokens, at)
    if stop < at:
        return None, None, last
    return None, parsed.text[tokens[at].start : tokens[stop].end + 1], stop


_VERSION = re.compile("[0-9]{1,18}")


def tags_in(parsed: ParsedText) -> Iterator[tuple[str, str, Span]]:
    """Yield the table before each `VERSION AS OF 'tag'` as written, the tag, and its place."""
    tokens = parsed.tokens
    for at, token in enumerate(tokens):
        words = [each.text.upper() for each in tokens[max(0, at - 4) : at]]
        is_version = words[-3:] in (["VERSION", "AS", "OF"], ["SYSTEM_VERSION", "AS", "OF"])
        if not is_version or token.token_type not in TEXTS or _VERSION.fullmatch(token.text):
            continue
        first = last = at - 4 - (words[0] in ("FOR", "TO"))
        while kind_at(tokens, first - 1) is TokenType.DOT:
            first -= 2
        if is_word(tokens, first) and name_at(tokens, first)[1] == last:
            table = parsed.text[tokens[first].start : tokens[last].end + 1]
            yield table, token.text, (token.start, token.end + 1)


def _expression_end(tokens: Sequence[Token], at: int) -> int:
    """The last token of the expression that starts here, before an alias of a table."""
    depth, stop = 0, at
    while stop < len(tokens):
        kind = tokens[stop].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth < 0 or (not depth and _goes_on(tokens, stop)):
            break
        stop += 1
    stop -= 1
    ends = (TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN)
    is_second = is_word(tokens, stop - 1) or kind_at(tokens, stop - 1) in ends
    is_unit = kind_at(tokens, stop - 2) is TokenType.INTERVAL
    return stop - 1 if stop > at and is_word(tokens, stop) and is_second and not is_unit else stop


def _goes_on(tokens: Sequence[Token], at: int) -> bool:
    """Whether this token ends an expression, and is not an alias without AS."""
    return (
        tokens[at].token_type in (TokenType.COMMA, TokenType.ALIAS, TokenType.SEMICOLON)
        or tokens[at].token_type is TokenType.PIPE_GT
        or (at > 0 and tokens[at].text.upper() in _GOES_ON - {"TIMESTAMP"})
    )
