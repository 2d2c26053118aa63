"""The files of a table as an Arrow table, one row a logical file: what planning works on.

Columns are named as in the protocol, in snake case; `path` stands as in the log (see `locations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from variantlake.delta.actions import AddFile, DeletionVectorDescriptor, StringMap

STRING_MAP: Any = pa.map_(pa.string(), pa.string())

DELETION_VECTOR: Any = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline_dv", pa.string()),
        ("offset", pa.int32()),
        ("size_in_bytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)

FILES: pa.Schema = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("partition_values", STRING_MAP),
        ("stats", pa.string()),
        ("tags", STRING_MAP),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
"""`size` in bytes, `modification_time` in milliseconds since the epoch; null where absent."""


def files_of(adds: Sequence[AddFile]) -> pa.Table:
    """The rows of these adds, in their order."""
    return pa.Table.from_arrays(
        [
            pa.array([add.path for add in adds], pa.string()),
            pa.array([add.size for add in adds], pa.int64()),
            pa.array([add.modification_time for add in adds], pa.int64()),
            _maps([add.partition_values for add in adds]),
            pa.array([add.stats for add in adds], pa.string()),
            _maps([add.tags for add in adds]),
            pa.array([_vector(add.deletion_vector) for add in adds], DELETION_VECTOR),
            pa.array([add.base_row_id for add in adds], pa.int64()),
            pa.array([add.default_row_commit_version for add in adds], pa.int64()),
            pa.array([add.clustering_provider for add in adds], pa.string()),
        ],
        schema=FILES,
    )


def adds_of(files: pa.Table) -> Iterator[AddFile]:
    """The adds of these rows, in their order, a batch in memory at a time."""
    for batch in files.to_batches(max_chunksize=4096):
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            vector = row["deletion_vector"]
            row["deletion_vector"] = vector and DeletionVectorDescriptor(**vector)
            row["partition_values"] = row["partition_values"] or {}
            yield AddFile(**row)


def values(array: Any) -> list[Any]:
    """An Arrow array or column as Python values; maps are dictionaries."""
    found: list[Any] = array.to_pylist(maps_as_pydicts="strict")
    return found


def vector_id(vector: Mapping[str, Any] | None) -> str | None:
    """`deletionVector.uniqueId` of one row's `deletion_vector`."""
    return None if vector is None else DeletionVectorDescriptor(**vector).unique_id


def _maps(maps: Sequence[StringMap | None]) -> Any:
    items: list[Any] = [None if item is None else list(item.items()) for item in maps]
    return pa.array(items, STRING_MAP)


def _vector(vector: DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    if vector is None:
        return None
    return {
        "storage_type": vector.storage_type,
        "path_or_inline_dv": vector.path_or_inline_dv,
        "offset": vector.offset,
        "size_in_bytes": vector.size_in_bytes,
        "cardinality": vector.cardinality,
    }
