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
CRYPTO_METADATA = 8
"""ColumnChunk.crypto_metadata, which only encrypted columns have."""

HAS_META, HAS_STATISTICS = 1 << 62, 1 << 61
"""Bits of PRESENT: whether the chunk has the one, that the other."""


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
    """Read `count` ColumnChunks from data[at] on; returns where they end.

    data: uint8, any bytes. out: int64, zero, WIDTH for each chunk, filled as the slots say.
    stack: int64, STACK words. -1 for what is not usual: a field of another type than the
    specification gives it, ids of fields in the long form, more nesting, bytes that end early.
    Allocates nothing, never raises. Twin: parquet.metadata.footer.
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
    """The slots of `count` ColumnChunks that begin at footer[start], and where they end.

    The slots have the shape (count, WIDTH). None if something is unusual.
    """
    out = np.zeros(count * WIDTH, np.int64)
    stack = np.zeros(STACK, np.int64)
    end = read_column_chunks(np.frombuffer(footer, np.uint8), start, count, out, stack)
    return None if end < 0 else (out.reshape(count, WIDTH), end)
