"""JSON text to tape. Twin: encoding.json."""

from __future__ import annotations

import struct
from typing import Literal

import numpy as np

from variantlake.encoding.limits import MAX_DEPTH, MAX_VALUE_BYTES
from variantlake.kernels.json.numbers import ARENA, UNDECIDED_COUNT, UNDECIDED_DOUBLE, read_number
from variantlake.kernels.json.strings import unescape
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
from variantlake.kernels.native.jit import entry, tiny
from variantlake.kernels.tape.buffers import BufferPool
from variantlake.kernels.tape.duplicate_keys import has_duplicate, keep_last
from variantlake.kernels.tape.keys import KEY_BYTES, KEY_COUNT, Keys, KeyTable, find_key
from variantlake.kernels.tape.nodes import (
    ARRAY,
    DOUBLE,
    FALSE,
    NULL,
    OBJECT,
    STRING,
    TRUE,
    Nodes,
    array_size,
    object_size,
    string_size,
)
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.utf8 import valid_utf8
from variantlake.kernels.tape.words import (
    PADDING,
    equal_block,
    load8,
    load32,
    scan_string,
    trailing_zeros,
)

# What `Tape.status` says of a row that JsonReader read.
GOOD = 0
INCOMPLETE = 1
"""The text ends too early."""
UNEXPECTED = 2
"""A byte that cannot stand there."""
BAD_STRING = 3
"""A string that is not closed, or holds a control character, a bad escape or bad UTF-8."""
BAD_NUMBER = 4
TOO_DEEP = 5
"""More than MAX_DEPTH containers in each other."""
DUPLICATE_KEY = 6
TOO_LARGE = 7
"""Its Variant would have more than MAX_VALUE_BYTES bytes."""

# Places in the reader's state array, after those of keys and numbers.
_NODES, _POSITION, _LAST_WINS = 4, 5, 7

_FRAME = 6
"""Words that the reader keeps for each open container."""

_VALUE, _AFTER, _KEY = 0, 1, 2
_LIMIT = MAX_VALUE_BYTES
_LONGEST = 8 * MAX_VALUE_BYTES
"""Bytes of text that are worth reading: no document shrinks that much, but for blanks."""
_DEPTH_WORDS = MAX_DEPTH * _FRAME


@tiny
def _blank(byte: int) -> bool:
    return byte == 32 or byte == 10 or byte == 13 or byte == 9


@tiny
def _read_row(
    text: Bytes,
    p: int,
    end: int,
    t: int,
    nodes: Records,
    arena: Bytes,
    keys: Records,
    key_bytes: Bytes,
    slots: Int32s,
    seen: Int64s,
    stack: Int64s,
    state: Int64s,
) -> int:
    """Append the nodes of the document text[p:end] at nodes[t].

    Returns the new end of the nodes, or -status with state[_POSITION] set.
    """
    depth = int64(0)  # in words of the stack
    parent = int64(-1)
    count = content = bloom = suspect = close = key = last = int64(0)
    state_of = int64(_VALUE)
    status = int64(GOOD)
    while True:
        byte = load8(text, p)
        while byte <= 32 and _blank(byte) and p < end:
            p += 1
            byte = load8(text, p)
        if p >= end:
            if parent < 0 and state_of == _AFTER:
                break
            status = int64(INCOMPLETE)
            break
        if state_of == _AFTER:
            if byte == 44 and parent >= 0:
                p += 1
                state_of = int64(_KEY) if close == 125 else int64(_VALUE)
                continue
            if byte != close or parent < 0:
                status = int64(UNEXPECTED)
                break
            node = nodes[uint64(parent)]
            if suspect != 0 and has_duplicate(nodes, parent, t, seen, state):
                if state[_LAST_WINS] == 0:
                    status = int64(DUPLICATE_KEY)
                    break
                t = keep_last(nodes, parent, t, seen, state)
                count = int64(node.extra)
                content = int64(node.content)
            p += 1
            # Two statements, for Numba inlines no conditional expressions of calls.
            size = array_size(count, content)
            if close == 125:
                size = object_size(count, content, int64(1))
            if size > _LIMIT:
                status = int64(TOO_LARGE)
                break
            node.extra = count
            node.content = content
            node.length = size
            node.span = t - parent
            depth -= _FRAME
            parent = stack[uint64(depth)]
            count = stack[uint64(depth + 1)] + 1
            content = stack[uint64(depth + 2)] + size
            bloom = stack[uint64(depth + 3)]
            suspect = stack[uint64(depth + 4)]
            close = stack[uint64(depth + 5)]
            key = int64(0)
            continue
        if state_of == _KEY:
            if byte != 34:
                status = int64(UNEXPECTED)
                break
            p += 1
            # The key that followed `last` the previous time probably comes again.
            key = int64(keys[uint64(last)].next)
            guess = keys[uint64(key)]
            size = int64(guess.guess)
            if (
                size < 31
                and trailing_zeros(
                    equal_block(text, p, key_bytes, int64(guess.start)) ^ 0x1FFFFFFFF
                )
                > size
            ):
                p += size + 1
            else:
                q = p
                marks = scan_string(text, q) & 0xFFFFFFFF
                while marks == 0 and q < end:
                    q += 32
                    marks = scan_string(text, q) & 0xFFFFFFFF
                q += trailing_zeros(marks)
                if q >= end:
                    status = int64(BAD_STRING)
                    break
                if load8(text, q) == 34:
                    key = find_key(text, p, q - p, keys, key_bytes, slots, state)
                    q += 1
                else:
                    begin = state[ARENA]
                    q = unescape(text, p, end, arena, state)
                    if q < 0:
                        p = -1 - q
                        status = int64(BAD_STRING)
                        break
                    key = find_key(
                        arena, begin, state[ARENA] - begin, keys, key_bytes, slots, state
                    )
                if key < 0:
                    status = int64(BAD_STRING)
                    break
                p = q
                keys[uint64(last)].next = key
            last = key
            bit = int64(1) << (key & 63)
            suspect |= bloom & bit
            bloom |= bit
            byte = load8(text, p)
            while _blank(byte) and p < end:
                p += 1
                byte = load8(text, p)
            if p >= end or byte != 58:
                status = int64(UNEXPECTED)
                break
            p += 1
            state_of = int64(_VALUE)
            continue
        node = nodes[uint64(t)]
        node.key = key
        if byte == 34:
            p += 1
            q = p
            marks = scan_string(text, q)
            high = marks
            while marks & 0xFFFFFFFF == 0 and q < end:
                q += 32
                marks = scan_string(text, q)
                high |= marks
            q += trailing_zeros(marks)
            if q >= end:
                status = int64(BAD_STRING)
                break
            if load8(text, q) == 34:
                # The last block may hold others' bytes: then the check is for nothing.
                if high >> 32 != 0 and not valid_utf8(text, p, q):
                    status = int64(BAD_STRING)
                    break
                size = q - p
                node.value = p
                p = q + 1
            else:
                begin = state[ARENA]
                q = unescape(text, p, end, arena, state)
                if q < 0:
                    p = -1 - q
                    status = int64(BAD_STRING)
                    break
                p = q
                size = state[ARENA] - begin
                node.value = ~begin
            node.tag = STRING
            node.extra = size
            size = string_size(size)
            node.length = size
        elif byte == 123 or byte == 91:
            if depth >= _DEPTH_WORDS:
                status = int64(TOO_DEEP)
                break
            stack[uint64(depth)] = parent
            stack[uint64(depth + 1)] = count
            stack[uint64(depth + 2)] = content
            stack[uint64(depth + 3)] = bloom
            stack[uint64(depth + 4)] = suspect
            stack[uint64(depth + 5)] = close
            depth += _FRAME
            parent = t
            count = content = bloom = suspect = key = int64(0)
            close = byte + 2
            node.tag = OBJECT if byte == 123 else ARRAY
            t += 1
            p += 1
            byte = load8(text, p)
            while _blank(byte) and p < end:
                p += 1
                byte = load8(text, p)
            if byte == close:
                state_of = int64(_AFTER)
            else:
                state_of = int64(_KEY) if close == 125 else int64(_VALUE)
            continue
        elif byte == 45 or 48 <= byte <= 57:
            q = read_number(text, p, end, nodes, t, arena, state)
            if q < 0:
                p = -1 - q
                status = int64(BAD_NUMBER)
                break
            p = q
            size = int64(node.length)
        else:
            word = load32(text, p)
            if word == 0x6C6C756E and p + 4 <= end:
                node.tag = NULL
                p += 4
            elif word == 0x65757274 and p + 4 <= end:
                node.tag = TRUE
                p += 4
            elif byte == 102 and load32(text, p + 1) == 0x65736C61 and p + 5 <= end:
                node.tag = FALSE
                p += 5
            else:
                status = int64(UNEXPECTED)
                break
            size = int64(1)
            node.length = 1
        node.span = 1
        t += 1
        count += 1
        content += size
        state_of = int64(_AFTER)
    state[_POSITION] = p
    return t if status == GOOD else -status


@entry
def read_rows(
    text: BytesIn,
    starts: Int64sIn,
    ends: Int64sIn,
    row: int,
    nodes: Nodes,
    arena: Bytes,
    keys: Keys,
    key_bytes: Bytes,
    slots: Int32s,
    seen: Int64s,
    stack: Int64s,
    state: Int64s,
    first: Int64s,
    status: Int64s,
    position: Int64s,
) -> int:
    """Read the documents text[starts[r]:ends[r]] for r >= row, as many as there is room for.

    text: uint8, any bytes, padded by PADDING after the largest end. starts, ends: int64, one a
    row. nodes: NODE; arena: uint8, as long as all rows together, and padded; keys, key_bytes,
    slots, seen: of a KeyTable; stack: int64, MAX_DEPTH * 6; state: int64, the KeyTable's;
    first (rows + 1), status, position (rows): int64, filled. Returns the first row that was not
    read: all, or one that needs larger nodes or a larger KeyTable first. Allocates nothing,
    never raises. Twin: encoding.json.parse_json.
    """
    rows = int64(starts.size)
    t = state[_NODES]
    while row < rows:
        begin = starts[uint64(row)]
        end = ends[uint64(row)]
        length = end - begin
        if length > _LONGEST:
            first[uint64(row)] = t
            status[uint64(row)] = TOO_LARGE
            position[uint64(row)] = 0
            row += 1
            continue
        if (
            # A finished document has a node for two bytes at most, an unfinished one for each
            # open container besides.
            t + length // 2 + MAX_DEPTH + 2 > nodes.size
            or state[KEY_COUNT] + length // 4 + 2 > keys.size
            or state[KEY_BYTES] + length + PADDING > key_bytes.size
        ):
            break
        first[uint64(row)] = t
        kept = state[ARENA]
        undecided = state[UNDECIDED_COUNT]
        result = _read_row(
            text, begin, end, t, nodes, arena, keys, key_bytes, slots, seen, stack, state
        )
        if result > 0 and int64(nodes[uint64(t)].length) > _LIMIT:
            result = int64(-TOO_LARGE)
        if result < 0:
            status[uint64(row)] = -result
            position[uint64(row)] = state[_POSITION] - begin
            state[ARENA] = kept
            state[UNDECIDED_COUNT] = undecided
        else:
            status[uint64(row)] = 0
            position[uint64(row)] = 0
            t = result
        row += 1
    first[uint64(row)] = t
    state[_NODES] = t
    return row


_FORGET_KEYS = 1 << 16
"""Beyond this many names the documents' keys are data: a new table is begun."""


class JsonReader:
    """Reads batches of JSON documents into tapes; keeps its key dictionary between them.

    One thread at a time. A row that is not JSON, or that a Variant cannot hold, gets a status and
    has no nodes; `encoding.json.parse_json` raises the exact error for its text.
    """

    def __init__(self, *, duplicate_keys: Literal["error", "last"] = "error") -> None:
        self._last_wins = duplicate_keys == "last"
        self._keys = KeyTable()
        self._stack: Int64s = np.empty(_DEPTH_WORDS, np.int64)
        self._pool = BufferPool()

    def read(self, text: Bytes, starts: Int64s, ends: Int64s) -> Tape:
        """Read the documents text[starts[r]:ends[r]].

        text: uint8, contiguous; copied unless 64 bytes follow the last document, whatever they
        hold. starts, ends: int64, one a row. Batches of 1 to 4 MB keep the tape in the
        processor's cache.
        """
        text = np.ascontiguousarray(text)
        starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
        rows = len(starts)
        total = int((ends - starts).sum()) if rows else 0
        if rows and len(text) < int(ends.max()) + PADDING:
            text = np.concatenate([text, np.zeros(PADDING, np.uint8)])
        if self._keys.count > _FORGET_KEYS:
            self._keys = KeyTable()
        table, buffers = self._keys, self._pool.take()
        arena = buffers.grow_arena(total + 2 * PADDING)
        # A typical document has a node for 20 bytes; more is added where it has not.
        nodes = buffers.grow_nodes(0, total // 8 + 2 * rows + 4 * MAX_DEPTH)
        table.state[[_NODES, ARENA, UNDECIDED_COUNT]] = 0
        table.state[_LAST_WINS] = self._last_wins
        first, status, position = (np.empty(rows + extra, np.int64) for extra in (1, 0, 0))
        row = 0
        while True:
            row = read_rows(
                text, starts, ends, row, nodes, arena, table.keys, table.key_bytes, table.slots,
                table.seen, self._stack, table.state, first, status, position,
            )  # fmt: skip
            if row == rows:
                break
            length = int(ends[row] - starts[row])
            table.reserve(length // 4 + 2, length + PADDING)
            used = int(table.state[_NODES])
            nodes = buffers.grow_nodes(used, used + length // 2 + MAX_DEPTH + 2)
        if table.state[UNDECIDED_COUNT]:
            _finish_doubles(text, nodes[: int(first[rows])])
        tape = Tape(text, arena, nodes, first, status, position, table, table.count)
        buffers.lend(tape)
        return tape


def _finish_doubles(text: Bytes, nodes: Records) -> None:
    """Python's float() rounds right whatever the digits; few numbers need it."""
    for at in np.flatnonzero(nodes["tag"] == UNDECIDED_DOUBLE).tolist():
        start, length = int(nodes["value"][at]), int(nodes["extra"][at])
        number = float(text[start : start + length].tobytes())
        nodes["tag"][at] = DOUBLE
        nodes["value"][at] = struct.unpack("<q", struct.pack("<d", number))[0]
