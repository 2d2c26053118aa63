"""Columns that our files never hold: VOID columns (always NULL) and types that we only read.

Spec: PROTOCOL, "Void Type".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from variantlake.delta.schema.table_schema import (
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
    read_only_type,
    types_in,
)
from variantlake.errors import InvalidSchema, UnsupportedFeature
from variantlake.shredding.layout import is_struct


def check_storable(schema: StructType, partition_columns: Collection[str] = ()) -> None:
    """Raise an error that names the column if no file can be written for the table.

    InvalidSchema for VOID within an array or a map, a struct with VOID fields only, and a table
    whose columns besides partition columns are all VOID; UnsupportedFeature for a type that we only
    read (geometries, intervals).
    """
    for item in schema.fields:
        if any(read_only_type(type_) for type_ in types_in(item.type)):
            raise UnsupportedFeature(
                f"no rows can be written into this table: column {item.name!r} is {item.type}",
                hint="cast the values to a type of Delta's; Spark 4.2 or newer writes these",
            )
    stored = [item for item in schema.fields if item.name not in partition_columns]
    for item in stored:
        for type_ in types_in(item.type):
            in_list = isinstance(type_, ArrayType | MapType) and VOID in types_in(type_)
            if in_list or (isinstance(type_, StructType) and _is_void(type_)):
                raise _not_storable(f"column {item.name!r} is {item.type}")
    if stored and all(_is_void(item.type) for item in stored):
        raise _not_storable("all of its columns are VOID")


def _is_void(type_: DataType) -> bool:
    """Whether files hold nothing of a type."""
    if isinstance(type_, StructType):
        return bool(type_.fields) and all(_is_void(item.type) for item in type_.fields)
    return type_ == VOID


def _not_storable(what: str) -> InvalidSchema:
    return InvalidSchema(
        f"no rows can be written into this table: {what}",
        hint="files cannot hold VOID columns; give the column another type, or drop it",
    )


def without_void(schema: pa.Schema) -> pa.Schema:
    """The schema without VOID columns and fields; the same object if there are none."""
    if not any(_holds_void(item.type) for item in schema):
        return schema
    fields = (_without_void(item) for item in schema)
    return pa.schema([item for item in fields if item is not None], metadata=schema.metadata)  # type: ignore[arg-type]  # stubs: its own type, refused


def stored_rows(batch: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of `stored`, their schema without VOID."""
    arrays = [_stored(batch.column(item.name), item.type) for item in stored]
    return pa.RecordBatch.from_arrays(arrays, schema=stored)


def _holds_void(kind: Any) -> bool:
    if is_struct(kind):
        return any(_holds_void(item.type) for item in kind)
    return bool(pa.types.is_null(kind))


def _without_void(item: Any) -> Any:
    """A field without VOID in it; None if nothing is left."""
    if pa.types.is_null(item.type):
        return None
    if not is_struct(item.type) or not _holds_void(item.type):
        return item
    fields = [field for field in map(_without_void, item.type) if field is not None]
    return item.with_type(pa.struct(fields))


def _stored(array: Any, kind: Any) -> Any:
    if array.type == kind or not is_struct(kind):
        return array
    names = [item.name for item in array.type]
    parts = dict(zip(names, (array.field(at) for at in range(len(names))), strict=True))
    children = [_stored(parts[item.name], item.type) for item in kind]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
