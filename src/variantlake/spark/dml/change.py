"""Run a statement that changes rows as one Spark job and one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import CHANGE_FEED
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.dml.delete import MAX_DECISIONS
from variantlake.dml.files.change_feed import FOLDER, change_plan
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.merge.evolution import Evolution
from variantlake.dml.removed_rows import is_on
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_actions import (
    DELETED,
    INSERTED,
    MATCHED,
    UPDATED,
    check_once,
    removed_rows,
)
from variantlake.dml.row_change import NewRows, RowChange, check_not_append_only
from variantlake.dml.row_conflicts import FilesMoved
from variantlake.jobs.tasks import collect, results_of
from variantlake.quoting import Parts, quote_identifier
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.spark.dml.change_task import (
    ACTION,
    NO_PLACES,
    ChangeTask,
    PlacedResult,
)
from variantlake.spark.dml.changed_rows import TARGET, RowsText
from variantlake.spark.dml.merged_rows import CLAUSE
from variantlake.spark.dml.row_places import LOCATION, ROW_ID, PlacedTables
from variantlake.spark.load.append_task import AppendTask
from variantlake.spark.load.constraints import evaluated, numbered_where, refusals
from variantlake.spark.query.names import Resolve
from variantlake.spark.query.names import Target as NamedTable
from variantlake.spark.query.read_versions import version_read
from variantlake.spark.scan.tables import Tables, TableVersion, table_version
from variantlake.spark.session.jobs import run_over
from variantlake.writing.files import new_load_id
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.table_write import TableWrite

_NOT_CHANGED = "nothing was changed; correct the row or leave it out"


class Runner(Protocol):
    """Runs queries, in a classic session or on Spark Connect."""

    def run(self, text: str, args: Any, resolve: Resolve) -> DataFrame:
        """Return the query's DataFrame."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that changes rows; `operation` and `parameters` are for the history.

    `rows` returns the query of the changed rows for a snapshot. `multiple`: several source rows may
    match one row of the table. `finds` tells whether the change would have found a row in another
    writer's file, `inserts` whether the statement may insert rows. `evolved` returns the table with
    the columns that the change adds, None if it adds none.
    """

    operation: str
    parameters: dict[str, str]
    rows: Callable[[Snapshot, Runner, Resolve], RowsText]
    finds: Callable[[Snapshot, AddFile], bool]
    multiple: bool = True
    inserts: bool = False
    args: Any = None
    evolved: Callable[[Snapshot, Runner, Resolve], Evolution | None] | None = None


@dataclass(frozen=True, slots=True)
class ChangeRunner:
    """Runs statements for one session; `runner` returns the Runner of queries over some tables."""

    spark: SparkSession
    tables: Tables
    runner: Callable[[Tables], Runner]

    def run(
        self, location: str, statement: Statement, resolve: Resolve, *, dry_run: bool = False
    ) -> ChangeResult:
        """Change the rows of the table at `location`; retries if another writer moved them.

        A dry run also computes the new rows, to check that they can be stored, but writes none.

        Raises InvalidQuery with Spark's message, InvalidValue for a row that the table refuses,
        UnsupportedFeature by name, CommitConflict.
        """
        for _ in range(MAX_DECISIONS - 1):
            try:
                return self._once(self.tables.open(location), statement, resolve, dry_run)
            except FilesMoved:
                continue
        return self._once(self.tables.open(location), statement, resolve, dry_run)

    def _once(
        self, table: TableVersion, statement: Statement, resolve: Resolve, dry_run: bool
    ) -> ChangeResult:
        started = time.perf_counter()
        evolution = None
        if statement.evolved is not None:
            evolution = statement.evolved(table.snapshot, self.runner(self.tables), resolve)
        if evolution is not None:
            table = table_version(table.location, evolution.snapshot, table.files)
        snapshot = table.snapshot
        if statement.operation != "MERGE":  # a MERGE may only insert
            check_not_append_only(snapshot)
        target = TableWrite.of(snapshot, evaluated=True, numbered=True)
        runner = self.runner(PlacedTables(self.tables, table))
        resolve = _with_target(resolve)
        query = statement.rows(snapshot, runner, resolve)
        frame = runner.run(query.text, statement.args, resolve).toDF(*query.columns)
        frame = numbered_where(frame.filter(f"{ACTION} IS NOT NULL"), snapshot, query.numbered)
        frame = frame.select(*(quote_identifier(each) for each in frame.columns if each != CLAUSE))
        frame, _ = evaluated(frame, snapshot, only=f"{ACTION} >= {UPDATED}")
        plan = target.file_plan(new_load_id(), LoadOptions())
        if ROW_ID in frame.columns and (ids := RowIdColumns.of(snapshot.properties)) is not None:
            frame = frame.withColumnRenamed(ROW_ID, ids.row_id)
            plan = replace(plan, hidden=ids.fields())
        files = NewFiles(target, plan)
        feed = is_on(snapshot, CHANGE_FEED) and statement.operation != "DELETE"
        folder = target.store.join(FOLDER)
        if feed:
            files.folders.append(folder)
        task = ChangeTask(
            AppendTask(plan, target.shreddings(), frozenset(), InferenceOptions()),
            change_plan(plan, folder) if feed else None,
            dry_run,
        )
        description = f"variantlake: {statement.operation} in {snapshot.store.uri}"
        with files.taken_back_on(BaseException):
            alone = version_read(frame, snapshot) is not None

            def run() -> Iterable[bytes]:
                return run_over(self.spark, frame, task, description=description)

            with refusals(_NOT_CHANGED):
                results = results_of(run()) if dry_run else collect(plan, target, run)
            found = cast("list[PlacedResult]", results)
            change = replace(
                row_change(snapshot, statement, found, started),
                is_exclusive=alone,
                altered=None if evolution is None else evolution.altered,
            )
        return change.planned(files) if dry_run else change.commit(files)


def row_change(
    snapshot: Snapshot, statement: Statement, found: Sequence[PlacedResult], started: float
) -> RowChange:
    """Make one change of the tasks' results. Raises InvalidQuery if a row is in them twice."""
    actions, numbers, rows = np.concatenate([NO_PLACES, *(each.places for each in found)], axis=1)
    old = actions <= UPDATED
    check_once(numbers[old], rows[old], multiple=statement.multiple)
    gone = (actions == DELETED) | (actions == UPDATED)
    taken, preimages = removed_rows(snapshot, actions[gone], numbers[gone], rows[gone])
    # Inserts depend on these rows: without the match, a source row would be inserted.
    kept = (actions == MATCHED) & statement.inserts
    watched, _ = removed_rows(snapshot, actions[kept], numbers[kept], rows[kept])
    counts = {kind: int((actions == kind).sum()) for kind in (UPDATED, INSERTED)}
    return RowChange(
        snapshot,
        statement.operation,
        statement.parameters,
        taken,
        lambda add: statement.finds(snapshot, add),
        started,
        time.perf_counter(),
        NewRows(
            updated_count=counts[UPDATED],
            inserted_count=counts[INSERTED],
            adds=tuple(add for each in found for add in each.adds),
            change_files=tuple(file for each in found for file in each.change_files),
        ),
        preimages,
        watched,
    )


def _with_target(resolve: Resolve) -> Resolve:
    def find(parts: Parts) -> NamedTable | None:
        if tuple(parts) == (TARGET,):
            return NamedTable(LOCATION, parts, in_spark=False)
        return resolve(parts)

    return find
