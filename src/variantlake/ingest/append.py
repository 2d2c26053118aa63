"""Append Arrow data to a table: here, or as one task of many."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidValue
from variantlake.ingest.commit_load import LoadResult, TaskResult, commit_load, found
from variantlake.ingest.encode.rows import Partition, TableRows, given_schema
from variantlake.ingest.learning.relearn import relearned
from variantlake.ingest.target.file_plan import FilePlan
from variantlake.ingest.target.files import FileSet, new_load_id, rows_of
from variantlake.ingest.target.keywords import check_options, names_of
from variantlake.ingest.target.options import LoadOptions
from variantlake.ingest.target.quarantine import BadRowLog
from variantlake.ingest.target.write_target import NOT_COMMITTED, Target
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.shredding.values import ValueNotes

if TYPE_CHECKING:
    from variantlake.ingest.overwrite import Overwrite  # parses SQL

MAX_OPEN_FILES = 64
"""Partitions that are written at the same time; beyond it files are finished early."""

MAX_PENDING_BYTES = 192 << 20
"""Bytes of rows (Arrow) that wait for their row groups in all partitions together."""

DEFAULTS = LoadOptions()


def append_arrow(
    data: Any,
    snapshot: Snapshot,
    *,
    json_columns: Collection[str] = (),
    merge_schema: bool = False,
    overwrite: Overwrite | None = None,
    options: LoadOptions = DEFAULTS,
) -> LoadResult:
    """Append rows to the table of `snapshot` in one commit.

    Columns go by name, those that are left out are NULL; those that the table does not have become
    columns of it with `merge_schema`. A Variant column without a shredding schema gets one from the
    first rows, which the table keeps. `overwrite` says which rows they take the place of.
    Nothing to do, no commit: the version is that of `snapshot`.

    Raises InvalidSchema for data that do not fit the table, InvalidJson, MalformedVariant,
    InvalidValue and LimitExceeded for a bad value, with its row in the data; UnsupportedFeature and
    CommitConflict.
    """
    started = time.perf_counter()
    check_options(merge_schema=merge_schema)
    json_columns = names_of("json_columns", json_columns)
    target = Target.of(snapshot)
    if overwrite is not None:
        target = overwrite.applied(target)
    if (known := found(target, options)) is not None:
        return known
    reader = _reader(data)
    if merge_schema:
        target = target.with_columns(given_schema(reader.schema, json_columns))
    target = relearned(target)
    plan = target.file_plan(new_load_id(), options)
    try:
        with plan.bad_row_log(0) as bad_rows:
            rows = TableRows(
                reader.schema,
                reader,
                plan,
                shreddings=target.shreddings(),
                json_columns=frozenset(json_columns),
                bad_rows=bad_rows,
                inference=options.inference,
            )
            result = write_rows(rows, plan)
    except NOT_COMMITTED:
        target.clean_up(plan.load_id)
        raise
    if not result.adds and not result.bad_rows and overwrite is None:
        return LoadResult(version=snapshot.version)
    return commit_load(target.with_shreddings(rows.shreddings), plan, [result], options, started)


class Rows(Protocol):
    """What files are written of: batches, each of one partition."""

    variant_columns: list[ColumnPath]
    partition_names: list[str]
    bad_rows: BadRowLog
    notes: Mapping[ColumnPath, ValueNotes]

    def __iter__(self) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """The rows, once."""


def write_rows(
    rows: Rows, plan: FilePlan, task: int = 0, check: Callable[[], None] | None = None
) -> TaskResult:
    """Write the rows as files, by partition. When an error passes, none of the files stays."""
    sets: dict[Partition, FileSet] = {}
    with contextlib.ExitStack() as stack:
        for partition, batch in rows:
            files = sets.get(partition)
            if files is None:
                files = plan.file_set(task, batch.schema, rows.variant_columns, check)
                sets[partition] = stack.enter_context(files)
            files.write(batch, rows.notes)
            _close_some([each for each in sets.values() if each.is_open])
        written = {partition: files.close() for partition, files in sets.items()}
        adds = tuple(
            plan.add(file, dict(zip(rows.partition_names, partition, strict=True)))
            for partition, files in written.items()
            for file in files
        )
    count = sum(map(rows_of, written.values()))
    return TaskResult(adds, count, rows.bad_rows.count, rows.bad_rows.path)


def _close_some(files: list[FileSet]) -> None:
    """Finish files early where too many are open, or hold too much together: the largest."""
    files.sort(key=lambda each: each.pending_bytes)
    pending = sum(each.pending_bytes for each in files)
    while len(files) > MAX_OPEN_FILES or (len(files) > 1 and pending > MAX_PENDING_BYTES):
        largest = files.pop()
        pending -= largest.pending_bytes
        largest.close()


def _reader(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise InvalidValue(
        f"what is given to be appended is a {type(data).__name__}",
        hint="files are given as vl.ndjson(...), vl.json_array(...) or vl.json_files(...), rows as "
        "an Arrow table or what has __arrow_c_stream__; lake.append takes DataFrames of Spark",
    )
