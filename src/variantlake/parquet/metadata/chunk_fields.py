"""The fields of many column chunks, as `thrift` gives them by the tables of `footer`, at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variantlake.kernels.log.column_chunks import (
    BYTES_FIELDS,
    CHUNK_FIELDS,
    COUNT_FIELDS,
    FLAG_FIELDS,
    HAS_META,
    HAS_STATISTICS,
    META,
    META_FIELDS,
    PRESENT,
    STATISTICS,
    column_chunks,
)
from variantlake.parquet.metadata.thrift import CompactReader, Fields

_CHUNK = [(field, slot, 1 << slot) for field, slot in CHUNK_FIELDS.items()]
_META = [(field, slot, 1 << slot) for field, slot in META_FIELDS.items()]
_COUNTS = [(field, slot, 1 << slot) for field, slot in COUNT_FIELDS.items()]
_BYTES = [(field, slot, 1 << slot) for field, slot in BYTES_FIELDS.items()]
_FLAGS = [(field, slot, 1 << slot) for field, slot in FLAG_FIELDS.items()]
"""Fields, their slots, and their bits in PRESENT."""


def chunk_slots(reader: CompactReader, count: int) -> npt.NDArray[np.int64] | None:
    """The slots of `count` ColumnChunks, shape (count, WIDTH); the reader is behind them then.

    None where the compiled reader finds something unusual: the reader was not moved then.
    """
    found = column_chunks(reader.data, reader.position, count)
    if found is None:
        return None
    slots, reader.position = found
    return slots


def fields_of(row: list[int], data: bytes) -> Fields:
    """The fields of one ColumnChunk in `data` from its slots, as `thrift` gives them."""
    present = row[PRESENT]
    fields: Fields = {field: row[slot] for field, slot, bit in _CHUNK if present & bit}
    if present & HAS_META:
        meta: Fields = {field: row[slot] for field, slot, bit in _META if present & bit}
        fields[META] = meta
        if present & HAS_STATISTICS:
            meta[STATISTICS] = _statistics(row, data)
    return fields


def _statistics(row: list[int], data: bytes) -> Fields:
    present = row[PRESENT]
    fields: Fields = {field: row[slot] for field, slot, bit in _COUNTS if present & bit}
    for field, slot, bit in _BYTES:
        if present & bit:
            fields[field] = data[row[slot] : row[slot] + row[slot + 1]]
    for field, slot, bit in _FLAGS:
        if present & bit:
            fields[field] = row[slot] == 1
    return fields
