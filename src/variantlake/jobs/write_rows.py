"""Write rows as files of a table, by partition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from variantlake.jobs.tasks import TaskResult
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.shredding.values import ValueNotes
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import FileSet, rows_of
from variantlake.writing.quarantine import BadRowLog

Partition = tuple[str | None, ...]
"""A partition's values, as the log writes them, in the order of the partition columns."""

MAX_OPEN_FILES = 64
"""The most partitions written at the same time; beyond it files are finished early."""

MAX_PENDING_BYTES = 192 << 20
"""The most bytes of rows (Arrow) that wait for their row groups in all partitions together."""


class PartitionedRows(Protocol):
    """Rows in the columns that files store, in batches of one partition each.

    `notes` describe the Variants of the latest batch; `bad_rows` records rows that cannot be
    stored.
    """

    notes: Mapping[ColumnPath, ValueNotes]
    bad_rows: BadRowLog
    variant_columns: list[ColumnPath]
    partition_names: list[str]

    def __iter__(self) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """The batches."""


def write_rows(
    rows: PartitionedRows,
    plan: FilePlan,
    task: int = 0,
    check: Callable[[], None] | None = None,
) -> TaskResult:
    """Write the rows as files, by partition; an error removes all of them."""
    sets: dict[Partition, FileSet] = {}
    with contextlib.ExitStack() as stack:
        for partition, batch in rows:
            files = sets.get(partition)
            if files is None:
                values = dict(zip(rows.partition_names, partition, strict=True))
                files = plan.file_set(
                    task, batch.schema, rows.variant_columns, check, partition_values=values
                )
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
    bad = rows.bad_rows
    return TaskResult(adds, count, bad.count, bad.path, first_bad=bad.first)


def _close_some(files: list[FileSet]) -> None:
    """Finish the largest files early while too many are open, or too many bytes are pending."""
    files.sort(key=lambda each: each.pending_bytes)
    pending = sum(each.pending_bytes for each in files)
    while len(files) > MAX_OPEN_FILES or (len(files) > 1 and pending > MAX_PENDING_BYTES):
        largest = files.pop()
        pending -= largest.pending_bytes
        largest.close()
