"""The tasks of a job: run one, and collect the results of all.

A job has one task for each group of parts of its input. A `Runner` runs the tasks in threads of
this process or on Spark's executors.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from variantlake.delta.actions.actions import AddFile
from variantlake.errors import VariantLakeError
from variantlake.jobs.stop_flag import LoadFlag, LoadStopped
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import delete_load
from variantlake.writing.quarantine import delete_quarantine
from variantlake.writing.table_write import TableWrite


class Sized(Protocol):
    """A part of the input."""

    @property
    def size(self) -> int:
        """Bytes, as stored."""


class Tasks(Protocol):
    """The tasks of one load, whatever they do. Pickles."""

    @property
    def files(self) -> FilePlan:
        """Where the files go."""

    @property
    def groups(self) -> Sequence[Sequence[Sized]]:
        """The parts of the input, by task."""

    def __call__(self, number: int, /) -> Iterable[bytes]:
        """Run one task, as `run_task` does."""


Runner = Callable[[Tasks, Callable[[int], None]], Iterable[bytes]]
"""Runs every task of a load and returns their payloads; calls its second argument now and then with
the number of finished tasks."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one task wrote: its files and the number of rows in them.

    `bad_rows` is the number of bad rows, `quarantine` the file that holds them. `empty` has the
    source of each split without documents. `counts` has for each split of a load of documents the
    path of its source, the number of rows stored and that of bad ones. `first_bad` says what is
    wrong with the first bad row, if their number is limited.
    """

    adds: tuple[AddFile, ...]
    rows: int
    bad_rows: int = 0
    quarantine: str | None = None
    empty: tuple[str, ...] = ()
    counts: tuple[tuple[str, int, int], ...] = ()
    first_bad: str = ""


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """The error that a task's input caused."""

    number: int
    error: VariantLakeError


def run_task(
    plan: FilePlan | None, number: int, write: Callable[[Callable[[], None]], TaskResult]
) -> Iterable[bytes]:
    """Run `write` as one task; errors of its input are returned as data, not raised.

    Spark would repeat a task that raises, and pass the error to the driver as text. `write` gets a
    function to call now and then, which stops the task by raising. Without a plan (a dry run, which
    writes no flag) nothing stops it.
    """
    flag = None if plan is None else flag_of(plan)

    def check() -> None:
        if flag is not None:
            flag.check(number)

    try:
        check()
        result: TaskResult | TaskFailure = write(check)
    except LoadStopped:
        return
    except VariantLakeError as error:
        if flag is not None:
            flag.fail(number)
        result = TaskFailure(number, error)
    yield pickle.dumps(result)


def flag_of(plan: FilePlan) -> LoadFlag:
    """The flag that stops the tasks of a load."""
    return LoadFlag(open_store(plan.location), plan.load_id)


def collect(
    plan: FilePlan, target: TableWrite, run: Callable[[], Iterable[bytes]]
) -> list[TaskResult]:
    """Run the tasks and return their results.

    A failure or Ctrl-C removes all files of the load. Raises the failure that is first in the order
    of the input.
    """
    flag = flag_of(plan)
    flag.up()
    try:
        results = results_of(run())
    except BaseException:
        flag.down()
        target.clean_up(plan.load_id)
        raise
    flag.down()
    delete_strays(target, plan, results)
    return results


def results_of(payloads: Iterable[bytes]) -> list[TaskResult]:
    """The tasks' results, in the order of the input. Raises the failure that is first there."""
    return sort_results(map(pickle.loads, payloads))  # of our own tasks


def delete_strays(target: TableWrite, plan: FilePlan, results: Sequence[TaskResult]) -> None:
    """Delete files of repeated and duplicate tasks that no result names.

    Only on a local disk: in an object store listing them costs more than keeping them.
    """
    if isinstance(target.store, LocalStore):
        delete_load(target.store, plan.load_id, keep={a.path for r in results for a in r.adds})
        kept = frozenset(result.quarantine for result in results if result.quarantine)
        delete_quarantine(target.store, plan.load_id, kept)


def sort_results(outcomes: Iterable[TaskResult | TaskFailure]) -> list[TaskResult]:
    """Results in the order of the input: names of files begin with their task's number.

    Raises the failure that is first in that order.
    """
    outcomes = list(outcomes)
    failures = [outcome for outcome in outcomes if isinstance(outcome, TaskFailure)]
    if failures:
        raise min(failures, key=lambda failure: failure.number).error
    results = [outcome for outcome in outcomes if isinstance(outcome, TaskResult)]
    return sorted(results, key=lambda result: [add.path for add in result.adds])
