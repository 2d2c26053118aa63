"""Integers in columns of decimals: which files may share the note that tells them apart.

A file may note that no decimal of a column looks like an integer: then those that do are integers,
and come back as such (EXACTNESS, rule 33). Joined with a file of which that is not known, the note
holds only if a look at that file's column shows no such decimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.paths import Path
from variantlake.shredding.arrays import list_of, struct_of
from variantlake.shredding.layout import TYPED_VALUE, is_list
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema
from variantlake.types import Kind

_TWO_TO_64_MOD_10 = 6


def may_look_like_integers(group: pa.StructArray, paths: Iterable[Path]) -> bool:
    """Whether a decimal in one of these columns of a Variant group has a shorter form.

    `group` is a batch of a shredded column; in a path the step 0 stands for all elements.
    """
    return any(_may(_column(group, path)) for path in paths)


def decimal_paths(schema: ShreddingSchema) -> frozenset[Path]:
    """The DECIMAL columns of a layout; the step 0 stands for all elements of an array."""
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
    """The `typed_value` at a path."""
    array: Any = struct_of(group).field(TYPED_VALUE)
    for step in path.steps:
        if is_list(array.type):
            array = struct_of(list_of(array).flatten())
        else:
            array = struct_of(array).field(str(step))
        array = struct_of(array).field(TYPED_VALUE)
    return array


def _may(array: Any) -> bool:
    if not isinstance(array.type, pa.Decimal128Type):
        return True
    whole = array.drop_null()
    if not len(whole):
        return False
    if array.type.scale <= 0:
        return True
    data = whole.buffers()[1]
    words = np.frombuffer(data, np.int64)[2 * whole.offset : 2 * (whole.offset + len(whole))]
    low, high = words[::2].view(np.uint64) % np.uint64(10), words[1::2] % 10
    digit = (low.astype(np.int64) + high * _TWO_TO_64_MOD_10) % 10
    return bool((digit == 0).any())
