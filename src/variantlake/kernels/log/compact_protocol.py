"""Read Thrift's compact protocol as writers usually write it; refuse anything unusual.

Spec: Thrift, "compact protocol". Twin: parquet.metadata.thrift.
"""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import Bytes, Int64s, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.words import load8

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
STRUCT = 12
"""Wire types of the compact protocol."""

_DEPTH = 8
"""The deepest nesting of structs and lists that `skip` accepts."""

_SKIPPED = 2 + 2 * _DEPTH
"""Words of the `stack` that `skip` needs."""

STACK = _SKIPPED + 2 * 3
"""Words of the `stack` that `read_struct` needs, for tables that nest at most four structs."""


def field_table(*structs: dict[int, int]) -> Int64s:
    """Build the table of the fields that `read_struct` keeps, by their ids, up to 14.

    The values come from `kept` and `nested`, or are UNUSUAL. The first struct is the outermost.
    """
    return np.array([struct.get(number, 0) for struct in structs for number in range(16)], np.int64)


UNUSUAL = -1
"""A field whose struct only the plain reader can read."""


def kept(wire: int, slot: int) -> int:
    """Describe a field of a wire type whose value goes into a slot; TRUE stands for booleans."""
    return wire | slot << 8


def nested(struct: int, bit: int) -> int:
    """Describe a nested struct: its index in the table, and the bit that marks its presence."""
    return STRUCT | bit << 8 | struct << 16


@helper
def varint(data: Bytes, at: int, out: Int64s, slot: int) -> int:
    """Read an unsigned number into out[slot]; return where it ends, -1 if it is malformed."""
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
def number(data: Bytes, at: int, wire: int, out: Int64s, slot: int) -> int:
    """Read a signed number of a wire type into out[slot]; return where it ends, or -1."""
    at = varint(data, at, out, slot)
    word = out[uint64(slot)]
    value = (word >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(word & 1)
    out[uint64(slot)] = value
    if wire == I32 and (value < -0x80000000 or value > 0x7FFFFFFF):
        return -1
    return at


@tiny
def field_header(data: Bytes, at: int) -> int:
    """Return a field's first byte, 0 at a struct's end, -1 at the data's end or for a long form."""
    if at < 0 or at >= data.size:
        return -1
    header = load8(data, at)
    return header if header == 0 or header > 15 else int64(-1)


@helper
def skip(data: Bytes, at: int, wire: int, stack: Int64s) -> int:
    """Skip a field's value; return where it ends, -1 if it is unusual.

    stack: 2 + 2 * _DEPTH words: from the third on, two for each open list, the number of its
    remaining elements and their type, or for each open struct, with -1 first. The first is scratch.
    """
    depth = int64(0)
    while True:
        if I16 <= wire <= I64:
            at = varint(data, at, stack, int64(0))
        elif wire == BINARY:
            at = varint(data, at, stack, int64(0))
            size = stack[uint64(0)]
            if at < 0 or size < 0 or size > data.size - at:
                return -1
            at += size
        elif wire == DOUBLE:
            at += 8
        elif wire == I8:
            at += 1
        elif wire == STRUCT or wire == LIST or wire == SET:
            depth += 1
            if depth > _DEPTH:
                return -1
            stack[uint64(2 * depth)] = -1
            if wire != STRUCT:
                if at >= data.size:
                    return -1
                header = load8(data, at)
                at += 1
                stack[uint64(2 * depth)] = header >> 4
                stack[uint64(2 * depth + 1)] = header & 15
                if header >> 4 == 15:
                    at = varint(data, at, stack, 2 * depth)
                left = stack[uint64(2 * depth)]
                if at < 0 or left < 0 or left > data.size - at:
                    return -1
        elif wire != TRUE and wire != FALSE:
            return -1
        if at < 0 or at > data.size:
            return -1
        # Find what comes next: an element of the innermost list, a field of the innermost struct.
        while True:
            if depth == 0:
                return at
            left = stack[uint64(2 * depth)]
            if left == 0:
                depth -= 1
            elif left > 0:
                stack[uint64(2 * depth)] = left - 1
                wire = stack[uint64(2 * depth + 1)]
                if wire == TRUE or wire == FALSE:
                    wire = int64(I8)  # in a list, a boolean takes a byte
                break
            else:
                header = field_header(data, at)
                if header < 0:
                    return -1
                at += 1
                if header == 0:
                    depth -= 1
                else:
                    wire = header & 15
                    break


@helper
def read_struct(
    data: Bytes, at: int, table: Int64s, out: Int64s, base: int, present: int, stack: Int64s
) -> int:
    """Read the struct at data[at], and the nested ones in `table`; return its end, or -1.

    Values go into slots of `out` from `base` on: a number as it is, a boolean as 1 or 0, a binary
    as its place, with its size in the next slot. out[base + present] gets a bit for each filled
    slot. Returns -1 if a field's wire type differs from the table, or for anything unusual.
    """
    struct = field = depth = int64(0)
    while True:
        header = field_header(data, at)
        if header < 0:
            return -1
        at += 1
        if header == 0:
            if depth == 0:
                return at
            depth -= 1
            struct = stack[uint64(_SKIPPED + 2 * depth)]
            field = stack[uint64(_SKIPPED + 2 * depth + 1)]
            continue
        wire = header & 15
        field += header >> 4
        known = int64(table[uint64(struct + min(field, 15))])
        if known == 0:
            at = skip(data, at, wire, stack)
            continue
        if known < 0:  # the plain reader decides
            return -1
        wanted = known & 15
        if wire != wanted and (wire != FALSE or wanted != TRUE):
            return -1
        bit = known >> 8 & 63
        out[uint64(base + present)] |= int64(1) << bit
        slot = base + bit
        if wire == STRUCT:
            stack[uint64(_SKIPPED + 2 * depth)] = struct
            stack[uint64(_SKIPPED + 2 * depth + 1)] = field
            depth += 1
            struct, field = known >> 16 << 4, int64(0)
        elif wire == BINARY:
            at = varint(data, at, out, slot + 1)
            size = out[uint64(slot + 1)]
            if at < 0 or size < 0 or size > data.size - at:
                return -1
            out[uint64(slot)] = at
            at += size
        elif wanted == TRUE:
            out[uint64(slot)] = int64(wire == TRUE)
        else:
            at = number(data, at, wire, out, slot)
