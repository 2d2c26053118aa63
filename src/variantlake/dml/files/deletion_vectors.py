"""Write deletion vectors: small ones inline in the log, the others together in one file.

Spec: PROTOCOL, "Deletion Vectors", "Deletion Vector File Storage Format", "Deletion Vector Format".
Twin: `delta.log.deletion_vectors`, which reads them.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence

from pyroaring import BitMap64

from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.delta.stats import z85
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.storage.store import Store

MAX_INLINE_BYTES = 128
"""The largest vector to store inline in the log: every snapshot of the table loads it."""

_MAGIC = (1681511377).to_bytes(4, "little")
_FILE_VERSION = bytes([1])


def serialised(rows: Int64s) -> bytes:
    """Serialise 0-based rows, each at most once, as a portable RoaringBitmapArray."""
    bitmap = BitMap64(rows.tolist())
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return _MAGIC + data


def inline_vector(rows: Int64s) -> DeletionVectorDescriptor:
    """Return an inline vector of these rows, whatever its size."""
    data = serialised(rows)
    return DeletionVectorDescriptor("i", z85.encode(data), len(data), len(rows))


def write_vectors(
    store: Store, vectors: Sequence[Int64s]
) -> tuple[list[DeletionVectorDescriptor], str | None]:
    """Write the vectors of some files; returns their descriptors, in order, and the new file.

    Each vector holds all deleted rows of its data file. The new file, None if all vectors are
    inline, is durable when this returns. It lies at the table's root, and is not part of the table
    until a commit names it.
    """
    name = uuid.uuid4()
    path = f"deletion_vector_{name}.bin"
    found: list[DeletionVectorDescriptor] = []
    parts, offset = [_FILE_VERSION], len(_FILE_VERSION)
    for rows in vectors:
        data = serialised(rows)
        if len(data) <= MAX_INLINE_BYTES:
            found.append(inline_vector(rows))
            continue
        frame = len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
        encoded = z85.encode(name.bytes)
        found.append(DeletionVectorDescriptor("u", encoded, len(data), len(rows), offset))
        parts.append(frame)
        offset += len(frame)
    if len(parts) == 1:
        return found, None
    store.put(path, b"".join(parts))
    return found, path
