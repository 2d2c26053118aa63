"""The two orders in which fields of an object stand: the specification's, by UTF-8, and Spark's.

Spark compares keys as Java does, by UTF-16 code units, and in objects of 32 fields or more it looks
for a key by a binary search. The two orders differ where an object has a key with a character above
U+FFFF, and another one with a character from U+E000 to U+FFFF. Spec: Variant encoding, "Object".
"""

from __future__ import annotations

import re

from variantlake.encoding.metadata import decode_metadata
from variantlake.encoding.value import basic_type, read_children, read_layout
from variantlake.types import BasicType

_ABOVE = re.compile(rb"[\xf0-\xf4]")
_BELOW = re.compile(rb"[\xee\xef]")
"""Bytes with which characters begin in UTF-8: those above U+FFFF, and from U+E000 up to it."""


def orders_may_differ(metadata: bytes) -> bool:
    """Whether the dictionary has keys of both kinds.

    Raises MalformedVariant for bytes that are not metadata, if they have both kinds of bytes.
    """
    if not _ABOVE.search(metadata) or not _BELOW.search(metadata):
        return False
    # Offsets may have these bytes as well: of many keys most have.
    width = (metadata[0] >> 6) + 1
    strings = 1 + width * (int.from_bytes(metadata[1 : 1 + width], "little") + 2)
    if not _ABOVE.search(metadata, strings) or not _BELOW.search(metadata, strings):
        return False
    keys = "\0".join(decode_metadata(metadata).keys).encode()
    return bool(_ABOVE.search(keys) and _BELOW.search(keys))


def in_utf16_order(metadata: bytes, value: bytes) -> bytes:
    """The same value with the fields of each object in Spark's order.

    Only ids and offsets change their places: values stay where they are, and so do all sizes.

    Raises MalformedVariant for bytes that are not Variant.
    """
    dictionary = decode_metadata(metadata)
    found = bytearray(value)
    waiting = [(0, len(value))]
    while waiting:
        start, end = waiting.pop()
        if basic_type(value, start) not in (BasicType.OBJECT, BasicType.ARRAY):
            continue
        children = read_children(dictionary, value, start, end)
        waiting.extend(zip(children.starts, children.ends, strict=True))
        names = children.names
        if names is None:
            continue
        layout = read_layout(value, start, end)
        order = sorted(range(len(names)), key=lambda at: names[at].encode("utf-16-be"))
        for begin, size in (
            (layout.ids_start, layout.id_size),
            (layout.offsets_start, layout.offset_size),
        ):
            parts = [value[begin + at * size : begin + (at + 1) * size] for at in order]
            found[begin : begin + len(names) * size] = b"".join(parts)
    return bytes(found)
