"""Trees, the plain in-memory form of Variants: decode and encode them.

A tree is a `Scalar`, a `dict` of field names to trees (an object) or a `list` of trees (an array).
Spec: VariantEncoding, "Value Data for Object" and "Value Data for Array".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import TypeAlias

from variantlake.encoding.limits import MAX_DEPTH
from variantlake.encoding.metadata import (
    VariantMetadata,
    decode_metadata,
    encode_metadata,
    offset_list,
    sorted_keys,
    unsigned_size,
)
from variantlake.encoding.scalar import (
    Scalar,
    decode_scalar,
    encode_scalar,
    exact_parts,
    integer_of,
)
from variantlake.encoding.value import Walk, basic_type, check_value_size, read_children
from variantlake.errors import InvalidValue, LimitExceeded, VariantLakeError
from variantlake.paths import Path
from variantlake.types import PRIMITIVES, BasicType, Family, Primitive

Tree: TypeAlias = "Scalar | dict[str, Tree] | list[Tree]"


def decode(metadata: bytes, value: bytes) -> Tree:
    """Decode one Variant.

    Tolerates fields in another order than the spec's, unused keys, and repeated keys where
    `sorted_strings` is not set. Raises MalformedVariant with offset and path, UnknownVariantType
    for an unknown type id anywhere in it, LimitExceeded beyond our limits.
    """
    dictionary = decode_metadata(metadata)
    check_value_size(value)
    walk = Walk()
    open_trees: list[dict[str, Tree] | list[Tree]] = []
    try:
        root = _decode_one(dictionary, value, 0, len(value), walk)
        if not isinstance(root, Scalar):
            open_trees.append(root)
        while walk.depth:
            child = walk.next()
            if child is None:
                open_trees.pop()
                continue
            name, start, end = child
            tree = _decode_one(dictionary, value, start, end, walk)
            parent = open_trees[-1]
            if isinstance(parent, dict):
                parent[str(name)] = tree
            else:
                parent.append(tree)
            if not isinstance(tree, Scalar):
                open_trees.append(tree)
    except VariantLakeError as error:
        error.path = walk.path()
        raise
    return root


def _decode_one(
    dictionary: VariantMetadata, value: bytes, start: int, end: int, walk: Walk
) -> Tree:
    """Decode a scalar, or make an empty container, whose children `walk` yields next."""
    basic = basic_type(value, start)
    if basic in (BasicType.PRIMITIVE, BasicType.SHORT_STRING):
        return decode_scalar(value, start, end)
    walk.descend(read_children(dictionary, value, start, end))
    return {} if basic is BasicType.OBJECT else []


def encode(tree: Tree) -> tuple[bytes, bytes]:
    """Encode as (metadata, value), with a sorted dictionary of its keys and narrowest widths.

    Raises InvalidValue for values that no Variant can hold, LimitExceeded beyond our limits.
    """
    keys = sorted_keys(keys_of(tree))
    return encode_metadata(keys), encode_value(tree, {key: i for i, key in enumerate(keys)})


def keys_of(tree: Tree) -> Iterator[str]:
    """Yield the key of every field in the tree, with repetitions, depth first in sorted order."""
    todo: list[tuple[Tree | str, int]] = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        if isinstance(node, Scalar):
            continue
        if isinstance(node, str):
            yield node
            continue
        # A container that contains itself reaches the limit.
        if depth >= MAX_DEPTH:
            raise LimitExceeded(f"more than {MAX_DEPTH} containers around one another")
        if isinstance(node, dict):
            for name in sorted(node, reverse=True):
                todo += ((node[name], depth + 1), (name, depth))
        else:
            todo.extend((child, depth + 1) for child in reversed(node))


class _Open:
    """A container that is being encoded: its remaining children, and the bytes of the others."""

    __slots__ = ("children", "ids", "names", "parts")

    def __init__(self, node: dict[str, Tree] | list[Tree], key_ids: Mapping[str, int]) -> None:
        self.names: list[str] | None = None
        self.ids: list[int] = []
        self.parts: list[bytes] = []
        if isinstance(node, dict):
            # The spec requires the order of UTF-8 bytes, which is that of code points.
            self.names = sorted(node)
            for name in self.names:
                if name not in key_ids:
                    raise InvalidValue(f"key {name!r} is not in the dictionary")
                self.ids.append(key_ids[name])
            self.children = iter([node[name] for name in self.names])
        else:
            self.children = iter(node)

    def close(self) -> bytes:
        if self.names is None:
            return encode_array(self.parts)
        return encode_object(self.ids, self.parts)

    def step(self) -> str | int:
        return len(self.parts) if self.names is None else self.names[len(self.parts)]


def encode_value(tree: Tree, key_ids: Mapping[str, int], depth: int = 0) -> bytes:
    """Encode a tree with the key ids of existing metadata.

    `depth` is the number of containers around it.

    Raises InvalidValue (with path) for a key that is not in `key_ids` or a scalar that does not fit
    its type, LimitExceeded beyond our limits.
    """
    stack: list[_Open] = []
    done = b""
    node: Tree | None = tree
    try:
        while True:
            if node is not None:
                if isinstance(node, Scalar):
                    done = encode_scalar(node)
                elif depth + len(stack) >= MAX_DEPTH:
                    raise LimitExceeded(f"more than {MAX_DEPTH} containers around one another")
                else:
                    stack.append(_Open(node, key_ids))
                    node = next(stack[-1].children, None)
                    continue
            else:
                done = stack[-1].close()
                stack.pop()
            check_value_size(done)
            if not stack:
                return done
            stack[-1].parts.append(done)
            node = next(stack[-1].children, None)
    except VariantLakeError as error:
        error.path = Path(tuple(frame.step() for frame in stack)).normalized()
        raise


def encode_array(elements: list[bytes]) -> bytes:
    """Encode an array of encoded values."""
    data_size = sum(map(len, elements))
    offset_size = unsigned_size(data_size)
    is_large = len(elements) > 0xFF
    header = BasicType.ARRAY | (offset_size - 1 | is_large << 2) << 2
    parts = [bytes([header]), len(elements).to_bytes(4 if is_large else 1, "little")]
    return b"".join([*parts, *offset_list(elements, offset_size), *elements])


def encode_object(field_ids: list[int], values: list[bytes]) -> bytes:
    """Encode an object of encoded values; `field_ids` are in the order of their keys' UTF-8."""
    data_size = sum(map(len, values))
    offset_size = unsigned_size(data_size)
    id_size = unsigned_size(max(field_ids, default=0))
    is_large = len(values) > 0xFF
    header = BasicType.OBJECT | (offset_size - 1 | (id_size - 1) << 2 | is_large << 4) << 2
    parts = [bytes([header]), len(values).to_bytes(4 if is_large else 1, "little")]
    parts.extend(field_id.to_bytes(id_size, "little") for field_id in field_ids)
    return b"".join([*parts, *offset_list(values, offset_size), *values])


def logical_key(tree: Tree) -> tuple[Hashable, ...]:
    """Return a flat hashable form; it is equal for two trees exactly if they are logically equal.

    In the spec's equivalence classes, an integer equals a decimal of the same value and micros
    equal nanos, but doubles, floats and exact numbers differ; fields have no order. For doubles and
    floats, NaN equals NaN and -0.0 equals 0.0, as in Spark. Spec: "Encoding types".
    """
    tokens: list[Hashable] = []
    todo: list[Tree | str] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            tokens.append(node)
        elif isinstance(node, Scalar):
            tokens.append(scalar_key(node))
        elif isinstance(node, dict):
            tokens.append((dict, len(node)))
            for name in sorted(node, reverse=True):
                todo.append(node[name])
                todo.append(name)
        else:
            tokens.append((list, len(node)))
            todo.extend(reversed(node))
    return tuple(tokens)


def scalar_key(scalar: Scalar) -> tuple[Family, Hashable]:
    """Return the equivalence class of a scalar, and its value in the same form for all of it."""
    family, value = PRIMITIVES[scalar.type].family, scalar.value
    if family is Family.EXACT_NUMERIC:
        unscaled, scale = exact_parts(scalar)
        while scale and unscaled % 10 == 0:
            unscaled, scale = unscaled // 10, scale - 1
        return family, (unscaled, scale)
    if scalar.type in (Primitive.TIMESTAMP, Primitive.TIMESTAMP_NTZ):
        return family, integer_of(scalar) * 1000
    if isinstance(value, float) and math.isnan(value):
        return family, "NaN"
    return family, value
