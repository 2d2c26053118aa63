"""CHAR(n) and VARCHAR(n) columns, whose declared type is kept in the column's metadata.

In Delta's schema their type is `string`. As in Spark, the metadata of a top-level column holds the
whole declared type, nested types included, as one text.
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
    """Return the column's type with `char` and `varchar` as declared, by physical names.

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
    """Return the length to which Spark pads the column's strings; 0 if it is not CHAR."""
    return char_length_of(declared_type(field))


def char_length_at(schema: StructType, path: Sequence[str]) -> int:
    """Return the `char_length` of a column or struct field, by physical names; 0 if unknown."""
    found = next((field for field in schema.fields if field.physical_name == path[0]), None)
    if found is None:
        return 0  # such as the row positions that an update or delete through Spark adds
    declared = declared_type(found)
    for name in path[1:]:
        if isinstance(declared, StructType):
            declared = next(item.type for item in declared.fields if item.physical_name == name)
    return char_length_of(declared)


def char_length_of(declared: DataType) -> int:
    """Return the `char_length` of a declared type."""
    match declared:
        case PrimitiveType("char", length):
            return length
    return 0


def most_characters(field: StructField) -> int:
    """Return the most characters that the column's strings may have; 0 for no limit."""
    match declared_type(field):
        case PrimitiveType("char" | "varchar", length):
            return length
    return 0


def holds_char(type_: DataType) -> bool:
    """Whether a declared type contains a CHAR anywhere."""
    return any(char_length_of(each) for each in types_in(type_))


def below(type_: DataType) -> Mapping[str, Any]:
    """Return the metadata entry that records this declared type; empty without CHAR or VARCHAR."""
    text = declaration(type_)
    return {} if text is None else {DECLARED: text}


def with_declaration(field: StructField, declared: DataType) -> StructField:
    """Return the field with `declared` recorded in its metadata."""
    metadata = {key: value for key, value in field.metadata.items() if key != DECLARED}
    return replace(field, metadata={**metadata, **below(declared)})


@lru_cache(maxsize=256)
def _parsed(text: object) -> DataType:
    if not isinstance(text, str):
        raise InvalidSchema("the declaration is not a text")
    return parse_type_ddl(text)


def _over(type_: DataType, declared: DataType) -> DataType:
    """Return the type with the declared types of its strings.

    Matches struct fields by position, as Spark does, or by name if their number has changed since
    the declaration.
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
