"""Convert columns of files to the table's types; old files may have other names and widths.

Fields of structs are found, at every depth, by physical names, or by ids if the table maps by ids.
Fields that a file lacks are NULL; fields that the table no longer has are left out.
Spec: PROTOCOL, "Column Mapping", "Type Widening".
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from variantlake.delta.schema.column_mapping import ID_KEY, physical_type
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.schema_tree import SchemaNode, list_item
from variantlake.shredding.arrays import (
    AnyArray,
    list_array,
    list_of,
    map_array,
    members,
    offsets_of,
    struct_of,
)
from variantlake.shredding.layout import VARIANT_TYPE, is_list, is_struct


def conformed(array: AnyArray, kind: DataType, node: SchemaNode, *, by_id: bool) -> AnyArray:
    """Convert the column `node` of a file to `kind`; its Variants have already been rebuilt.

    `by_id`: fields are found in the file by their ids.

    Raises MalformedFile for a column that has an incompatible type in the file.
    """
    wanted = arrow_type(kind)
    if isinstance(kind, VariantType):
        if array.type != VARIANT_TYPE:
            raise _another(node, array, kind)
        return array
    if array.type == wanted == physical_type(kind) and not by_id:
        return array
    if isinstance(kind, StructType):
        return _struct(array, kind, node, by_id=by_id)
    if isinstance(kind, ArrayType):
        return _list(array, kind, node, by_id=by_id)
    if isinstance(kind, MapType):
        return _map(array, kind, node, by_id=by_id)
    if array.type == wanted:
        return array
    if pa.types.is_duration(wanted) and array.type == pa.int64():
        return array.view(wanted)
    if _family(array.type) not in (_family(wanted), ""):
        raise _another(node, array, kind)  # Arrow might cast it: texts to numbers, say
    try:
        found: AnyArray = array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise MalformedFile(
            f"column {node.name!r} is {kind} in the table, and the file holds {array.type} that "
            f"it cannot hold: {error}"
        ) from error
    return found


def find_field(node: SchemaNode, field: StructField, *, by_id: bool) -> SchemaNode | None:
    """Find a field of the table in a file: by its id if `by_id`, else by its name.

    A field without an id is not in the table's schema (`_change_type` of the change feed), or the
    table maps no names: it is found by its name, if need be ignoring case.
    """
    wanted = field.metadata.get(ID_KEY)
    if by_id and wanted is not None:
        return next((each for each in node.children if each.field_id == wanted), None)
    found = node.named(field.physical_name)
    if found is None and wanted is None:
        lower = field.physical_name.lower()
        found = next((each for each in node.children if each.name.lower() == lower), None)
    return found


def _struct(array: AnyArray, kind: StructType, node: SchemaNode, *, by_id: bool) -> AnyArray:
    if not is_struct(array.type):
        raise _another(node, array, kind)
    group = struct_of(array)
    given = dict(zip((item.name for item in members(group.type)), group.flatten(), strict=True))
    children, fields = [], []
    for field in kind.fields:
        child = find_field(node, field, by_id=by_id)
        found = None if child is None else given.get(child.name)
        if child is None or found is None:
            missing: Any = arrow_type(field.type)
            children.append(pa.nulls(len(group), missing))
        else:
            children.append(conformed(found, field.type, child, by_id=by_id))
        fields.append(pa.field(field.name, children[-1].type, field.nullable))
    return pa.StructArray.from_arrays(children, fields=fields, mask=group.is_null())


def _list(array: AnyArray, kind: ArrayType, node: SchemaNode, *, by_id: bool) -> AnyArray:
    if not is_list(array.type):
        raise _another(node, array, kind)
    lists = list_of(array)
    offsets, elements = offsets_of(lists)
    elements = conformed(elements, kind.element, _inner(node, 0), by_id=by_id)
    return list_array(arrow_type(kind), offsets, elements, lists.is_null())


def _map(array: AnyArray, kind: MapType, node: SchemaNode, *, by_id: bool) -> AnyArray:
    if not isinstance(array, pa.MapArray):
        raise _another(node, array, kind)
    offsets, entries = offsets_of(array)
    keys, items = struct_of(entries).flatten()
    keys = conformed(keys, kind.key, _inner(node, 0), by_id=by_id)
    items = conformed(items, kind.value, _inner(node, 1), by_id=by_id)
    return map_array(arrow_type(kind), offsets, [keys, items], array.is_null())


def _inner(node: SchemaNode, place: int) -> SchemaNode:
    """The element of a LIST, or the key or value of a MAP. Spec: Parquet, "Logical Types"."""
    if node.repetition == "repeated" and (node.logical is None or not node.children):
        return node  # a repeated field outside of a LIST is its own element
    (repeated,) = node.children
    if node.kind == "LIST":
        return list_item(node) or repeated
    return repeated.children[place]


def _family(arrow: Any) -> str:
    """The family of a type; a column of a file is never read as a type of another family."""
    types = pa.types
    if types.is_dictionary(arrow):
        return _family(arrow.value_type)
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow):
        return "numbers"
    if types.is_null(arrow):
        return ""
    return (
        "times" if types.is_temporal(arrow) else str(arrow) if types.is_boolean(arrow) else "bytes"
    )


def _another(node: SchemaNode, array: Any, kind: DataType) -> MalformedFile:
    return MalformedFile(
        f"column {node.name!r} is {kind} in the table and {array.type} in the file"
    )
