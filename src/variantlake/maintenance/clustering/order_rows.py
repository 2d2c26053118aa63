"""Plan the order of rows across the files that a group becomes, and within each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import (
    PROPERTY,
    ClusterPath,
    cluster_paths,
    split_paths,
)
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.delta.schema.columns_by_path import logical_path, type_at
from variantlake.errors import InvalidPath, InvalidSchema, InvalidValue, UnsupportedFeature
from variantlake.expressions.tree import Ref
from variantlake.expressions.typing import spark_type
from variantlake.maintenance.clustering.sample_keys import sample_keys
from variantlake.maintenance.rewrite.cells import Cells, Cut, cells_of
from variantlake.maintenance.rewrite.groups import FileGroup
from variantlake.maintenance.rewrite.stored_rows import StoredForm
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.log_files import LogFiles
from variantlake.shredding.schema import Leaf, ShreddingSchema
from variantlake.writing.files import SORT_BYTES
from variantlake.writing.sort_rows import SortKey, sort_keys

_ARROW_BYTES = 6
"""About how many bytes in memory a byte of a file takes; it tells how many cells a file needs."""


def cells_across(
    snapshot: Snapshot,
    log: LogFiles,
    rows: Int64s,
    group: FileGroup,
    paths: Sequence[ClusterPath],
    *,
    files: int,
    row_ids: RowIdColumns | None,
    tasks: int = 1,
) -> Cells:
    """Make cells that divide a group's rows, in the order of `paths`, over this many `files`.

    `rows` are the rows of the group's files in the snapshot's table of files. Each of the `tasks`
    sorts its share of each cell. Reads a sample of the rows if there is more than one cell.

    Raises InvalidSchema for a path that the new files have no column for, UnsupportedFeature for
    one that has no order.
    """
    form = StoredForm.of(snapshot.schema, snapshot.partition_columns, group, row_ids)
    keys = sort_keys([path.text for path in paths], snapshot.schema, form.schema)
    refs = [_ref(path, group.layouts, snapshot) for path in paths]
    size = int(log.sizes[rows].sum())
    per_file = max(1, -(-size * _ARROW_BYTES // files // tasks // SORT_BYTES))
    if files * per_file <= 1:
        return Cells(keys, 0, (0,))
    counts = log.of_log.num_records[rows]
    records = int(counts.sum()) if (counts >= 0).all() else -1
    types = [_key_type(form.schema, key) for key in keys]
    sample = sample_keys(snapshot, rows, refs, types, records)
    cells = cells_of(keys, sample, files, per_file)
    return cells if tasks == 1 else _without_nulls(cells, sample)


def _without_nulls(cells: Cells, sample: Sequence[Any]) -> Cells:
    """Add a cell, in a separate file, for rows without a value in some key.

    The bounds of a file with such rows do not tell its place. All other files can then be ordered
    by their bounds.
    """
    root, last = cells.root, cells.count
    for number, column in enumerate(sample):
        values = column.drop_null()
        if pa.types.is_floating(values.type):
            values = values.filter(pc.invert(pc.is_nan(values)))
        if len(values):
            root = Cut(number, values[int(pc.sort_indices(values)[-1].as_py())], root, last)
    return replace(cells, root=root, file_of=(*cells.file_of, max(cells.file_of) + 1))


def wanted_paths(
    snapshot: Snapshot, layouts: Mapping[str, ShreddingSchema]
) -> tuple[ClusterPath, ...]:
    """Return the paths of the table's property by which files of these layouts can be sorted.

    Like loads, it leaves out the other paths.
    """
    found: list[ClusterPath] = []
    property_ = snapshot.properties.get(PROPERTY)
    for text in split_paths(property_) if property_ else ():
        with suppress(InvalidSchema, InvalidValue, InvalidPath, UnsupportedFeature):
            (path,) = cluster_paths(text, snapshot.schema, snapshot.partition_columns, layouts)
            _ref(path, layouts, snapshot)
            found.append(path)
    return tuple(found)


def _ref(path: ClusterPath, layouts: Mapping[str, ShreddingSchema], snapshot: Snapshot) -> Ref:
    names = logical_path(snapshot.schema, path.stored)
    if path.path is None:
        return Ref(names, None, str(type_at(snapshot.schema, names)))
    node = layouts[path.column].find(path.path)[0]
    kind = node.type.ddl.lower() if isinstance(node, Leaf) else ""
    if spark_type(kind) is None:
        raise UnsupportedFeature(f"rows cannot be ordered by {path.text!r}, which is {kind}")
    return Ref(names, path.path, kind, strict=False)


def _key_type(schema: pa.Schema, key: SortKey) -> Any:
    kind: Any = schema.field(key.column).type
    for name in key.members:
        kind = kind.field(name).type
    return kind
