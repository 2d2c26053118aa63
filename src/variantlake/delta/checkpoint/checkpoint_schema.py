"""The state of a version as the rows of checkpoint files: columns by action.

Spec: PROTOCOL, "Checkpoint Schema", "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.delta.actions.actions import (
    FEW,
    Action,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    RemoveFile,
)
from variantlake.delta.log.files.logical_files import (
    ADD_FIELDS,
    FILES,
    LogicalFiles,
    one_chunk,
    struct_type,
)
from variantlake.delta.protocol.features import VARIANT_SHREDDING, reader_features, writer_features
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats.columns.stats_json_to_struct import (
    parsed_partitions,
    parsed_stats,
    variant_bound_paths,
)
from variantlake.delta.stats.columns.stats_struct_to_json import pieces
from variantlake.delta.stats.stats_writer import Column, StatsOptions

# The columns of actions other than adds, whose rows come from the actions' fields.
_SMALL: dict[str, Any] = {kind.KEY: struct_type(kind, keys=True) for kind in FEW}
# Most bytes of a tombstone are in these fields, which no state needs.
_SMALL[RemoveFile.KEY] = struct_type(RemoveFile, keys=True, without=("stats", "tags"))


_PIECE = 64 << 20
"""The bytes of files that become rows at once: one row group."""
PIECE_FILES = 100_000
"""The most files that become rows at once."""


@dataclass(frozen=True, slots=True)
class CheckpointRows:
    """The rows of one checkpoint file: one for each action, then an `add` for each file.

    `keys` are the kinds of actions. The columns in `always` have statistics whatever the properties
    of the table are.
    """

    keys: Sequence[str]
    actions: Sequence[Action]
    files: LogicalFiles
    protocol: Protocol
    metadata: Metadata
    always: Collection[Column] = ()

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.actions) + self.files.num_rows

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows in one or more tables of one schema and bounded size."""
        actions = [self._of_actions()]
        for start in range(0, max(self.files.num_rows, 1), PIECE_FILES):
            files = self.files.slice(start, PIECE_FILES).whole().combine_chunks()
            for piece in pieces(files, _PIECE):
                yield pa.concat_tables([*actions, self._of_files(piece)])
                actions = []

    @property
    def variants(self) -> list[tuple[str, ...]]:
        """The paths of the Variant columns in the rows."""
        if not self._as_struct:
            return []
        found = variant_bound_paths(self._schema, self._columns, variant_bounds=self._bounded)
        return [("add", "stats_parsed", *path) for path in found]

    def _of_actions(self) -> pa.Table:
        count = len(self.actions)
        columns = {key: _small(key, self.actions) for key in self.keys}
        none = pa.table([pa.nulls(count, field.type) for field in FILES], schema=FILES)
        columns["add"] = self._adds(none, arrow_array(np.ones(count, np.bool_)))
        return pa.table(columns)

    def _of_files(self, files: pa.Table) -> pa.Table:
        columns: dict[str, Any] = {key: pa.nulls(files.num_rows, _SMALL[key]) for key in self.keys}
        return pa.table({**columns, "add": self._adds(files)})

    def _adds(self, files: pa.Table, is_other: Any = None) -> pa.StructArray:
        """Return the column `add`, null in the rows that belong to other actions."""
        columns: dict[str, Any] = {
            field.key: one_chunk(files[name])
            for name, field in ADD_FIELDS.items()
            if name != "stats"
        }
        columns["deletionVector"] = _with_keys(columns["deletionVector"])
        columns["dataChange"] = arrow_array(np.zeros(files.num_rows, np.bool_))
        texts = one_chunk(files["stats"])
        if self._is_set("delta.checkpoint.writeStatsAsJson", default="true"):
            columns["stats"] = texts
        if self._as_struct:
            columns["stats_parsed"] = parsed_stats(
                texts,
                self._schema,
                self._columns,
                variant_bounds=self._bounded,
                tight_bounds="deletionVectors" in self._features,
            )
            if self.metadata.partition_columns:
                columns["partitionValues_parsed"] = parsed_partitions(
                    columns["partitionValues"], self._schema, self.metadata.partition_columns
                )
        fields = [pa.field(name, column.type) for name, column in columns.items()]
        return pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=is_other)

    def _is_set(self, name: str, *, default: str) -> bool:
        return self.metadata.configuration.get(name, default).lower() == "true"

    @property
    def _as_struct(self) -> bool:
        # As in Delta Spark; the protocol's default is to omit them.
        return self._is_set("delta.checkpoint.writeStatsAsStruct", default="true")

    @property
    def _schema(self) -> StructType:
        return StructType.from_json(self.metadata.schema_string)

    @property
    def _columns(self) -> Collection[Column]:
        """The columns that have statistics."""
        options = StatsOptions.from_properties(self.metadata.configuration)
        return options.chosen(self._schema, self.metadata.partition_columns).union(self.always)

    @property
    def _features(self) -> set[str]:
        return {*reader_features(self.protocol), *writer_features(self.protocol)}

    @property
    def _bounded(self) -> bool:
        return not self._features.isdisjoint(VARIANT_SHREDDING)


def _small(key: str, actions: Sequence[Action]) -> Any:
    """Return the column of one kind of action, null in the rows of other kinds."""
    found = [action.to_json() if key == action.KEY else None for action in actions]
    return arrow_array([_fields(row, _SMALL[key]) for row in found], _SMALL[key])


def _with_keys(vectors: pa.StructArray) -> pa.Array[Any]:
    """Return `deletion_vector` with the protocol's field names."""
    fields = list(struct_type(DeletionVectorDescriptor, keys=True))
    return pa.StructArray.from_arrays(vectors.flatten(), fields=fields, mask=vectors.is_null())


def _fields(row: Mapping[str, Any] | None, type_: Any) -> dict[str, Any] | None:
    """Return the fields of an action that its column has, with maps as pairs."""
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
