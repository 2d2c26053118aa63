"""The tasks of a change of rows: they write the new rows, and return the places of the old ones.

Spark's rows start with the columns ACTION, FILE and ROW; the table's columns follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from variantlake.delta.actions.actions import AddCdcFile
from variantlake.delta.protocol.change_feed import CHANGE_TYPE
from variantlake.dml.files.change_feed import AFTER, INSERT, change_action
from variantlake.dml.row_actions import UPDATED
from variantlake.jobs.tasks import TaskResult, run_task
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.spark.load.append_task import AppendTask, partition_number
from variantlake.writing.file_plan import FilePlan

ACTION = "__vl_action"
"""The column with the action on a row, a number of `dml.row_actions`."""

_LEADING = 3
NO_PLACES: Int64s = np.empty((_LEADING, 0), np.int64)


@dataclass(frozen=True, slots=True)
class PlacedResult(TaskResult):
    """The result of one task. The three lines of `places` are its rows' actions, files and places.

    NULL is -1 there.
    """

    places: Int64s = field(default_factory=lambda: NO_PLACES)
    change_files: tuple[AddCdcFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """The body of each task of one change; pickles.

    `changes` is the plan of change files, None if the table needs none. A dry run only checks that
    the rows can be stored.
    """

    append: AppendTask
    changes: FilePlan | None
    dry_run: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterable[bytes]:
        """Run the task over the rows of one partition."""
        number = partition_number()
        plan = None if self.dry_run else self.append.plan
        return run_task(plan, number, lambda check: self._done(number, batches, check))

    def _done(
        self, number: int, batches: Iterator[pa.RecordBatch], check: Callable[[], None]
    ) -> PlacedResult:
        places = [NO_PLACES]
        rows = _new_rows(batches, places)
        change_files: tuple[AddCdcFile, ...] = ()
        if self.dry_run:
            self.append.check(number, (batch for _, batch in rows))
            done = TaskResult((), 0)
        elif self.changes is None:
            done = self.append.write(number, (batch for _, batch in rows), check)
        else:
            kept = list(rows)
            done = self.append.write(number, (batch for _, batch in kept), check)
            feed = replace(self.append, plan=self.changes)
            hidden = [each.name for each in self.append.plan.hidden]
            typed = (_with_type(actions, _without(batch, hidden)) for actions, batch in kept)
            written = feed.write(number, typed, check)
            change_files = tuple(map(change_action, written.adds))
        return PlacedResult(
            done.adds,
            done.rows,
            places=np.concatenate(places, axis=1),
            change_files=change_files,
        )


def _new_rows(
    batches: Iterator[pa.RecordBatch], places: list[Int64s]
) -> Iterator[tuple[Int64s, pa.RecordBatch]]:
    """Yield the new rows without their leading columns; appends all leading columns to `places`."""
    for batch in batches:
        leading = np.stack(
            [
                np.asarray(batch.column(at).cast(pa.int64()).fill_null(-1), np.int64)
                for at in range(_LEADING)
            ]
        )
        places.append(leading)
        new = leading[0] >= UPDATED
        if batch.num_columns > _LEADING and new.any():
            rest = batch.select(list(range(_LEADING, batch.num_columns)))
            yield leading[0][new], rest if new.all() else rest.filter(pa.array(new))


def _without(batch: pa.RecordBatch, hidden: Sequence[str]) -> pa.RecordBatch:
    """Drop the row ids, which the change feed does not have."""
    return batch.select([name for name in batch.schema.names if name not in hidden])


def _with_type(actions: Int64s, batch: pa.RecordBatch) -> pa.RecordBatch:
    kinds = pa.array(np.where(actions == UPDATED, AFTER, INSERT).tolist(), pa.string())
    return pa.RecordBatch.from_arrays(
        [*batch.columns, kinds],
        schema=batch.schema.append(pa.field(CHANGE_TYPE, pa.string())),
    )
