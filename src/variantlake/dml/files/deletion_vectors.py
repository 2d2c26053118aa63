"""Deletion vectors as they are written: small ones inline, the others together in one file.

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
"""Bytes of a vector that still stands in the log: every snapshot of the table carries it."""

_MAGIC = (1681511377).to_bytes(4, "little")
_FILE_VERSION = bytes([1])


def serialised(rows: Int64s) -> bytes:
    """A RoaringBitmapArray of 0-based rows, each at most once, in the portable form."""
    bitmap = BitMap64(rows.tolist())
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return _MAGIC + data


def inline_vector(rows: Int64s) -> DeletionVectorDescriptor:
    """The vector of these rows in the log itself, however long."""
    data = serialised(rows)
    return DeletionVectorDescriptor("i", z85.encode(data), len(data), len(rows))


def write_vectors(
    store: Store, vectors: Sequence[Int64s]
) -> tuple[list[DeletionVectorDescriptor], str | None]:
    """Write the deleted rows of some files; their descriptors, in order, and the file if one is.

    Every vector holds all deleted rows of its file. The file is durable when this returns; it is
    at the table's root, and belongs to nobody until a commit names it.
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
