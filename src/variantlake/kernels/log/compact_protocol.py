"""Reading Thrift's compact protocol as writers write it; all that is unusual is refused.

Spec: Thrift, "compact protocol". Twin: parquet.metadata.thrift.
"""

from __future__ import annotations

from variantlake.kernels.native.declared import Bytes, Int64s, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.words import load8

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
STRUCT = 12
"""Wire types of the compact protocol."""

_DEPTH = 8
"""Structs and lists in each other that are skipped here."""

STACK = 2 + 2 * _DEPTH
"""Words of the `stack` that `skip` needs."""


@helper
def varint(data: Bytes, at: int, out: Int64s, slot: int) -> int:
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
def number(data: Bytes, at: int, wire: int, out: Int64s, slot: int) -> int:
    """The same for a signed number of a wire type."""
    at = varint(data, at, out, slot)
    word = out[uint64(slot)]
    value = (word >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(word & 1)
    out[uint64(slot)] = value
    if wire == I32 and (value < -0x80000000 or value > 0x7FFFFFFF):
        return -1
    return at


@tiny
def field_header(data: Bytes, at: int) -> int:
    """The byte that begins a field, 0 for a struct's end; -1 if there is none, or the long form."""
    if at < 0 or at >= data.size:
        return -1
    header = load8(data, at)
    return header if header == 0 or header > 15 else int64(-1)


@helper
def skip(data: Bytes, at: int, wire: int, stack: Int64s) -> int:
    """Step over a field's value; returns where it ends, -1 where it is not usual.

    stack: 2 + 2 * _DEPTH words: a scratch word, then for each open list how many elements are to
    come and their type, for each open struct -1.
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
