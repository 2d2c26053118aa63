"""Resolve the columns and paths in a query's text to Refs of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from variantlake.delta.schema.char_types import char_length, char_length_at
from variantlake.delta.schema.columns_by_path import (
    HIDDEN,
    WHERE_ROWS_LIE,
    physical_path,
    resolved,
    type_at,
)
from variantlake.delta.schema.table_schema import PrimitiveType, StructType, VariantType, spark_name
from variantlake.errors import InvalidPath, InvalidQuery, InvalidSchema, VariantLakeError
from variantlake.expressions.literals import type_name
from variantlake.expressions.tree import Ref
from variantlake.expressions.typing import refused
from variantlake.paths import Path

COLLATIONS = "__COLLATIONS"
"""The key in a column's metadata under which Spark keeps the collations of its strings."""


class Columns:
    """The columns of a table, which a text may qualify with the name `table`.

    `is_only`: the text names no other table, so a name before a dot is this table or a struct.
    """

    def __init__(self, schema: StructType, table: str, *, is_only: bool = False) -> None:
        self.schema = schema
        self._table = table
        self._is_only = is_only

    def find(self, node: exp.Expression) -> Ref | None:
        """Return the Ref of a column or a path; None for any other node."""
        if isinstance(node, exp.Paren):
            return self.find(node.this)
        if isinstance(node, exp.Column):
            return self._field(node) or self.whole(self._column(node))
        if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
            return self._path(node, "variant", strict=True)
        if isinstance(node, exp.Cast | exp.TryCast) and not node.args.get("format"):
            strict = not isinstance(node, exp.TryCast)
            type_ = type_name(node.to)
            inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
            if isinstance(inner, exp.JSONExtract):
                return self._path(inner, type_, strict=strict)
            if isinstance(inner, exp.Column):
                return self._cast_column(inner, type_, strict=strict)
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name in ("variant_get", "try_variant_get"):
                return self._variant_get(node, strict=name == "variant_get")
        return None

    def whole(self, name: str) -> Ref:
        """Return the Ref of a column, by its name in the table."""
        column = self.schema.get(name)
        type_ = "" if column is None else str(column.type)
        if column is not None and isinstance(column.type, PrimitiveType):
            collations: Mapping[str, str] = column.metadata.get(COLLATIONS) or {}
            collation = collations.get(name)
            type_ = f"{type_} collate {collation}" if collation else spark_name(column.type)
        elif column is not None and not isinstance(column.type, VariantType):
            type_ = "nested"
        length = 0 if column is None else char_length(column)
        return Ref((name,), None, type_, char_length=length)

    def _cast_column(self, node: exp.Column, type_: str, *, strict: bool) -> Ref:
        ref = self._field(node) or self.whole(self._column(node))
        if ref.type == "variant":
            return Ref(ref.column, Path(()), type_, strict)
        # Spark does not pad constants that it compares with a cast CHAR.
        if ref.type == type_ and not ref.char_length:
            return ref
        raise refused(f"a cast of the column {ref}, which is {ref.type}")

    def _path(self, node: exp.JSONExtract, type_: str, *, strict: bool) -> Ref:
        steps: list[str | int] = []
        inner: exp.Expression = node
        while isinstance(inner, exp.JSONExtract):
            steps[:0] = self._steps(inner.expression)
            inner = inner.this
        if not isinstance(inner, exp.Column):
            raise refused("a path of an expression")
        return self._variant_ref(inner, Path(tuple(steps)), type_, strict=strict)

    def _steps(self, path: exp.Expression) -> Iterator[str | int]:
        for part in path.expressions:
            if isinstance(part, exp.JSONPathRoot):
                continue
            if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str):
                yield part.this
            elif isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int):
                if part.this < 0:
                    raise refused("a negative index")
                yield part.this
            else:
                raise refused("a path with wildcards")

    def _variant_get(self, node: exp.Anonymous, *, strict: bool) -> Ref:
        column, *rest = node.expressions or (None,)
        texts = [part.this for part in rest if isinstance(part, exp.Literal) and part.is_string]
        if (
            not isinstance(column, exp.Column)
            or len(texts) != len(rest)
            or len(texts) not in (1, 2)
        ):
            raise refused("variant_get of more than a column, a path and a type as text")
        try:
            path = Path.parse_spark(texts[0])
        except InvalidPath as error:
            message = f"{texts[0]!r} is not a path of variant_get: {error.message}"
            raise InvalidQuery(message) from None
        type_ = _named_type(texts[1]) if rest[1:] else "variant"
        return self._variant_ref(column, path, type_, strict=strict)

    def _variant_ref(self, node: exp.Column, path: Path, type_: str, *, strict: bool) -> Ref:
        ref = self._field(node) or self.whole(self._column(node))
        if ref.type != "variant":
            raise InvalidQuery(f"the column {ref} is {ref.type}: only a VARIANT has paths")
        return Ref(ref.column, path, type_, strict)

    def _field(self, node: exp.Column) -> Ref | None:
        """Return the Ref of a struct's field, primitive or VARIANT; None for any other column.

        Raises InvalidQuery for a field that the struct does not have.
        """
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() == self._table:
            del parts[0]
        if len(parts) == 1 or not self._is_only:
            return None
        try:
            for count in range(1, len(parts)):
                path = resolved(self.schema, tuple(parts[:count]))
                if not isinstance(type_at(self.schema, path), StructType):
                    return None
            path = resolved(self.schema, tuple(parts))
        except InvalidSchema as error:
            raise InvalidQuery(error.message, hint=error.hint, cli_hint=error.cli_hint) from None
        type_ = type_at(self.schema, path)
        column = self.schema.get(path[0])
        if column is None or COLLATIONS in column.metadata:
            return None
        if isinstance(type_, VariantType):
            return Ref(path, None, "variant")
        if not isinstance(type_, PrimitiveType):
            return None
        length = char_length_at(self.schema, physical_path(self.schema, path))
        return Ref(path, None, spark_name(type_), char_length=length)

    def _column(self, node: exp.Column) -> str:
        """The column's name in the table: an exact match, else the only one ignoring case."""
        if node.args.get("db") or (node.table and node.table.lower() != self._table):
            raise self._several_parts(node)
        known = [field.name for field in self.schema.fields]
        if node.name in known:
            return node.name
        alike = [name for name in known if name.lower() == node.name.lower()]
        if len(alike) != 1:
            hint = f"it has {', '.join(map(repr, known)) or 'no column: none was set yet'}"
            variants = [x.name for x in self.schema.fields if isinstance(x.type, VariantType)]
            if node.name.lower() == HIDDEN:
                hint = WHERE_ROWS_LIE
            elif len(variants) == 1:
                hint += f"; a path in a VARIANT column is written {variants[0]}:{node.name}"
            raise InvalidQuery(f"the table has no column {node.name!r}", hint=hint)
        return alike[0]

    def _several_parts(self, node: exp.Column) -> VariantLakeError:
        """Make the error for a dotted name; no engine takes a VARIANT's path without a colon."""
        names = [part.name for part in node.parts]
        first, *others = names[1:] if names[0].lower() == self._table else names
        column = self.schema.get(first)
        if column is None or not isinstance(column.type, VariantType):
            return refused("a name with several parts")
        steps = ".".join(others)
        return InvalidQuery(
            f"{first}.{steps} is not a field: {first} is a VARIANT",
            hint=f"write its path after a colon: {first}:{steps}",
        )


def _named_type(text: str) -> str:
    """Parse the name of a type. Raises UnsupportedFeature for one without a column form."""
    try:
        type_ = exp.DataType.build(text, "databricks")
    except SqlglotError:
        raise refused(f"the type {text!r}") from None
    # The parser ignores a collation.
    if not isinstance(type_, exp.DataType) or "collate" in text.lower():
        raise refused(f"the type {text!r}")
    return type_name(type_)
