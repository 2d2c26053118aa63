"""Whether a file calls its columns as the table's schema says. Spec: PROTOCOL, "Column Mapping"."""

from __future__ import annotations

from collections.abc import Sequence

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.column_mapping import ID_KEY, MODE
from variantlake.delta.schema.table_schema import ArrayType, DataType, MapType, StructType
from variantlake.parquet.metadata.footer import Footer
from variantlake.parquet.metadata.schema_tree import SchemaNode


def has_stored_names(snapshot: Snapshot, footer: Footer) -> bool:
    """Whether the file's columns, and fields of them, have the physical names of the schema.

    Column mapping by id finds columns by their field ids: a file may then call them anything.
    """
    if snapshot.properties.get(MODE, "").lower() != "id":
        return True
    return _have_names(snapshot.schema, footer.schema.children)


def _have_names(columns: StructType, nodes: Sequence[SchemaNode]) -> bool:
    known = {field.physical_name: field for field in columns.fields}
    for node in nodes:
        field = known.get(node.name)
        if field is None or field.metadata.get(ID_KEY) != node.field_id:
            return False
        if not _has_names_inside(field.type, node):
            return False
    return True


def _has_names_inside(type_: DataType, node: SchemaNode) -> bool:
    if isinstance(type_, StructType):
        return _have_names(type_, node.children)
    parts = [part for level in node.children for part in level.children]
    if isinstance(type_, ArrayType):
        return len(parts) == 1 and _has_names_inside(type_.element, parts[0])
    if isinstance(type_, MapType):
        inner = (type_.key, type_.value)
        return len(parts) == len(inner) and all(map(_has_names_inside, inner, parts))
    return True
