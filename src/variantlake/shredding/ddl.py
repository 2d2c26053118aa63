"""Parse and write DDL of a shredding schema: `kind STRING, commit STRUCT<langs: ARRAY<STRING>>`.

A root that is an object is written as the list of its fields, any other root as the bare type
(`BIGINT`, `ARRAY<STRING>`, `VARIANT` for a column that is not shredded). `STRUCT<...>` as the root
parses too. Names that are not plain ASCII identifiers are in backticks, with inner ones doubled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from variantlake.errors import InvalidSchema
from variantlake.quoting import identifier
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import ShreddedType

MAX_SCHEMA_DEPTH = 100
"""Our limit on nested objects and arrays; an object takes two levels in Parquet, an array three."""

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*+`)|(\w+)|([<>:,()]))")


def parse_ddl(text: str) -> ShreddingSchema:
    """Parse a DDL text.

    Type names and `STRUCT`, `ARRAY`, `VARIANT` are case-insensitive, field names are not. The colon
    between a name and its type is optional. Two fields may differ only by case, because files of
    other writers have such fields (`check_writable` refuses them).

    Raises InvalidSchema with the offset of the error.
    """
    parser = _ShreddingDdlParser(text, _tokens(text))
    root = parser.bare_type(0) if parser.starts_with_type() else Object(parser.fields(0, end=""))
    parser.expect_end()
    return ShreddingSchema(root)


def format_ddl(schema: ShreddingSchema) -> str:
    """Write the canonical DDL of a schema; `parse_ddl` of it returns an equal schema.

    Raises InvalidSchema for an object without fields, since Parquet has no empty groups.
    """
    if isinstance(schema.root, Object):
        return ", ".join(
            f"{identifier(name)} {_format(node)}" for name, node in _some_fields(schema.root)
        )
    return _format(schema.root)


def _format(node: Node) -> str:
    match node:
        case Leaf(type=shredded):
            return shredded.ddl
        case Untyped():
            return "VARIANT"
        case Array(element=element):
            return f"ARRAY<{_format(element)}>"
        case Object():
            fields = (f"{identifier(name)}: {_format(child)}" for name, child in _some_fields(node))
            return f"STRUCT<{', '.join(fields)}>"


def _some_fields(node: Object) -> tuple[tuple[str, Node], ...]:
    if not node.fields:
        raise InvalidSchema("an object without fields cannot be shredded")
    return node.fields


@dataclass(frozen=True, slots=True)
class _Token:
    """A quoted name (`quoted`), a word, or one of `<>:,()`; the last token is an empty text."""

    text: str
    offset: int
    quoted: bool = False


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            offset = position + len(text[position:]) - len(text[position:].lstrip())
            raise InvalidSchema(f"unexpected {text[offset]!r} in schema {text!r}", offset=offset)
        quoted, word, punctuation = match.groups()
        if quoted is not None:
            name = quoted[1:-1].replace("``", "`")
            tokens.append(_Token(name, match.start(1), quoted=True))
        else:
            tokens.append(_Token(word or punctuation, match.end() - len(word or punctuation)))
        position = match.end()
    tokens.append(_Token("", len(text)))
    return tokens


class _ShreddingDdlParser:
    """A recursive descent parser, with one method per rule of the grammar."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._position = 0

    def starts_with_type(self) -> bool:
        """Whether the text is a bare type: one word, or a word before `<` or `(`."""
        first = self._tokens[0]
        if first.quoted or not first.text:
            return False
        second = self._tokens[1]
        return not second.quoted and second.text in ("", "<", "(")

    def fields(self, depth: int, *, end: str) -> tuple[tuple[str, Node], ...]:
        """Parse `name [:] type` separated by commas, up to the token `end`, which stays."""
        fields: dict[str, Node] = {}
        while True:
            name = self._next()
            if not name.quoted and not _is_word(name):
                raise self._error(name, "expected a field name")
            if name.text in fields:
                raise self._error(name, f"field {name.text!r} appears twice")
            if self._peek_is(":"):
                self._next()
            fields[name.text] = self.bare_type(depth)
            if self._peek_is(end):
                return tuple(fields.items())
            self._expect(",")

    def bare_type(self, depth: int) -> Node:
        """Parse one type."""
        token = self._next()
        if token.quoted or not _is_word(token):
            raise self._error(token, "expected a type")
        if depth >= MAX_SCHEMA_DEPTH:
            raise self._error(token, f"the schema nests deeper than {MAX_SCHEMA_DEPTH}")
        match token.text.upper():
            case "VARIANT":
                return Untyped()
            case "ARRAY":
                self._expect("<")
                element = self.bare_type(depth + 1)
                self._expect(">")
                return Array(element)
            case "STRUCT":
                self._expect("<")
                fields = self.fields(depth + 1, end=">")
                self._expect(">")
                return Object(fields)
            case _:
                return self._leaf(token)

    def expect_end(self) -> None:
        """Refuse any further token."""
        token = self._next()
        if token.text or token.quoted:
            raise self._error(token, f"unexpected {token.text!r}")

    def _leaf(self, name: _Token) -> Leaf:
        """Parse a primitive type with its precision and scale, as `ShreddedType` does."""
        text = name.text
        if self._peek_is("("):
            while not self._peek_is(")"):
                part = self._next()
                if part.quoted or not part.text:
                    raise self._error(part, "a parenthesis is not closed")
                text += part.text
            text += self._next().text
        try:
            return Leaf(ShreddedType.parse(text))
        except InvalidSchema as error:
            error.offset = name.offset
            raise

    def _next(self) -> _Token:
        token = self._tokens[min(self._position, len(self._tokens) - 1)]
        self._position += 1
        return token

    def _peek_is(self, text: str) -> bool:
        token = self._tokens[min(self._position, len(self._tokens) - 1)]
        return not token.quoted and token.text == text

    def _expect(self, text: str) -> None:
        token = self._next()
        if token.quoted or token.text != text:
            found = repr(token.text) if token.text or token.quoted else "the end"
            raise self._error(token, f"expected {text!r}, found {found}")

    def _error(self, token: _Token, message: str) -> InvalidSchema:
        return InvalidSchema(
            f"{message} in schema {self._text!r}",
            offset=token.offset,
            hint="write `name TYPE, other STRUCT<inner: TYPE>, list ARRAY<TYPE>`",
        )


def _is_word(token: _Token) -> bool:
    return bool(token.text) and token.text not in "<>:,()"
