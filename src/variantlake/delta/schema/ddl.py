"""Parse the DDL of a table: `event VARIANT, day DATE NOT NULL COMMENT 'of the load'`.

The grammar is Spark's for columns, limited to types that Delta has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from variantlake.delta.schema.table_schema import (
    MAX_NESTING,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
    spark_name,
)
from variantlake.delta.schema.type_parts import with_parts
from variantlake.errors import InvalidSchema
from variantlake.quoting import identifier
from variantlake.types import MAX_PRECISION

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's key in a column's metadata for the declared type with CHAR and VARCHAR."""

_NAMES = {
    "STRING": "string",
    "BIGINT": "long",
    "LONG": "long",
    "INT": "integer",
    "INTEGER": "integer",
    "SMALLINT": "short",
    "SHORT": "short",
    "TINYINT": "byte",
    "BYTE": "byte",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "VOID": "void",
}
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_LIMITED = ("CHAR", "CHARACTER", "VARCHAR")

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.|'')*'"
    r"|\"(?:[^\"\\]|\\.|\"\")*\")|(?P<word>\w+)"
    r"|(?P<sign>[<>:,()]))"
)
_PIECE = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)+`|NOT\s+NULL\b|\w+|\s+|.""",
    re.DOTALL | re.IGNORECASE,
)
_OPTIONS = (
    "NOT NULL, COMMENT 'x', DEFAULT x and GENERATED ALWAYS AS (x) follow a type; ALTER TABLE ..."
    " ADD CONSTRAINT c CHECK (x) adds a rule, and no column has a key or a collation"
)
_LONG = re.compile(r"\s*([+-]?\d{1,19})\b")


def parse_table_ddl(text: str) -> StructType:
    """Parse the columns that a DDL text declares.

    Raises InvalidSchema with the offset of what was not understood.
    """
    if not isinstance(text, str):
        raise InvalidSchema(f"columns are DDL text, not {text!r:.60}", hint="note STRING, n BIGINT")
    parser = _TableDdlParser(text)
    return StructType(tuple(map(_stored, parser.fields(end=""))))


def parse_type_ddl(text: str) -> DataType:
    """Parse one type, and keep its CHAR and VARCHAR. Raises as `parse_table_ddl`."""
    parser = _TableDdlParser(text)
    return parser.whole_type()


def declaration(type_: DataType) -> str | None:
    """Return the text under DECLARED for a type; None if it contains no CHAR or VARCHAR."""
    return _type_text(type_) if type_ != plain_type(type_) else None


def _stored(column: StructField) -> StructField:
    """Convert a declared column to the schema's form: strings, with the declaration as metadata."""
    text = declaration(column.type)
    metadata = column.metadata if text is None else {**column.metadata, DECLARED: text}
    return replace(column, type=plain_type(column.type), metadata=metadata)


def plain_type(type_: DataType) -> DataType:
    """Replace CHAR and VARCHAR by STRING in a type."""
    match type_:
        case PrimitiveType("char" | "varchar"):
            return PrimitiveType("string")
        case _:
            return with_parts(type_, plain_type)


def _type_text(type_: DataType) -> str:
    """Format the type in Spark's syntax."""
    match type_:
        case StructType(fields):
            inner = (f"{identifier(item.name)}:{_type_text(item.type)}" for item in fields)
            return f"struct<{','.join(inner)}>"
        case ArrayType(element):
            return f"array<{_type_text(element)}>"
        case MapType(key, value):
            return f"map<{_type_text(key)},{_type_text(value)}>"
        case _:
            return spark_name(type_)


@dataclass(slots=True)
class _TableDdlParser:
    """Recursive descent; `position` is the offset of the next token."""

    text: str
    position: int = 0
    depth: int = 0

    def fields(self, end: str) -> tuple[StructField, ...]:
        """Parse comma-separated fields up to `end`, each `name [:] type` with its options.

        Options are `NOT NULL` and `COMMENT 'text'`, for columns also `DEFAULT expression` and
        `GENERATED …`.
        """
        found: list[StructField] = []
        while True:
            name = self._name()
            if any(name == other.name for other in found):
                raise self._error(f"column {name!r} appears twice")
            self._take(":")
            found.append(self._field(name, is_column=not end))
            if self._at_end() if not end else self._take(end):
                return tuple(found)
            if not self._take(","):
                raise self._error(f"expected ',' or {end or 'the end'!r}", hint=_OPTIONS)

    def whole_type(self) -> DataType:
        """Parse a type that is the whole text."""
        found = self._type()
        if not self._at_end():
            raise self._error("expected the end")
        return found

    def _field(self, name: str, *, is_column: bool) -> StructField:
        type_ = self._type()
        nullable = True
        metadata: dict[str, Any] = {}
        while True:
            if self._take("NOT"):
                if not self._take("NULL"):
                    raise self._error("expected NULL after NOT")
                nullable = False
            elif self._take("COMMENT"):
                kind, token = self._next()
                if kind != "text":
                    raise self._error("expected a quoted text after COMMENT")
                metadata["comment"] = _unquote(token)
            elif is_column and self._take("DEFAULT"):
                metadata["CURRENT_DEFAULT"] = self._expression()
            elif is_column and self._take("GENERATED"):
                metadata |= self._generated(name, type_)
            else:
                return StructField(name, type_, nullable, metadata)

    def _generated(self, name: str, type_: DataType) -> dict[str, Any]:
        """Parse `ALWAYS AS (expression)`, or IDENTITY with its start and step."""
        explicit = self._take("BY")
        self._expect("DEFAULT" if explicit else "ALWAYS")
        self._expect("AS")
        if not self._take("IDENTITY"):
            if explicit:
                raise self._error("expected IDENTITY")
            self._expect("(")
            expression = self._expression(inside=True)
            self._expect(")")
            return {"delta.generationExpression": expression}
        if type_ != PrimitiveType("long"):
            raise self._error(f"the identity column {name!r} is {type_}", hint="it is a BIGINT")
        numbers = {"START": 1, "INCREMENT": 1}
        if self._take("("):
            while not self._take(")"):
                self._take(",")
                word = "START" if self._take("START") else "INCREMENT"
                self._expect("WITH" if word == "START" else word)
                if word == "INCREMENT":
                    self._expect("BY")
                numbers[word] = self._long()
        if not numbers["INCREMENT"]:
            raise self._error(f"the identity column {name!r} has the increment 0")
        return {
            "delta.identity.start": numbers["START"],
            "delta.identity.step": numbers["INCREMENT"],
            "delta.identity.allowExplicitInsert": explicit,
        }

    def _long(self) -> int:
        match = _LONG.match(self.text, self.position)
        if match is None or not -(1 << 63) <= int(match[1]) < 1 << 63:
            raise self._error("expected a whole number")
        self.position = match.end()
        return int(match[1])

    def _expression(self, *, inside: bool = False) -> str:
        """Take an SQL expression verbatim, up to the token that ends it."""
        start, depth = self.position, 0
        while match := _PIECE.match(self.text, self.position):
            piece = match[0].upper()
            if depth == 0 and (piece == ")" or (not inside and self._ends(piece))):
                break
            depth += (piece in ("(", "[")) - (piece in (")", "]"))
            self.position = match.end()
        found = self.text[start : self.position].strip()
        if not found:
            raise self._error("expected an expression")
        return found

    @staticmethod
    def _ends(piece: str) -> bool:
        return piece in (",", "COMMENT", "GENERATED") or piece.startswith(("NOT ", "NOT\n"))

    def _type(self) -> DataType:
        if self.depth >= MAX_NESTING:
            raise self._error(f"the schema is nested deeper than {MAX_NESTING}")
        start = self.position
        kind, token = self._next()
        name = token.upper()
        if kind != "word":
            self.position = start
            raise self._error("expected a type")
        self.depth += 1
        try:
            if name == "STRUCT":
                self._expect("<")
                return StructType(self.fields(end=">"))
            if name == "ARRAY":
                self._expect("<")
                element = self._type()
                self._expect(">")
                return ArrayType(element)
            if name == "MAP":
                self._expect("<")
                key = self._type()
                self._expect(",")
                value = self._type()
                self._expect(">")
                return MapType(key, value)
        finally:
            self.depth -= 1
        if name == "VARIANT":
            return VariantType()
        if name in _DECIMALS:
            return self._decimal()
        if name in _LIMITED:
            return self._limited(name)
        if name not in _NAMES:
            self.position = start
            known = sorted([*_NAMES, *_DECIMALS, *_LIMITED, "VARIANT", "STRUCT", "ARRAY", "MAP"])
            raise self._error(f"unknown type {token!r}", hint=f"one of {', '.join(known)}")
        return PrimitiveType(_NAMES[name])

    def _decimal(self) -> PrimitiveType:
        precision, scale = 10, 0
        if self._take("("):
            precision = self._number()
            if self._take(","):
                scale = self._number()
            self._expect(")")
        if not (1 <= precision <= MAX_PRECISION and scale <= precision):
            raise self._error(f"DECIMAL({precision},{scale}) has no such precision and scale")
        return PrimitiveType("decimal", precision, scale)

    def _limited(self, name: str) -> PrimitiveType:
        self._expect("(")
        length = self._number(digits=9)
        self._expect(")")
        if not length:
            raise self._error(f"{name}(0) holds nothing")
        return PrimitiveType("varchar" if name == "VARCHAR" else "char", length)

    def _number(self, digits: int = 3) -> int:
        kind, token = self._next()
        if kind != "word" or not (token.isascii() and token.isdigit()) or len(token) > digits:
            raise self._error("expected a number")
        return int(token)

    def _name(self) -> str:
        kind, token = self._next()
        if kind == "quoted":
            return token[1:-1].replace("``", "`")
        if kind != "word":
            raise self._error("expected a column name")
        return token

    def _next(self) -> tuple[str, str]:
        """Consume the next token; returns its kind and text, both empty at the end."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            if self._at_end():
                return "", ""
            raise self._error("unexpected character")
        self.position = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]

    def _take(self, wanted: str) -> bool:
        """Consume the next token if it is this sign or (case-insensitive) this word."""
        start = self.position
        if not self._at_end():
            kind, token = self._next()
            if kind in ("word", "sign") and token.upper() == wanted:
                return True
        self.position = start
        return False

    def _expect(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._error(f"expected {wanted!r}")

    def _at_end(self) -> bool:
        return not self.text[self.position :].strip()

    def _error(self, message: str, *, hint: str = "") -> InvalidSchema:
        return InvalidSchema(f"{message} in {self.text!r}", offset=self.position, hint=hint)


def _unquote(token: str) -> str:
    mark = token[0]
    return re.sub(r"\\(.)", r"\1", token[1:-1].replace(2 * mark, mark))
