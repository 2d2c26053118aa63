"""The files that a change of rows writes: new and rewritten rows, change files, vectors.

None of them is part of the table before the commit, so all of them can be deleted again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.ingest.encode.rows import TableRows
from variantlake.jobs.write_rows import write_rows
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.storage.opening import open_store
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import delete_load, new_load_id
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.table_write import TableWrite


@dataclass(slots=True)
class NewFiles:
    """Writes the files of one change, and deletes them if its commit fails.

    `others` are paths below the table's root whose names lack the load id. `folders` are the
    locations besides the root that hold files of the load.
    """

    target: TableWrite
    plan: FilePlan
    others: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, snapshot: Snapshot, *, evaluated: bool) -> NewFiles:
        """Raises UnsupportedFeature, by name, if we must not write the table."""
        target = TableWrite.of(snapshot, evaluated=evaluated, numbered=True)
        plan = target.file_plan(new_load_id(), LoadOptions())
        ids = RowIdColumns.of(snapshot.properties)
        return cls(target, replace(plan, hidden=() if ids is None else ids.fields()))

    def write(
        self, tables: Iterable[pa.Table], plan: FilePlan | None = None
    ) -> tuple[AddFile, ...]:
        """Write rows, as `rows_at` returns them, by the table's file plan or by `plan`.

        Raises InvalidValue and others for a row that the table does not take.
        """
        plan = plan or self.plan
        with self._rows(tables, plan) as rows:
            if rows is None:
                return ()
            if plan is not self.plan:
                self.folders.append(plan.location)
            return write_rows(rows, plan).adds

    def check(self, tables: Iterable[pa.Table]) -> None:
        """Raise as `write` does for a row that the table does not take; writes nothing."""
        with self._rows(tables, self.plan) as rows:
            for _ in rows or ():
                pass

    @contextmanager
    def _rows(self, tables: Iterable[pa.Table], plan: FilePlan) -> Iterator[TableRows | None]:
        """Yield the rows as files store them; None if there are none."""
        batches = _batches(tables)
        first = next(batches, None)
        if first is None:
            yield None
            return
        with plan.bad_row_log(0) as bad_rows:
            yield TableRows(
                first.schema,
                itertools.chain([first], batches),
                plan,
                shreddings=self.target.shreddings(),
                json_columns=frozenset(),
                bad_rows=bad_rows,
                inference=InferenceOptions(),
            )

    @contextmanager
    def taken_back_on(self, *errors: type[BaseException]) -> Iterator[None]:
        """Delete everything that was written if one of these errors is raised."""
        try:
            yield
        except errors:
            self.take_back()
            raise

    def take_back(self) -> None:
        """Delete everything that was written."""
        self.target.clean_up(self.plan.load_id)
        for folder in self.folders:
            delete_load(open_store(folder), self.plan.load_id)
        for path in self.others:
            self.target.store.delete(path)


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from (batch for batch in table.to_batches() if batch.num_rows)
