"""Write a tape as JSON text, in the form of Spark's `to_json`. Twin: encoding.json_text.to_json."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from variantlake.encoding.limits import MAX_DEPTH
from variantlake.errors import LimitExceeded
from variantlake.kernels.json.double_text import put_float
from variantlake.kernels.json.scalar_text import (
    base64_size,
    put_base64,
    put_decimal_text,
    put_integer,
    put_time,
    put_uuid,
)
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int64s,
    Int64sIn,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.arrow_arrays import (
    LARGEST_ARRAY,
    AnyArray,
    array_of,
    bitmap_of,
    buffer_of,
    larger_buffer,
    new_buffer,
)
from variantlake.kernels.tape.keys import MAX_GUESS, Keys, KeyTable
from variantlake.kernels.tape.nodes import (
    BINARY,
    DATE,
    DECIMAL4,
    DECIMAL16,
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT64,
    NODE,
    NULL,
    OBJECT,
    STRING,
    TIME,
    TIMESTAMP_NTZ_NANOS,
    TRUE,
    UUID,
    Nodes,
)
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import (
    PADDING,
    copy_block,
    load8,
    scan_string,
    store8,
    store32,
    trailing_zeros,
)

_MARGIN = 256
"""The most bytes that one step writes: 32 of a string, each escaped, or one short scalar."""

_NO_ROOM = -1
_LEFT_TO_TWIN = -2

_SHORT_ESCAPES = np.zeros(128, np.uint8)
for _byte, _letter in zip(b'"\\\b\f\n\r\t', b'"\\bfnrt', strict=True):
    _SHORT_ESCAPES[_byte] = _letter
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)


@helper
def _put_string(source: Bytes, start: int, size: int, out: Bytes, to: int) -> int:
    """Write a string in quotes, escaped; returns its end, or _NO_ROOM."""
    store8(out, to, 34)
    to += 1
    p, end = start, start + size
    while p < end:
        if to + _MARGIN > out.size:
            return int64(_NO_ROOM)
        copy_block(out, to, source, p)
        plain = trailing_zeros((scan_string(source, p) & 0xFFFFFFFF) | int64(1) << int64(32))
        plain = min(plain, end - p)
        to += plain
        p += plain
        if plain == 32 or p >= end:
            continue
        byte = load8(source, p)
        p += 1
        letter = int64(_SHORT_ESCAPES[uint64(byte)])
        store8(out, to, 92)
        if letter != 0:
            store8(out, to + 1, letter)
            to += 2
        else:
            store32(out, to + 1, 0x303075)  # u00
            store8(out, to + 4, int64(_HEX[uint64(byte >> 4)]))
            store8(out, to + 5, int64(_HEX[uint64(byte & 15)]))
            to += 6
    store8(out, to, 34)
    return to + 1


@helper
def _put_scalar(text: Bytes, arena: Bytes, nodes: Records, at: int, out: Bytes, to: int) -> int:
    """Write the scalar nodes[at]; returns its end, _NO_ROOM or _LEFT_TO_TWIN."""
    node = nodes[uint64(at)]
    tag, value = int64(node.tag), int64(node.value)
    if tag == STRING:
        if value >= 0:
            return _put_string(text, value, int64(node.extra), out, to)
        return _put_string(arena, ~value, int64(node.extra), out, to)
    if INT8 <= tag <= INT64:
        return put_integer(value, out, to)
    if tag == NULL or tag == TRUE:
        store32(out, to, 0x6C6C756E if tag == NULL else 0x65757274)
        return to + 4
    if tag == FALSE:
        store32(out, to, 0x736C6166)
        store8(out, to + 4, 101)
        return to + 5
    if DECIMAL4 <= tag <= DECIMAL16:
        return put_decimal_text(text, arena, node, out, to)
    if tag == DOUBLE or tag == FLOAT:
        return put_float(value, int64(1 if tag == DOUBLE else 0), out, to)
    if DATE <= tag < FLOAT or TIME <= tag <= TIMESTAMP_NTZ_NANOS:
        end = put_time(tag, value, out, to)
        return end if end >= 0 else int64(_LEFT_TO_TWIN)
    if tag == BINARY:
        size = int64(node.extra)
        if to + base64_size(size) + _MARGIN > out.size:
            return int64(_NO_ROOM)
        return put_base64(text if value >= 0 else arena, max(value, ~value), size, out, to)
    if tag == UUID:
        return put_uuid(text if value >= 0 else arena, max(value, ~value), out, to)
    return int64(_LEFT_TO_TWIN)


@helper
def _put_row(
    text: Bytes,
    arena: Bytes,
    nodes: Records,
    at: int,
    keys: Records,
    key_bytes: Bytes,
    stack: Int64s,
    out: Bytes,
    to: int,
) -> int:
    """Write the value nodes[at]; returns its end, _NO_ROOM or _LEFT_TO_TWIN."""
    depth = int64(0)
    while True:
        if to + _MARGIN > out.size:
            return int64(_NO_ROOM)
        node = nodes[uint64(at)]
        if node.key != 0:
            key = keys[uint64(int64(node.key))]
            size = int64(key.length)
            if key.guess <= MAX_GUESS:
                # Nothing to escape, and a quote follows the name.
                store8(out, to, 34)
                copy_block(out, to + 1, key_bytes, int64(key.start))
                to += size + 2
            else:
                to = _put_string(key_bytes, int64(key.start), size, out, to)
                if to < 0 or to + _MARGIN > out.size:
                    return int64(_NO_ROOM)
            store8(out, to, 58)
            to += 1
        if node.tag >= OBJECT:
            bracket = int64(123 if node.tag == OBJECT else 91)
            store8(out, to, bracket)
            to += 1
            at += 1
            if node.span > 1:
                stack[uint64(depth)] = at - 1 + int64(node.span)
                stack[uint64(depth + 1)] = bracket + 2
                depth += 2
                continue
            store8(out, to, bracket + 2)
            to += 1
        else:
            to = _put_scalar(text, arena, nodes, at, out, to)
            if to < 0:
                return to
            at += 1
        while depth > 0 and at == stack[uint64(depth - 2)]:
            if to + _MARGIN > out.size:
                return int64(_NO_ROOM)
            store8(out, to, stack[uint64(depth - 1)])
            to += 1
            depth -= 2
        if depth == 0:
            return to
        store8(out, to, 44)
        to += 1


@entry
def write_json_rows(
    text: BytesIn,
    arena: BytesIn,
    nodes: Nodes,
    first: Int64sIn,
    row: int,
    keys: Keys,
    key_bytes: BytesIn,
    stack: Int64s,
    out: Bytes,
    offsets: Int32s,
    left: Bytes,
) -> int:
    """Write rows from `row` on, as many as there is room for; return the first unwritten row.

    text, arena, nodes, first: of a tape; keys, key_bytes: of its KeyTable. stack: int64, 2 *
    MAX_DEPTH. out: uint8. offsets: int32, rows + 1: earlier calls filled those up to `row`, this
    one fills more. left: uint8, one a row, set to 1 for a row that only the twin can write, which
    gets no text here. Allocates nothing, never raises.
    """
    rows = int64(first.size) - 1
    to = int64(offsets[uint64(row)])
    while row < rows:
        at = first[uint64(row)]
        if at < first[uint64(row + 1)]:
            end = _put_row(text, arena, nodes, at, keys, key_bytes, stack, out, to)
            if end == _NO_ROOM:
                break
            if end == _LEFT_TO_TWIN:
                left[uint64(row)] = 1
            else:
                to = end
        row += 1
        offsets[uint64(row)] = to
    return row


def write_texts(text: Bytes, starts: Int64s, ends: Int64s, tags: Bytes) -> AnyArray:
    """Write text[starts[r]:ends[r]] as JSON strings: a STRING as it is, a BINARY in base64.

    `text` has PADDING bytes after the last one. Raises as `write_json`.
    """
    rows = len(starts)
    nodes = np.zeros(rows, NODE).view(np.recarray)
    nodes.value, nodes.extra, nodes.span = starts, ends - starts, 1
    nodes.tag = tags
    nothing = np.zeros(rows, np.int64)
    keys = KeyTable()
    tape = Tape(
        text,
        np.zeros(PADDING, np.uint8),
        nodes,
        np.arange(rows + 1),
        nothing,
        nothing,
        keys,
        keys.count,
    )
    return write_json(tape)[0]


def write_json(tape: Tape) -> tuple[AnyArray, Bytes]:
    """Return the rows as a string array, null if they are bad or SQL NULL, and a mask.

    The mask, uint8, is 1 for rows that only the twin can write, such as those with types of a later
    version; they are empty strings here.

    Raises LimitExceeded, with the row, if the texts pass the 2 GB of one Arrow array: the text
    repeats the name of each field, a Variant holds it once.
    """
    rows = tape.rows
    offsets = np.zeros(rows + 1, np.int32)
    left = np.zeros(rows, np.uint8)
    stack = np.empty(2 * MAX_DEPTH, np.int64)
    size = len(tape.text) + 8 * tape.node_count + _MARGIN
    row = 0
    buffer, out = new_buffer(min(size, LARGEST_ARRAY))
    while True:
        row = write_json_rows(
            tape.text, tape.arena, tape.nodes, tape.first, row, tape.keys.keys,
            tape.keys.key_bytes, stack, out, offsets, left,
        )  # fmt: skip
        used = int(offsets[row])
        if row == rows:
            break
        if len(out) >= LARGEST_ARRAY:
            raise LimitExceeded("the JSON text is over the 2 GB of one Arrow array", row=row)
        buffer, out = larger_buffer(out, used)
    good = tape.status == 0
    nulls = rows - int(np.count_nonzero(good))
    buffers = [bitmap_of(good), buffer_of(offsets), buffer.slice(0, used)]
    return array_of(pa.string(), rows, buffers, nulls=nulls), left
