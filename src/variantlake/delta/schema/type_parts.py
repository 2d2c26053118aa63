"""Change parts of types, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)


def nullable_struct(struct: StructType) -> StructType:
    """Make everything in a struct nullable, for columns that are added to a table with rows."""
    fields = (replace(each, type=_nullable(each.type), nullable=True) for each in struct.fields)
    return StructType(tuple(fields))


def _nullable(type_: DataType) -> DataType:
    match with_parts(type_, _nullable):
        case StructType() as struct:
            return nullable_struct(struct)
        case ArrayType() as array:
            return replace(array, contains_null=True)
        case MapType() as map_:
            return replace(map_, value_contains_null=True)
        case other:
            return other


def required_in(field: StructField) -> str:
    """Return the first NOT NULL field of a column: itself, or one in its structs; "" for none.

    A row without the column would violate it.
    """
    if not field.nullable:
        return field.name
    inside = field.type.fields if isinstance(field.type, StructType) else ()
    found = (required_in(item) for item in inside)
    return next((f"{field.name}.{name}" for name in found if name), "")


def with_parts(type_: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """Apply `change` to the parts of a type, one level down. Types without parts stay."""
    match type_:
        case StructType(fields):
            return StructType(tuple(replace(item, type=change(item.type)) for item in fields))
        case ArrayType(element):
            return replace(type_, element=change(element))
        case MapType(key, value):
            return replace(type_, key=change(key), value=change(value))
    return type_


def without_comments(type_: DataType) -> DataType:
    """Return the type without comments of fields, which do not affect files."""
    if isinstance(type_, StructType):
        return without_metadata(type_, "comment")
    return with_parts(type_, without_comments)


def without_metadata(schema: StructType, key: str) -> StructType:
    """Remove a key from the metadata of all fields of a struct, at any depth."""

    def bare(type_: DataType) -> DataType:
        if isinstance(type_, StructType):
            return without_metadata(type_, key)
        return with_parts(type_, bare)

    fields = (
        replace(
            item,
            type=bare(item.type),
            metadata={k: v for k, v in item.metadata.items() if k != key},
        )
        for item in schema.fields
    )
    return StructType(tuple(fields))
