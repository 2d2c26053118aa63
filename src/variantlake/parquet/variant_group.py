"""Variant columns in the schema of a Parquet file: their shredding, and where each part is stored.

The parts of a Variant group are found by name, the columns of parts by position in the schema: the
dotted paths that footers also hold cannot tell the key `a.b` from the key `b` within `a`.
Spec: VariantShredding; for siblings, delta-variant-type, "Writer Requirements".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from variantlake.errors import MalformedFile
from variantlake.parquet.annotate import SPECIFICATION_VERSION, ColumnPath
from variantlake.parquet.footer import Footer
from variantlake.parquet.logical import Logical
from variantlake.parquet.schema_tree import SchemaNode
from variantlake.paths import Path
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import MAX_PRECISION, Kind, ShreddedType


@dataclass(frozen=True, slots=True)
class GroupNode:
    """One node of a shredding schema with its columns.

    `value` and `typed_value` are indexes of leaves (None: absent, or for `typed_value` a group).
    `fields` are an object's, `element` an array's. `group` is the node of the schema tree that
    holds both, `parquet_type` the exact type of a primitive `typed_value` (else empty).
    """

    node: Node
    group: SchemaNode
    value: int | None
    typed_value: int | None
    fields: tuple[tuple[str, GroupNode], ...] = ()
    element: GroupNode | None = None
    parquet_type: str = ""

    @property
    def fingerprint(self) -> str:
        """The exact Parquet types of this node and all below it, as one text.

        Files whose fingerprints of a path are equal can be read with one physical schema
        (EXACTNESS, rule 4).
        """
        if self.element is not None:
            return f"[{self.element.fingerprint}]"
        if isinstance(self.node, Object):
            return "{" + ",".join(f"{n!r}:{c.fingerprint}" for n, c in self.fields) + "}"
        return self.parquet_type

    def get(self, name: str) -> GroupNode | None:
        """The object field of exactly this name."""
        return next((child for key, child in self.fields if key == name), None)


@dataclass(frozen=True, slots=True)
class VariantGroup:
    """One Variant column of a file.

    `column` holds the names of schema nodes down to the group. `repeated` is true inside arrays and
    maps, where a row may hold any number of values. `required` means that neither the group nor a
    group above it is optional, so that there are no SQL NULLs. `metadata` is a leaf's index.
    `annotated` tells whether the file itself says VARIANT.
    """

    column: ColumnPath
    schema: ShreddingSchema
    root: GroupNode
    metadata: int
    required: bool
    repeated: bool
    annotated: bool

    def find(self, path: Path) -> GroupNode | None:
        """The node of exactly this path; None where the file has no columns of its own for it."""
        found: GroupNode | None = self.root
        for step in path.steps:
            if found is None or isinstance(step, int):
                return None
            found = found.get(step)
        return found

    def layout_key(self, path: Path) -> str:
        """The fingerprint of the node at `path`, empty where there is none or it has no type."""
        found = self.find(path)
        return found.fingerprint if found is not None else ""

    def nodes(self) -> Iterator[tuple[Path, GroupNode]]:
        """Every node outside of arrays with its path, in the order of `schema.nodes()`."""
        yield from _walk(Path(), self.root)


def _walk(path: Path, node: GroupNode) -> Iterator[tuple[Path, GroupNode]]:
    yield path, node
    for name, child in node.fields:
        yield from _walk(path.child(name), child)


def variant_groups(
    footer: Footer, columns: Collection[ColumnPath] = ()
) -> tuple[VariantGroup, ...]:
    """Every Variant column of a file, at any depth, in schema order.

    Groups that the file marks as VARIANT, and those that `columns` names: Spark 4.0 marks none, and
    readers of its tables know the columns from the table's schema. A column that the file does not
    have is not an error.

    Raises MalformedFile, naming the column, for a group that is not a Variant by specification.
    """
    return tuple(_find_groups(footer.schema, columns))


def _find_groups(root: SchemaNode, columns: Collection[ColumnPath]) -> Iterator[VariantGroup]:
    stack: list[tuple[SchemaNode, ColumnPath, bool, bool]] = [
        (child, (child.name,), True, False) for child in reversed(root.children)
    ]
    while stack:
        node, column, required, repeated = stack.pop()
        required = required and node.repetition != "optional"
        repeated = repeated or node.repetition == "repeated"
        if column in columns or (node.logical is not None and node.logical.kind == "VARIANT"):
            yield parse_group(node, column, required=required and not repeated, repeated=repeated)
        else:
            stack.extend(
                (child, (*column, child.name), required, repeated)
                for child in reversed(node.children)
            )


def parse_group(
    group: SchemaNode,
    column: ColumnPath | None = None,
    *,
    required: bool | None = None,
    repeated: bool = False,
) -> VariantGroup:
    """Understand one Variant group.

    Tolerated, because other writers make them: optional groups for fields and elements, optional
    `metadata`, a group without `value` or without `typed_value`, any order, unknown fields whose
    name starts with `_`. `check` reports what of that the specification does not allow.

    Raises MalformedFile, with column and path, for everything else that the specification does not
    have: other fields, other types, a VARIANT version that we do not know.
    """
    column = (group.name,) if column is None else column
    try:
        return _parse_root(group, column, required=required, repeated=repeated)
    except MalformedFile as error:
        error.message = f"column {'.'.join(column)!r}: {error.message}"
        error.args = (error.message,)
        raise


def _parse_root(
    group: SchemaNode, column: ColumnPath, *, required: bool | None, repeated: bool
) -> VariantGroup:
    if not group.is_group:
        raise MalformedFile(f"a Variant is a group, this is {_parquet_type(group)}")
    if group.logical is not None:
        if group.logical.kind != "VARIANT":
            raise MalformedFile(f"a Variant group with the logical type {group.logical}")
        if group.logical.version != SPECIFICATION_VERSION:
            raise MalformedFile(
                f"VARIANT version {group.logical.version}, expected {SPECIFICATION_VERSION}"
            )
    members = _members(group, Path(), (METADATA, VALUE, TYPED_VALUE))
    metadata = _binary(members.get(METADATA), METADATA, Path())
    if metadata is None:
        raise MalformedFile(f"the group has no {METADATA!r}")
    root = _parse_node(group, members, Path())
    return VariantGroup(
        column=column,
        schema=ShreddingSchema(root.node),
        root=root,
        metadata=metadata,
        required=group.repetition == "required" if required is None else required,
        repeated=repeated or group.repetition == "repeated",
        annotated=group.logical is not None,
    )


def _members(group: SchemaNode, path: Path, known: tuple[str, ...]) -> dict[str, SchemaNode]:
    members: dict[str, SchemaNode] = {}
    for child in group.children:
        if child.name in known:
            if child.name in members:
                raise MalformedFile(f"{child.name!r} stands twice in a group", path=str(path))
            if child.repetition == "repeated":
                raise MalformedFile(f"{child.name!r} is repeated", path=str(path))
            members[child.name] = child
        elif not child.name.startswith("_"):
            raise MalformedFile(
                f"unknown field {child.name!r} in a Variant group",
                path=str(path),
                hint="only metadata, value, typed_value and names that start with _ may stand here",
            )
    return members


def _binary(node: SchemaNode | None, name: str, path: Path) -> int | None:
    """The leaf of `metadata` or `value`, which must be plain bytes."""
    if node is None:
        return None
    if node.physical != "BYTE_ARRAY" or node.logical is not None:
        raise MalformedFile(f"{name!r} is {_parquet_type(node)}, expected binary", path=str(path))
    return node.leaf


def _parse_node(group: SchemaNode, members: dict[str, SchemaNode], path: Path) -> GroupNode:
    if len(path.steps) > MAX_SCHEMA_DEPTH:
        raise MalformedFile(f"the Variant group nests deeper than our limit of {MAX_SCHEMA_DEPTH}")
    value = _binary(members.get(VALUE), VALUE, path)
    typed = members.get(TYPED_VALUE)
    if typed is None:
        if value is None:
            raise MalformedFile(
                f"a group has neither {VALUE!r} nor {TYPED_VALUE!r}", path=str(path)
            )
        return GroupNode(Untyped(), group, value, None)
    if not typed.is_group:
        shredded = _shredded_type(typed, path)
        return GroupNode(
            Leaf(shredded), group, value, typed.leaf, parquet_type=_parquet_type(typed)
        )
    if typed.logical is None:
        fields = tuple(_parse_fields(typed, path))
        return GroupNode(Object(tuple((n, c.node) for n, c in fields)), group, value, None, fields)
    if typed.logical.kind != "LIST":
        raise MalformedFile(f"typed_value is a group with type {typed.logical}", path=str(path))
    element = _parse_child(_list_element(typed, path), path.child(0))
    return GroupNode(Array(element.node), group, value, None, element=element)


def _parse_child(group: SchemaNode, path: Path) -> GroupNode:
    """The group of an object's field or of an array's element."""
    if not group.is_group or group.logical is not None or group.repetition == "repeated":
        raise MalformedFile(
            f"a shredded field or element is {group.repetition} {_parquet_type(group)}, "
            "expected a group",
            path=str(path),
        )
    return _parse_node(group, _members(group, path, (VALUE, TYPED_VALUE)), path)


def _parse_fields(typed: SchemaNode, path: Path) -> Iterator[tuple[str, GroupNode]]:
    seen: set[str] = set()
    for child in typed.children:
        field = path.child(child.name)
        if child.name in seen:
            raise MalformedFile("a shredded field stands twice", path=str(field))
        seen.add(child.name)
        yield child.name, _parse_child(child, field)


def _list_element(typed: SchemaNode, path: Path) -> SchemaNode:
    """The element of a three-level list, whatever its two inner levels are called."""
    if len(typed.children) == 1:
        (repeated,) = typed.children
        if repeated.repetition == "repeated" and len(repeated.children) == 1:
            return repeated.children[0]
    raise MalformedFile("a shredded array is not a list of three levels", path=str(path))


_PRIMITIVES: dict[tuple[str, Logical | None], Kind] = {
    ("BOOLEAN", None): Kind.BOOLEAN,
    ("INT32", Logical("INTEGER", bits=8)): Kind.INT8,
    ("INT32", Logical("INTEGER", bits=16)): Kind.INT16,
    ("INT32", Logical("INTEGER", bits=32)): Kind.INT32,
    ("INT32", None): Kind.INT32,
    ("INT64", Logical("INTEGER", bits=64)): Kind.INT64,
    ("INT64", None): Kind.INT64,
    ("FLOAT", None): Kind.FLOAT,
    ("DOUBLE", None): Kind.DOUBLE,
    ("INT32", Logical("DATE")): Kind.DATE,
    ("INT64", Logical("TIME", unit="MICROS")): Kind.TIME,
    ("INT64", Logical("TIMESTAMP", unit="MICROS", utc=True)): Kind.TIMESTAMP,
    ("INT64", Logical("TIMESTAMP", unit="NANOS", utc=True)): Kind.TIMESTAMP_NANOS,
    ("INT64", Logical("TIMESTAMP", unit="MICROS")): Kind.TIMESTAMP_NTZ,
    ("INT64", Logical("TIMESTAMP", unit="NANOS")): Kind.TIMESTAMP_NTZ_NANOS,
    ("BYTE_ARRAY", None): Kind.BINARY,
    ("BYTE_ARRAY", Logical("STRING")): Kind.STRING,
    ("FIXED_LEN_BYTE_ARRAY", Logical("UUID")): Kind.UUID,
}
"""Spec: VariantShredding, "Shredded Value Types"; decimals apart."""


def _shredded_type(node: SchemaNode, path: Path) -> ShreddedType:
    if node.logical is not None and node.logical.kind == "DECIMAL":
        if node.logical.precision <= _decimal_digits(node):
            return ShreddedType(Kind.DECIMAL, node.logical.precision, node.logical.scale)
    else:
        kind = _PRIMITIVES.get((node.physical or "", node.logical))
        if kind is not None and (kind is not Kind.UUID or node.type_length == 16):
            return ShreddedType(kind)
    raise MalformedFile(
        f"typed_value is {_parquet_type(node)}",
        path=str(path),
        hint="the shredding specification lists the types that typed_value may have",
    )


def _decimal_digits(node: SchemaNode) -> int:
    """The digits that the physical type of a decimal can hold; 0 when it cannot hold decimals."""
    match node.physical:
        case "INT32":
            return 9
        case "INT64":
            return 18
        case "BYTE_ARRAY":
            return MAX_PRECISION
        case "FIXED_LEN_BYTE_ARRAY":
            widest = (1 << (8 * min(node.type_length, 16) - 1)) - 1
            return min(MAX_PRECISION, len(str(widest)) - 1)
    return 0


def _parquet_type(node: SchemaNode) -> str:
    """The exact type of a node as text: `INT64 TIMESTAMP(true,MICROS)`."""
    physical = node.physical or "group"
    if node.type_length:
        physical += f"({node.type_length})"
    return f"{physical} {node.logical}" if node.logical is not None else physical
