"""One node of the tape: its layout, its tags, and its size as a Variant value."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from variantlake.kernels.native.declared import KernelArray, int64
from variantlake.kernels.native.jit import tiny
from variantlake.types import PRIMITIVES, Primitive

NODE = np.dtype(
    [
        ("tag", "u1"),
        ("key", "i4"),
        ("value", "i8"),
        ("extra", "i4"),
        ("length", "i4"),
        ("span", "i4"),
        ("content", "i4"),
    ],
    align=True,
)
"""One node, 32 bytes.

tag      Primitive id, OBJECT or ARRAY
key      key id in the tape's KeyTable when the parent is an object, else 0
value    scalars of up to 8 bytes: the value (floats: their bits), two's complement;
         STRING, BINARY, DECIMAL16 (16 bytes, little-endian), UUID (16 bytes), OPAQUE: where the
         bytes are, `p >= 0` in the text, else `~p` in the arena
extra    bytes of a STRING or BINARY; scale of a decimal; children of a container
length   bytes of the node as a Variant value, with field ids of one byte
span     nodes of the subtree, itself included
content  containers: sum of the children's `length`
"""

Nodes = Annotated[Any, KernelArray(NODE)]
NodesIn = Annotated[Any, KernelArray(NODE, readonly=True)]

# Tags as plain integers, because kernels cannot read enums as constants.
NULL = int(Primitive.NULL)
TRUE = int(Primitive.TRUE)
FALSE = int(Primitive.FALSE)
INT8 = int(Primitive.INT8)
INT16 = int(Primitive.INT16)
INT32 = int(Primitive.INT32)
INT64 = int(Primitive.INT64)
DOUBLE = int(Primitive.DOUBLE)
DECIMAL4 = int(Primitive.DECIMAL4)
DECIMAL8 = int(Primitive.DECIMAL8)
DECIMAL16 = int(Primitive.DECIMAL16)
FLOAT = int(Primitive.FLOAT)
BINARY = int(Primitive.BINARY)
STRING = int(Primitive.STRING)
UUID = int(Primitive.UUID)
DATE = int(Primitive.DATE)
TIME = int(Primitive.TIME)
TIMESTAMP = int(Primitive.TIMESTAMP)
TIMESTAMP_NTZ = int(Primitive.TIMESTAMP_NTZ)
TIMESTAMP_NANOS = int(Primitive.TIMESTAMP_NANOS)
TIMESTAMP_NTZ_NANOS = int(Primitive.TIMESTAMP_NTZ_NANOS)

OPAQUE = 31
"""Tag of a primitive of a later version: writers copy its `length` bytes, header included."""
OBJECT = 32
"""Tag of an object; a scalar's tag is the id of its Primitive (short strings are STRING)."""
ARRAY = 33
"""Tag of an array."""

LONGEST_SHORT_STRING = 63

WIDTHS = np.array([PRIMITIVES[primitive].width for primitive in Primitive], np.int64)
"""Bytes after the header of a primitive, by its id; below 0 if they vary."""


@tiny
def width_of(number: int) -> int:
    """Return the bytes that an unsigned little-endian `number` needs, 1 to 4."""
    if number < 256:
        return 1
    if number < 65536:
        return 2
    return 3 if number < 16777216 else 4


@tiny
def object_size(count: int, content: int, id_width: int) -> int:
    """Return the bytes of an object: `count` fields, `content` bytes of values. Spec: "Object"."""
    head = 2 if count < 256 else 5
    return head + count * id_width + (count + 1) * width_of(content) + content


@tiny
def array_size(count: int, content: int) -> int:
    """Return the bytes of an array: `count` elements in `content` bytes. Spec: "Array"."""
    head = 2 if count < 256 else 5
    return head + (count + 1) * width_of(content) + content


@tiny
def string_size(count: int) -> int:
    """Return the bytes of a string value of `count` bytes, in the short form if possible."""
    return count + 1 if count <= LONGEST_SHORT_STRING else count + 5


@tiny
def integer_tag(value: int) -> int:
    """Return the tag of the narrowest integer type that holds `value`."""
    magnitude = value ^ (value >> int64(63))
    if magnitude < 0x80:
        return INT8
    if magnitude < 0x8000:
        return INT16
    return INT32 if magnitude < 0x80000000 else INT64


@tiny
def integer_size(tag: int) -> int:
    """Return the bytes of an integer node: the header and 1, 2, 4 or 8 bytes."""
    return 1 + (1 << (tag - INT8))
