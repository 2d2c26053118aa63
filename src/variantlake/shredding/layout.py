"""Convert a shredding schema to the Arrow type of a shredded Variant column, and back.

    struct<metadata: binary not null, value: binary, typed_value: T>

where T is a leaf type, `struct<name: struct<value, typed_value> not null, ...>` for an object, or
`list<element: struct<value, typed_value> not null>` for an array. Spec: VariantShredding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from variantlake.errors import InvalidSchema, MalformedFile
from variantlake.paths import Path
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH
from variantlake.shredding.folding import folded_twins
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import ShreddedType

METADATA = "metadata"
VALUE = "value"
TYPED_VALUE = "typed_value"
ELEMENT = "element"

VARIANT_TYPE = pa.struct(
    [
        pa.field(METADATA, pa.binary(), nullable=False),
        pa.field(VALUE, pa.binary(), nullable=False),
    ]
)
"""An unshredded Variant in Arrow; SQL NULL is a null struct."""

VARIANT_EXTENSION = "arrow.parquet.variant"
"""Arrow's extension type. Spec: Arrow, "Canonical Extension Types", "Parquet Variant"."""


def arrow_type(schema: ShreddingSchema) -> pa.StructType:
    """Return the type of a column shredded by `schema`, exactly as our writers make it.

    `value` is nullable in a group with a `typed_value`, and in every field of an object (null means
    missing). It is not nullable at an unshredded root, and in array elements without `typed_value`
    (an element is never missing).

    Raises InvalidSchema for a schema that `check_writable` refuses.
    """
    check_writable(schema)
    children = _group_fields(schema.root, may_be_missing=False)
    return pa.struct([pa.field(METADATA, pa.binary(), nullable=False), *children])


def check_writable(schema: ShreddingSchema) -> None:
    """Refuse a schema that must not be written.

    Raises InvalidSchema, with the path, for an object without fields (Parquet has no empty groups),
    for two fields of one object that differ only by case (readers confuse them), for a name that
    is not Unicode text; and without a path for a schema that nests deeper than our limit.
    """
    _check_node(schema.root, Path())


def _check_node(node: Node, path: Path) -> None:
    if len(path.steps) > MAX_SCHEMA_DEPTH:
        raise InvalidSchema(f"the schema nests deeper than {MAX_SCHEMA_DEPTH}")
    if isinstance(node, Array):
        _check_node(node.element, path.child(0))
    elif isinstance(node, Object):
        if not node.fields:
            raise InvalidSchema("an object without fields cannot be shredded", path=str(path))
        names = [name for name, _ in node.fields]
        for twins in folded_twins(names).values():
            raise InvalidSchema(
                f"fields {', '.join(map(repr, twins))} differ only by case",
                path=str(path),
                hint="make a column of one of them; the others stay in the residual",
            )
        for name, child in node.fields:
            if not _is_text(name):
                raise InvalidSchema(f"field name {name!r} is not Unicode text", path=str(path))
            _check_node(child, path.child(name))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _group_fields(node: Node, *, may_be_missing: bool) -> list[pa.Field[pa.DataType]]:
    """Return the fields `value` and `typed_value` of the group of `node`."""
    if isinstance(node, Untyped):
        return [pa.field(VALUE, pa.binary(), nullable=may_be_missing)]
    return [pa.field(VALUE, pa.binary()), pa.field(TYPED_VALUE, typed_value_type(node))]


def typed_value_type(node: Leaf | Object | Array) -> pa.DataType:
    """Return the Arrow type of the `typed_value` of one node."""
    match node:
        case Leaf(type=shredded):
            return shredded.arrow
        case Object(fields=fields):
            return pa.struct(
                [
                    pa.field(name, pa.struct(_group_fields(child, may_be_missing=True)), False)
                    for name, child in fields
                ]
            )
        case Array(element=element):
            group = pa.struct(_group_fields(element, may_be_missing=False))
            return pa.list_(pa.field(ELEMENT, group, nullable=False))


def schema_of(arrow: pa.DataType) -> ShreddingSchema:
    """Derive the shredding schema of an Arrow struct from the names of its fields, in any order.

    Fields whose names start with `_` are ignored, but not inside a shredded object. A group may
    lack `value` or `typed_value`, but not both.

    Raises MalformedFile, naming the path, for a group that is not a shredded Variant, InvalidSchema
    for a `typed_value` of a type that the specification does not have.
    """
    if not is_struct(arrow):
        raise MalformedFile(f"a Variant column is a group, this one is {arrow}")
    storage = struct_storage(arrow)
    members = group_members(storage, Path(), (METADATA, VALUE, TYPED_VALUE))
    if METADATA not in members:
        raise MalformedFile(f"the Variant group has no field {METADATA!r}")
    if not is_binary(members[METADATA]):
        raise MalformedFile(f"{METADATA!r} is {members[METADATA]}, expected binary")
    return ShreddingSchema(_node_with(members, Path()))


def _node_of(group: pa.StructType, path: Path) -> Node:
    if len(path.steps) > MAX_SCHEMA_DEPTH:
        raise MalformedFile(f"the Variant group nests deeper than {MAX_SCHEMA_DEPTH}")
    return _node_with(group_members(group, path, (VALUE, TYPED_VALUE)), path)


def _node_with(members: Mapping[str, pa.DataType], path: Path) -> Node:
    if VALUE not in members and TYPED_VALUE not in members:
        raise MalformedFile(f"a group has neither {VALUE!r} nor {TYPED_VALUE!r}", path=str(path))
    if VALUE in members and not is_binary(members[VALUE]):
        raise MalformedFile(f"{VALUE!r} is {members[VALUE]}, expected binary", path=str(path))
    if TYPED_VALUE not in members:
        return Untyped()
    return _typed_node(members[TYPED_VALUE], path)


def _typed_node(arrow: pa.DataType, path: Path) -> Node:
    if is_struct(arrow):
        fields = object_fields(arrow, path)
        return Object(tuple((str(at.steps[-1]), _field_node(kind, at)) for at, kind in fields))
    if is_list(arrow):
        element = element_type(arrow)
        if not is_struct(element):
            raise MalformedFile(
                f"the elements of a shredded array are {element}, expected a group",
                path=str(path),
            )
        return Array(_node_of(struct_storage(element), path.child(0)))
    return leaf_of(arrow, path)


def _field_node(arrow: pa.DataType, path: Path) -> Node:
    if not is_struct(arrow):
        raise MalformedFile(f"a shredded field is {arrow}, expected a group", path=str(path))
    return _node_of(struct_storage(arrow), path)


def group_members(group: pa.StructType, path: Path, known: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the `known` fields of a Variant group.

    Raises MalformedFile for any other name that does not start with `_`, and for a repeated one.
    Spec: delta-variant-type, "Writer Requirements".
    """
    found: dict[str, pa.DataType] = {}
    for field in group:
        if field.name in found:
            raise MalformedFile(f"{field.name!r} appears twice in a group", path=str(path))
        if field.name in known:
            found[field.name] = field.type
        elif not field.name.startswith("_"):
            raise MalformedFile(
                f"unknown field {field.name!r} in a Variant group",
                path=str(path),
                hint=f"only {', '.join(known)} and names that start with _ are allowed here",
            )
    return found


def object_fields(arrow: pa.DataType, path: Path) -> Iterator[tuple[Path, pa.DataType]]:
    """Yield the fields of a shredded object with their paths. Raises MalformedFile."""
    seen: set[str] = set()
    for field in struct_storage(arrow):
        child = path.child(field.name)
        if field.name in seen:
            raise MalformedFile("a shredded field appears twice", path=str(child))
        seen.add(field.name)
        yield child, field.type


def leaf_of(arrow: pa.DataType, path: Path) -> Leaf:
    """Return the leaf of a primitive `typed_value` of this type. Raises InvalidSchema."""
    try:
        return Leaf(ShreddedType.from_arrow(plain_type(arrow)))
    except InvalidSchema as error:
        error.path = str(path)
        error.hint = "the shredding specification lists the types that typed_value may have"
        raise


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the value type of a dictionary type, any other type as it is."""
    return arrow.value_type if isinstance(arrow, pa.DictionaryType) else arrow


def is_binary(arrow: pa.DataType) -> bool:
    """Whether the type is bytes of any length, dictionary-encoded or not."""
    plain = plain_type(arrow)
    return (
        pa.types.is_binary(plain)
        or pa.types.is_large_binary(plain)
        or pa.types.is_binary_view(plain)
    )


def is_text(arrow: pa.DataType) -> bool:
    """Whether the type is strings or bytes of any length, with offsets."""
    return (
        pa.types.is_string(arrow)
        or pa.types.is_large_string(arrow)
        or pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
    )


def is_list(arrow: pa.DataType) -> bool:
    """Whether the type can be a Parquet LIST."""
    return (
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
        or pa.types.is_list_view(arrow)
        or pa.types.is_large_list_view(arrow)
    )


def element_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type of a list type's elements, which pyarrow's stubs have only for few."""
    element: pa.DataType = cast("Any", arrow).value_type
    return element


def map_type(key: pa.Field[Any], item: pa.Field[Any]) -> pa.DataType:
    """Make a map type of two fields; pyarrow's stubs accept only types."""
    made: pa.DataType = cast("Any", pa).map_(key, item)
    return made


def is_struct(arrow: pa.DataType) -> bool:
    """Whether the type, or the storage of an extension type, is a struct."""
    return pa.types.is_struct(_storage(arrow))


def struct_storage(arrow: pa.DataType) -> pa.StructType:
    """Return a struct type, or that below an extension type. Raises MalformedFile for others."""
    storage = _storage(arrow)
    if not isinstance(storage, pa.StructType):
        raise MalformedFile(f"expected a group, found {arrow}")
    return storage


def _storage(arrow: pa.DataType) -> pa.DataType:
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow


def is_variant_type(arrow: pa.DataType) -> bool:
    """Whether a type is struct<metadata: binary, value: binary>, in any order."""
    if not is_struct(arrow):
        return False
    fields = {field.name: field.type for field in struct_storage(arrow)}
    return fields.keys() == {METADATA, VALUE} and all(map(is_binary, fields.values()))
