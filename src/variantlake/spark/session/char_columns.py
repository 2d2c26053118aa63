"""Pads CHAR columns for Spark, and declares CHAR and VARCHAR columns to it.

Spark's own rule pads a CHAR where it reads a relation. Our scans are not always relations, so they
pad it themselves. In comparisons Spark pads the other side, by the column's metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, types

from variantlake.delta.schema.char_types import char_length_of, declared_type, holds_char
from variantlake.delta.schema.ddl import DECLARED
from variantlake.delta.schema.table_schema import ArrayType, DataType, MapType, StructType
from variantlake.quoting import quote_identifier, quote_string
from variantlake.spark.session.schemas import SHOWN

_PADS = (
    ("spark.sql.readSideCharPadding", "true"),
    ("spark.sql.legacy.charVarcharAsString", "false"),
)


def pads(setting: Callable[[str, str], str | None]) -> bool:
    """Whether a session pads CHAR columns on reading; `setting(name, default)` is its settings."""
    return all(str(setting(name, value)).lower() == value for name, value in _PADS)


def char_columns(schema: StructType) -> Mapping[str, DataType]:
    """Return the declared types of the table's columns with a CHAR, by their names in files."""
    declared = {field.physical_name: declared_type(field) for field in schema.fields}
    return {name: type_ for name, type_ in declared.items() if holds_char(type_)}


def with_declarations(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return the DataFrame with the metadata by which Spark knows CHAR and VARCHAR columns."""
    for field in schema.fields:
        if DECLARED in field.metadata:
            kept = {key: field.metadata[key] for key in SHOWN if key in field.metadata}
            frame = frame.withMetadata(field.name, kept)
    return frame


def without_declarations(columns: types.StructType) -> types.StructType:
    """Return the columns without the metadata by which Spark would pad them itself."""
    return types.StructType(
        [
            types.StructField(
                each.name,
                each.dataType,
                each.nullable,
                {key: value for key, value in each.metadata.items() if key != DECLARED},
            )
            for each in columns.fields
        ]
    )


def padded_sql(column: str, declared: DataType, depth: int = 0) -> str:
    """Write SQL that pads every CHAR in a column of files; `declared` is the column's type."""
    if not holds_char(declared):
        return column
    match declared:
        case StructType(fields):
            parts = (
                f"{quote_string(item.physical_name)}, "
                + padded_sql(f"{column}.{quote_identifier(item.physical_name)}", item.type, depth)
                for item in fields
            )
            return f"IF({column} IS NULL, NULL, named_struct({', '.join(parts)}))"
        case ArrayType(element):
            return _each(column, element, depth)
        case MapType(key, value):
            keys = _each(f"map_keys({column})", key, depth)
            return f"map_from_arrays({keys}, {_each(f'map_values({column})', value, depth)})"
        case _:
            length = char_length_of(declared)
            return f"rpad({column}, greatest({length}, char_length({column})))"


def _each(array: str, declared: DataType, depth: int) -> str:
    if not holds_char(declared):
        return array
    name = f"__vl_x{depth}"
    return f"transform({array}, {name} -> {padded_sql(name, declared, depth + 1)})"
