"""Find Variant columns in the schema of a Parquet file: their shredding, and each part's leaf.

Parts of a Variant group are found by name, their leaves by position in the schema: the dotted paths
in footers cannot tell the key `a.b` from the key `b` in `a`.
Spec: VariantShredding; for siblings, delta-variant-type, "Writer Requirements".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.annotate import SPECIFICATION_VERSION, ColumnPath
from variantlake.parquet.metadata.footer import Footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.variant.group_parts import (
    binary_leaf,
    list_element,
    members_of,
    parquet_type,
    shredded_type,
)
from variantlake.paths import Path
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE
from variantlake.shredding.legacy.layout import ARRAY, MEMBERS, OBJECT, UNTYPED_VALUE
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.shredding.values import ALL_AS_STORED, NumberForms, ValueNotes


@dataclass(frozen=True, slots=True)
class GroupNode:
    """One node of a shredding schema with its leaves.

    `value` and `typed_value` are indexes of leaves (None: absent, or for `typed_value` a group); in
    the legacy layout, `value` is `untyped_value`. `fields` are an object's, `element` an array's.
    `group` is the group in the schema tree, `parquet_type` the exact type of a primitive
    `typed_value` (else empty). `others` are further forms of the same group, without a `value`,
    which only legacy files have.
    """

    node: Node
    group: SchemaNode
    value: int | None
    typed_value: int | None
    fields: tuple[tuple[str, GroupNode], ...] = ()
    element: GroupNode | None = None
    parquet_type: str = ""
    others: tuple[GroupNode, ...] = ()

    def leaves(self) -> Iterator[int]:
        """Yield the leaves of this node and of those below it, without ignored columns."""
        yield from (leaf for leaf in (self.value, self.typed_value) if leaf is not None)
        for _, child in self.fields:
            yield from child.leaves()
        for other in (*self.others, *(() if self.element is None else (self.element,))):
            yield from other.leaves()

    def walk(self) -> Iterator[GroupNode]:
        """Yield this node and all below it, also in arrays, parents first; without `others`."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(child for _, child in reversed(node.fields))
            stack.extend(() if node.element is None else (node.element,))

    def inside(self) -> Iterator[GroupNode]:
        """Yield the nodes in an array's elements, in the order of `Array.inside()`."""
        return iter(()) if self.element is None else self.element.walk()

    def get(self, name: str) -> GroupNode | None:
        """Return the object field of exactly this name, None if there is none."""
        return next((child for key, child in self.fields if key == name), None)


@dataclass(frozen=True, slots=True)
class VariantGroup:
    """One Variant column of a file.

    `column` holds the names of schema nodes down to the group. `repeated` is true inside arrays and
    maps, where a row may hold any number of values. `required` means that neither the group nor a
    group above it is optional, so that there are no SQL NULLs. `metadata` is a leaf's index, None
    in the legacy layout, which has none. `annotated` tells whether the file marks the group as
    VARIANT, `has_others` whether it has leaves that are not part of the Variant (names that start
    with `_`). `notes` describe its values, None if the writer made none.
    """

    column: ColumnPath
    schema: ShreddingSchema
    root: GroupNode
    metadata: int | None
    required: bool
    repeated: bool
    annotated: bool
    has_others: bool
    notes: ValueNotes | None = None

    @property
    def forms(self) -> NumberForms:
        """The forms in which numbers of its DECIMAL columns are rebuilt."""
        return ALL_AS_STORED if self.notes is None else self.notes.forms

    @property
    def is_legacy(self) -> bool:
        """Whether the column has Spark's older layout."""
        return self.metadata is None

    def leaves(self) -> Iterator[int]:
        """Yield all leaves of the column."""
        yield from () if self.metadata is None else (self.metadata,)
        yield from self.root.leaves()

    def find(self, path: Path) -> GroupNode | None:
        """Return the node of exactly this path; None if the file has no columns for it."""
        found: GroupNode | None = self.root
        for step in path.steps:
            if found is None or isinstance(step, int):
                return None
            found = found.get(step)
        return found

    def nodes(self) -> Iterator[tuple[Path, GroupNode]]:
        """Yield the nodes outside arrays with their paths, as `ShreddingSchema.nodes()` does."""
        yield from _walk(Path(), self.root)


def _walk(path: Path, node: GroupNode) -> Iterator[tuple[Path, GroupNode]]:
    yield path, node
    for name, child in node.fields:
        yield from _walk(path.child(name), child)


def variant_groups(
    footer: Footer, columns: Collection[ColumnPath] = ()
) -> tuple[VariantGroup, ...]:
    """Find the Variant columns of a file, at any depth, in schema order.

    They are the groups that the file marks as VARIANT, and those that `columns` names: Spark 4.0
    does not mark them, and readers of its tables take them from the table's schema. A column that
    the file does not have is not an error.

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
        if column in columns or node.kind == "VARIANT":
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
    """Parse one Variant group, of the final layout or of the legacy one (`is_legacy_group`).

    Tolerates what other writers make: optional groups for fields and elements, optional `metadata`,
    a group without `value` or without `typed_value`, any order, unknown fields whose names start
    with `_`. `check` reports those that the specification does not allow.

    Raises MalformedFile, with column and path, for anything else that the specification does not
    define: other fields, other types, an unknown VARIANT version.
    """
    column = (group.name,) if column is None else column
    try:
        return _parse_root(group, column, required=required, repeated=repeated)
    except MalformedFile as error:
        error.say_first(f"column {'.'.join(column)!r}")
        raise


def _parse_root(
    group: SchemaNode, column: ColumnPath, *, required: bool | None, repeated: bool
) -> VariantGroup:
    if not group.is_group:
        raise MalformedFile(f"a Variant is a group, this is {parquet_type(group)}")
    if group.logical is not None:
        if group.logical.kind != "VARIANT":
            raise MalformedFile(f"a Variant group with the logical type {group.logical}")
        if group.logical.version != SPECIFICATION_VERSION:
            raise MalformedFile(
                f"VARIANT version {group.logical.version}, expected {SPECIFICATION_VERSION}"
            )
    metadata: int | None = None
    if is_legacy_group(group) or _is_meant_as_legacy(group):
        root = _parse_legacy(group, Path())
    else:
        members = members_of(group, Path(), (METADATA, VALUE, TYPED_VALUE))
        metadata = binary_leaf(members.get(METADATA), METADATA, Path())
        if metadata is None:
            raise MalformedFile(f"the group has no {METADATA!r}")
        root = _parse_node(group, members, Path())
    found = VariantGroup(
        column=column,
        schema=ShreddingSchema(root.node),
        root=root,
        metadata=metadata,
        required=group.repetition == "required" if required is None else required,
        repeated=repeated or group.repetition == "repeated",
        annotated=group.logical is not None,
        has_others=False,
        notes=group.notes,
    )
    return replace(found, has_others=_leaves(group) > len(set(found.leaves())))


def _leaves(node: SchemaNode) -> int:
    return sum(map(_leaves, node.children)) if node.children else 1


def _parse_node(group: SchemaNode, members: dict[str, SchemaNode], path: Path) -> GroupNode:
    if len(path.steps) > MAX_SCHEMA_DEPTH:
        raise MalformedFile(f"the Variant group nests deeper than our limit of {MAX_SCHEMA_DEPTH}")
    value = binary_leaf(members.get(VALUE), VALUE, path)
    typed = members.get(TYPED_VALUE)
    if typed is None:
        if value is None:
            raise MalformedFile(
                f"a group has neither {VALUE!r} nor {TYPED_VALUE!r}", path=str(path)
            )
        return GroupNode(Untyped(), group, value, None)
    if not typed.is_group:
        leaf = Leaf(shredded_type(typed, path))
        return GroupNode(leaf, group, value, typed.leaf, parquet_type=parquet_type(typed))
    if typed.logical is None:
        return _object_node(group, value, tuple(_parse_fields(typed, path, _parse_child)))
    if typed.logical.kind != "LIST":
        raise MalformedFile(f"typed_value is a group with type {typed.logical}", path=str(path))
    element = _parse_child(list_element(typed, path), path.child(0))
    return GroupNode(Array(element.node), group, value, None, element=element)


def _parse_child(group: SchemaNode, path: Path) -> GroupNode:
    """Parse the group of an object's field or of an array's element."""
    _check_child(group, path)
    return _parse_node(group, members_of(group, path, (VALUE, TYPED_VALUE)), path)


def _check_child(group: SchemaNode, path: Path) -> None:
    if not group.is_group or group.logical is not None or group.repetition == "repeated":
        raise MalformedFile(
            f"a shredded field or element is {group.repetition} {parquet_type(group)}, "
            "expected a group",
            path=str(path),
        )


def _parse_fields(
    typed: SchemaNode, path: Path, parse: Callable[[SchemaNode, Path], GroupNode]
) -> Iterator[tuple[str, GroupNode]]:
    seen: set[str] = set()
    for child in typed.children:
        field = path.child(child.name)
        if child.name in seen:
            raise MalformedFile("a shredded field appears twice", path=str(field))
        seen.add(child.name)
        yield child.name, parse(child, field)


def _object_node(
    group: SchemaNode, value: int | None, fields: tuple[tuple[str, GroupNode], ...]
) -> GroupNode:
    node = Object(tuple((name, child.node) for name, child in fields))
    return GroupNode(node, group, value, None, fields)


# --- The legacy layout ----------------------------------------------------------------------------


def is_legacy_group(group: SchemaNode) -> bool:
    """Whether an unmarked group is a Variant of the legacy layout, by its members.

    It has a binary `untyped_value`; or only members of that layout, with a `typed_value`; or an
    `object` or `array` in which all fields or elements are such groups (any other members are then
    refused). So an ordinary struct with a field named `object` or `array` stays a struct.
    """
    if not group.is_group or group.logical is not None:
        return False
    members = {child.name: child for child in group.children if not child.name.startswith("_")}
    untyped = members.get(UNTYPED_VALUE)
    if untyped is not None and untyped.physical == "BYTE_ARRAY" and untyped.logical is None:
        return True
    if members.keys() <= set(MEMBERS) and members.keys() & {UNTYPED_VALUE, TYPED_VALUE}:
        return True
    below = list(members[OBJECT].children) if OBJECT in members else []
    if ARRAY in members:
        array = members[ARRAY]
        is_list = array.kind == "LIST"
        below += [child for level in array.children for child in level.children if is_list]
    return bool(below) and all(map(is_legacy_group, below))


def _is_meant_as_legacy(group: SchemaNode) -> bool:
    """Whether a group that should be a Variant is a broken one of the legacy layout."""
    names = {child.name for child in group.children}
    is_legacy = METADATA not in names and not names.isdisjoint((UNTYPED_VALUE, OBJECT, ARRAY))
    return group.logical is None and is_legacy


def _parse_legacy(group: SchemaNode, path: Path) -> GroupNode:
    """Parse one group of the legacy layout, which has at least one of its four members."""
    if len(path.steps) > MAX_SCHEMA_DEPTH:
        raise MalformedFile(f"the Variant group nests deeper than our limit of {MAX_SCHEMA_DEPTH}")
    _check_child(group, path)
    members = members_of(group, path, MEMBERS)
    if not members:
        raise MalformedFile(f"a group has none of {', '.join(MEMBERS)}", path=str(path))
    value = binary_leaf(members.get(UNTYPED_VALUE), UNTYPED_VALUE, path)
    forms = [
        parse(group, members[name], path)
        for name, parse in _LEGACY_FORMS.items()
        if name in members
    ]
    if not forms:
        return GroupNode(Untyped(), group, value, None)
    return replace(forms[0], value=value, others=tuple(forms[1:]))


def _legacy_object(group: SchemaNode, member: SchemaNode, path: Path) -> GroupNode:
    if not member.is_group or member.logical is not None:
        raise MalformedFile(
            f"{OBJECT!r} is {parquet_type(member)}, expected a group", path=str(path)
        )
    return _object_node(group, None, tuple(_parse_fields(member, path, _parse_legacy)))


def _legacy_array(group: SchemaNode, member: SchemaNode, path: Path) -> GroupNode:
    if member.kind != "LIST":
        raise MalformedFile(f"{ARRAY!r} is {parquet_type(member)}, expected LIST", path=str(path))
    element = _parse_legacy(list_element(member, path), path.child(0))
    return GroupNode(Array(element.node), group, None, None, element=element)


def _legacy_leaf(group: SchemaNode, member: SchemaNode, path: Path) -> GroupNode:
    if member.is_group:
        raise MalformedFile(
            f"{TYPED_VALUE!r} is a group, expected a primitive type",
            path=str(path),
            hint=f"objects belong in {OBJECT!r}, arrays in {ARRAY!r}",
        )
    leaf = Leaf(shredded_type(member, path))
    return GroupNode(leaf, group, None, member.leaf, parquet_type=parquet_type(member))


_LEGACY_FORMS = {OBJECT: _legacy_object, ARRAY: _legacy_array, TYPED_VALUE: _legacy_leaf}
"""If a group has several forms, the first in this order becomes the node."""
