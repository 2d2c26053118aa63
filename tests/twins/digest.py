"""Compute the digest of a Variant: the plain reference for `kernels.digest`.

A digest is computed from the leaves of a value, each with its path, so the order of fields and of
the dictionary, the widths of offsets and integers, and shredding make no difference. Exact numbers
count by value, as in the specification: 7 equals 7.00. Values of other types are distinct.
"""

from __future__ import annotations

import struct
from uuid import UUID

from variantlake.encoding.scalar import Scalar, exact_parts, integer_of
from variantlake.encoding.tree import Tree
from variantlake.types import PRIMITIVES, Family, Primitive

NUMBER, OBJECT, ARRAY = 64, 32, 33

_MASK = (1 << 64) - 1
_FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_BYTES, _LANE = 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179
_TYPES, _ELEMENTS = 0x6A09E667F3BCC909, 0x3C6EF372FE94F82B


def fold(word: int) -> int:
    """Multiply by a constant, and combine both halves of the product."""
    product = (word & _MASK) * _FIRST
    return (product >> 64) ^ (product & _MASK)


def blend(state: int, word: int) -> int:
    """Mix a word into a state of 64 bits."""
    product = (fold(state ^ word) + state & _MASK) * _SECOND
    return (product >> 64) ^ (product & _MASK)


def hash_text(data: bytes, seed: int) -> int:
    """Hash bytes."""
    size = len(data)
    state = fold(size * _BYTES ^ seed)
    first, second = 0, 0
    if size >= 8:
        for done in range(0, size - 16, 16):
            state = _fold_two(
                _word(data[done : done + 8]), _word(data[done + 8 : done + 16]), state
            )
        # The last 16 bytes, or the first and the last 8 of fewer.
        start = max(size - 16, 0)
        first, second = _word(data[start : start + 8]), _word(data[-8:])
    elif size >= 4:
        first = _word(data[:4]) | _word(data[-4:]) << 32
    elif size:
        first = data[0] | data[size >> 1] << 8 | data[-1] << 16
    return _fold_two(first, second, state)


def _fold_two(first: int, second: int, state: int) -> int:
    product = (first ^ _LANE) * (second ^ state)
    return (product >> 64) ^ (product & _MASK)


def _word(data: bytes) -> int:
    return int.from_bytes(data, "little")


def leaf(path: int, tag: int, word: int) -> int:
    """Return the digest of a value of one word."""
    return blend(path + tag * _TYPES & _MASK, word & _MASK)


def field_path(path: int, name: bytes) -> int:
    """Return the path of an object's field."""
    return blend(path, hash_text(name, 0))


def element_path(path: int, index: int) -> int:
    """Return the path of an array's element."""
    return blend(path ^ _ELEMENTS, index)


def number(path: int, unscaled: int, scale: int) -> int:
    """Return the digest of an exact number."""
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1 if unscaled else 0
    low, high = unscaled & _MASK, unscaled >> 64 & _MASK
    word = leaf(path, NUMBER, low)
    if scale == 0 and -(1 << 63) <= unscaled < 1 << 63:
        return word
    return blend(word + high & _MASK, scale + 1)


def tree_sum(tree: Tree, path: int) -> int:
    """Return the sum of the digests of a Variant's leaves; `path` is that of the Variant."""
    if isinstance(tree, dict):
        total = leaf(path, OBJECT, 0)
        for name, child in tree.items():
            total += tree_sum(child, field_path(path, name.encode()))
        return total & _MASK
    if isinstance(tree, list):
        total = leaf(path, ARRAY, len(tree))
        for index, child in enumerate(tree):
            total += tree_sum(child, element_path(path, index))
        return total & _MASK
    return _scalar_sum(tree, path)


def _scalar_sum(scalar: Scalar, path: int) -> int:
    kind, value = scalar.type, scalar.value
    if PRIMITIVES[kind].family is Family.EXACT_NUMERIC:
        return number(path, *exact_parts(scalar))
    if kind is Primitive.NULL:
        return leaf(path, kind, 0)
    if kind in (Primitive.TRUE, Primitive.FALSE):
        return leaf(path, Primitive.TRUE, int(kind is Primitive.TRUE))
    if isinstance(value, str | bytes | UUID):
        data = value.encode() if isinstance(value, str) else value
        return leaf(path, kind, hash_text(data.bytes if isinstance(data, UUID) else data, kind))
    if isinstance(value, float):
        form = "<d" if kind is Primitive.DOUBLE else "<f"
        bits = int.from_bytes(struct.pack(form, value), "little", signed=True)
        return leaf(path, kind, bits)
    return leaf(path, kind, integer_of(scalar))
