"""The types of Spark's older shredding layout: the same schemas, other names, no shared metadata.

Where the final layout has `value` and `typed_value`, a group of this one has up to four members:

    struct<untyped_value: binary,
           object: struct<name: GROUP, ...>, array: list<element: GROUP>, typed_value: T>

An `untyped_value` holds a complete Variant: metadata and value in one binary. Our schemas have at
most one of `object`, `array` and `typed_value` in a group. Files of other writers may have several,
of which a row sets one. Spec: spark-legacy-shredding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from variantlake.encoding.metadata import metadata_size
from variantlake.errors import MalformedFile, MalformedVariant
from variantlake.paths import Path
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH
from variantlake.shredding.layout import (
    ELEMENT,
    TYPED_VALUE,
    check_writable,
    element_type,
    group_members,
    is_binary,
    is_list,
    is_struct,
    leaf_of,
    object_fields,
    struct_storage,
)
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import ShreddedType

UNTYPED_VALUE = "untyped_value"
OBJECT = "object"
ARRAY = "array"

MEMBERS = (UNTYPED_VALUE, OBJECT, ARRAY, TYPED_VALUE)
"""The members that a group may have, apart from names that start with `_`."""


@dataclass(frozen=True, slots=True)
class LegacyGroup:
    """The members of a group, at least one."""

    untyped_value: bool
    object: tuple[tuple[str, LegacyGroup], ...] | None
    array: LegacyGroup | None
    typed_value: ShreddedType | None

    @property
    def forms(self) -> int:
        """The number of members among `object`, `array` and `typed_value`."""
        return sum(form is not None for form in (self.object, self.array, self.typed_value))

    @property
    def has_one_form(self) -> bool:
        """Whether the group, and each below it, has at most one of the typed members.

        Only then does it equal the final layout with other names.
        """
        below = [child for _, child in self.object or ()]
        below += [] if self.array is None else [self.array]
        return self.forms <= 1 and all(child.has_one_form for child in below)


def legacy_group_of(arrow: pa.DataType) -> LegacyGroup:
    """Parse the Arrow type of a legacy column; ignores members whose names start with `_`.

    Raises MalformedFile, naming the path, for any other member or type that a legacy group cannot
    have; InvalidSchema for a `typed_value` of a type that no Variant has.
    """
    return _group_of(arrow, Path())


def _group_of(arrow: pa.DataType, path: Path) -> LegacyGroup:
    if len(path.steps) > MAX_SCHEMA_DEPTH:
        raise MalformedFile(f"the Variant group nests deeper than {MAX_SCHEMA_DEPTH}")
    if not is_struct(arrow):
        raise MalformedFile(f"expected a group of the legacy layout, found {arrow}", path=str(path))
    members = group_members(struct_storage(arrow), path, MEMBERS)
    if not members:
        raise MalformedFile(f"a group has none of {', '.join(MEMBERS)}", path=str(path))
    untyped, fields, array, leaf = (members.get(name) for name in MEMBERS)
    if untyped is not None and not is_binary(untyped):
        raise MalformedFile(f"{UNTYPED_VALUE!r} is {untyped}, expected binary", path=str(path))
    return LegacyGroup(
        untyped is not None,
        None if fields is None else tuple(_fields_of(fields, path)),
        None if array is None else _group_of(_element_of(array, path), path.child(0)),
        None if leaf is None else leaf_of(leaf, path).type,
    )


def _fields_of(arrow: pa.DataType, path: Path) -> Iterator[tuple[str, LegacyGroup]]:
    if not is_struct(arrow):
        raise MalformedFile(f"{OBJECT!r} is {arrow}, expected a group", path=str(path))
    for child, kind in object_fields(arrow, path):
        yield str(child.steps[-1]), _group_of(kind, child)


def _element_of(arrow: pa.DataType, path: Path) -> pa.DataType:
    if not is_list(arrow):
        raise MalformedFile(f"{ARRAY!r} is {arrow}, expected a list", path=str(path))
    return element_type(arrow)


def legacy_type(schema: ShreddingSchema) -> pa.StructType:
    """Return the type of a legacy column shredded by `schema`, exactly as our writers make it.

    All of it is nullable. A missing field is a null group: in the specification's algorithm, a
    group with nothing set would add a null to the object.

    Raises InvalidSchema for a schema that must not be written.
    """
    check_writable(schema)
    return _type_of(schema.root)


def _type_of(node: Node) -> pa.StructType:
    untyped = pa.field(UNTYPED_VALUE, pa.binary())
    match node:
        case Untyped():
            return pa.struct([untyped])
        case Leaf(type=shredded):
            return pa.struct([untyped, pa.field(TYPED_VALUE, shredded.arrow)])
        case Object(fields=fields):
            groups = pa.struct([pa.field(name, _type_of(child)) for name, child in fields])
            return pa.struct([untyped, pa.field(OBJECT, groups)])
        case Array(element=element):
            lists = pa.list_(pa.field(ELEMENT, _type_of(element)))
            return pa.struct([untyped, pa.field(ARRAY, lists)])


def split_untyped(data: bytes) -> tuple[bytes, bytes]:
    """Split an `untyped_value` into metadata and value. Raises MalformedVariant."""
    size = metadata_size(data)
    if size >= len(data):
        raise MalformedVariant("an untyped_value ends with its metadata", offset=len(data))
    return data[:size], data[size:]
