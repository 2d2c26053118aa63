"""Read the column chunks of a Parquet footer: nearly all of its bytes if there are many columns.

Reads what writers usually write. The twin, parquet.metadata.thrift with the tables of
parquet.metadata.footer, reads anything unusual and raises the errors. Spec: Parquet,
`parquet.thrift`; Thrift, "compact protocol".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variantlake.kernels.log.compact_protocol import (
    BINARY,
    I32,
    I64,
    STACK,
    TRUE,
    UNUSUAL,
    field_table,
    kept,
    nested,
    read_struct,
)
from variantlake.kernels.native.declared import (
    BytesIn,
    Int64s,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry

CHUNK_FIELDS = {4: 0, 6: 1}
"""Slots of ColumnChunk's numbers by field id."""
META_FIELDS = {1: 2, 4: 3, 5: 4, 6: 5, 7: 6, 9: 7, 11: 8}
"""Slots of ColumnMetaData's numbers."""
COUNT_FIELDS = {3: 9}
"""Slots of the numbers of Statistics."""
BYTES_FIELDS = {1: 10, 2: 12, 5: 14, 6: 16}
"""Slots of its binaries: where one begins; the next slot has its size."""
FLAG_FIELDS = {7: 18, 8: 19}
"""Slots of its booleans."""
PRESENT, END, WIDTH = 20, 21, 22
"""The slot with a bit for each filled slot; the slot of the struct's end; the number of slots."""
META, STATISTICS = 3, 12
"""The ids of ColumnChunk.meta_data and ColumnMetaData.statistics."""
CRYPTO_METADATA = 8
"""ColumnChunk.crypto_metadata, which only encrypted columns have."""

HAS_META, HAS_STATISTICS = 1 << 62, 1 << 61
"""Bits of PRESENT: the chunk has META, its metadata has STATISTICS."""


_FIELDS = field_table(
    {
        **{number: kept(I64, slot) for number, slot in CHUNK_FIELDS.items()},
        META: nested(1, 62),
        CRYPTO_METADATA: UNUSUAL,
    },
    {
        **{n: kept(I32 if n < 5 else I64, slot) for n, slot in META_FIELDS.items()},
        STATISTICS: nested(2, 61),
    },
    {
        **{number: kept(I64, slot) for number, slot in COUNT_FIELDS.items()},
        **{number: kept(BINARY, slot) for number, slot in BYTES_FIELDS.items()},
        **{number: kept(TRUE, slot) for number, slot in FLAG_FIELDS.items()},
    },
)


@entry
def read_column_chunks(data: BytesIn, at: int, count: int, out: Int64s, stack: Int64s) -> int:
    """Read `count` ColumnChunks from data[at] on; return where they end.

    data: uint8, any bytes. out: int64, zero, WIDTH for each chunk, filled by the slots above.
    stack: int64, STACK words. Returns -1 for anything unusual: a field whose type differs from the
    specification, field ids in the long form, deeper nesting, bytes that end early. Allocates
    nothing, never raises. Twin: parquet.metadata.footer.
    """
    for chunk in range(count):
        base = int64(chunk) * WIDTH
        at = read_struct(data, at, _FIELDS, out, base, int64(PRESENT), stack)
        if at < 0:
            return -1
        out[uint64(base + END)] = at
    return at


def column_chunks(
    footer: bytes, start: int, count: int
) -> tuple[npt.NDArray[np.int64], int] | None:
    """Return the slots of `count` ColumnChunks that begin at footer[start], and where they end.

    The slots have the shape (count, WIDTH). Returns None if something is unusual.
    """
    out = np.zeros(count * WIDTH, np.int64)
    stack = np.zeros(STACK, np.int64)
    end = read_column_chunks(np.frombuffer(footer, np.uint8), start, count, out, stack)
    return None if end < 0 else (out.reshape(count, WIDTH), end)
