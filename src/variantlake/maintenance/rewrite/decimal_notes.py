"""Decide which files may share the note that tells integers from decimals in a decimal column.

A file may note that no decimal of a column looks like an integer. Then all values that do are
integers, and are read as such (EXACTNESS, rule 33). A file without this note may share it only if
its column has no decimal that looks like an integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.paths import Path
from variantlake.shredding.arrays import list_of, struct_of
from variantlake.shredding.layout import TYPED_VALUE, is_list
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema
from variantlake.types import Kind


def look_like_integers(group: pa.StructArray, paths: Iterable[Path]) -> bool:
    """Whether a decimal in one of these columns of a Variant group has a fraction of zero.

    `group` is a batch of a shredded column; the step 0 in a path means all elements. A column that
    is not of decimals counts as having one.
    """
    return any(_has_whole(_column(group, path)) for path in paths)


def decimal_paths(schema: ShreddingSchema) -> frozenset[Path]:
    """Return the paths of a layout's DECIMAL columns; the step 0 means all elements of an array."""
    return frozenset(_decimals(schema.root, Path()))


def _decimals(node: Node, path: Path) -> Iterator[Path]:
    if isinstance(node, Leaf):
        if node.type.kind is Kind.DECIMAL:
            yield path
    elif isinstance(node, Object):
        for name, child in node.fields:
            yield from _decimals(child, path.child(name))
    elif isinstance(node, Array):
        yield from _decimals(node.element, path.child(0))


def _column(group: Any, path: Path) -> Any:
    """Return the `typed_value` at a path."""
    array: Any = struct_of(group).field(TYPED_VALUE)
    for step in path.steps:
        if is_list(array.type):
            array = struct_of(list_of(array).flatten())
        else:
            array = struct_of(array).field(str(step))
        array = struct_of(array).field(TYPED_VALUE)
    return array


def _has_whole(array: Any) -> bool:
    if not pa.types.is_decimal(array.type):
        return True
    if array.type.scale <= 0:
        return int(array.null_count) < len(array)
    return bool(pc.any(pc.equal(pc.floor(array), array)).as_py())
