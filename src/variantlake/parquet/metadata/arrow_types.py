"""Convert nodes of a Parquet schema to Arrow types, as pyarrow does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.logical import Logical
from variantlake.parquet.metadata.schema_tree import SchemaNode, list_item
from variantlake.shredding.layout import map_type

MAX_TYPE_DEPTH = 100
"""Our limit on nested lists, maps and structs in an ordinary column."""

_UNITS: dict[str, Any] = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
_PHYSICAL: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "INT96": pa.timestamp("us"),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
}


def arrow_type_of(node: SchemaNode) -> pa.DataType:
    """Return the type of the column `node`; a repeated node without a LIST above it is a list.

    Raises MalformedFile for a decimal with more digits than Arrow holds and for nesting beyond our
    limit.
    """
    return _type_of(node, 0)


def _type_of(node: SchemaNode, depth: int) -> pa.DataType:
    value = _value_type(node, depth)
    if node.repetition == "repeated":
        return pa.list_(pa.field(node.name, value, nullable=False))
    return value


def _value_type(node: SchemaNode, depth: int) -> pa.DataType:
    if depth > MAX_TYPE_DEPTH:
        raise MalformedFile(f"column {node.name!r} nests deeper than our limit of {MAX_TYPE_DEPTH}")
    if node.physical is not None:
        return _leaf_type(node)
    if node.kind == "LIST" and len(node.children) == 1:
        item, repeated = list_item(node), node.children[0]
        if item is not None:
            return pa.list_(_field(item, depth))
        return pa.list_(pa.field(repeated.name, _value_type(repeated, depth + 1), nullable=False))
    if node.kind in ("MAP", "MAP_KEY_VALUE") and len(node.children) == 1:
        entry = node.children[0]
        if entry.repetition == "repeated" and len(entry.children) == 2:
            key, value = (_field(child, depth) for child in entry.children)
            return map_type(key.with_nullable(False), value)
    return pa.struct([_field(child, depth) for child in node.children])


def _field(node: SchemaNode, depth: int) -> pa.Field[pa.DataType]:
    return pa.field(node.name, _type_of(node, depth + 1), nullable=node.repetition == "optional")


def _leaf_type(node: SchemaNode) -> pa.DataType:
    annotated = _annotated_type(node, node.logical) if node.logical is not None else None
    if annotated is not None:
        return annotated
    if node.physical == "FIXED_LEN_BYTE_ARRAY":
        return pa.binary(node.type_length)
    return _PHYSICAL[node.physical or ""]


def _annotated_type(node: SchemaNode, logical: Logical) -> pa.DataType | None:
    """Return the Arrow type of a logical type; None if it changes nothing."""
    match logical.kind:
        case "STRING" | "ENUM" | "JSON":
            return pa.string()
        case "DECIMAL" if logical.precision <= 38:
            return pa.decimal128(logical.precision, logical.scale)
        case "DECIMAL" if logical.precision <= 76:
            return pa.decimal256(logical.precision, logical.scale)
        case "DECIMAL":
            raise MalformedFile(f"column {node.name!r} has {logical.precision} digits")
        case "DATE":
            return pa.date32()
        case "TIME":
            unit = _UNITS[logical.unit]
            return pa.time32(unit) if unit == "ms" else pa.time64(unit)
        case "TIMESTAMP":
            return pa.timestamp(_UNITS[logical.unit], "UTC" if logical.utc else None)
        case "INTEGER":
            kind = "i" if logical.signed else "u"
            return pa.from_numpy_dtype(np.dtype(f"{kind}{logical.bits // 8}"))
        case "UUID" if node.type_length == 16:
            return pa.uuid()
        case "FLOAT16" if node.type_length == 2:
            return pa.float16()
        case "UNKNOWN":
            return pa.null()
    return None
