"""Writing classic checkpoints: the state of a version in one Parquet file.

Every table may have them, and every reader reads them. They are a short-cut and nothing more: a
version is as good without. Spec: PROTOCOL, "Checkpoints", "Checkpoint Schema", "V1 Spec".
"""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from variantlake.delta.actions import Action, Metadata, Protocol, RemoveFile
from variantlake.delta.features import VARIANT_SHREDDING, reader_features, writer_features
from variantlake.delta.files import FILES, STRING_MAP, values
from variantlake.delta.intervals import property_millis
from variantlake.delta.last_checkpoint import write_last_checkpoint
from variantlake.delta.listing import LOG
from variantlake.delta.load import load_state
from variantlake.delta.parsed_stats import parsed_partitions, parsed_stats, variant_bound_paths
from variantlake.delta.replay import State
from variantlake.delta.schema import StructType
from variantlake.delta.stats import StatsOptions
from variantlake.delta.store import Store
from variantlake.errors import MalformedLog
from variantlake.parquet.annotate import annotate_footer

DEFAULT_INTERVAL = 10
"""Versions from one checkpoint to the next, unless `delta.checkpointInterval` says otherwise."""

_MAGIC = b"PAR1"

_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_STRINGS = pa.list_(pa.string())

# The columns whose rows are few, and come from the actions' own fields.
_SMALL: dict[str, Any] = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "remove": pa.struct(
        [
            ("path", pa.string()),
            ("deletionTimestamp", pa.int64()),
            ("dataChange", pa.bool_()),
            ("extendedFileMetadata", pa.bool_()),
            ("partitionValues", STRING_MAP),
            ("size", pa.int64()),
            ("deletionVector", _VECTOR),
            ("baseRowId", pa.int64()),
            ("defaultRowCommitVersion", pa.int64()),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", STRING_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _STRINGS),
            ("configuration", STRING_MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _STRINGS),
            ("writerFeatures", _STRINGS),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}


def checkpoint_due(version: int, properties: Mapping[str, str]) -> bool:
    """Whether the interval of the table wants a checkpoint of this version."""
    text = properties.get("delta.checkpointInterval", "")
    interval = int(text) if text.isdecimal() and len(text) < 10 else DEFAULT_INTERVAL
    return version > 0 and interval > 0 and version % interval == 0


def write_checkpoint(store: Store, version: int | None = None) -> int:
    """Write the checkpoint of `version`, the newest if None, and point to it; gives the version.

    The file appears whole or not at all; one that is there already is replaced by the same state.
    Raises as `Snapshot.load` for a log that cannot be read.
    """
    segment, state = load_state(store, version, tombstones=True)
    if state.protocol is None or state.metadata is None:
        raise MalformedLog("the log has no protocol or no metadata", file=store.uri)
    table, variants = _checkpoint_table(state, state.protocol, state.metadata)
    data = _parquet(table, variants)
    store.put(f"{LOG}/{segment.version:020d}.checkpoint.parquet", data)
    write_last_checkpoint(
        store,
        version=segment.version,
        size=table.num_rows,
        size_in_bytes=len(data),
        num_of_add_files=state.files.num_rows,
    )
    return segment.version


def _checkpoint_table(
    state: State, protocol: Protocol, metadata: Metadata
) -> tuple[pa.Table, list[tuple[str, ...]]]:
    """The rows of a checkpoint, and the paths of the Variants in it."""
    configuration = dict(metadata.configuration)
    oldest = _now() - property_millis(
        configuration, "delta.deletedFileRetentionDuration", "interval 1 week"
    )
    actions: list[Action] = [protocol, metadata]
    actions += state.transactions.values()
    actions += state.domains.values()
    actions += [remove for remove in (state.removes or {}).values() if not _expired(remove, oldest)]
    adds, variants = _adds(state.files, len(actions), protocol, metadata)
    columns: dict[str, Any] = {}
    for key, type_ in _SMALL.items():
        found = [action.to_json() if key == action.KEY else None for action in actions]
        small = pa.array([_fields(row, type_) for row in found], type_)
        columns[key] = pa.chunked_array([small, pa.nulls(state.files.num_rows, type_)])
    columns["add"] = adds
    return pa.table(columns), [("add", "stats_parsed", *path) for path in variants]


def _adds(
    files: pa.Table, others: int, protocol: Protocol, metadata: Metadata
) -> tuple[pa.StructArray, list[tuple[str, ...]]]:
    """The column `add`, null in the first rows, which belong to the `others`."""
    configuration = metadata.configuration
    is_other = pa.array([True] * others + [False] * files.num_rows)
    no_files = pa.table([pa.nulls(others, field.type) for field in FILES], schema=FILES)
    files = pa.concat_tables([no_files, files])
    schema = StructType.from_json(metadata.schema_string)
    features = {*reader_features(protocol), *writer_features(protocol)}
    columns: dict[str, Any] = {
        _camel(name): _one_chunk(files[name]) for name in FILES.names if name != "stats"
    }
    columns["deletionVector"] = _vectors(columns["deletionVector"])
    columns["dataChange"] = pa.repeat(pa.scalar(value=False), files.num_rows)
    if configuration.get("delta.checkpoint.writeStatsAsJson", "true").lower() == "true":
        columns["stats"] = _one_chunk(files["stats"])
    variants: list[tuple[str, ...]] = []
    if configuration.get("delta.checkpoint.writeStatsAsStruct", "").lower() == "true":
        chosen = StatsOptions.from_properties(configuration).chosen(
            schema, metadata.partition_columns
        )
        bounded = not features.isdisjoint(VARIANT_SHREDDING)
        columns["stats_parsed"] = parsed_stats(
            values(files["stats"]),
            schema,
            chosen,
            variant_bounds=bounded,
            tight_bounds="deletionVectors" in features,
        )
        variants = variant_bound_paths(schema, chosen, variant_bounds=bounded)
        if metadata.partition_columns:
            columns["partitionValues_parsed"] = parsed_partitions(
                values(files["partition_values"]), schema, metadata.partition_columns
            )
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    adds = pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=is_other)
    return adds, variants


def _vectors(column: pa.StructArray) -> pa.Array[Any]:
    """`deletion_vector` with the protocol's field names."""
    found: pa.Array[Any] = pa.StructArray.from_arrays(
        column.flatten(), fields=list(_VECTOR), mask=column.is_null()
    )
    return found


def _parquet(table: pa.Table, variants: Sequence[tuple[str, ...]]) -> bytes:
    """The file; bounds of Variant columns are marked as Variants."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", row_group_size=100_000)
    data = sink.getvalue()
    if not variants:
        return data
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = annotate_footer(data[start:-8], variants, start)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + _MAGIC


def _fields(row: dict[str, Any] | None, type_: Any) -> dict[str, Any] | None:
    """The fields of an action that its column has, maps as pairs."""
    if row is None:
        return None
    found: dict[str, Any] = {}
    for field in type_:
        value = row.get(field.name)
        if isinstance(value, dict):
            is_map = isinstance(field.type, pa.MapType)
            value = list(value.items()) if is_map else _fields(value, field.type)
        found[field.name] = value
    return found


def _expired(remove: RemoveFile, oldest: int) -> bool:
    """Whether a tombstone may go: nobody may read the versions any more that had the file."""
    return (remove.deletion_timestamp or 0) < oldest


def _one_chunk(column: Any) -> Any:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _now() -> int:
    return time.time_ns() // 1_000_000
