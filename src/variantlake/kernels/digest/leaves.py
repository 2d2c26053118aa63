"""Add each value to the sum of its row: a hash of its path, its type and its value.

A Variant is hashed as the set of its leaves, each with its path. So fields need no order, and a
column of a shredded file adds exactly what the same values add inside of a whole Variant.
Containers are leaves, too, arrays with their length. SQL NULL and missing fields add nothing.

Exact numbers (of the specification) count by value: an int8 and a decimal16 may be equal. Values of
all other types differ by type, and floats by their bits.
Twin: tests.twins.digest.
"""

from __future__ import annotations

from variantlake.kernels.digest.mixing import blend, hash_text
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int64s,
    Int64sIn,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.exact import divide, is_exact_number, magnitude, negate, scale_of
from variantlake.kernels.tape.keys import Keys
from variantlake.kernels.tape.nodes import (
    ARRAY,
    BINARY,
    DECIMAL16,
    FALSE,
    NULL,
    OBJECT,
    OPAQUE,
    STRING,
    TRUE,
    UUID,
    Nodes,
)
from variantlake.kernels.tape.words import load8, load32, load64

NUMBER = 64
"""The type of integers and decimals. All others have the tags of the tape's nodes."""

_TYPES = 0x6A09E667F3BCC909
_ELEMENTS = 0x3C6EF372FE94F82B
_TEN = uint64(10)

FIXED, DECIMAL, BITS, WORDS = 0, 1, 2, 3
"""How `add_fixed` takes a slot: a number of 1 to 8 bytes; an unscaled one of 4 to 16; one bit; 16
bytes."""


@tiny
def leaf(path: int, tag: int, word: int) -> int:
    """The term of a value of one word."""
    return blend(path + int64(tag) * int64(_TYPES), word)


@tiny
def element_path(path: int, index: int) -> int:
    """The path of an array's element."""
    return blend(path ^ int64(_ELEMENTS), index)


@helper
def number(path: int, low: int, high: int, scale: int) -> int:
    """The term of an exact number; low and high: int64, the halves of its unscaled value."""
    if high == low >> int64(63):
        while scale > 0 and low % 10 == 0:
            if low == 0:
                scale = int64(0)
                break
            low //= 10
            scale -= 1
        high = low >> int64(63)
    else:
        negative = high < 0
        one, two = uint64(low), uint64(high)
        if negative:
            one, two = negate(one, two)
        while scale > 0:
            lower, upper, rest = divide(one, two, _TEN)
            if rest != 0:
                break
            one, two = lower, upper
            scale -= 1
        if negative:
            one, two = negate(one, two)
        low, high = int64(one), int64(two)
    word = leaf(path, int64(NUMBER), low)
    if scale == 0 and high == low >> int64(63):
        return word
    return blend(word + high, scale + 1)


@helper
def _scalar(text: Bytes, arena: Bytes, node: Records, path: int) -> int:
    """The term of a scalar of a tape."""
    tag = int64(node.tag)
    value = int64(node.value)
    if is_exact_number(tag):
        if tag != DECIMAL16:
            return number(path, value, value >> int64(63), scale_of(node))
        low, high, negative = magnitude(text, arena, node)
        if negative:
            low, high = negate(low, high)
        return number(path, int64(low), int64(high), scale_of(node))
    if tag == NULL:
        return leaf(path, tag, int64(0))
    if tag == TRUE or tag == FALSE:
        return leaf(path, int64(TRUE), int64(1) if tag == TRUE else int64(0))
    if tag == STRING or tag == BINARY or tag == OPAQUE or tag == UUID:
        size = int64(node.extra)
        if tag == OPAQUE:
            size = int64(node.length)
        elif tag == UUID:
            size = int64(16)
        if value >= 0:
            word = hash_text(text, value, size, tag)
        else:
            word = hash_text(arena, ~value, size, tag)
        return leaf(path, tag, word)
    return leaf(path, tag, value)


@entry
def add_tape(
    text: BytesIn,
    arena: BytesIn,
    nodes: Nodes,
    first: Int64sIn,
    keys: Int64sIn,
    paths: Int64sIn,
    rows: Int64sIn,
    beside: BytesIn,
    stack: Int64s,
    sums: Int64s,
) -> None:
    """Add the Variants of a tape to the sums of their rows.

    text, arena, nodes, first: of a tape, a slot for each of its rows. keys: int64, the hash of each
    key by its id. paths: the path of each slot, or one of all. rows: int64, the row of each slot,
    empty if that is the slot. beside: uint8, set for a slot whose object is the rest of one that
    was added already; empty if none is. stack: int64, 4 for each container that may be open. sums:
    int64, one a row. Allocates nothing, never raises.
    """
    for slot in range(first.size - 1):
        path = paths[uint64(slot if paths.size > 1 else int64(0))]
        at, stop = first[uint64(slot)], first[uint64(slot + 1)]
        total = int64(0)
        depth = int64(0)
        parent, kind, index = path, int64(0), int64(0)
        end = stop
        start = at
        while at < stop:
            while at == end:
                depth -= 4
                parent = stack[uint64(depth)]
                end = stack[uint64(depth + 1)]
                kind = stack[uint64(depth + 2)]
                index = stack[uint64(depth + 3)]
            node = nodes[uint64(at)]
            tag = int64(node.tag)
            own = parent
            if kind == OBJECT:
                own = blend(parent, keys[uint64(node.key)])
            elif kind == ARRAY:
                own = element_path(parent, index)
                index += 1
            if tag < OBJECT:
                total += _scalar(text, arena, node, own)
                at += 1
                continue
            # An empty container must differ from a missing one. The rest of a partly shredded
            # object counts no object of its own.
            if tag == ARRAY:
                total += leaf(own, tag, int64(node.extra))
            elif at > start or beside.size == 0 or beside[uint64(slot)] == 0:
                total += leaf(own, tag, int64(0))
            stack[uint64(depth)] = parent
            stack[uint64(depth + 1)] = end
            stack[uint64(depth + 2)] = kind
            stack[uint64(depth + 3)] = index
            depth += 4
            parent, kind, index = own, tag, int64(0)
            end = at + int64(node.span)
            at += 1
        row = rows[uint64(slot)] if rows.size > 0 else int64(slot)
        sums[uint64(row)] += total


@tiny
def _is_set(bits: Bytes, place: int) -> bool:
    return bits.size == 0 or load8(bits, place >> 3) >> (place & 7) & 1 != 0


@entry
def add_fixed(
    data: BytesIn,
    form: int,
    width: int,
    scale: int,
    tag: int,
    offset: int,
    bits: BytesIn,
    offset_bits: int,
    count: int,
    paths: Int64sIn,
    rows: Int64sIn,
    sums: Int64s,
) -> None:
    """Add the values of an array of a type of fixed width.

    data, offset: its values, and the slot where they start. form: one of those above, with the
    `width` of a slot in bytes and the `scale` of decimals. bits, offset_bits: its validity; empty
    if no slot is null. count: slots. paths, rows, sums: as for `add_tape`. Allocates nothing, never
    raises.
    """
    path = paths[uint64(0)]
    for slot in range(count):
        if not _is_set(bits, offset_bits + slot):
            continue
        if paths.size > 1:
            path = paths[uint64(slot)]
        place = (offset + slot) * width
        high = int64(0)
        if form == BITS:
            place = offset + slot
            low = load8(data, place >> 3) >> (place & 7) & 1
        elif width == 8:
            low = load64(data, place)
        elif width == 4:
            low = (load32(data, place) << int64(32)) >> int64(32)
        elif width == 16:
            low = load64(data, place)
            high = load64(data, place + 8)
        elif width == 2:
            low = (load8(data, place) | load8(data, place + 1) << 8) << int64(48) >> int64(48)
        else:
            low = load8(data, place) << int64(56) >> int64(56)
        # Equal numbers of different scales must give the same word.
        if form == DECIMAL:
            if width < 16:
                high = low >> int64(63)
            word = number(path, low, high, int64(scale))
        elif form == WORDS:
            word = leaf(path, tag, hash_text(data, place, int64(width), int64(tag)))
        else:
            word = leaf(path, tag, low)
        row = rows[uint64(slot)] if rows.size > 0 else int64(slot)
        sums[uint64(row)] += word


@entry
def add_bytes(
    data: BytesIn,
    offsets: BytesIn,
    width: int,
    tag: int,
    bits: BytesIn,
    offset_bits: int,
    paths: Int64sIn,
    rows: Int64sIn,
    sums: Int64s,
) -> int:
    """Add strings or bytes, data[offsets[i]:offsets[i + 1]]; the rest as for `add_fixed`.

    offsets: uint8, numbers of `width` bytes, 4 or 8. Returns 0, or -1 if the offsets pass the
    data: then some slots were added.
    """
    path = paths[uint64(0)]
    end = load32(offsets, int64(0)) if width == 4 else load64(offsets, int64(0))
    for slot in range(offsets.size // width - 1):
        start, at = end, (slot + 1) * width
        # An int32 below 0 is beyond the data.
        end = load32(offsets, at) if width == 4 else load64(offsets, at)
        if start < 0 or end < start or end > data.size:
            return int64(-1)
        if not _is_set(bits, offset_bits + slot):
            continue
        if paths.size > 1:
            path = paths[uint64(slot)]
        word = hash_text(data, start, end - start, int64(tag))
        row = rows[uint64(slot)] if rows.size > 0 else int64(slot)
        sums[uint64(row)] += leaf(path, int64(tag), word)
    return int64(0)


@entry
def add_words(
    words: Int64sIn,
    tag: int,
    bits: BytesIn,
    offset_bits: int,
    paths: Int64sIn,
    rows: Int64sIn,
    sums: Int64s,
) -> None:
    """Add a word for each slot: the length of a list, 0 for other containers; as `add_fixed`."""
    path = paths[uint64(0)]
    for slot in range(words.size):
        if not _is_set(bits, offset_bits + slot):
            continue
        if paths.size > 1:
            path = paths[uint64(slot)]
        row = rows[uint64(slot)] if rows.size > 0 else int64(slot)
        sums[uint64(row)] += leaf(path, int64(tag), words[uint64(slot)])


@entry
def paths_below(paths: Int64sIn, step: int, out: Int64s) -> None:
    """The path of a field of each slot; `step` is the hash of its name."""
    for slot in range(out.size):
        out[uint64(slot)] = blend(paths[uint64(slot if paths.size > 1 else int64(0))], int64(step))


@entry
def paths_of_elements(paths: Int64sIn, offsets: Int64sIn, out: Int64s) -> None:
    """The paths of the elements offsets[i]:offsets[i + 1] of each list; they start with 0."""
    for slot in range(offsets.size - 1):
        path = paths[uint64(slot if paths.size > 1 else int64(0))]
        start = offsets[uint64(slot)]
        for at in range(start, offsets[uint64(slot + 1)]):
            out[uint64(at)] = element_path(path, at - start)


@entry
def hash_keys(keys: Keys, key_bytes: BytesIn, out: Int64s) -> None:
    """The hash of each name of a KeyTable: what `field_path` mixes into a path."""
    for key in range(out.size):
        known = keys[uint64(key)]
        out[uint64(key)] = hash_text(key_bytes, int64(known.start), int64(known.length), int64(0))


@entry
def close_rows(sums: Int64sIn, kept: BytesIn, hashes: Int64s, total: Int64s) -> None:
    """The hashes of rows from their sums, and the sums of both halves of those that are `kept`.

    hashes: int64, one a row. total: two words, added to.
    """
    for row in range(sums.size):
        first = blend(sums[uint64(row)], int64(1))
        hashes[uint64(row)] = first
        if kept[uint64(row)] != 0:
            total[uint64(0)] += first
            total[uint64(1)] += blend(sums[uint64(row)], int64(2))
