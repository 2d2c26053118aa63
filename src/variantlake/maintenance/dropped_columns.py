"""Find files that still hold dropped columns, or values of a type from before it was widened."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import ROW_COMMIT_VERSION, ROW_ID
from variantlake.delta.schema.column_mapping import ID_KEY, has_others, inner_nodes
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    arrow_type,
)
from variantlake.delta.transaction.widen import CHANGES_KEY
from variantlake.parquet.metadata.arrow_types import arrow_type_of
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.planning.files import ScanFile
from variantlake.planning.log_files import LogFiles

_THREADS = 16


class DroppedColumns:
    """Finds files with columns, or fields of structs, that the table no longer has.

    Reads each file's footer once, until the table's schema changes.
    """

    def __init__(self) -> None:
        self._schema = StructType(())
        self._answers: dict[str, bool] = {}

    def of(self, snapshot: Snapshot, files: LogFiles, rows: Int64s) -> Bools:
        """Mark the files of the version that are among `rows` and hold such columns or values.

        Raises MalformedFile, MissingSource for a footer that cannot be read.
        """
        if snapshot.schema != self._schema:
            self._schema, self._answers = snapshot.schema, {}
        new = [file for file in files.files(rows) if file.path not in self._answers]
        if new:
            with ThreadPoolExecutor(min(_THREADS, len(new))) as pool:
                found = pool.map(lambda file: self._holds(snapshot, file), new)
                self._answers.update(zip((file.path for file in new), found, strict=True))
        held = np.zeros(snapshot.files.num_rows, bool)
        held[rows] = [self._answers[file.path] for file in files.files(rows)]
        return held

    def _holds(self, snapshot: Snapshot, file: ScanFile) -> bool:
        """Whether a file has columns other than the table's and those of materialized row ids."""
        own = {snapshot.properties.get(key) for key in (ROW_ID, ROW_COMMIT_VERSION)}
        nodes = read_footer(file.path).schema.children
        return has_others(snapshot.schema, [node for node in nodes if node.name not in own])


class NarrowTypes(DroppedColumns):
    """Finds files with values of a type that a column had before it was widened."""

    def _holds(self, snapshot: Snapshot, file: ScanFile) -> bool:
        return _any_narrow(snapshot.schema, read_footer(file.path).schema.children)


def _any_narrow(columns: StructType, nodes: Sequence[SchemaNode]) -> bool:
    named = {node.name.lower(): node for node in nodes}
    numbered: dict[Any, SchemaNode] = {each.field_id: each for each in nodes if each.field_id}
    for item in columns.fields:
        node = numbered.get(item.metadata.get(ID_KEY)) or named.get(item.physical_name.lower())
        if node is not None and _is_narrow(item.type, node, widened=CHANGES_KEY in item.metadata):
            return True
    return False


def _is_narrow(type_: DataType, node: SchemaNode, *, widened: bool) -> bool:
    """Whether a column, or a part of it, was widened and has another type in the file."""
    if isinstance(type_, StructType):
        return _any_narrow(type_, node.children)
    if isinstance(type_, ArrayType | MapType):
        parts = inner_nodes(type_, node)
        # An unusual list or map layout of another writer: rewrite the file to be safe.
        return any(_is_narrow(*each, widened=widened) for each in parts) if parts else widened
    return widened and arrow_type_of(node) != arrow_type(type_)
