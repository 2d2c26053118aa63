"""The shredding schema: which paths of a Variant column become typed columns.

Its text form is DDL, `kind STRING, commit STRUCT<record: STRUCT<langs: ARRAY<STRING>>>`, stored in
a table property and in file tags; `VARIANT` stands for a field or element that has a column of its
own but no `typed_value`. A schema whose root is not an object is written as the bare type
(`BIGINT`, `ARRAY<STRING>`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from variantlake.paths import Path
from variantlake.types import ShreddedType


@dataclass(frozen=True, slots=True)
class Leaf:
    """`value` + a primitive `typed_value` of exactly this type."""

    type: ShreddedType


@dataclass(frozen=True, slots=True)
class Untyped:
    """`value` alone: the field stands apart from its parent's residual but has no `typed_value`."""


@dataclass(frozen=True, slots=True)
class Object:
    """`value` + a group of named fields, in file order.

    Field names are unique, and no two of them are equal under Unicode case folding (EXACTNESS,
    rule 5) in schemas that we make; schemas read from foreign files may break that.
    """

    fields: tuple[tuple[str, Node], ...]

    def get(self, name: str) -> Node | None:
        """The field of exactly this name."""
        return next((node for key, node in self.fields if key == name), None)


@dataclass(frozen=True, slots=True)
class Array:
    """`value` + a three-level LIST whose `element` is `element`."""

    element: Node

    def inside(self) -> Iterator[Node]:
        """The nodes of its elements at every depth, parents first, in file order."""
        yield from subtree(self.element)


Node = Leaf | Untyped | Object | Array


@dataclass(frozen=True, slots=True)
class ShreddingSchema:
    """The shredding of one Variant column. `root` Untyped means: not shredded."""

    root: Node = Untyped()

    def nodes(self) -> Iterator[tuple[Path, Node]]:
        """Every node outside of arrays with its path, parents first, in file order.

        Arrays are given as one node; what is inside them has no single path.
        """
        yield from _walk(Path(), self.root)

    def find(self, path: Path) -> tuple[Node, Path]:
        """The deepest node on the way to `path`, and that node's own path.

        The result's path equals `path` when the path itself is a node. Array steps stop at the
        Array node.
        """
        node, depth = self.root, 0
        for step in path.steps:
            child = node.get(step) if isinstance(node, Object) and isinstance(step, str) else None
            if child is None:
                break
            node, depth = child, depth + 1
        return node, Path(path.steps[:depth])


def type_name(node: Node) -> str:
    """The type of a node as reports show it: DDL of a leaf, else what it holds."""
    match node:
        case Leaf(type=stored):
            return stored.ddl
        case Object():
            return "STRUCT"
        case Array():
            return "ARRAY"
    return "VARIANT"


def subtree(node: Node) -> Iterator[Node]:
    """A node and all below it, those in arrays as well, parents first, in file order."""
    yield node
    if isinstance(node, Object):
        for _, child in node.fields:
            yield from subtree(child)
    elif isinstance(node, Array):
        yield from node.inside()


def without_fields(schema: ShreddingSchema, names: Collection[str]) -> ShreddingSchema:
    """The schema without the fields of these names, at any depth."""
    return ShreddingSchema(_without(schema.root, names))


def _without(node: Node, names: Collection[str]) -> Node:
    match node:
        case Object(fields):
            left = tuple((key, _without(one, names)) for key, one in fields if key not in names)
            return Object(left) if left else Untyped()
        case Array(element):
            return Array(_without(element, names))
    return node


def _walk(path: Path, node: Node) -> Iterator[tuple[Path, Node]]:
    yield path, node
    if isinstance(node, Object):
        for name, child in node.fields:
            yield from _walk(path.child(name), child)
