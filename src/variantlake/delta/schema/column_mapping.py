"""Column mapping: ids and physical names for columns. Spec: PROTOCOL, "Column Mapping"."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from variantlake.delta.actions.actions import natural
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    arrow_type,
)
from variantlake.delta.schema.type_parts import with_parts, without_metadata
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.shredding.layout import map_type

MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"
ID_KEY = "delta.columnMapping.id"
NAME_KEY = "delta.columnMapping.physicalName"
_NESTED_IDS_KEY = "delta.columnMapping.nested.ids"

_FIELD_ID = b"PARQUET:field_id"


def is_mapped(properties: Mapping[str, str]) -> bool:
    """Whether the table maps its columns to physical names in its files."""
    return properties.get(MODE, "none").lower() in ("name", "id")


def with_mapping(
    schema: StructType, properties: Mapping[str, str], *, keep_names: bool
) -> tuple[StructType, dict[str, str]]:
    """Give ids and physical names to columns that have none. Returns the schema and properties.

    `keep_names` uses a column's name as its physical name, because existing files have it.
    """
    mapper = _Mapper(_highest(schema, properties), keep_names=keep_names)
    mapped = mapper.struct(schema)
    return mapped, {**properties, MAX_ID: str(mapper.last)}


def without_mapping(schema: StructType) -> StructType:
    """Return the schema without ids and physical names."""
    for key in (ID_KEY, NAME_KEY, _NESTED_IDS_KEY):
        schema = without_metadata(schema, key)
    return schema


def physical_type(kind: DataType) -> pa.DataType:
    """Return the `arrow_type` with the physical names of struct fields, as in data files."""
    return arrow_type(kind, physical=True)


def with_field_ids(stored: pa.Schema, table: StructType) -> pa.Schema:
    """Add the ids of the table's columns to a data file's schema, which has physical names."""
    columns = {field.physical_name: field for field in table.fields}
    return pa.schema(
        [
            _with_id(field, columns[field.name]) if field.name in columns else field
            for field in stored
        ]
    )


def _with_id(stored: pa.Field[pa.DataType], field: StructField) -> pa.Field[pa.DataType]:
    found: Any = stored.with_type(_with_ids(stored.type, field.type))
    number = field.metadata.get(ID_KEY)
    if type(number) is int:
        found = found.with_metadata({_FIELD_ID: str(number)})
    named: pa.Field[pa.DataType] = found
    return named


def _with_ids(stored: pa.DataType, kind: DataType) -> pa.DataType:
    """Add ids to the structs in a stored type; fields inside a Variant get none."""
    if isinstance(kind, StructType) and isinstance(stored, pa.StructType):
        fields = {field.physical_name: field for field in kind.fields}
        return pa.struct(
            [_with_id(item, fields[item.name]) if item.name in fields else item for item in stored]
        )
    if isinstance(kind, ArrayType) and isinstance(stored, pa.ListType):
        element: Any = stored.value_field
        return pa.list_(element.with_type(_with_ids(element.type, kind.element)))
    if isinstance(kind, MapType) and isinstance(stored, pa.MapType):
        key: Any = stored.key_field
        value: Any = stored.item_field
        return map_type(
            key.with_type(_with_ids(key.type, kind.key)),
            value.with_type(_with_ids(value.type, kind.value)),
        )
    return stored


def have_names(columns: StructType, nodes: Sequence[SchemaNode]) -> bool:
    """Whether all these nodes, at every depth, have a column's physical name and id."""
    known = {field.physical_name: field for field in columns.fields}
    for node in nodes:
        field = known.get(node.name)
        if field is None or field.metadata.get(ID_KEY) != node.field_id:
            return False
        if not _has_names_inside(field.type, node):
            return False
    return True


def have_case(columns: StructType, nodes: Sequence[SchemaNode]) -> bool:
    """Whether no node has a missing column's name in another case."""
    found = {node.name: node for node in nodes}
    missing = [field.physical_name for field in columns.fields if field.physical_name not in found]
    if missing and not {name.lower() for name in missing}.isdisjoint(map(str.lower, found)):
        return False
    nested = ((field.type, found.get(field.physical_name)) for field in columns.fields)
    return all(node is None or _has_case_inside(type_, node) for type_, node in nested)


def has_others(columns: StructType, nodes: Sequence[SchemaNode]) -> bool:
    """Whether any of these nodes of a file's schema belongs to none of the columns.

    A node belongs to the column with its id, or with its name in any case if either has no id.
    """
    named = {field.physical_name.lower(): field for field in columns.fields}
    numbered = {field.metadata.get(ID_KEY): field for field in columns.fields}
    for node in nodes:
        field = named.get(node.name.lower())
        own = None if field is None else field.metadata.get(ID_KEY)
        if node.field_id is not None and own != node.field_id and (field is None or own):
            field = numbered.get(node.field_id)
        if field is None or _has_others_inside(field.type, node):
            return True
    return False


def _has_others_inside(type_: DataType, node: SchemaNode) -> bool:
    if isinstance(type_, StructType):
        return has_others(type_, node.children)
    return any(_has_others_inside(kind, part) for kind, part in inner_nodes(type_, node))


def inner_nodes(type_: DataType, node: SchemaNode) -> list[tuple[DataType, SchemaNode]]:
    """Pair the parts of an array or map with their nodes; empty if the file has another layout."""
    parts = [part for level in node.children for part in level.children]
    kinds: tuple[DataType, ...] = ()
    if isinstance(type_, ArrayType):
        kinds = (type_.element,)
    if isinstance(type_, MapType):
        kinds = (type_.key, type_.value)
    return list(zip(kinds, parts, strict=True)) if len(kinds) == len(parts) else []


def _has_case_inside(type_: DataType, node: SchemaNode) -> bool:
    if isinstance(type_, StructType):
        return have_case(type_, node.children)
    return all(_has_case_inside(kind, part) for kind, part in inner_nodes(type_, node))


def _has_names_inside(type_: DataType, node: SchemaNode) -> bool:
    if isinstance(type_, StructType):
        return have_names(type_, node.children)
    parts = [part for level in node.children for part in level.children]
    if isinstance(type_, ArrayType):
        return len(parts) == 1 and _has_names_inside(type_.element, parts[0])
    if isinstance(type_, MapType):
        inner = (type_.key, type_.value)
        return len(parts) == len(inner) and all(map(_has_names_inside, inner, parts))
    return True


def _highest(schema: StructType, properties: Mapping[str, str]) -> int:
    ids = [item.metadata.get(ID_KEY) for item in schema.walk()]
    return max([natural(properties.get(MAX_ID, "")) or 0, *(n for n in ids if type(n) is int)])


@dataclass(slots=True)
class _Mapper:
    last: int
    keep_names: bool

    def struct(self, schema: StructType) -> StructType:
        return StructType(tuple(self._field(item) for item in schema.fields))

    def _field(self, item: StructField) -> StructField:
        metadata = dict(item.metadata)
        if type(metadata.get(ID_KEY)) is not int:
            self.last += 1
            metadata[ID_KEY] = self.last
        if not isinstance(metadata.get(NAME_KEY), str):
            metadata[NAME_KEY] = item.name if self.keep_names else f"col-{uuid.uuid4()}"
        return replace(item, type=self._type(item.type), metadata=metadata)

    def _type(self, kind: DataType) -> DataType:
        return self.struct(kind) if isinstance(kind, StructType) else with_parts(kind, self._type)
