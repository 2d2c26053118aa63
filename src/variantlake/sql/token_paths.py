"""Find the typed paths of a SQL text by its tokens alone, if Spark shows no plan.

No name is resolved here. A path is rewritten into a field that only our tables have, so Spark
itself checks whether the name before it means a column of ours, and refuses the text if it does
not. This module has to make sure that nothing else reads the column; hence `Paths.whole`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot.tokenizer_core import Token, TokenType

from variantlake.errors import InvalidPath
from variantlake.expressions.tree import PRESENCE
from variantlake.paths import Path
from variantlake.sql.tokens import (
    NAMES,
    TEXTS,
    ParsedText,
    Span,
    clause_of,
    is_one_key,
    is_word,
    kind_at,
    name_at,
)


@dataclass(frozen=True, slots=True)
class Owner:
    """A place where the text reads one of our tables: its name in the text, and its Variants.

    Names are in lower case. `starred` tells whether a star stands for its columns; None if only
    the tokens can tell.
    """

    name: str
    variants: frozenset[str]
    starred: bool | None = None


@dataclass(frozen=True, slots=True)
class PathExpression:
    """`column:path::type`, `cast(column:path AS type)` or `variant_get(column, path, type)`.

    Also the column's name alone, with the type PRESENCE, if a test for NULL follows. `span` is the
    whole expression, `name` the column's name with its qualifiers. `bare` is the path's last key,
    after which Spark names a select item that is the path alone; `item_end` is where such an item
    ends, None for a path inside an expression or with an alias. `owner` is the table's name before
    the column's, if it can mean nothing else; otherwise empty.
    """

    column: str
    owner: str
    path: Path
    type: str
    strict: bool
    span: Span
    name: Span
    bare: str
    item_end: int | None

    def may_be_of(self, table: Owner) -> bool:
        """Whether the path may be of a column of this table."""
        return self.column in table.variants and self.owner in ("", table.name)


@dataclass(frozen=True, slots=True)
class Paths:
    """All typed paths of a text, and what else may read their columns.

    `others` are the columns that are read in other ways than by paths, each with its `owner` as in
    PathExpression; `stars` are the tables whose columns a star stands for, empty for a star without
    a name. `whole` tells why all Variants of the text are needed whole. `words` are all words that
    may name columns, apart from stars; None if unnamed columns may be read, too. All names are in
    lower case.
    """

    typed: tuple[PathExpression, ...] = ()
    others: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    stars: frozenset[str] = field(default_factory=frozenset)
    whole: str = ""
    words: frozenset[str] | None = None

    def reads(self, table: Owner, column: str) -> bool:
        """Whether the text may read a column of this name, of this table."""
        plain = column.isascii() and "`" not in column
        named = self.words is None or not plain or column.lower() in self.words
        return named or self.is_starred(table)

    def is_starred(self, table: Owner) -> bool:
        """Whether a star may stand for a table's columns."""
        if table.starred is None:
            return not self.stars.isdisjoint(("", table.name))
        return table.starred

    def read_whole(self, tables: Sequence[Owner]) -> list[frozenset[str]]:
        """The Variants that each table has to give whole.

        A path that may be of such a Variant is not rewritten, so every other Variant that it may be
        of is also given whole.
        """
        whole = [
            {column for column in table.variants if self._reads_whole(table, column)}
            for table in tables
        ]
        grew = True
        while grew:
            grew = False
            for path in self.typed:
                columns = [
                    needed
                    for table, needed in zip(tables, whole, strict=True)
                    if path.may_be_of(table)
                ]
                if any(path.column in needed for needed in columns):
                    grew = grew or not all(path.column in needed for needed in columns)
                    for needed in columns:
                        needed.add(path.column)
        return [frozenset(needed) for needed in whole]

    def usable(
        self, tables: Sequence[Owner], whole: Sequence[frozenset[str]]
    ) -> tuple[PathExpression, ...]:
        """The paths that can only be of Variants that are not read whole; as `read_whole`."""

        def is_usable(path: PathExpression) -> bool:
            found = [
                path.column not in needed
                for table, needed in zip(tables, whole, strict=True)
                if path.may_be_of(table)
            ]
            return bool(found) and all(found)

        return tuple(filter(is_usable, self.typed))

    def _reads_whole(self, table: Owner, column: str) -> bool:
        if self.whole or self.is_starred(table):
            return True
        return not self.others.isdisjoint((("", column), (table.name, column)))


def typed_paths(
    parsed: ParsedText,
    columns: frozenset[str],
    tables: frozenset[str] = frozenset(),
    *,
    renames: bool = True,
) -> Paths:
    """Find the typed paths of `columns` (in lower case), and which of these are read otherwise.

    `tables` are the names before columns that mean tables and nothing else (`sure_names`).
    `renames` tells that lists of names may rename columns of tables.
    """
    tokens = parsed.tokens
    stars, whole = _looks_at_everything(tokens, tables, renames=renames)
    found = []
    others = set()
    reader = _PathReader(parsed, tables)
    at = 0
    while at < len(tokens):
        path, after = reader.typed_path(at)
        if path is not None and path.column in columns:
            found.append(path)
            at = after
            continue
        token = tokens[at]
        if token.token_type not in TEXTS and token.text.lower() in columns:
            others.add((_owner(tokens, at, tables), token.text.lower()))
        at += 1
    words = frozenset(token.text.lower() for token in tokens)
    named = not whole and words.isdisjoint(_UNNAMED)
    return Paths(tuple(found), frozenset(others), stars, whole, words if named else None)


def _owner(tokens: Sequence[Token], at: int, tables: frozenset[str]) -> str:
    """The table whose unqualified name is before this token and a dot; empty if there is none."""
    if kind_at(tokens, at - 1) is not TokenType.DOT or kind_at(tokens, at - 3) is TokenType.DOT:
        return ""
    name = tokens[at - 2].text.lower() if is_word(tokens, at - 2) else ""
    return name if name in tables else ""


_UNNAMED = ("natural", "pivot")
"""Words of clauses that read columns without a name or a star."""


def _looks_at_everything(
    tokens: Sequence[Token], tables: frozenset[str], *, renames: bool
) -> tuple[frozenset[str], str]:
    """The tables whose columns stars stand for, and why others may be read without their names."""
    stars = set()
    for at, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.PIPE_GT:
            return frozenset(), "pipes pass on columns without naming them"
        if _is_star(tokens, at):
            stars.add(_owner(tokens, at, tables))
        if kind is TokenType.TABLE:
            return frozenset(), "TABLE means the Variant too"
        if token.text.upper() in ("IDENTIFIER", "TRANSFORM", "UNPIVOT"):
            return frozenset(), f"{token.text.upper()} may name the Variant"
        if renames and kind is TokenType.L_PAREN and _names_columns(tokens, at):
            return frozenset(), "columns get other names by their place"
    if tokens and tokens[0].token_type is TokenType.FROM:
        return frozenset(), "a query that starts with FROM passes on columns without naming them"
    return frozenset(stars), ""


def count_stars(tokens: Sequence[Token]) -> int:
    """Count the stars that stand for columns."""
    return sum(_is_star(tokens, at) for at in range(len(tokens)))


def _is_star(tokens: Sequence[Token], at: int) -> bool:
    """Whether `*` stands for columns here, and not for a product or for all rows."""
    if kind_at(tokens, at) is not TokenType.STAR or _is_count(tokens, at):
        return False
    before = kind_at(tokens, at - 1)
    if before in (TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.DOT):
        return True
    return before in (TokenType.COMMA, TokenType.L_PAREN, TokenType.HINT)


def _is_count(tokens: Sequence[Token], at: int) -> bool:
    return (
        tokens[at - 2].text.lower() == "count"
        and kind_at(tokens, at - 1) is TokenType.L_PAREN
        and kind_at(tokens, at + 1) is TokenType.R_PAREN
    )


def _names_columns(tokens: Sequence[Token], at: int) -> bool:
    """Whether `(a, b)` at this parenthesis follows a table's alias, or a definition's name."""
    if kind_at(tokens, at - 1) not in NAMES or at < 2:  # the alias and a token before
        return False
    before = kind_at(tokens, at - 2)
    if before in (TokenType.ALIAS, TokenType.R_PAREN, TokenType.WITH, TokenType.RECURSIVE):
        return True
    at += 1
    while is_word(tokens, at):
        if kind_at(tokens, at + 1) is TokenType.R_PAREN:
            # `name(a, b) AS (`, or an alias without AS: `t x(a, b)`
            return kind_at(tokens, at + 2) is TokenType.ALIAS or before in NAMES
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


class _PathReader:
    """Reads typed paths at tokens of a text."""

    def __init__(self, parsed: ParsedText, tables: frozenset[str] = frozenset()) -> None:
        self._text = parsed.text
        self._tokens = parsed.tokens
        self._tables = tables

    def typed_path(self, at: int) -> tuple[PathExpression | None, int]:
        """Read the typed path that starts at this token, and the token after it."""
        word = self._tokens[at].text.lower()
        if self._kind(at - 1) is TokenType.DOT or self._kind(at) in TEXTS:
            return None, at
        if self._kind(at + 1) is TokenType.L_PAREN:
            if word in ("cast", "try_cast"):
                return self._cast(at, strict=word == "cast")
            if word in ("variant_get", "try_variant_get"):
                return self._variant_get(at, strict=word == "variant_get")
            return None, at
        name, path, after = self._extraction(at)
        if path is None:
            return self._null_test(at)
        if self._kind(after) is not TokenType.DCOLON:
            return None, at
        type_, after = self.type_at(after + 1)
        return self._path_at(at, after, name, path, type_, strict=True)

    def _null_test(self, at: int) -> tuple[PathExpression | None, int]:
        """Read the name of a column before IS NULL or IS NOT NULL."""
        last = self._chain(at)
        if last is None or self._kind(last + 1) is not TokenType.IS:
            return None, at
        tested = last + (3 if self._kind(last + 2) is TokenType.NOT else 2)
        if self._kind(tested) is not TokenType.NULL:
            return None, at
        found, after = self._path_at(at, last + 1, (at, last), Path(), PRESENCE, strict=True)
        return found and replace(found, bare="", item_end=None), after

    def _cast(self, at: int, *, strict: bool) -> tuple[PathExpression | None, int]:
        name, path, after = self._extraction(at + 2)
        if path is None or self._kind(after) is not TokenType.ALIAS:
            return None, at
        type_, after = self.type_at(after + 1)
        if self._kind(after) is not TokenType.R_PAREN:
            return None, at
        return self._path_at(at, after + 1, name, path, type_, strict=strict)

    def _variant_get(self, at: int, *, strict: bool) -> tuple[PathExpression | None, int]:
        name = self._chain(at + 2)
        if name is None:
            return None, at
        comma = name + 1
        written, type_text = self._string(comma + 1), self._string(comma + 3)
        kinds = [self._kind(i) for i in (comma, comma + 2, comma + 4)]
        if kinds != [TokenType.COMMA, TokenType.COMMA, TokenType.R_PAREN]:
            return None, at
        inner = ParsedText.of(type_text or "")
        type_, end = _PathReader(inner).type_at(0)
        try:
            path = Path.parse_spark(written or "")
        except InvalidPath:
            return None, at
        if end != len(inner.tokens):
            return None, at
        # Spark names it after the whole call, so the item has no bare name.
        found, after = self._path_at(at, comma + 5, (at + 2, name), path, type_, strict=strict)
        return found and replace(found, bare="", item_end=None), after

    def _extraction(self, at: int) -> tuple[Span, Path | None, int]:
        """Read a column's name (tokens), the path after a colon, and the token after it."""
        last = self._chain(at)
        nothing = ((at, at), None, at)
        if last is None or self._kind(last + 1) is not TokenType.COLON:
            return nothing
        steps: list[str | int] = []
        after = last + 2
        if self._is_key(after):
            steps.append(self._tokens[after].text)
            after += 1
        elif self._kind(after) is not TokenType.L_BRACKET or not self._string(after + 1):
            return nothing
        while True:
            if self._kind(after) is TokenType.DOT and self._is_key(after + 1):
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
            elif self._kind(after) is TokenType.DOT:
                return nothing
            else:
                return (at, last), Path(tuple(steps)), after

    def _is_key(self, at: int) -> bool:
        return is_word(self._tokens, at) and is_one_key(self._tokens[at])

    def _chain(self, at: int) -> int | None:
        """The last token of a name of one or more parts, None if none starts here."""
        if self._kind(at) not in NAMES:
            return None
        return name_at(self._tokens, at)[1]

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
            # `<` is a comparison here: none of the types above takes `<…>`, as `map` does.
            type_ = type_ if self._tokens[after].text == "<" else ""
        return type_, after

    def _path_at(
        self, at: int, after: int, name: Span, path: Path, type_: str, *, strict: bool
    ) -> tuple[PathExpression | None, int]:
        if not type_:
            return None, at
        first, last = self._tokens[name[0]], self._tokens[name[1]]
        last_step = path.steps[-1] if path.steps else ""
        found = PathExpression(
            column=last.text.lower(),
            owner=_owner(self._tokens, name[1], self._tables),
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
        """Where a select item ends that is only this path, without an alias; None for others."""
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
        return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31

    def _kind(self, at: int) -> TokenType | None:
        return kind_at(self._tokens, at)


def _in_select_list(tokens: Sequence[Token], before: int) -> bool:
    """Whether this token, before an item, is SELECT itself or a comma of its list."""
    if kind_at(tokens, before) is TokenType.DISTINCT:
        before -= 1
    kind = kind_at(tokens, before)
    is_next = kind is TokenType.COMMA and clause_of(tokens, before) is TokenType.SELECT
    return kind is TokenType.SELECT or is_next
