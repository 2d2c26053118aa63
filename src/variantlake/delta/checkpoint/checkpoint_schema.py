"""The state of a version as the rows of checkpoint files: columns by action.

Spec: PROTOCOL, "Checkpoint Schema", "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.actions.actions import (
    FEW,
    Action,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    RemoveFile,
)
from variantlake.delta.log.logical_files import ADD_FIELDS, FILES, one_chunk, struct_type, values
from variantlake.delta.protocol.features import VARIANT_SHREDDING, reader_features, writer_features
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats.stats_json_to_struct import (
    parsed_partitions,
    parsed_stats,
    variant_bound_paths,
)
from variantlake.delta.stats.stats_struct_to_json import pieces
from variantlake.delta.stats.stats_writer import Column, StatsOptions

# The columns whose rows are few, and come from the actions' own fields.
_SMALL: dict[str, Any] = {kind.KEY: struct_type(kind, keys=True) for kind in FEW}
# What takes up most of a tombstone is of no use to a state.
_SMALL[RemoveFile.KEY] = struct_type(RemoveFile, keys=True, without=("stats", "tags"))


_PIECE = 1 << 30
"""Bytes of the files that become one array: it cannot hold 2 GB of text."""


@dataclass(frozen=True, slots=True)
class CheckpointRows:
    """The rows of one checkpoint file; `variants` are the paths of the Variants in them."""

    table: pa.Table
    variants: tuple[tuple[str, ...], ...] = ()


def file_rows(
    keys: Sequence[str],
    actions: Sequence[Action],
    files: pa.Table,
    protocol: Protocol,
    metadata: Metadata,
    *,
    always: Collection[Column] = (),
) -> CheckpointRows:
    """A row for each action and then one `add` for each file; `keys` name the kinds of actions.

    `always` are the columns that have statistics whatever the properties say.
    """
    columns: dict[str, Any] = {key: _small(key, actions, files.num_rows) for key in keys}
    others = len(actions)
    no_files = pa.table([pa.nulls(others, field.type) for field in FILES], schema=FILES)
    adds: list[pa.Array[Any]] = []
    variants: list[tuple[str, ...]] = []
    for piece in pieces(pa.concat_tables([no_files, files]), _PIECE):
        is_other = pa.array(np.arange(piece.num_rows) < others)
        column, variants = _adds(piece, is_other, protocol, metadata, always)
        adds.append(column)
        others = max(others - piece.num_rows, 0)
    columns["add"] = pa.chunked_array(adds)
    return CheckpointRows(
        pa.table(columns), tuple(("add", "stats_parsed", *path) for path in variants)
    )


def _small(key: str, actions: Sequence[Action], others: int) -> Any:
    """The column of one kind of action, null in the rows of other kinds and of `others`."""
    type_ = _SMALL[key]
    found = [action.to_json() if key == action.KEY else None for action in actions]
    small = pa.array([_fields(row, type_) for row in found], type_)
    return pa.chunked_array([small, pa.nulls(others, type_)])


def _adds(
    files: pa.Table,
    is_other: pa.Array[Any],
    protocol: Protocol,
    metadata: Metadata,
    always: Collection[Column],
) -> tuple[pa.StructArray, list[tuple[str, ...]]]:
    """The column `add`, null in the rows that belong to other actions."""
    configuration = metadata.configuration
    schema = StructType.from_json(metadata.schema_string)
    features = {*reader_features(protocol), *writer_features(protocol)}
    columns: dict[str, Any] = {
        field.key: one_chunk(files[name]) for name, field in ADD_FIELDS.items() if name != "stats"
    }
    columns["deletionVector"] = _with_keys(columns["deletionVector"])
    columns["dataChange"] = pa.repeat(pa.scalar(value=False), files.num_rows)
    if configuration.get("delta.checkpoint.writeStatsAsJson", "true").lower() == "true":
        columns["stats"] = one_chunk(files["stats"])
    variants: list[tuple[str, ...]] = []
    if configuration.get("delta.checkpoint.writeStatsAsStruct", "").lower() == "true":
        options = StatsOptions.from_properties(configuration)
        chosen = options.chosen(schema, metadata.partition_columns).union(always)
        bounded = not features.isdisjoint(VARIANT_SHREDDING)
        columns["stats_parsed"] = _parsed_stats(
            one_chunk(files["stats"]), schema, frozenset(chosen), bounded, features
        )
        variants = variant_bound_paths(schema, chosen, variant_bounds=bounded)
        if metadata.partition_columns:
            columns["partitionValues_parsed"] = parsed_partitions(
                values(files["partition_values"]), schema, metadata.partition_columns
            )
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    adds = pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=is_other)
    return adds, variants


@dataclass(frozen=True, slots=True)
class _Parsed:
    """Statistics as texts and as columns; `of` is all else that these depend on."""

    of: Hashable
    texts: pa.Array[Any]
    columns: pa.Array[Any]


_REMEMBERED_ROWS = 1 << 17
_last: list[_Parsed] = []


def _parsed_stats(
    texts: pa.Array[Any],
    schema: StructType,
    chosen: frozenset[Column],
    bounded: bool,
    features: Collection[str],
) -> pa.Array[Any]:
    """`parsed_stats`; from checkpoint to checkpoint of one table only what is new is parsed."""
    tight = "deletionVectors" in features
    of = (schema, chosen, bounded, tight)
    known = _last[0] if _last else None
    start = 0
    if known and known.of == of and texts.slice(0, len(known.texts)).equals(known.texts):
        start = len(known.texts)
    found = parsed_stats(
        values(texts.slice(start)), schema, chosen, variant_bounds=bounded, tight_bounds=tight
    )
    if known and start:
        found = pa.concat_arrays([known.columns, found])
    _last[:] = [_Parsed(of, texts, found)] if len(texts) <= _REMEMBERED_ROWS else []
    return found


def _with_keys(vectors: pa.StructArray) -> pa.Array[Any]:
    """`deletion_vector` with the protocol's field names."""
    fields = list(struct_type(DeletionVectorDescriptor, keys=True))
    return pa.StructArray.from_arrays(vectors.flatten(), fields=fields, mask=vectors.is_null())


def _fields(row: Mapping[str, Any] | None, type_: Any) -> dict[str, Any] | None:
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
