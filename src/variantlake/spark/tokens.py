"""Tables and paths of a SQL text, found by its tokens alone, where Spark shows no plan.

No name is resolved here. A path is rewritten into a field that only our tables have, so Spark
itself says whether the name before it stands for a column of ours: it refuses the text where it
does not. What has to be known here is that nothing else reads the column; hence `Paths.whole`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]  # re-exported there

from variantlake.paths import Path
from variantlake.spark.paths import variant_path
from variantlake.spark.references import Parts

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TableName:
    """A place in the text where a table may be read: its name, and a version or time of it.

    `start` and `stop` span it all. `aliased` tells that the query calls it by another name.
    """

    parts: Parts
    version: int | None
    timestamp: str | None
    start: int
    stop: int
    aliased: bool


@dataclass(frozen=True, slots=True)
class TypedPath:
    """`column:path::type`, `cast(column:path AS type)` or `variant_get(column, path, type)`.

    `span` is all of it, `name` the column's name with its qualifiers. `bare` is the path's last
    key, after which Spark names a select item that is the path alone; `item_end` is where such an
    item ends, None for a path inside of an expression or with a name of its own.
    """

    column: str
    path: Path
    type: str
    strict: bool
    span: Span
    name: Span
    bare: str
    item_end: int | None


@dataclass(frozen=True, slots=True)
class Paths:
    """All typed paths of a text, by column; `whole` says why its Variants are needed as they are.

    Columns and `read_whole` are in lower case; the latter are read in other ways than by paths.
    """

    found: tuple[TypedPath, ...] = ()
    read_whole: frozenset[str] = field(default_factory=frozenset)
    whole: str = ""


def tokenize(text: str) -> list[Token]:
    """The tokens; none for a text that sqlglot cannot take apart."""
    try:
        return list(sqlglot.tokenize(text, read="databricks"))
    except sqlglot.errors.SqlglotError:
        return []


def is_read_only(tokens: Sequence[Token]) -> bool:
    """Whether the statement is a query, which Spark does not run before its rows are asked for."""
    first = next((token for token in tokens if token.token_type is not TokenType.L_PAREN), None)
    words = {token.token_type for token in tokens}
    return (
        first is not None
        and first.text.upper() in ("FROM", "SELECT", "TABLE", "VALUES", "WITH")
        and TokenType.INSERT not in words
    )


# --- tables ---------------------------------------------------------------------------------------


def table_names(text: str, tokens: Sequence[Token]) -> Iterator[TableName]:
    """The names of tables in FROM and JOIN, common table expressions left out."""
    hidden = _common_tables(tokens)
    for at, token in enumerate(tokens):
        if not _may_be_table(tokens, at):
            continue
        parts, last = _name(tokens, at)
        if len(parts) == 1 and any(
            name == parts[0].lower() and start <= at < stop for name, start, stop in hidden
        ):
            continue
        version, timestamp, last = _time_travel(text, tokens, last)
        after = _type(tokens, last + 1)
        aliased = after in (TokenType.ALIAS, TokenType.TABLE_SAMPLE, *_NAMES)
        stop = tokens[last].end + 1
        yield TableName(parts, version, timestamp, token.start, stop, aliased)


_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def _type(tokens: Sequence[Token], at: int) -> TokenType | None:
    return tokens[at].token_type if 0 <= at < len(tokens) else None


def _may_be_table(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name starts here that FROM, JOIN or a comma in FROM comes before."""
    if tokens[at].token_type not in _NAMES:
        return False
    if _type(tokens, at + 1) is TokenType.L_PAREN:
        return False  # a function
    before = _type(tokens, at - 1)
    if before is TokenType.COMMA:
        return _in_from(tokens, at - 1)
    if before is TokenType.L_PAREN:
        return _type(tokens, at - 2) in (TokenType.FROM, TokenType.JOIN)
    return before in (TokenType.FROM, TokenType.JOIN)


def _in_from(tokens: Sequence[Token], comma: int) -> bool:
    """Whether the comma parts relations: its clause, at its own depth, is FROM."""
    depth = 0
    for token in reversed(tokens[:comma]):
        kind = token.token_type
        if kind in (TokenType.R_PAREN, TokenType.R_BRACKET):
            depth += 1
        elif kind in (TokenType.L_PAREN, TokenType.L_BRACKET):
            if not depth:
                return False
            depth -= 1
        elif not depth and kind in _CLAUSES:
            return kind in (TokenType.FROM, TokenType.JOIN)
    return False


_CLAUSES = frozenset(
    {
        TokenType.SELECT, TokenType.FROM, TokenType.JOIN, TokenType.WHERE, TokenType.GROUP_BY,
        TokenType.HAVING, TokenType.ORDER_BY, TokenType.ON, TokenType.USING, TokenType.WINDOW,
        TokenType.QUALIFY, TokenType.WITH, TokenType.VALUES, TokenType.SORT_BY, TokenType.LATERAL,
        TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.PIPE_GT, TokenType.LIMIT,
    }
)  # fmt: skip


def _name(tokens: Sequence[Token], at: int) -> tuple[Parts, int]:
    """The parts of the name that starts here, and its last token."""
    parts = [tokens[at].text]
    while _type(tokens, at + 1) is TokenType.DOT and _is_word(tokens, at + 2):
        at += 2
        parts.append(tokens[at].text)
    return tuple(parts), at


_WORD = re.compile(r"[^\W\d]\w*")


def _is_word(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name or a keyword that may be one stands here, no text and no number."""
    if not 0 <= at < len(tokens):
        return False
    token = tokens[at]
    if token.token_type is TokenType.IDENTIFIER:
        return True
    return token.token_type not in _TEXTS and bool(_WORD.fullmatch(token.text))


_TEXTS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING)


def _common_tables(tokens: Sequence[Token]) -> list[tuple[str, int, int]]:
    """The names that WITH defines, each with the tokens from which and before which it is seen."""
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
        if _type(tokens, at - 1) not in (TokenType.WITH, TokenType.RECURSIVE, TokenType.COMMA):
            continue
        body = _definition(tokens, depths, at)
        if body is None or not _is_word(tokens, at):
            continue
        home = depths[at]
        close = next((i for i in range(body + 1, len(tokens)) if depths[i] == home), len(tokens))
        end = next((i for i in range(close, len(tokens)) if depths[i] < home), len(tokens))
        recursive = any(other.token_type is TokenType.RECURSIVE for other in tokens[:at])
        found.append((token.text.lower(), at if recursive else close, end))
    return found


def _definition(tokens: Sequence[Token], depths: Sequence[int], at: int) -> int | None:
    """The opening parenthesis of the query of `name AS (`, None if that does not stand here."""
    after = at + 1
    if _type(tokens, after) is TokenType.L_PAREN:
        closing = (i for i in range(after + 1, len(tokens)) if depths[i] == depths[at])
        after = next(closing, after) + 1
    if _type(tokens, after) is TokenType.ALIAS and _type(tokens, after + 1) is TokenType.L_PAREN:
        return after + 1
    return None


def _time_travel(
    text: str, tokens: Sequence[Token], last: int
) -> tuple[int | None, str | None, int]:
    """The version or the time's expression behind a table, and the last token of it all."""
    at = last + 1
    if _type(tokens, at) is TokenType.FOR:
        at += 1
    words = " ".join(token.text.upper() for token in tokens[at : at + 3])
    # sqlglot knows some of the words as one token.
    kind = re.match(r"(SYSTEM_)?(VERSION|TIMESTAMP|TIME) AS OF\b", words)
    if kind is None:
        return None, None, last
    at += 3 if tokens[at + 1].text.upper() == "AS" else 2
    if kind[2] == "VERSION":
        if at < len(tokens) and tokens[at].text.isdigit():
            return int(tokens[at].text), None, at
        return None, None, last
    if _type(tokens, at + 1) is TokenType.STRING:  # TIMESTAMP'…'
        stop = at + 1
    elif _type(tokens, at) is TokenType.STRING:
        stop = at
    else:
        return None, None, last
    return None, text[tokens[at].start : tokens[stop].end + 1], stop


# --- paths ----------------------------------------------------------------------------------------


def typed_paths(text: str, tokens: Sequence[Token], columns: frozenset[str]) -> Paths:
    """The typed paths of `columns` (in lower case), and which of these are read otherwise."""
    whole = _looks_at_everything(tokens)
    found = []
    read_whole = set()
    at = 0
    while at < len(tokens):
        path, after = _Reader(text, tokens).typed_path(at)
        if path is not None and path.column in columns:
            found.append(path)
            at = after
            continue
        token = tokens[at]
        if token.token_type not in _TEXTS and token.text.lower() in columns:
            read_whole.add(token.text.lower())
        at += 1
    return Paths(tuple(found), frozenset(read_whole), whole)


def _looks_at_everything(tokens: Sequence[Token]) -> str:
    """Why columns may be read that the text does not name; empty if they are not."""
    for at, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.PIPE_GT:
            return "pipes pass on columns without naming them"
        if kind is TokenType.STAR and _is_star(tokens, at) and not _is_count(tokens, at):
            return "a star may stand for the Variant"
        if kind is TokenType.TABLE:
            return "TABLE stands for the Variant too"
        if token.text.upper() in ("IDENTIFIER", "TRANSFORM", "UNPIVOT"):
            return f"{token.text.upper()} may name the Variant"
        if kind is TokenType.L_PAREN and _names_columns(tokens, at):
            return "columns get other names by their place"
    if tokens and tokens[0].token_type is TokenType.FROM:
        return "a query that starts with FROM passes on columns without naming them"
    return ""


def _is_star(tokens: Sequence[Token], at: int) -> bool:
    """Whether `*` stands for columns and not for a product."""
    before = _type(tokens, at - 1)
    if before in (TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.DOT):
        return True
    return before in (TokenType.COMMA, TokenType.L_PAREN, TokenType.HINT)


def _is_count(tokens: Sequence[Token], at: int) -> bool:
    return (
        tokens[at - 2].text.lower() == "count"
        and _type(tokens, at - 1) is TokenType.L_PAREN
        and _type(tokens, at + 1) is TokenType.R_PAREN
    )


def _names_columns(tokens: Sequence[Token], at: int) -> bool:
    """Whether `(a, b)` at this parenthesis follows a table's alias, or a definition's name."""
    if _type(tokens, at - 1) not in _NAMES or at < 2:  # the alias and a token before
        return False
    before = _type(tokens, at - 2)
    if before in (TokenType.ALIAS, TokenType.R_PAREN, TokenType.WITH, TokenType.RECURSIVE):
        return True
    at += 1
    while _is_word(tokens, at):
        if _type(tokens, at + 1) is TokenType.R_PAREN:
            # `name(a, b) AS (`, or an alias without AS: `t x(a, b)`
            return _type(tokens, at + 2) is TokenType.ALIAS or before in _NAMES
        at += 2
    return False


_TYPES = {
    "string": "string", "tinyint": "tinyint", "byte": "tinyint", "smallint": "smallint",
    "short": "smallint", "int": "int", "integer": "int", "bigint": "bigint", "long": "bigint",
    "float": "float", "real": "float", "double": "double", "boolean": "boolean", "date": "date",
    "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz", "timestamp_ltz": "timestamp",
    "binary": "binary",
}  # fmt: skip
"""Names of types that are the same under all settings but `spark.sql.timestampType`."""

_DECIMALS = ("decimal", "dec", "numeric")
_AFTER_TYPE = ("COLLATE", "WITH", "WITHOUT", "<")


class _Reader:
    """Reads typed paths at tokens of a text."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._text = text
        self._tokens = tokens

    def typed_path(self, at: int) -> tuple[TypedPath | None, int]:
        """The typed path that starts at this token, and the token after it."""
        word = self._tokens[at].text.lower()
        if self._kind(at - 1) is TokenType.DOT or self._kind(at) in _TEXTS:
            return None, at
        if self._kind(at + 1) is TokenType.L_PAREN:
            if word in ("cast", "try_cast"):
                return self._cast(at, strict=word == "cast")
            if word in ("variant_get", "try_variant_get"):
                return self._variant_get(at, strict=word == "variant_get")
            return None, at
        name, path, after = self._extraction(at)
        if path is None or self._kind(after) is not TokenType.DCOLON:
            return None, at
        type_, after = self.type_at(after + 1)
        return self._found(at, after, name, path, type_, strict=True)

    def _cast(self, at: int, *, strict: bool) -> tuple[TypedPath | None, int]:
        name, path, after = self._extraction(at + 2)
        if path is None or self._kind(after) is not TokenType.ALIAS:
            return None, at
        type_, after = self.type_at(after + 1)
        if self._kind(after) is not TokenType.R_PAREN:
            return None, at
        return self._found(at, after + 1, name, path, type_, strict=strict)

    def _variant_get(self, at: int, *, strict: bool) -> tuple[TypedPath | None, int]:
        name = self._chain(at + 2)
        if name is None:
            return None, at
        comma = name + 1
        texts = [self._string(comma + 1), self._string(comma + 3)]
        kinds = [self._kind(i) for i in (comma, comma + 2, comma + 4)]
        if kinds != [TokenType.COMMA, TokenType.COMMA, TokenType.R_PAREN] or None in texts:
            return None, at
        path = variant_path(texts[0] or "")
        inner = tokenize(texts[1] or "")
        type_, end = _Reader(texts[1] or "", inner).type_at(0)
        if path is None or end != len(inner):
            return None, at
        # Spark names it after the whole call, so the item has no bare name.
        found, after = self._found(at, comma + 5, (at + 2, name), path, type_, strict=strict)
        return found and _without_item(found), after

    def _extraction(self, at: int) -> tuple[Span, Path | None, int]:
        """A column's name (tokens), the path behind a colon, and the token after it."""
        last = self._chain(at)
        nothing = ((at, at), None, at)
        if last is None or self._kind(last + 1) is not TokenType.COLON:
            return nothing
        if not _is_word(self._tokens, last + 2):
            return nothing
        steps: list[str | int] = [self._tokens[last + 2].text]
        after = last + 3
        while True:
            if self._kind(after) is TokenType.DOT and _is_word(self._tokens, after + 1):
                steps.append(self._tokens[after + 1].text)
                after += 2
            elif (
                self._kind(after) is TokenType.L_BRACKET
                and self._kind(after + 2) is TokenType.R_BRACKET
            ):
                key = self._string(after + 1)
                if key:
                    steps.append(key)
                elif self._kind(after + 1) is TokenType.NUMBER and self._is_index(after + 1):
                    steps.append(int(self._tokens[after + 1].text))
                else:
                    return nothing
                after += 3
            else:
                return (at, last), Path(tuple(steps)), after

    def _chain(self, at: int) -> int | None:
        """The last token of a name of one or more parts, None if none starts here."""
        if self._kind(at) not in _NAMES:
            return None
        return _name(self._tokens, at)[1]

    def type_at(self, at: int) -> tuple[str, int]:
        """The type that starts here, as Spark prints it, and the token after it; empty if none."""
        if not 0 <= at < len(self._tokens):
            return "", at
        word = self._tokens[at].text.lower()
        after = at + 1
        type_ = _TYPES.get(word, "")
        if word in _DECIMALS:
            digits = []
            if self._kind(after) is TokenType.L_PAREN:
                while self._kind(after) in (TokenType.L_PAREN, TokenType.COMMA):
                    digits.append(self._tokens[after + 1].text)
                    after += 2
                after += 1
            if all(text.isdigit() for text in digits) and len(digits) <= 2:
                precision, scale = (*digits, *("10", "0")[len(digits) :])
                type_ = f"decimal({precision},{scale})"
        if after < len(self._tokens) and self._tokens[after].text.upper() in _AFTER_TYPE:
            # `< 5` is a comparison, but not worth telling from `map<…>`: no type above has one.
            type_ = type_ if self._tokens[after].text == "<" else ""
        return type_, after

    def _found(
        self, at: int, after: int, name: Span, path: Path, type_: str, *, strict: bool
    ) -> tuple[TypedPath | None, int]:
        if not type_:
            return None, at
        first, last = self._tokens[name[0]], self._tokens[name[1]]
        last_step = path.steps[-1] if path.steps else ""
        found = TypedPath(
            column=last.text.lower(),
            path=path,
            type=type_,
            strict=strict,
            span=(self._tokens[at].start, self._tokens[after - 1].end + 1),
            name=(first.start, last.end + 1),
            bare=last_step if isinstance(last_step, str) else "",
            item_end=self._item_end(at, after),
        )
        return found, after

    def _item_end(self, at: int, after: int) -> int | None:
        """Where the select item ends that is this path alone and has no name of its own."""
        before, end = at - 1, after
        while self._kind(before) is TokenType.L_PAREN and self._kind(end) is TokenType.R_PAREN:
            if self._kind(before - 1) not in (TokenType.SELECT, TokenType.COMMA, TokenType.L_PAREN):
                break
            before, end = before - 1, end + 1
        if self._kind(end) not in (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, None):
            return None
        if not _in_select_list(self._tokens, before):
            return None
        return self._tokens[end - 1].end + 1

    def _string(self, at: int) -> str | None:
        """A plain text between quotes, without escapes."""
        if self._kind(at) is not TokenType.STRING:
            return None
        token = self._tokens[at]
        plain = self._text[token.start + 1 : token.end] == token.text and "\\" not in token.text
        return token.text if plain and token.text.isprintable() else None

    def _is_index(self, at: int) -> bool:
        text = self._tokens[at].text
        return text.isascii() and text.isdigit() and int(text) < 2**31

    def _kind(self, at: int) -> TokenType | None:
        return _type(self._tokens, at)


def _without_item(path: TypedPath) -> TypedPath:
    return TypedPath(path.column, path.path, path.type, path.strict, path.span, path.name, "", None)


def _in_select_list(tokens: Sequence[Token], before: int) -> bool:
    """Whether this token, before an item, is SELECT itself or a comma of its list."""
    if _type(tokens, before) is TokenType.DISTINCT:
        before -= 1
    if _type(tokens, before) is TokenType.SELECT:
        return True
    if _type(tokens, before) is not TokenType.COMMA:
        return False
    depth = 0
    for token in reversed(tokens[:before]):
        kind = token.token_type
        if kind in (TokenType.R_PAREN, TokenType.R_BRACKET):
            depth += 1
        elif kind in (TokenType.L_PAREN, TokenType.L_BRACKET):
            if not depth:
                return False
            depth -= 1
        elif not depth and kind in _CLAUSES:
            return kind is TokenType.SELECT
    return False


# --- the outermost select list --------------------------------------------------------------------


def select_items(tokens: Sequence[Token]) -> list[Span]:
    """The items of the outermost SELECT as spans of the text; none if that is not plain to see."""
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


_ENDS = _CLAUSES | {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.SEMICOLON}
