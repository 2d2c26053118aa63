"""The column chunks of a Parquet footer, nearly all of its bytes where columns are many.

Reads what writers write. Whatever is unusual or wrong is left to the twin, parquet.metadata.thrift
with the tables of parquet.metadata.footer, which words the errors. Spec: Parquet, `parquet.thrift`;
Thrift, "compact protocol".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variantlake.kernels.log.compact_protocol import (
    BINARY,
    FALSE,
    I32,
    I64,
    STACK,
    STRUCT,
    TRUE,
    field_header,
    number,
    skip,
    varint,
)
from variantlake.kernels.native.declared import Bytes, Int64s, bytes_in, i64, int64, int64s, uint64
from variantlake.kernels.native.jit import entry, tiny

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


def _slots(fields: dict[int, int]) -> Int64s:
    """A slot for each field id up to 15, -1 where there is none."""
    return np.array([fields.get(number, -1) for number in range(16)], np.int64)


_CHUNK, _META = _slots(CHUNK_FIELDS), _slots(META_FIELDS)
_COUNTS, _BYTES, _FLAGS = _slots(COUNT_FIELDS), _slots(BYTES_FIELDS), _slots(FLAG_FIELDS)


@tiny
def _statistics(data: Bytes, at: int, out: Int64s, base: int, stack: Int64s) -> int:
    """Read a Statistics into its slots; returns where it ends, or -1."""
    field = int64(0)
    while True:
        header = field_header(data, at)
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
            if wire != I64:
                return -1
            at = number(data, at, wire, out, base + slot)
        elif _BYTES[uint64(known)] >= 0:
            if wire != BINARY:
                return -1
            slot = int64(_BYTES[uint64(known)])
            at = varint(data, at, out, base + slot + 1)
            size = out[uint64(base + slot + 1)]
            if at < 0 or size < 0 or size > data.size - at:
                return -1
            out[uint64(base + slot)] = at
            at += size
        elif _FLAGS[uint64(known)] >= 0:
            if wire != TRUE and wire != FALSE:
                return -1
            slot = int64(_FLAGS[uint64(known)])
            out[uint64(base + slot)] = wire == TRUE
        else:
            at = skip(data, at, wire, stack)
        if slot >= 0:
            out[uint64(base + PRESENT)] |= int64(1) << slot


@tiny
def _meta_data(data: Bytes, at: int, out: Int64s, base: int, stack: Int64s) -> int:
    """Read a ColumnMetaData into its slots; returns where it ends, or -1."""
    field = int64(0)
    while True:
        header = field_header(data, at)
        if header < 0:
            return -1
        at += 1
        if header == 0:
            return at
        wire = header & 15
        field += header >> 4
        slot = int64(_META[uint64(min(field, 15))])
        if slot >= 0:
            if wire != (I32 if field < 5 else I64):
                return -1
            at = number(data, at, wire, out, base + slot)
            out[uint64(base + PRESENT)] |= int64(1) << slot
        elif field == STATISTICS:
            if wire != STRUCT:
                return -1
            out[uint64(base + PRESENT)] |= HAS_STATISTICS
            at = _statistics(data, at, out, base, stack)
        else:
            at = skip(data, at, wire, stack)


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
            header = field_header(data, at)
            if header < 0:
                return -1
            at += 1
            if header == 0:
                break
            wire = header & 15
            field += header >> 4
            slot = int64(_CHUNK[uint64(min(field, 15))])
            if slot >= 0:
                if wire != I64:
                    return -1
                at = number(data, at, wire, out, base + slot)
                out[uint64(base + PRESENT)] |= int64(1) << slot
            elif field == META:
                if wire != STRUCT:
                    return -1
                out[uint64(base + PRESENT)] |= HAS_META
                at = _meta_data(data, at, out, base, stack)
            else:
                at = skip(data, at, wire, stack)
        out[uint64(base + END)] = at
    return at


def column_chunks(
    footer: bytes, start: int, count: int
) -> tuple[npt.NDArray[np.int64], int] | None:
    """The slots of `count` ColumnChunks that begin at footer[start], and where they end.

    The slots have the shape (count, WIDTH). None where something is unusual.
    """
    out = np.zeros(count * WIDTH, np.int64)
    stack = np.zeros(STACK, np.int64)
    end = read_column_chunks(np.frombuffer(footer, np.uint8), start, count, out, stack)
    return None if end < 0 else (out.reshape(count, WIDTH), end)
