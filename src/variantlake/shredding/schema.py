"""The shredding schema: which paths of a Variant column become typed columns.

Its text form is DDL, `kind STRING, commit STRUCT<record: STRUCT<langs: ARRAY<STRING>>>`, stored in
a table property and in file tags. `VARIANT` is a field or element with a `value` column but no
`typed_value`. A schema whose root is not an object is written as the bare type (`BIGINT`,
`ARRAY<STRING>`).
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
    """`value` alone: the field is not in its parent's residual, but has no `typed_value`."""


@dataclass(frozen=True, slots=True)
class Object:
    """`value` + a group of named fields, in file order.

    Field names are unique. In schemas that we make, no two of them are equal under Unicode case
    folding (EXACTNESS, rule 5); schemas of other writers' files may break that.
    """

    fields: tuple[tuple[str, Node], ...]

    def get(self, name: str) -> Node | None:
        """Return the field of exactly this name, None if there is none."""
        return next((node for key, node in self.fields if key == name), None)


@dataclass(frozen=True, slots=True)
class Array:
    """`value` + a three-level LIST whose `element` is `element`."""

    element: Node

    def inside(self) -> Iterator[Node]:
        """Yield the nodes of its elements at every depth, parents first, in file order."""
        yield from subtree(self.element)


Node = Leaf | Untyped | Object | Array


@dataclass(frozen=True, slots=True)
class ShreddingSchema:
    """The shredding of one Variant column. `root` Untyped means: not shredded."""

    root: Node = Untyped()

    def nodes(self) -> Iterator[tuple[Path, Node]]:
        """Yield the nodes outside arrays with their paths, parents first, in file order.

        An array is one node; the nodes inside it have no single path.
        """
        yield from _walk(Path(), self.root)

    def find(self, path: Path) -> tuple[Node, Path]:
        """Return the deepest node on the way to `path`, and that node's path.

        That path equals `path` if there is a node at `path`. Array steps stop at the Array node.
        """
        node, depth = self.root, 0
        for step in path.steps:
            child = node.get(step) if isinstance(node, Object) and isinstance(step, str) else None
            if child is None:
                break
            node, depth = child, depth + 1
        return node, Path(path.steps[:depth])


def type_name(node: Node) -> str:
    """Return the type of a node for reports: DDL for a leaf, else STRUCT, ARRAY or VARIANT."""
    match node:
        case Leaf(type=stored):
            return stored.ddl
        case Object():
            return "STRUCT"
        case Array():
            return "ARRAY"
    return "VARIANT"


def subtree(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, also in arrays, parents first, in file order."""
    yield node
    if isinstance(node, Object):
        for _, child in node.fields:
            yield from subtree(child)
    elif isinstance(node, Array):
        yield from node.inside()


def without_fields(schema: ShreddingSchema, names: Collection[str]) -> ShreddingSchema:
    """Remove the fields with these names, at any depth."""
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
