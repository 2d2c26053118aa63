"""Convert whole Variants to Arrow scalars: objects to structs, arrays to lists, without rounding.

An Arrow value needs a type. The caller passes one, or this module infers one that fits all values:
fields are in stored order, and all elements of an array have the same type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from variantlake.encoding.arrow_scalars import ArrowScalar, from_arrow, to_arrow
from variantlake.encoding.scalar import (
    DECIMAL_DIGITS,
    INTEGER_BITS,
    NULL,
    Scalar,
    exact_parts,
)
from variantlake.encoding.tree import Tree, logical_key
from variantlake.errors import InvalidValue, LimitExceeded
from variantlake.paths import Path

MAX_ARROW_DEPTH = 100
"""Our limit on types within types; Arrow itself has none and would exhaust the stack."""


def tree_to_arrow(tree: Tree, arrow: pa.DataType | None = None) -> ArrowScalar:
    """Convert a value to an Arrow scalar of the type `arrow`, or else of an inferred type.

    A Variant null and a missing field become nulls.

    Raises InvalidValue, with the path (in which the step 0 means all elements of an array), for a
    value that the type cannot hold exactly, a field that it does not have, or if no type fits all
    elements of an array; LimitExceeded for nesting deeper than MAX_ARROW_DEPTH.
    """
    if isinstance(tree, Scalar) and arrow is None:
        return to_arrow(tree)
    kind = _type_of([tree], Path()) if arrow is None else arrow
    return _array([tree], kind, Path())[0]


# --- Inferring a type -----------------------------------------------------------------------------


def _type_of(trees: Sequence[Tree], path: Path) -> pa.DataType:
    """Return the narrowest type that holds all values exactly; null if all are nulls."""
    if len(path.steps) > MAX_ARROW_DEPTH:
        raise LimitExceeded(f"values nest deeper than our limit of {MAX_ARROW_DEPTH} for Arrow")
    known = [tree for tree in trees if tree != NULL]
    objects = [tree for tree in known if isinstance(tree, dict)]
    arrays = [tree for tree in known if isinstance(tree, list)]
    scalars = [tree for tree in known if isinstance(tree, Scalar)]
    if bool(objects) + bool(arrays) + bool(scalars) > 1:
        nouns = [*["an object"][: len(objects)], *["an array"][: len(arrays)]]
        raise _no_common([*nouns, *(str(to_arrow(scalar).type) for scalar in scalars)], path)
    if objects:
        names = dict.fromkeys(name for each in objects for name in each)
        return pa.struct(
            [
                (name, _type_of([each[name] for each in objects if name in each], path.child(name)))
                for name in names
            ]
        )
    if arrays:
        return pa.list_(_type_of([item for each in arrays for item in each], path.child(0)))
    return _scalar_type(scalars, path) if scalars else pa.null()


def _scalar_type(scalars: Sequence[Scalar], path: Path) -> pa.DataType:
    types: set[pa.DataType] = {to_arrow(scalar).type for scalar in scalars}
    if len(types) == 1:
        (only,) = types
        return only
    primitives = {scalar.type for scalar in scalars}
    if primitives <= INTEGER_BITS.keys():
        widest: pa.DataType = to_arrow(max(scalars, key=lambda each: INTEGER_BITS[each.type])).type
        return widest
    if primitives <= INTEGER_BITS.keys() | DECIMAL_DIGITS.keys():
        parts = [exact_parts(scalar) for scalar in scalars]
        scale = max(scale for _, scale in parts)
        whole = max(len(str(abs(unscaled))) - own for unscaled, own in parts)
        for precision in DECIMAL_DIGITS.values():
            if scale + max(whole, 0) <= precision:
                return pa.decimal128(precision, scale)
    raise _no_common(sorted(map(str, types)), path)


def _no_common(types: Sequence[str], path: Path) -> InvalidValue:
    return InvalidValue(
        f"{', '.join(dict.fromkeys(types))} have no Arrow type in common",
        path=path.normalized(),
        hint="give a `type`, get a path into the value, or use to_python() or to_json()",
    )


# --- Values of a type -----------------------------------------------------------------------------


def _array(trees: Sequence[Tree | None], arrow: pa.DataType, path: Path) -> pa.Array[Any]:
    """Make an array of exactly this type; None is null. `path` leads to the values."""
    if len(path.steps) > MAX_ARROW_DEPTH:
        raise LimitExceeded(f"the type nests deeper than our limit of {MAX_ARROW_DEPTH} for Arrow")
    known = [None if tree == NULL else tree for tree in trees]
    if isinstance(arrow, pa.StructType):
        return _structs(known, arrow, path)
    if isinstance(arrow, pa.ListType):
        return _lists(known, arrow, path)
    leaves = [None if each is None else _leaf(each, arrow, path) for each in known]
    return pa.array(leaves, arrow)


def _structs(trees: Sequence[Tree | None], arrow: pa.StructType, path: Path) -> pa.Array[Any]:
    names = {field.name for field in arrow}
    objects: list[dict[str, Tree]] = []
    for each in trees:
        if each is not None and not isinstance(each, dict):
            raise _misfit(each, arrow, path)
        if left := [name for name in each or () if name not in names]:
            raise InvalidValue(f"{arrow} has no such field", path=path.child(left[0]).normalized())
        objects.append(each or {})
    if not names:  # pyarrow would take the length from the fields
        return pa.array([None if each is None else {} for each in trees], arrow)
    parts = [
        _array([each.get(field.name) for each in objects], field.type, path.child(field.name))
        for field in arrow
    ]
    return pa.StructArray.from_arrays(parts, fields=list(arrow), mask=_nulls(trees))


def _lists(trees: Sequence[Tree | None], arrow: pa.ListType[Any], path: Path) -> pa.Array[Any]:
    items: list[Tree] = []
    offsets = [0]
    for each in trees:
        if each is not None and not isinstance(each, list):
            raise _misfit(each, arrow, path)
        items += each or ()
        offsets.append(len(items))
    values = _array(items, arrow.value_type, path.child(0))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values, type=arrow, mask=_nulls(trees)
    )


def _nulls(trees: Sequence[Tree | None]) -> pa.Array[Any]:
    return pa.array([each is None for each in trees], pa.bool_())


def _leaf(tree: Tree, arrow: pa.DataType, path: Path) -> ArrowScalar:
    """Cast a scalar to a type that holds an equal value, by the specification's equality."""
    if not isinstance(tree, Scalar):
        raise _misfit(tree, arrow, path)
    scalar = to_arrow(tree)
    if scalar.type == arrow:
        return scalar
    try:
        found = scalar.cast(arrow)
        if logical_key(from_arrow(found)) == logical_key(tree):
            return found
    except (pa.ArrowException, InvalidValue):
        pass
    raise _misfit(tree, arrow, path)


def _misfit(tree: Tree, arrow: pa.DataType, path: Path) -> InvalidValue:
    noun = str(to_arrow(tree).type) if isinstance(tree, Scalar) else "an object"
    noun = "an array" if isinstance(tree, list) else noun
    return InvalidValue(
        f"{noun} does not fit {arrow} exactly",
        path=path.normalized(),
        hint="to_python() and to_json() take every value",
    )
