"""Build the schema tree of a Parquet file from the flat list in its footer.

Spec: Parquet, `parquet.thrift`, SchemaElement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.logical import LOGICAL_TYPE, Logical, of_converted
from variantlake.parquet.metadata.thrift import Fields, Spec, Wire
from variantlake.shredding.values import ValueNotes

MAX_SCHEMA_DEPTH = 320
"""Our limit on nested groups: a shredded Variant takes two for each object and three for each
array, and a shredding schema nests at most 100 of them."""

PHYSICAL = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
_REPETITIONS = ("required", "optional", "repeated")

SCHEMA_ELEMENT: dict[int, Spec] = {
    1: Wire.I32,  # type
    2: Wire.I32,  # type_length
    3: Wire.I32,  # repetition_type
    4: Wire.BINARY,  # name
    5: Wire.I32,  # num_children
    6: Wire.I32,  # converted_type
    7: Wire.I32,  # scale
    8: Wire.I32,  # precision
    9: Wire.I32,  # field_id
    10: LOGICAL_TYPE,
}


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """A group or a leaf of the schema tree; the root is the message.

    `physical` is None for groups, `type_length` the bytes of a FIXED_LEN_BYTE_ARRAY (else 0).
    `leaf` is the index of a leaf's chunk in `RowGroup.columns`. `notes` are the file's notes on the
    values of a Variant column, None without notes.
    """

    name: str
    repetition: str
    physical: str | None
    type_length: int
    logical: Logical | None
    children: tuple[SchemaNode, ...]
    leaf: int | None
    field_id: int | None = None
    notes: ValueNotes | None = field(default=None, compare=False)

    @property
    def is_group(self) -> bool:
        """Whether the node has children instead of values."""
        return self.physical is None

    @property
    def kind(self) -> str:
        """The name of the logical type; empty without one."""
        return "" if self.logical is None else self.logical.kind

    def named(self, name: str) -> SchemaNode | None:
        """Return the first child of exactly this name, None if there is none."""
        return next((child for child in self.children if child.name == name), None)

    def leaves(self) -> Iterator[int]:
        """Yield the index of this leaf, or those of all leaves below, in the file's order."""
        if self.leaf is not None:
            yield self.leaf
        for child in self.children:
            yield from child.leaves()


def list_item(node: SchemaNode) -> SchemaNode | None:
    """Return the element of a LIST below its repeated node; None if that node is the element.

    As pyarrow decides. Spec: Parquet, "Lists", backward-compatibility rules.
    """
    (repeated,) = node.children
    if len(repeated.children) != 1 or repeated.name in ("array", f"{node.name}_tuple"):
        return None
    (item,) = repeated.children
    return None if item.repetition == "repeated" else item


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A leaf and its levels.

    `max_definition` is the level of a value that is not null, `max_repetition` the number of
    repeated nodes on the way (0: one value or null for each row).
    """

    node: SchemaNode
    max_definition: int
    max_repetition: int


@dataclass(slots=True)
class _OpenGroup:
    fields: Fields
    end: int
    missing: int
    children: list[SchemaNode]


class TreeBuilder:
    """Builds the tree from its elements in depth-first order, without recursion.

    It keeps only the node of an element, so hostile footers take no more memory than others.
    """

    def __init__(self) -> None:
        self._stack: list[_OpenGroup] = []
        self._root: SchemaNode | None = None
        self._leaf_count = 0

    def add(self, fields: Fields, end: int) -> None:
        """Add the next element; `end` is its place in the file. Raises MalformedFile."""
        if 4 not in fields:
            raise MalformedFile("an element of the schema has no name", offset=end)
        if self._root is not None:
            raise MalformedFile("the schema has elements after its last child", offset=end)
        children = fields.get(5, 0)
        if 1 not in fields:
            self._open_group(fields, children, end)
        elif children or not self._stack:
            raise MalformedFile("a leaf of the schema has children, or is its root", offset=end)
        else:
            self._stack[-1].children.append(_node(fields, (), self._leaf_count, end))
            self._stack[-1].missing -= 1
            self._leaf_count += 1
        self._close_full_groups()

    def finish(self, offset: int) -> SchemaNode:
        """Return the root. Raises MalformedFile when elements are missing."""
        if self._root is None:
            raise MalformedFile("the schema ends before its last group is complete", offset=offset)
        return self._root

    def _open_group(self, fields: Fields, children: int, end: int) -> None:
        if children < 0:
            raise MalformedFile(f"a group of the schema has {children} children", offset=end)
        if len(self._stack) > MAX_SCHEMA_DEPTH:
            raise MalformedFile(
                f"the schema nests deeper than our limit of {MAX_SCHEMA_DEPTH}", offset=end
            )
        self._stack.append(_OpenGroup(fields, end, children, []))

    def _close_full_groups(self) -> None:
        while self._stack and not self._stack[-1].missing:
            group = self._stack.pop()
            is_root = not self._stack
            node = _node(group.fields, tuple(group.children), None, group.end, is_root)
            if is_root:
                self._root = node
            else:
                self._stack[-1].children.append(node)
                self._stack[-1].missing -= 1


def _node(
    fields: Fields,
    children: tuple[SchemaNode, ...],
    leaf: int | None,
    end: int,
    is_root: bool = False,
) -> SchemaNode:
    repetition = fields.get(3, 0 if is_root else -1)
    if repetition not in range(len(_REPETITIONS)):
        raise MalformedFile("an element of the schema has no repetition we know", offset=end)
    try:
        name = fields[4].decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedFile("a name in the schema is not UTF-8", offset=end) from None
    physical = None
    if leaf is not None:
        if fields[1] not in range(len(PHYSICAL)):
            raise MalformedFile(f"column {name!r} has an unknown type {fields[1]}", offset=end)
        physical = PHYSICAL[fields[1]]
    type_length = fields.get(2, 0) if physical == "FIXED_LEN_BYTE_ARRAY" else 0
    if type_length < 0 or (physical == "FIXED_LEN_BYTE_ARRAY" and not type_length):
        raise MalformedFile(f"column {name!r} has {type_length} bytes a value", offset=end)
    return SchemaNode(
        name=name,
        repetition=_REPETITIONS[repetition],
        physical=physical,
        type_length=type_length,
        logical=fields.get(10) or of_converted(fields.get(6), fields.get(8, 0), fields.get(7, 0)),
        children=children,
        leaf=leaf,
        field_id=fields.get(9),
    )


def with_notes(root: SchemaNode, notes: Mapping[tuple[str, ...], ValueNotes]) -> SchemaNode:
    """Set the notes of the groups that they describe; notes of other paths are dropped."""
    tree: _Notes = {}
    for path, each in notes.items():
        place = tree
        for name in path:
            place = place.setdefault(name, {})
        place[None] = each
    return _noted(root, tree) if tree else root


_Notes = dict[str | None, Any]
"""Notes by the names of the path; those of the node itself are at None."""


def _noted(node: SchemaNode, tree: _Notes) -> SchemaNode:
    children = tuple(
        _noted(child, tree[child.name]) if child.name in tree else child for child in node.children
    )
    return replace(node, notes=tree.get(None), children=children)


def leaves_of(root: SchemaNode) -> Iterator[LeafColumn]:
    """Yield every leaf in schema order, without recursion."""
    stack = [(iter(root.children), 0, 0)]
    while stack:
        children, above_definition, above_repetition = stack[-1]
        node = next(children, None)
        if node is None:
            stack.pop()
            continue
        definition = above_definition + (node.repetition != "required")
        repetition = above_repetition + (node.repetition == "repeated")
        if node.leaf is not None:
            yield LeafColumn(node, definition, repetition)
        else:
            stack.append((iter(node.children), definition, repetition))
