"""Write nodes as Variant values. Spec: VariantEncoding, "Value encoding".

The values go out sequentially, in document order. Only the ids and offsets of an object are sorted,
by id: ids are places in a sorted dictionary.
"""

from __future__ import annotations

from typing import NamedTuple

from variantlake.kernels.native.declared import (
    Bytes,
    Int32sIn,
    Int64s,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.nodes import (
    ARRAY,
    BINARY,
    DECIMAL4,
    DECIMAL16,
    LONGEST_SHORT_STRING,
    OBJECT,
    OPAQUE,
    STRING,
    UUID,
    width_of,
)
from variantlake.kernels.tape.words import (
    copy_bytes,
    store8,
    store16,
    store32,
    store64,
    trailing_zeros,
)

_SHORT_STRING = 1
_OBJECT = 2
_ARRAY = 3
"""Basic types, the low two bits of a value's first byte."""

_SPARSE = 4
"""With more bitmap words per field, sorting is faster than a scan of the bitmap (measured)."""


class FieldIds(NamedTuple):
    """The field ids of objects, and working memory to sort them.

    ids: int32, by key, or by node when per_node is 1. work: its first `words` words are a bitmap
    with a bit for each id, all zero before and after each use; the rest has room for an offset of
    each id, or for the object's fields.
    """

    ids: Int32sIn
    per_node: int
    id_width: int
    words: int
    work: Int64s


@tiny
def put_number(out: Bytes, to: int, number: int, width: int) -> None:
    """Write an unsigned number in `width` bytes, 1 to 4, little-endian."""
    if width == 1:
        store8(out, to, number)
    elif width == 2:
        store16(out, to, number)
    elif width == 3:
        store16(out, to, number)
        store8(out, to + 2, number >> 16)
    else:
        store32(out, to, number)


@helper
def sort_words(words: Int64s, start: int, count: int) -> None:
    """Sort words[start:start + count] in place (Shell's method)."""
    gap = int64(1)
    while gap < count // 3:
        gap = gap * 3 + 1
    while gap > 0:
        for i in range(gap, count):
            word = words[uint64(start + i)]
            j = int64(i)
            while j >= gap and words[uint64(start + j - gap)] > word:
                words[uint64(start + j)] = words[uint64(start + j - gap)]
                j -= gap
            words[uint64(start + j)] = word
        gap //= 3


@helper
def emit_array_head(
    nodes: Records, at: int, end: int, count: int, content: int, out: Bytes, to: int
) -> int:
    """Write the header and offsets of the array nodes[at:end]; returns where they end."""
    width = width_of(content)
    large = count > 255
    store8(out, to, _ARRAY | (width - 1) << 2 | (16 if large else 0))
    store32(out, to + 1, count)
    to += 5 if large else 2
    offset = int64(0)
    child = at + 1
    while child < end:
        node = nodes[uint64(child)]
        put_number(out, to, offset, width)
        to += width
        offset += int64(node.length)
        child += int64(node.span)
    put_number(out, to, offset, width)
    return to + width


@helper
def emit_object_head(
    nodes: Records,
    at: int,
    end: int,
    count: int,
    content: int,
    skip: Bytes,
    out: Bytes,
    to: int,
    fields: FieldIds,
) -> int:
    """Write the header, field ids and offsets of the object nodes[at:end]; returns their end.

    Leaves out the children whose `skip` is set; count and content must be those of the others.
    """
    ids, per_node, id_width, words, work = fields
    width = width_of(content)
    large = count > 255
    store8(out, to, _OBJECT | (width - 1) << 2 | (id_width - 1) << 4 | (64 if large else 0))
    store32(out, to + 1, count)
    id_place = to + (5 if large else 2)
    place = id_place + count * id_width
    offset = int64(0)
    child = at + 1
    if words <= 8 or words < count * _SPARSE:
        # Sort by setting bits, without comparisons.
        while child < end:
            node = nodes[uint64(child)]
            if skip[uint64(child)] == 0:
                field = int64(ids[uint64(child if per_node == 1 else int64(node.key))])
                work[uint64(field >> 6)] |= int64(1) << (field & 63)
                work[uint64(words + field)] = offset
                offset += int64(node.length)
            child += int64(node.span)
        for word in range(words):
            bits = work[uint64(word)]
            work[uint64(word)] = 0
            while bits != 0:
                field = int64(word) * 64 + trailing_zeros(bits)
                bits &= bits - 1
                put_number(out, id_place, field, id_width)
                put_number(out, place, work[uint64(words + field)], width)
                id_place += id_width
                place += width
    else:
        found = int64(0)
        while child < end:
            node = nodes[uint64(child)]
            if skip[uint64(child)] == 0:
                field = int64(ids[uint64(child if per_node == 1 else int64(node.key))])
                work[uint64(words + found)] = field << 32 | offset
                found += 1
                offset += int64(node.length)
            child += int64(node.span)
        sort_words(work, words, found)
        for i in range(found):
            word = work[uint64(words + i)]
            put_number(out, id_place, word >> 32, id_width)
            put_number(out, place, word & 0xFFFFFFFF, width)
            id_place += id_width
            place += width
    put_number(out, place, offset, width)
    return place + width


@tiny
def copy_reference(
    text: Bytes, arena: Bytes, reference: int, count: int, out: Bytes, to: int
) -> None:
    """Copy the bytes that a node's value refers to."""
    if reference >= 0:
        copy_bytes(out, to, text, reference, count)
    else:
        copy_bytes(out, to, arena, ~reference, count)


@tiny
def emit_scalar(text: Bytes, arena: Bytes, node: Records, out: Bytes, to: int) -> int:
    """Write the value of a scalar node; return its end. May write up to 31 bytes after it."""
    tag = int64(node.tag)
    value = int64(node.value)
    if tag == STRING:
        count = int64(node.extra)
        if count <= LONGEST_SHORT_STRING:
            store8(out, to, count << 2 | _SHORT_STRING)
            to += 1
        else:
            store8(out, to, tag << 2)
            store32(out, to + 1, count)
            to += 5
        copy_reference(text, arena, value, count, out, to)
        return to + count
    if tag == OPAQUE:
        copy_reference(text, arena, value, int64(node.length), out, to)
        return to + int64(node.length)
    store8(out, to, tag << 2)
    if DECIMAL4 <= tag <= DECIMAL16:
        store8(out, to + 1, int64(node.extra))
        if tag == DECIMAL16:
            copy_reference(text, arena, value, int64(16), out, to + 2)
        else:
            store64(out, to + 2, value)
    elif tag == BINARY:
        store32(out, to + 1, int64(node.extra))
        copy_reference(text, arena, value, int64(node.extra), out, to + 5)
    elif tag == UUID:
        copy_reference(text, arena, value, int64(16), out, to + 1)
    else:
        store64(out, to + 1, value)
    return to + int64(node.length)


@tiny
def emit_value(
    text: Bytes,
    arena: Bytes,
    nodes: Records,
    at: int,
    skip: Bytes,
    out: Bytes,
    to: int,
    fields: FieldIds,
) -> int:
    """Write the value of nodes[at], without the children of nodes[at] whose `skip` is set.

    Writes deeper objects whole. Returns where the value ends.
    """
    end = at + int64(nodes[uint64(at)].span)
    t = at
    while t < end:
        node = nodes[uint64(t)]
        tag = int64(node.tag)
        if tag < OBJECT:
            if skip[uint64(t)] == 0 or t == at:
                to = emit_scalar(text, arena, node, out, to)
            t += 1
            continue
        if skip[uint64(t)] != 0 and t != at:
            t += int64(node.span)
            continue
        count, content = int64(node.extra), int64(node.content)
        last = t + int64(node.span)
        if tag == ARRAY:
            to = emit_array_head(nodes, t, last, count, content, out, to)
        else:
            if t == at:
                child = t + 1
                while child < last:
                    member = nodes[uint64(child)]
                    if skip[uint64(child)] != 0:
                        count -= 1
                        content -= int64(member.length)
                    child += int64(member.span)
            to = emit_object_head(nodes, t, last, count, content, skip, out, to, fields)
        t += 1
    return to
