"""The column chunks of a Parquet footer, nearly all of its bytes where columns are many.

Reads what writers write. Whatever is unusual or wrong is left to the twin, parquet.metadata.thrift
with the tables of parquet.metadata.footer, which words the errors. Spec: Parquet, `parquet.thrift`;
Thrift, "compact protocol".
"""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import Bytes, Int64s, bytes_in, i64, int64, int64s, uint64
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.words import load8

_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
_STRUCT = 12
"""Wire types of the compact protocol."""

CHUNK_FIELDS = {4: 0, 6: 1}
"""Slots of ColumnChunk's numbers by field id."""
META_FIELDS = {1: 2, 4: 3, 5: 4, 6: 5, 7: 6, 9: 7, 11: 8}
"""Those of ColumnMetaData."""
COUNT_FIELDS = {3: 9}
"""Those of Statistics."""
BYTES_FIELDS = {1: 10, 2: 12, 5: 14, 6: 16}
"""Those of its binaries: where one begins, and in the next slot its size."""
FLAG_FIELDS = {7: 18, 8: 19}
"""Those of its booleans."""
PRESENT, END, WIDTH = 20, 21, 22
"""The slot of a bit for each slot that is set, that of the struct's end, and how many there are."""
META, STATISTICS = 3, 12
"""The ids of ColumnChunk.meta_data and ColumnMetaData.statistics."""

HAS_META, HAS_STATISTICS = 1 << 62, 1 << 61
"""Bits of PRESENT: whether the chunk has the one, that the other."""

_DEPTH = 8
"""Structs and lists in each other that are skipped here."""


def _slots(fields: dict[int, int]) -> Int64s:
    """A slot for each field id up to 15, -1 where there is none."""
    return np.array([fields.get(number, -1) for number in range(16)], np.int64)


_CHUNK, _META = _slots(CHUNK_FIELDS), _slots(META_FIELDS)
_COUNTS, _BYTES, _FLAGS = _slots(COUNT_FIELDS), _slots(BYTES_FIELDS), _slots(FLAG_FIELDS)


@helper
def _varint(data: Bytes, at: int, out: Int64s, slot: int) -> int:
    """Read an unsigned number into out[slot]; returns where it ends, -1 where it is none."""
    result = shift = int64(0)
    while at < data.size:
        byte = load8(data, at)
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            out[uint64(slot)] = result
            return at if shift < 63 or byte < 2 else -1
        shift += 7
        if shift > 63:
            return -1
    return -1


@helper
def _number(data: Bytes, at: int, wire: int, out: Int64s, slot: int) -> int:
    """The same for a signed number of a wire type."""
    at = _varint(data, at, out, slot)
    word = out[uint64(slot)]
    value = (word >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(word & 1)
    out[uint64(slot)] = value
    if wire == _I32 and (value < -0x80000000 or value > 0x7FFFFFFF):
        return -1
    return at


@tiny
def _header(data: Bytes, at: int) -> int:
    """The byte that begins a field, 0 for a struct's end; -1 if there is none, or the long form."""
    if at < 0 or at >= data.size:
        return -1
    header = load8(data, at)
    return header if header == 0 or header > 15 else int64(-1)


@helper
def _skip(data: Bytes, at: int, wire: int, stack: Int64s) -> int:
    """Step over a field's value; returns where it ends, -1 where it is not usual.

    stack: 2 + 2 * _DEPTH words: a scratch word, then for each open list how many elements are to
    come and their type, for each open struct -1.
    """
    depth = int64(0)
    while True:
        if _I16 <= wire <= _I64:
            at = _varint(data, at, stack, int64(0))
        elif wire == _BINARY:
            at = _varint(data, at, stack, int64(0))
            size = stack[uint64(0)]
            if at < 0 or size < 0 or size > data.size - at:
                return -1
            at += size
        elif wire == _DOUBLE:
            at += 8
        elif wire == _I8:
            at += 1
        elif wire == _STRUCT or wire == _LIST or wire == _SET:
            depth += 1
            if depth > _DEPTH:
                return -1
            stack[uint64(2 * depth)] = -1
            if wire != _STRUCT:
                if at >= data.size:
                    return -1
                header = load8(data, at)
                at += 1
                stack[uint64(2 * depth)] = header >> 4
                stack[uint64(2 * depth + 1)] = header & 15
                if header >> 4 == 15:
                    at = _varint(data, at, stack, 2 * depth)
                left = stack[uint64(2 * depth)]
                if at < 0 or left < 0 or left > data.size - at:
                    return -1
        elif wire != _TRUE and wire != _FALSE:
            return -1
        if at < 0 or at > data.size:
            return -1
        # What comes next: an element of the innermost list, a field of the innermost struct.
        while True:
            if depth == 0:
                return at
            left = stack[uint64(2 * depth)]
            if left == 0:
                depth -= 1
            elif left > 0:
                stack[uint64(2 * depth)] = left - 1
                wire = stack[uint64(2 * depth + 1)]
                if wire == _TRUE or wire == _FALSE:
                    wire = int64(_I8)  # in a list, a boolean takes a byte
                break
            else:
                header = _header(data, at)
                if header < 0:
                    return -1
                at += 1
                if header == 0:
                    depth -= 1
                else:
                    wire = header & 15
                    break


@tiny
def _statistics(data: Bytes, at: int, out: Int64s, base: int, stack: Int64s) -> int:
    """Read a Statistics into its slots; returns where it ends, or -1."""
    field = int64(0)
    while True:
        header = _header(data, at)
        if header < 0:
            return -1
        at += 1
        if header == 0:
            return at
        wire = header & 15
        field += header >> 4
        known = min(field, 15)
        slot = int64(_COUNTS[uint64(known)])
        if slot >= 0:
            if wire != _I64:
                return -1
            at = _number(data, at, wire, out, base + slot)
        elif _BYTES[uint64(known)] >= 0:
            if wire != _BINARY:
                return -1
            slot = int64(_BYTES[uint64(known)])
            at = _varint(data, at, out, base + slot + 1)
            size = out[uint64(base + slot + 1)]
            if at < 0 or size < 0 or size > data.size - at:
                return -1
            out[uint64(base + slot)] = at
            at += size
        elif _FLAGS[uint64(known)] >= 0:
            if wire != _TRUE and wire != _FALSE:
                return -1
            slot = int64(_FLAGS[uint64(known)])
            out[uint64(base + slot)] = wire == _TRUE
        else:
            at = _skip(data, at, wire, stack)
        if slot >= 0:
            out[uint64(base + PRESENT)] |= int64(1) << slot


@tiny
def _meta_data(data: Bytes, at: int, out: Int64s, base: int, stack: Int64s) -> int:
    """Read a ColumnMetaData into its slots; returns where it ends, or -1."""
    field = int64(0)
    while True:
        header = _header(data, at)
        if header < 0:
            return -1
        at += 1
        if header == 0:
            return at
        wire = header & 15
        field += header >> 4
        slot = int64(_META[uint64(min(field, 15))])
        if slot >= 0:
            if wire != (_I32 if field < 5 else _I64):
                return -1
            at = _number(data, at, wire, out, base + slot)
            out[uint64(base + PRESENT)] |= int64(1) << slot
        elif field == STATISTICS:
            if wire != _STRUCT:
                return -1
            out[uint64(base + PRESENT)] |= HAS_STATISTICS
            at = _statistics(data, at, out, base, stack)
        else:
            at = _skip(data, at, wire, stack)


@entry(i64(bytes_in, i64, i64, int64s, int64s))
def read_column_chunks(data: Bytes, at: int, count: int, out: Int64s, stack: Int64s) -> int:
    """Read `count` ColumnChunks from data[at] on; returns where they end.

    data: uint8, any bytes. out: int64, zero, WIDTH for each chunk, filled as the slots say.
    stack: int64, STACK words. -1 for what is not usual: a field of another type than the
    specification gives it, ids of fields in the long form, more nesting, bytes that end early.
    Allocates nothing, never raises. Twin: parquet.metadata.footer.
    """
    for chunk in range(count):
        base = int64(chunk) * WIDTH
        field = int64(0)
        while True:
            header = _header(data, at)
            if header < 0:
                return -1
            at += 1
            if header == 0:
                break
            wire = header & 15
            field += header >> 4
            slot = int64(_CHUNK[uint64(min(field, 15))])
            if slot >= 0:
                if wire != _I64:
                    return -1
                at = _number(data, at, wire, out, base + slot)
                out[uint64(base + PRESENT)] |= int64(1) << slot
            elif field == META:
                if wire != _STRUCT:
                    return -1
                out[uint64(base + PRESENT)] |= HAS_META
                at = _meta_data(data, at, out, base, stack)
            else:
                at = _skip(data, at, wire, stack)
        out[uint64(base + END)] = at
    return at


STACK = 2 + 2 * _DEPTH


def column_chunks(footer: bytes, start: int, count: int) -> tuple[list[list[int]], int] | None:
    """The slots of each of `count` ColumnChunks that begin at footer[start], and where they end.

    None where something is unusual.
    """
    out = np.zeros(count * WIDTH, np.int64)
    stack = np.zeros(STACK, np.int64)
    end = read_column_chunks(np.frombuffer(footer, np.uint8), start, count, out, stack)
    return None if end < 0 else (out.reshape(count, WIDTH).tolist(), end)
