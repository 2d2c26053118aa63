"""Convert objects from the specification's order of fields, by UTF-8, to Spark's.

Spark compares keys as Java does, by UTF-16 code units, and uses a binary search for keys in objects
of 32 fields or more. The two orders can differ only if an object has a key with a character above
U+FFFF, and another one with a character from U+E000 to U+FFFF. Spec: Variant encoding, "Object".
"""

from __future__ import annotations

import re

from variantlake.encoding.metadata import decode_metadata
from variantlake.encoding.value import basic_type, read_children, read_layout
from variantlake.types import BasicType

_ABOVE = re.compile(rb"[\xf0-\xf4]")
_BELOW = re.compile(rb"[\xee\xef]")
"""First bytes in UTF-8 of characters above U+FFFF, and of those from U+E000 to U+FFFF."""


def orders_may_differ(metadata: bytes) -> bool:
    """Whether the dictionary has keys of both kinds, so that the two orders may differ.

    Raises MalformedVariant for bytes that are not metadata, if they have both kinds of bytes.
    """
    if not _ABOVE.search(metadata) or not _BELOW.search(metadata):
        return False
    # Offsets may have these bytes as well; those of many keys usually do.
    width = (metadata[0] >> 6) + 1
    strings = 1 + width * (int.from_bytes(metadata[1 : 1 + width], "little") + 2)
    if not _ABOVE.search(metadata, strings) or not _BELOW.search(metadata, strings):
        return False
    keys = "\0".join(decode_metadata(metadata).keys).encode()
    return bool(_ABOVE.search(keys) and _BELOW.search(keys))


def in_utf16_order(metadata: bytes, value: bytes) -> bytes:
    """Put the fields of each object in Spark's order.

    Only ids and offsets move. Values stay in place, and all sizes stay the same.

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
