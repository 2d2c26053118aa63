"""CHAR(n) and VARCHAR(n): strings whose declared type stands in the metadata of their column.

Delta's schema says `string` for them. What a column was declared as, with all that is nested in it,
is one text in the metadata of the column at the top, as Spark writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from variantlake.delta.schema.ddl import DECLARED, declaration, parse_type_ddl
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    types_in,
)
from variantlake.errors import InvalidSchema, UnsupportedFeature


def declared_type(field: StructField) -> DataType:
    """The column's type with `char` and `varchar` if it was declared so, by physical names.

    Raises UnsupportedFeature for a declaration that is not understood.
    """
    text = field.metadata.get(DECLARED)
    if text is None:
        return field.type
    try:
        declared = _parsed(text)
    except InvalidSchema as error:
        raise UnsupportedFeature(
            f"column {field.name!r} is declared as {text!r}, which is not understood",
            hint="the length of its strings is not known: read and write the table with Spark",
        ) from error
    return _over(field.type, declared)


def char_length(field: StructField) -> int:
    """The length that Spark pads the column's own strings to; 0 for all but CHAR columns."""
    return char_length_of(declared_type(field))


def char_length_at(schema: StructType, path: Sequence[str]) -> int:
    """The same of a column, or a field of a struct, by names in files; 0 of a foreign column."""
    found = next((field for field in schema.fields if field.physical_name == path[0]), None)
    if found is None:
        return 0  # such as the places of rows, which a change on Spark adds
    declared = declared_type(found)
    for name in path[1:]:
        if isinstance(declared, StructType):
            declared = next(item.type for item in declared.fields if item.physical_name == name)
    return char_length_of(declared)


def char_length_of(declared: DataType) -> int:
    """The same of a declared type."""
    match declared:
        case PrimitiveType("char", length):
            return length
    return 0


def most_characters(field: StructField) -> int:
    """How long the column's own strings may be; 0 if nothing limits them."""
    match declared_type(field):
        case PrimitiveType("char" | "varchar", length):
            return length
    return 0


def holds_char(type_: DataType) -> bool:
    """Whether a CHAR stands anywhere in a declared type."""
    return any(char_length_of(each) for each in types_in(type_))


def below(type_: DataType) -> Mapping[str, Any]:
    """The metadata of a nested field that says what was declared for it."""
    text = declaration(type_)
    return {} if text is None else {DECLARED: text}


def with_declaration(field: StructField, declared: DataType) -> StructField:
    """The field with the metadata that `declared` asks for."""
    metadata = {key: value for key, value in field.metadata.items() if key != DECLARED}
    return replace(field, metadata={**metadata, **below(declared)})


@lru_cache(maxsize=256)
def _parsed(text: object) -> DataType:
    if not isinstance(text, str):
        raise InvalidSchema("the declaration is not a text")
    return parse_type_ddl(text)


def _over(type_: DataType, declared: DataType) -> DataType:
    """The type with what is declared for its strings.

    Fields of structs go by their places, as Spark takes them, and by their names where the struct
    has got others since.
    """
    match type_, declared:
        case StructType(fields), StructType(others):
            if len(fields) == len(others):
                types = [item.type for item in others]
            else:
                named = {item.name.lower(): item.type for item in others}
                types = [named.get(item.name.lower(), item.type) for item in fields]
            return StructType(
                tuple(
                    replace(item, type=_over(item.type, other))
                    for item, other in zip(fields, types, strict=True)
                )
            )
        case ArrayType(element), ArrayType(other):
            return replace(type_, element=_over(element, other))
        case MapType(key, value), MapType(other_key, other_value):
            return replace(type_, key=_over(key, other_key), value=_over(value, other_value))
        case PrimitiveType("string"), PrimitiveType("char" | "varchar"):
            return declared
        case _:
            return type_
