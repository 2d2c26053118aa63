"""Make snapshots of changed files, which any scan can read.

In them `_commit_version`, `_commit_timestamp`, and `_change_type` if it is the same for all rows of
a file, are partition columns: conditions on them skip files, and readers fill them in. A file's
deletion vector has the rows that do not count.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.deletion_vectors import deleted_rows
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.files.logical_files import files_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import (
    CHANGE_COLUMNS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    reserved_column,
)
from variantlake.delta.schema.column_mapping import is_mapped
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, StructType
from variantlake.dml.files.deletion_vectors import inline_vector
from variantlake.errors import MalformedLog, UnsupportedFeature
from variantlake.feed.commits import ChangedFile, VersionRange, changed_files
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.storage.opening import open_file

_TYPES = {CHANGE_TYPE: "string", COMMIT_VERSION: "long", COMMIT_TIMESTAMP: "timestamp"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def change_snapshots(snapshot: Snapshot, versions: VersionRange) -> list[Snapshot]:
    """Make snapshots, at least one, whose rows together are the changes of these versions.

    Their schema is the table's at the snapshot, or at the end of the range if columns are mapped,
    followed by the three columns. No snapshot has a file twice.

    Raises UnsupportedFeature as `changed_files`, and for a table that has one of these columns.
    """
    read = snapshot
    if is_mapped(snapshot.properties) and versions.last != snapshot.version:
        read = snapshot.at(versions.last)
    return snapshots_of(read, changed_files(snapshot, versions, read))


def snapshots_of(read: Snapshot, changes: Iterable[ChangedFile]) -> list[Snapshot]:
    """Make snapshots of these changes, as `change_snapshots` does, with the columns of `read`."""
    reserved = reserved_column(read.schema)
    if reserved is not None:
        raise UnsupportedFeature(
            f"the table has a column {reserved!r} itself",
            file=read.store.uri,
            hint="open the table at a version before it had the column",
        )
    whole: list[AddFile] = []
    listed: list[AddFile] = []
    for changed in changes:
        add = _counted(read, changed)
        if add is not None:
            (listed if changed.change is None else whole).append(add)
    parts = [_with_files(read, files, CHANGE_COLUMNS) for files in once_each(whole)]
    parts += [_with_files(read, files, CHANGE_COLUMNS[1:]) for files in once_each(listed)]
    return parts or [_with_files(read, [], CHANGE_COLUMNS)]


def _counted(snapshot: Snapshot, changed: ChangedFile) -> AddFile | None:
    """Add partition values and a vector of ignored rows to a file; None if it ignores all rows."""
    try:
        time = _EPOCH + dt.timedelta(milliseconds=changed.timestamp)
    except OverflowError:
        raise MalformedLog(
            f"version {changed.version} has a timestamp outside of the calendar:"
            f" {changed.timestamp} ms",
            file=snapshot.store.uri,
        ) from None
    values: dict[str, str | None] = {
        **changed.file.partition_values,
        COMMIT_VERSION: str(changed.version),
        COMMIT_TIMESTAMP: f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z",
    }
    if changed.change is not None:
        values[CHANGE_TYPE] = changed.change
    file = replace(changed.file, partition_values=values)
    if changed.among is None:
        return file
    rows = _rows(snapshot, file.path)
    among = deleted_rows(snapshot.store, changed.among, rows)
    without: Int64s = np.empty(0, np.int64)
    if file.deletion_vector is not None:
        without = deleted_rows(snapshot.store, file.deletion_vector, rows)
    counted = np.setdiff1d(among, without, assume_unique=True)
    if not len(counted):
        return None
    others = np.setdiff1d(np.arange(rows, dtype=np.int64), counted, assume_unique=True)
    return replace(file, deletion_vector=inline_vector(others) if len(others) else None)


def _rows(snapshot: Snapshot, path: str) -> int:
    """Return the number of rows of a file, from its footer: statistics may be wrong."""
    with open_file(snapshot.location(path)) as source:
        return read_footer(source).num_rows


def once_each(files: Iterable[AddFile]) -> list[list[AddFile]]:
    """Split files into as few lists as possible without repeated paths.

    Spark Connect identifies files by their paths.
    """
    lists: list[list[AddFile]] = []
    count: dict[str, int] = {}
    for file in files:
        path = decode_path(file.path)
        place = count[path] = count.get(path, -1) + 1
        if place == len(lists):
            lists.append([])
        lists[place].append(file)
    return lists


def _with_files(read: Snapshot, files: Sequence[AddFile], constant: Sequence[str]) -> Snapshot:
    """Make a snapshot of these files, with the `constant` columns as further partition columns."""
    # Without ids: change files have `_change_type` by its name, whatever the column mapping.
    added = (StructField(name, PrimitiveType(_TYPES[name])) for name in CHANGE_COLUMNS)
    schema = StructType((*read.schema.fields, *added))
    metadata = replace(
        read.metadata,
        schema_string=schema.to_json(),
        partition_columns=(*read.metadata.partition_columns, *constant),
    )
    return replace(read, schema=schema, metadata=metadata, files=files_of(files))
