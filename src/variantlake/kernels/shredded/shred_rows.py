"""The two kernels that shred: assign nodes to fields, then fill the Arrow buffers by columns."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int32sIn,
    Int64s,
    Int64sIn,
    KernelArray,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.emit import FieldIds, copy_reference, emit_value
from variantlake.kernels.tape.exact import (
    POWERS,
    fits_decimal,
    is_exact_number,
    longer_form,
    put_decimal,
    scale_of,
)
from variantlake.kernels.tape.nodes import (
    ARRAY,
    DECIMAL4,
    DECIMAL16,
    FALSE,
    INT8,
    INT64,
    OBJECT,
    TRUE,
    Nodes,
    object_size,
)
from variantlake.kernels.tape.words import load64, store8, store16, store32, store64

# What a field's typed_value takes.
NOTHING = 0
"""Untyped: no typed_value."""
OBJECTS = 1
ARRAYS = 2
BOOLEANS = 3
INTEGERS = 4
"""Any exact number that is an integer between `low` and `high`, in `width` bytes."""
DECIMALS = 5
"""Any exact number that (precision, scale) holds, as decimal128."""
EXACTLY = 6
"""Values of type `tag`, `width` bytes as they are."""
STRINGS = 7
"""Values of type `tag` (STRING or BINARY), variable length."""
SIXTEEN = 8
"""Values of type `tag` (UUID), 16 bytes."""

FIELD = np.dtype(
    [
        ("takes", "i4"),
        ("tag", "i4"),
        ("width", "i4"),
        ("precision", "i4"),
        ("scale", "i4"),
        ("special", "i4"),
        ("lookup", "i8"),
        ("low", "i8"),
        ("high", "i8"),
        ("typed_count", "i8"),
        ("typed_bytes", "i8"),
        ("value_count", "i8"),
        ("value_bytes", "i8"),
        ("typed_valid", "i8"),
        ("typed_offsets", "i8"),
        ("typed_data", "i8"),
        ("value_valid", "i8"),
        ("value_offsets", "i8"),
        ("value_data", "i8"),
    ],
    align=True,
)
"""One field of a shredding schema, children after their parents.

takes, tag, width, precision, scale, low, high   what its typed_value takes, see above
lookup      OBJECTS: where its row of the lookup table starts
special     a sum: what of the values that are stored cannot be told from the column alone
typed_count, value_count   rows that have a typed_value, a value
typed_bytes   STRINGS: bytes of all; ARRAYS: elements of all. value_bytes: bytes of all
the rest    where in the output the bitmaps, offsets and data go
"""

Fields = Annotated[Any, KernelArray(FIELD)]

INTEGER = 2
"""Of `special` in DECIMALS: an integer. The bits for a decimal that is not in its shortest form are
those of exact.longer_form."""

TYPED, RESIDUAL = 1, 2
"""What a row has in a field, a sum; 0: missing. Both: a partially shredded object."""


class PlacedNodes(NamedTuple):
    """Where the nodes of a tape belong.

    states: uint8, fields * rows, zero before; places: int32, as many: the node. skip: uint8, one
    a node, set for each that a field took.
    """

    states: Bytes
    places: Int32s
    skip: Bytes


_FRAME = 6
"""Words of the stack for each open object."""


@tiny
def _takes(text: Bytes, arena: Bytes, node: Records, field: Records, spare: Bytes) -> bool:
    """Whether the field's typed_value holds this scalar or array."""
    takes, tag = int64(field.takes), int64(node.tag)
    if takes >= EXACTLY:
        return tag == int64(field.tag)
    if takes == INTEGERS:
        value = int64(node.value)
        if tag < INT8 or tag > INT64:
            if tag < DECIMAL4 or tag > DECIMAL16:
                return False
            if not put_decimal(text, arena, node, int64(19), int64(0), spare, int64(0)):
                return False
            value = load64(spare, int64(0))
            if load64(spare, int64(8)) != value >> int64(63):
                return False
        return int64(field.low) <= value <= int64(field.high)
    if takes == DECIMALS:
        return is_exact_number(tag) and fits_decimal(
            text, arena, node, int64(field.precision), int64(field.scale), spare
        )
    if takes == BOOLEANS:
        return tag == TRUE or tag == FALSE
    return takes == ARRAYS and tag == ARRAY


@tiny
def _place_row(
    text: Bytes,
    arena: Bytes,
    nodes: Records,
    root: int,
    row: int,
    rows: int,
    fields: Records,
    lookup: Int32s,
    id_width: int,
    placed: PlacedNodes,
    stack: Int64s,
    spare: Bytes,
) -> None:
    """Record for every field what the value nodes[root] has there."""
    states, places, skip = placed
    at, index, depth = root, int64(0), int64(0)
    parent = int64(-1)
    end = table = count = content = int64(0)
    while True:
        field = fields[uint64(index)]
        node = nodes[uint64(at)]
        places[uint64(index * rows + row)] = at
        skip[uint64(at)] = 1
        if node.tag == OBJECT and field.takes == OBJECTS:
            states[uint64(index * rows + row)] = TYPED
            field.typed_count += 1
            stack[uint64(depth)] = parent
            stack[uint64(depth + 1)] = end
            stack[uint64(depth + 2)] = table
            stack[uint64(depth + 3)] = count
            stack[uint64(depth + 4)] = content
            stack[uint64(depth + 5)] = index
            depth += _FRAME
            parent = at
            end = at + int64(node.span)
            table = int64(field.lookup)
            count = content = int64(0)
            at += 1
        else:
            if _takes(text, arena, node, field, spare):
                states[uint64(index * rows + row)] = TYPED
                field.typed_count += 1
                if field.takes == STRINGS or field.takes == ARRAYS:
                    field.typed_bytes += int64(node.extra)
            else:
                states[uint64(index * rows + row)] = RESIDUAL
                field.value_count += 1
                field.value_bytes += int64(node.length)
            at += int64(node.span)
        while True:
            while parent >= 0 and at == end:
                depth -= _FRAME
                if count > 0:
                    index = stack[uint64(depth + 5)]
                    field = fields[uint64(index)]
                    states[uint64(index * rows + row)] = TYPED + RESIDUAL
                    field.value_count += 1
                    field.value_bytes += object_size(count, content, id_width)
                parent = stack[uint64(depth)]
                end = stack[uint64(depth + 1)]
                table = stack[uint64(depth + 2)]
                count = stack[uint64(depth + 3)]
                content = stack[uint64(depth + 4)]
            if parent < 0:
                return
            child = nodes[uint64(at)]
            index = int64(lookup[uint64(table + int64(child.key))])
            if index >= 0:
                break
            count += 1
            content += int64(child.length)
            at += int64(child.span)


@entry
def place_rows(
    text: BytesIn,
    arena: BytesIn,
    nodes: Nodes,
    roots: Int64sIn,
    fields: Fields,
    lookup: Int32sIn,
    id_width: int,
    placed: PlacedNodes,
    stack: Int64s,
    spare: Bytes,
) -> None:
    """Find the node of each field in each row, and measure the columns.

    text, arena, nodes: of a tape, lengths right for id_width. roots: int64, the node that is a
    row's value, -1 for none. fields: FIELD, the first one is the value itself; counts are set.
    lookup: int32, for each OBJECTS field a row of field numbers by key id, -1 for a key without
    a field. placed: filled. stack: int64, 6 a field. spare: uint8, 16. Allocates nothing, never
    raises. Twin: tests.twins.shred.
    """
    rows = int64(roots.size)
    for row in range(rows):
        root = roots[uint64(row)]
        if root >= 0:
            _place_row(
                text, arena, nodes, root, int64(row), rows, fields, lookup, id_width, placed,
                stack, spare,
            )  # fmt: skip


@entry
def list_elements(nodes: Nodes, states: BytesIn, places: Int32sIn, roots: Int64s) -> None:
    """Write the nodes of all elements of the arrays in one field.

    states: uint8, places: int32, one a row, of that field. roots: int64, one an element.
    Allocates nothing, never raises.
    """
    found = int64(0)
    for row in range(int64(states.size)):
        if states[uint64(row)] == TYPED:
            at = int64(places[uint64(row)])
            end = at + int64(nodes[uint64(at)].span)
            child = at + 1
            while child < end:
                roots[uint64(found)] = child
                found += 1
                child += int64(nodes[uint64(child)].span)


@helper
def _put_bitmap(states: Bytes, start: int, rows: int, bit: int, out: Bytes, to: int) -> None:
    """Write bit `bit` of each state as an Arrow bitmap, in whole words."""
    word = int64(0)
    for row in range(rows):
        word |= ((int64(states[uint64(start + row)]) >> bit) & 1) << (int64(row) & 63)
        if row & 63 == 63:
            store64(out, to + (int64(row) >> 6 << 3), word)
            word = int64(0)
    if rows & 63 != 0:
        store64(out, to + (rows >> 6 << 3), word)


@tiny
def _put_fixed(out: Bytes, to: int, value: int, width: int) -> None:
    if width == 8:
        store64(out, to, value)
    elif width == 4:
        store32(out, to, value)
    elif width == 2:
        store16(out, to, value)
    else:
        store8(out, to, value)


@tiny
def _fill_typed(
    text: Bytes,
    arena: Bytes,
    nodes: Records,
    field: Records,
    states: Bytes,
    places: Int32s,
    start: int,
    rows: int,
    out: Bytes,
) -> None:
    """Write the validity bitmap, offsets and data of a field's typed_value."""
    takes = int64(field.takes)
    data = int64(field.typed_data)
    width = int64(field.width)
    _put_bitmap(states, start, rows, int64(0), out, int64(field.typed_valid))
    if takes == OBJECTS:
        return
    if takes == STRINGS or takes == ARRAYS:
        offsets = int64(field.typed_offsets)
        done = int64(0)
        for row in range(rows):
            store32(out, offsets + 4 * row, done)
            if states[uint64(start + row)] == TYPED:
                node = nodes[uint64(int64(places[uint64(start + row)]))]
                count = int64(node.extra)
                if takes == STRINGS:
                    copy_reference(text, arena, int64(node.value), count, out, data + done)
                done += count
        store32(out, offsets + 4 * rows, done)
        return
    bits = special = int64(0)
    for row in range(rows):
        if states[uint64(start + row)] == TYPED:
            node = nodes[uint64(int64(places[uint64(start + row)]))]
            value = int64(node.value)
            if takes == EXACTLY or (takes == INTEGERS and node.tag <= INT64):
                _put_fixed(out, data + width * row, value, width)
            elif takes == INTEGERS:
                # Its low bytes are the integer, the others are where later rows go.
                put_decimal(
                    text, arena, node, int64(19), int64(0), out, data + width * row
                )  # fmt: skip
            elif takes == BOOLEANS:
                if node.tag == TRUE:
                    bits |= int64(1) << (int64(row) & 63)
            elif takes == SIXTEEN:
                # The block reaches into the next row's place, which is filled later.
                copy_reference(text, arena, value, int64(16), out, data + 16 * row)
            else:
                if node.tag <= INT64:
                    special |= INTEGER
                else:
                    special |= longer_form(text, arena, node, out, data + 16 * row)
                missing = int64(field.scale) - scale_of(node)
                if node.tag != DECIMAL16 and missing >= 0 and int64(field.precision) <= 18:
                    # Below 10**18 in the end, so on the way as well.
                    value = value * POWERS[uint64(missing)]
                    store64(out, data + 16 * row, value)
                    store64(out, data + 16 * row + 8, value >> int64(63))
                else:
                    put_decimal(
                        text, arena, node, int64(field.precision), int64(field.scale),
                        out, data + 16 * row,
                    )  # fmt: skip
        if takes == BOOLEANS and row & 63 == 63:
            store64(out, data + (int64(row) >> 6 << 3), bits)
            bits = int64(0)
    if takes == BOOLEANS and rows & 63 != 0:
        store64(out, data + (rows >> 6 << 3), bits)
    field.special = special


@entry
def fill_columns(
    text: BytesIn,
    arena: BytesIn,
    nodes: Nodes,
    fields: Fields,
    rows: int,
    placed: PlacedNodes,
    ids: FieldIds,
    out: Bytes,
) -> None:
    """Write the Arrow buffers of all fields that have any rows.

    text, arena, nodes, fields, placed: as place_rows left them, and the places of the buffers in
    `out` (uint8) filled in; each buffer has PADDING bytes to spare behind it. `special` of the
    fields is set. Allocates nothing, never raises.
    """
    states, places, skip = placed
    for index in range(int64(fields.size)):
        field = fields[uint64(index)]
        start = int64(index) * rows
        if field.typed_count > 0:
            _fill_typed(text, arena, nodes, field, states, places, start, rows, out)
        if field.value_count > 0:
            _put_bitmap(states, start, rows, int64(1), out, int64(field.value_valid))
            offsets, data = int64(field.value_offsets), int64(field.value_data)
            to = data
            for row in range(rows):
                store32(out, offsets + 4 * row, to - data)
                if states[uint64(start + row)] >= RESIDUAL:
                    at = int64(places[uint64(start + row)])
                    to = emit_value(text, arena, nodes, at, skip, out, to, ids)
            store32(out, offsets + 4 * rows, to - data)
