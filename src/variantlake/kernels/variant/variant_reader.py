"""Read Variant binaries, which may hold any bytes, into a tape. Twin: encoding.tree.decode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from variantlake.encoding.limits import MAX_DEPTH, MAX_KEYS, MAX_VALUE_BYTES
from variantlake.encoding.tree import decode
from variantlake.errors import MalformedVariant, VariantLakeError
from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int32sIn,
    Int64s,
    Records,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.arrow_arrays import AnyArray, are_within, plain_binary, slots_of
from variantlake.kernels.tape.buffers import BufferPool
from variantlake.kernels.tape.containers import EXTENT, read_extents, read_header
from variantlake.kernels.tape.exact import count_digits
from variantlake.kernels.tape.keys import (
    KEY_BYTES,
    KEY_COUNT,
    KEY_SERIAL,
    Keys,
    KeyTable,
    equal_bytes,
    find_key,
)
from variantlake.kernels.tape.nodes import (
    ARRAY,
    BINARY,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    INT8,
    INT16,
    OBJECT,
    OPAQUE,
    STRING,
    WIDTHS,
    Nodes,
    array_size,
    object_size,
    string_size,
)
from variantlake.kernels.tape.tape import SQL_NULL, Tape
from variantlake.kernels.tape.utf8 import valid_utf8
from variantlake.kernels.tape.words import PADDING, load8, load32, load64, load_unsigned
from variantlake.shredding.arrays import valid_of
from variantlake.shredding.values import LACKING
from variantlake.types import MAX_PRECISION

# Values of `Tape.status` for a row that VariantReader read, next to SQL_NULL.
GOOD = 0
MALFORMED = 1
"""Bytes that are no valid metadata or no valid value."""
TOO_DEEP = 5
"""More than MAX_DEPTH nested containers."""
TOO_LARGE = 7
"""More than MAX_VALUE_BYTES bytes, or MAX_KEYS keys."""

# Places in the reader's state array, after those of the KeyTable.
_NODES, _POSITION, DICTIONARY = 4, 5, 7

_FIRST_LACKING, _MORE_LACKING = np.uint8(min(LACKING)), np.uint8(max(LACKING) - min(LACKING))
_FRAME = 6
"""Words kept for each open container."""

_LIMIT, _DEPTH_WORDS, _KEYS_LIMIT, _SCALE_LIMIT = (
    MAX_VALUE_BYTES, MAX_DEPTH * _FRAME, MAX_KEYS, MAX_PRECISION,
)  # fmt: skip


class VariantRows(NamedTuple):
    """Variants in the layout of Arrow; any bytes.

    metadata, data: uint8, padded. metadata_offsets, offsets: int32, rows + 1, ascending and within
    them. valid: uint8, 0 for a null row.
    """

    metadata: BytesIn
    metadata_offsets: Int32sIn
    data: BytesIn
    offsets: Int32sIn
    valid: BytesIn


class KeyArrays(NamedTuple):
    """The arrays of a KeyTable, and `local`: int32, as long as the longest metadata of a row."""

    keys: Keys
    key_bytes: Bytes
    slots: Int32s
    seen: Int64s
    local: Int32s
    state: Int64s


@helper
def read_metadata(
    metadata: Bytes,
    start: int,
    end: int,
    keys: Records,
    key_bytes: Bytes,
    slots: Int32s,
    seen: Int64s,
    local: Int32s,
    state: Int64s,
) -> int:
    """Fill `local` with the key ids of the dictionary metadata[start:end]; returns a status."""
    if start == end:
        return int64(MALFORMED)
    header = load8(metadata, start)
    width = (header >> 6) + 1
    if header & 0x0F != 1 or end - start < 1 + width:
        return int64(MALFORMED)
    size = load_unsigned(metadata, start + 1, width)
    place = start + 1 + width
    strings = place + (size + 1) * width
    if strings > end:
        return int64(MALFORMED)
    if size > _KEYS_LIMIT or end - start > _LIMIT:
        return int64(TOO_LARGE)
    # `seen` holds the serial of the last dictionary with the key, so it need not be cleared.
    serial = state[KEY_SERIAL] + 1
    state[KEY_SERIAL] = serial
    offset = load_unsigned(metadata, place, width)
    if offset != 0:
        return int64(MALFORMED)
    for index in range(size):
        place += width
        following = load_unsigned(metadata, place, width)
        if following < offset or strings + following > end:
            return int64(MALFORMED)
        key = find_key(
            metadata, strings + offset, following - offset, keys, key_bytes, slots, state
        )
        if key < 0:
            return int64(MALFORMED)
        # Only a sorted dictionary must not repeat a key.
        if seen[uint64(key)] == serial and header & 0x10 != 0:
            return int64(MALFORMED)
        seen[uint64(key)] = serial
        local[uint64(index)] = key
        offset = following
    if strings + offset != end:
        return int64(MALFORMED)
    state[DICTIONARY] = size
    return int64(GOOD)


@helper
def _read_scalar(data: Bytes, start: int, end: int, nodes: Records, at: int) -> bool:
    """Write the primitive or short string that fills data[start:end]; False if none does."""
    node = nodes[uint64(at)]
    header = load8(data, start)
    node.span = 1
    if header & 3 == 1:
        count = end - start - 1
        node.tag = STRING
        node.value = start + 1
        node.extra = count
        node.length = string_size(count)
        return header >> 2 == count and valid_utf8(data, start + 1, end)
    tag = header >> 2
    node.length = end - start
    # Keep a type of a later specification as opaque bytes.
    if tag >= WIDTHS.size:
        node.tag = OPAQUE
        node.value = start
        return True
    node.tag = tag
    width = int64(WIDTHS[uint64(tag)])
    if width < 0:
        count = load32(data, start + 1)
        node.value = start + 5
        node.extra = count
        if end - start < 5 or start + 5 + count != end:
            return False
        if tag == BINARY:
            return True
        node.length = string_size(count)
        return valid_utf8(data, start + 5, end)
    if start + 1 + width != end:
        return False
    if tag < DECIMAL4 or tag > DECIMAL16:
        if width == 16:
            node.value = start + 1
            return True
        value = load64(data, start + 1)
        # The upper bytes may belong to the next value: shift them out.
        if tag == INT8:
            value = (value << int64(56)) >> int64(56)
        elif tag == INT16:
            value = (value << int64(48)) >> int64(48)
        elif width == 4:
            value = (value << int64(32)) >> int64(32)
        node.value = value
        return True
    # A decimal with more digits than its type allows is malformed, even if the bytes hold them.
    scale = load8(data, start + 1)
    node.extra = scale
    value = load64(data, start + 2)
    digits = int64(MAX_PRECISION)
    if tag == DECIMAL4:
        value = (value << int64(32)) >> int64(32)
        digits = int64(9)
    elif tag == DECIMAL8:
        digits = int64(18)
    else:
        value = start + 2
    node.value = value
    return scale <= _SCALE_LIMIT and count_digits(data, data, node) <= digits


@helper
def read_ids(
    data: Bytes, place: int, count: int, width: int, seen: Int64s, local: Int32s, state: Int64s
) -> bool:
    """Whether an object's field ids are in the dictionary, and no name comes twice."""
    serial = state[KEY_SERIAL] + 1
    state[KEY_SERIAL] = serial
    for index in range(count):
        field = load_unsigned(data, place + index * width, width)
        if field >= state[DICTIONARY]:
            return False
        key = uint64(int64(local[uint64(field)]))
        if seen[key] == serial:
            return False
        seen[key] = serial
    return True


@helper
def _read_value(
    data: Bytes,
    start: int,
    end: int,
    t: int,
    nodes: Records,
    seen: Int64s,
    local: Int32s,
    stack: Int64s,
    work: Int64s,
    state: Int64s,
) -> int:
    """Append the nodes of the value that fills data[start:end] at nodes[t].

    Returns the new end of the nodes, or -status with state[_POSITION] set.
    """
    depth = top = count = index = base = ids = id_width = content = int64(0)
    parent = int64(-1)
    key = int64(0)
    while True:
        state[_POSITION] = start
        if start == end:
            return int64(-MALFORMED)
        node = nodes[uint64(t)]
        node.key = key
        header = load8(data, start)
        if header & 2 == 0:
            if not _read_scalar(data, start, end, nodes, t):
                return int64(-MALFORMED)
            content += int64(node.length)
            t += 1
        else:
            if depth == _DEPTH_WORDS:
                return int64(-TOO_DEEP)
            stack[uint64(depth)] = parent
            # The rest of a frame's state is rebuilt from these words.
            stack[uint64(depth + 1)] = top << 32 | count
            stack[uint64(depth + 2)] = index
            stack[uint64(depth + 3)] = base
            stack[uint64(depth + 4)] = ids << 3 | id_width
            stack[uint64(depth + 5)] = content
            depth += _FRAME
            top += count
            count, ids, id_width, width, base = read_header(data, start, end)
            if count < 0:
                return int64(-MALFORMED)
            offsets = ids + count * id_width
            if not read_extents(data, offsets, count, width, end - base, work, top):
                return int64(-MALFORMED)
            if id_width > 0 and not read_ids(data, ids, count, id_width, seen, local, state):
                return int64(-MALFORMED)
            node.tag = OBJECT if id_width > 0 else ARRAY
            node.extra = count
            parent = t
            index = content = int64(0)
            t += 1
        while parent >= 0 and index == count:
            node = nodes[uint64(parent)]
            node.content = content
            node.span = t - parent
            length = array_size(count, content)
            if id_width > 0:
                length = object_size(count, content, int64(1))
            node.length = length
            depth -= _FRAME
            parent = stack[uint64(depth)]
            top = stack[uint64(depth + 1)] >> int64(32)
            count = stack[uint64(depth + 1)] & EXTENT
            index = stack[uint64(depth + 2)]
            base = stack[uint64(depth + 3)]
            ids = stack[uint64(depth + 4)] >> int64(3)
            id_width = stack[uint64(depth + 4)] & 7
            content = stack[uint64(depth + 5)] + length
        if parent < 0:
            return t
        extent = work[uint64(top + index)]
        start = base + (extent >> int64(32))
        end = base + (extent & EXTENT)
        key = int64(0)
        if id_width > 0:
            key = int64(local[uint64(load_unsigned(data, ids + index * id_width, id_width))])
        index += 1


@entry
def read_variants(
    variants: VariantRows,
    row: int,
    nodes: Nodes,
    table: KeyArrays,
    stack: Int64s,
    work: Int64s,
    first: Int64s,
    status: Int64s,
    position: Int64s,
) -> int:
    """Read the Variants from `row` on, as many as there is room for.

    nodes: NODE. stack: int64, MAX_DEPTH * 6. work: int64, as long as the longest value and
    MAX_DEPTH. first (rows + 1), status, position (rows): int64, filled. Returns the first row that
    it did not read: the number of rows when it is done, else one that needs more nodes or a larger
    KeyTable. Allocates nothing, never raises.
    """
    metadata, metadata_offsets, data, offsets, valid = variants
    keys, key_bytes, slots, seen, local, state = table
    rows = int64(offsets.size) - 1
    t = state[_NODES]
    known, known_size = int64(-1), int64(-1)
    while row < rows:
        start, end = int64(offsets[uint64(row)]), int64(offsets[uint64(row + 1)])
        from_, to = int64(metadata_offsets[uint64(row)]), int64(metadata_offsets[uint64(row + 1)])
        size = to - from_
        if (
            # A value has at most a node per byte, a dictionary at most a key per two bytes.
            t + end - start + 1 > nodes.size
            or state[KEY_COUNT] + size // 2 + 2 > keys.size
            or state[KEY_BYTES] + 2 * size + PADDING > key_bytes.size
        ):
            break
        first[uint64(row)] = t
        position[uint64(row)] = 0
        result = int64(GOOD)
        if valid[uint64(row)] == 0:
            result = int64(SQL_NULL)
        elif end - start > _LIMIT:
            result = int64(TOO_LARGE)
        elif size != known_size or not equal_bytes(metadata, from_, metadata, known, size):
            known, known_size = from_, size
            result = read_metadata(metadata, from_, to, keys, key_bytes, slots, seen, local, state)
            if result != GOOD:
                known_size = int64(-1)
        if result == GOOD:
            read = _read_value(data, start, end, t, nodes, seen, local, stack, work, state)
            if read < 0:
                result = -read
                position[uint64(row)] = state[_POSITION] - start
            else:
                t = read
        status[uint64(row)] = result
        row += 1
    first[uint64(row)] = t
    state[_NODES] = t
    return row


_FORGET_KEYS = 1 << 16
"""Beyond this many names the documents' keys are data: the reader begins a new table."""


class VariantReader:
    """Reads arrays of Variants into tapes; keeps its key dictionary between them.

    One thread at a time. A null row gets the status SQL_NULL, a row that is no Variant another
    nonzero status; neither has nodes. `bad_variant` returns the exact error.
    """

    def __init__(self) -> None:
        self._keys = KeyTable()
        self._stack: Int64s = np.empty(_DEPTH_WORDS, np.int64)
        self._pool = BufferPool()

    def read(self, array: pa.StructArray) -> Tape:
        """Read struct<metadata: binary, value: binary>, in any order of the two."""
        rows = len(array)
        metadata, metadata_offsets = bytes_of(array.field("metadata"))
        data, offsets = bytes_of(array.field("value"))
        valid = np.ascontiguousarray(valid_of(array), np.uint8)
        if self._keys.count > _FORGET_KEYS:
            self._keys = KeyTable()
        table = self._keys
        local = np.empty(int(np.diff(metadata_offsets).max(initial=0)) + 1, np.int32)
        longest = int(np.diff(offsets).max(initial=0))
        work = np.empty(longest + 2 * MAX_DEPTH + 64, np.int64)
        first, status, position = (np.empty(rows + extra, np.int64) for extra in (1, 0, 0))
        table.state[_NODES] = 0
        # A typical value has a node per 10 bytes; the loop adds more if the rows need them.
        buffers = self._pool.take()
        nodes = buffers.grow_nodes(0, int(offsets[-1] - offsets[0]) // 8 + 2 * rows)
        variants = VariantRows(metadata, metadata_offsets, data, offsets, valid)
        row = 0
        while True:
            arrays = key_arrays(table, local)
            row = read_variants(
                variants, row, nodes, arrays, self._stack, work, first, status, position
            )
            if row == rows:
                break
            names = int(metadata_offsets[row + 1] - metadata_offsets[row])
            table.reserve(names // 2 + 2, 2 * names + PADDING)
            used = int(table.state[_NODES])
            nodes = buffers.grow_nodes(used, used + int(offsets[row + 1] - offsets[row]) + 1)
        empty = np.zeros(PADDING, np.uint8)
        lacking = _any_lacking(np.ascontiguousarray(nodes["tag"][: int(first[-1])]))
        tape = Tape(data, empty, nodes, first, status, position, table, table.count, lacking)
        buffers.lend(tape)
        return tape


def key_arrays(table: KeyTable, local: Int32s) -> KeyArrays:
    """Return the current arrays of a table: it makes new ones when it grows."""
    return KeyArrays(table.keys, table.key_bytes, table.slots, table.seen, local, table.state)


def _any_lacking(tags: Bytes) -> bool:
    """Whether Spark lacks the type of any node, types of a later specification included."""
    known = (tags - _FIRST_LACKING <= _MORE_LACKING).any()
    return bool(known or (tags == OPAQUE).any())


def bytes_of(array: AnyArray) -> tuple[Bytes, Int32s]:
    """Return the padded data of a binary array and the offsets of its rows.

    Raises MalformedVariant if the offsets pass the data.
    """
    data, offsets = slots_of(plain_binary(array))
    if not are_within(offsets, data):
        raise MalformedVariant("the offsets of an Arrow array pass its data")
    start, end = int(offsets[0]), int(offsets[-1])
    if len(data) < end + PADDING:
        data = np.concatenate([data[start:end], np.zeros(PADDING, np.uint8)])
        offsets = offsets - np.int32(start)
    return data, np.ascontiguousarray(offsets)


def bad_variant(array: pa.StructArray, row: int) -> VariantLakeError:
    """Return the plain decoder's error for a row that VariantReader refused."""
    found: VariantLakeError = MalformedVariant(
        "the value was refused", hint="internal error; please report it"
    )
    try:
        decode(
            array.field("metadata")[row].as_py() or b"", array.field("value")[row].as_py() or b""
        )
    except VariantLakeError as error:
        found = error
    found.row = row
    return found
