"""The body of an append's tasks, for any kind of Spark job."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from variantlake.ingest.encode.rows import TableRows
from variantlake.jobs.tasks import TaskResult, run_task
from variantlake.jobs.write_rows import write_rows
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.schema import ShreddingSchema
from variantlake.writing.file_plan import FilePlan


def partition_number() -> int:
    """Return the number of this Spark task's partition, 0 outside a task."""
    # Executors have it; a client of Spark Connect need not.
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


@dataclass(frozen=True, slots=True)
class AppendTask:
    """The body of all tasks of one append; pickles."""

    plan: FilePlan
    shreddings: dict[str, ShreddingSchema]
    json_columns: frozenset[str]
    inference: InferenceOptions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterable[bytes]:
        """Write the rows of one partition."""
        number = partition_number()
        return run_task(self.plan, number, lambda check: self.write(number, batches, check))

    def write(
        self, number: int, batches: Iterator[pa.RecordBatch], check: Callable[[], None]
    ) -> TaskResult:
        """Write the files of one task."""
        return self.written(number, batches, check)[0]

    def written(
        self, number: int, batches: Iterator[pa.RecordBatch], check: Callable[[], None] | None
    ) -> tuple[TaskResult, dict[str, ShreddingSchema]]:
        """Write the files of one task; returns also the schemas of its VARIANT columns."""
        with self._rows(number, batches) as rows:
            if rows is None:
                return TaskResult((), 0), {}
            return write_rows(rows, self.plan, number, check), rows.shreddings

    def check(self, number: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Raise as `write` does for a row that the table refuses, but write nothing."""
        with self._rows(number, batches) as rows:
            for _ in rows or ():
                pass

    @contextmanager
    def _rows(self, number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[TableRows | None]:
        """Yield the rows in the form of files, None if there are none."""
        first = next(batches, None)
        if first is None:
            yield None
            return
        with self.plan.bad_row_log(number) as bad_rows:
            yield TableRows(
                first.schema,
                itertools.chain([first], batches),
                self.plan,
                shreddings=self.shreddings,
                json_columns=self.json_columns,
                bad_rows=bad_rows,
                inference=self.inference,
            )
