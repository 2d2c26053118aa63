"""A table's schema for Spark, by the names in queries and by those in files.

With column mapping the two differ, at every depth. Spec: PROTOCOL, "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from variantlake.delta.schema.ddl import DECLARED
from variantlake.quoting import quote_identifier, quote_string

_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"
_PARQUET_ID = "parquet.field.id"
SHOWN = ("comment", DECLARED)
"""The keys of a column's metadata that Spark gets to see."""


def spark_schema(columns: StructType) -> StructType:
    """Return the columns without Delta's own metadata, all nullable, since files may lack them.

    They keep comments, and the metadata by which Spark knows CHAR and VARCHAR.
    """
    return StructType(
        [
            StructField(item.name, _commented(item.dataType), metadata=_shown_metadata(item))
            for item in columns.fields
        ]
    )


def stored_schema(columns: StructType, *, ids: bool) -> StructType:
    """Return the same columns by the names in files; with `ids`, Spark finds them by their ids.

    Fields of structs keep their comments, which a query's columns get from here; columns have none.
    """
    fields = [_stored_field(item, ids=ids) for item in columns.fields]
    return StructType(
        [StructField(f.name, f.dataType, metadata=_without_comment(f)) for f in fields]
    )


def without_ids(columns: StructType) -> StructType:
    """Return the same columns without ids, so that Spark finds them by name."""
    return StructType(
        [StructField(f.name, _commented(f.dataType), f.nullable) for f in columns.fields]
    )


def type_ddl(type_: DataType, *, comments: bool = False) -> str:
    """Return the type in SQL; fields may have any names."""

    def ddl(part: DataType) -> str:
        return type_ddl(part, comments=comments)

    match type_:
        case StructType():
            fields = (
                f"{quote_identifier(item.name)}: {ddl(item.dataType)}"
                + ("" if item.nullable else " NOT NULL")
                + (
                    f" COMMENT {quote_string(text)}"
                    if comments and (text := _comment(item))
                    else ""
                )
                for item in type_.fields
            )
            return f"STRUCT<{', '.join(fields)}>"
        case ArrayType():
            return f"ARRAY<{ddl(type_.elementType)}>"
        case MapType():
            return f"MAP<{ddl(type_.keyType)}, {ddl(type_.valueType)}>"
        case _:
            return type_.simpleString()


def nullable_type(type_: DataType) -> DataType:
    """Return the same type with all fields nullable."""
    return _mapped(type_, lambda item: StructField(item.name, nullable_type(item.dataType)))


def same_columns(one: DataFrame, other: DataFrame) -> bool:
    """Whether the columns have the same names and types."""
    ours, theirs = one.schema.fields, other.schema.fields
    return [(item.name, _plain(item.dataType)) for item in ours] == [
        (item.name, _plain(item.dataType)) for item in theirs
    ]


def _shown_metadata(item: StructField) -> dict[str, Any]:
    metadata: dict[str, Any] = item.metadata or {}
    return {key: metadata[key] for key in SHOWN if key in metadata}


def _comment(item: StructField) -> str:
    metadata: dict[str, Any] = item.metadata or {}
    return str(metadata.get("comment", ""))


def _without_comment(item: StructField) -> dict[str, Any]:
    metadata: dict[str, Any] = item.metadata or {}
    return {key: value for key, value in metadata.items() if key != "comment"}


def _commented(type_: DataType) -> DataType:
    """Return the type with only the comments of its fields' metadata."""

    def field(item: StructField) -> StructField:
        text = _comment(item)
        shown = {"comment": text} if text else {}
        return StructField(item.name, _commented(item.dataType), item.nullable, shown)

    return _mapped(type_, field)


def _plain(type_: DataType) -> DataType:
    return _mapped(type_, lambda f: StructField(f.name, _plain(f.dataType), f.nullable))


def _stored_field(item: StructField, *, ids: bool) -> StructField:
    metadata: dict[str, Any] = item.metadata or {}
    name = metadata.get(_PHYSICAL_NAME, item.name)
    kept = {_PARQUET_ID: metadata[_ID]} if ids and _ID in metadata else {}
    if text := _comment(item):
        kept["comment"] = text
    type_ = _mapped(item.dataType, lambda field: _stored_field(field, ids=ids))
    return StructField(name, type_, item.nullable, kept)


def _mapped(type_: DataType, change: Callable[[StructField], StructField]) -> DataType:
    """Return the type with every field of its outermost structs changed."""
    match type_:
        case StructType():
            return StructType([change(item) for item in type_.fields])
        case ArrayType():
            return ArrayType(_mapped(type_.elementType, change), type_.containsNull)
        case MapType():
            key, value = (_mapped(part, change) for part in (type_.keyType, type_.valueType))
            return MapType(key, value, type_.valueContainsNull)
        case _:
            return type_
