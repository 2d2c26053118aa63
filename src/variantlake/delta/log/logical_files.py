"""The files of a table as an Arrow table, one row a logical file: what planning works on.

Columns are named as in the protocol, in snake case; `path` stands as in the log (see
`Snapshot.location`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.actions.json_fields import Field, FieldKind, Record, fields_of
from variantlake.errors import MalformedLog

STRING_MAP: Any = pa.map_(pa.string(), pa.string())

_TYPES: dict[FieldKind, Any] = {
    FieldKind.STRING: pa.string(),
    FieldKind.INT: pa.int32(),
    FieldKind.LONG: pa.int64(),
    FieldKind.BOOLEAN: pa.bool_(),
    FieldKind.MAP: STRING_MAP,
    FieldKind.PROPERTIES: STRING_MAP,
    FieldKind.STRINGS: pa.list_(pa.string()),
}


def _type(field: Field, *, keys: bool) -> Any:
    return struct_type(field.record, keys=keys) if field.record else _TYPES[field.kind]


def struct_type(record: type[Record], *, keys: bool, without: Sequence[str] = ()) -> Any:
    """The Arrow struct of an action, by the protocol's spelling (`keys`) or by names as here."""
    return pa.struct(
        [
            (field.key if keys else field.name, _type(field, keys=keys))
            for field in fields_of(record)
            if field.name not in without
        ]
    )


ADD_FIELDS = {field.name: field for field in fields_of(AddFile) if field.name != "data_change"}
"""What is kept of an `add`: in the state of a table there is no change."""
REQUIRED = {name for name, field in ADD_FIELDS.items() if not field.optional}

DELETION_VECTOR: Any = struct_type(DeletionVectorDescriptor, keys=False)

FILES: pa.Schema = pa.schema(
    [(name, _type(field, keys=False)) for name, field in ADD_FIELDS.items()]
)
"""`size` in bytes, `modification_time` in milliseconds since the epoch; null if absent."""


def files_of(adds: Sequence[AddFile]) -> pa.Table:
    """The rows of these adds, in their order."""
    columns = [
        _column(field, list(map(attrgetter(name), adds))) for name, field in ADD_FIELDS.items()
    ]
    return pa.Table.from_arrays(columns, schema=FILES)


def adds_of(files: pa.Table) -> Iterator[AddFile]:
    """The adds of these rows, in their order, a batch in memory at a time."""
    for batch in files.to_batches(max_chunksize=4096):
        for row in values(batch):
            vector = row["deletion_vector"]
            row["deletion_vector"] = vector and DeletionVectorDescriptor(**vector)
            row["partition_values"] = row["partition_values"] or {}
            yield AddFile(**row)


def values(array: Any) -> list[Any]:
    """An Arrow array, column or batch as Python values; maps are dictionaries.

    Raises MalformedLog for a map with a key twice.
    """
    try:
        found: list[Any] = array.to_pylist(maps_as_pydicts="strict")
    except KeyError as error:
        raise MalformedLog(f"a map has a key twice: {error}") from error
    return found


def one_chunk(column: Any) -> Any:
    """A column as one array."""
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def bytes_of(files: pa.Table) -> int:
    """Bytes of all files."""
    return int(pc.sum(files["size"]).as_py() or 0)


def vector_id(vector: Mapping[str, Any] | None) -> str | None:
    """`deletionVector.uniqueId` of one row's `deletion_vector`."""
    return None if vector is None else DeletionVectorDescriptor(**vector).unique_id


def _column(field: Field, found: list[Any]) -> Any:
    if field.kind is FieldKind.MAP:
        found = [item if item is None else list(item.items()) for item in found]
    elif field.kind is FieldKind.RECORD:
        found = [item if item is None else dataclasses.asdict(item) for item in found]
    return pa.array(found, _type(field, keys=False))
