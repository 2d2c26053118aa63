"""Run a rewrite in steps, with a runner of tasks and one commit for each step.

If another writer removed files of a step, the rest is planned anew. If the process is killed at any
point, the table is at the version before or after a step: until the commit, no reader sees new
files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from variantlake.delta.log.identity import check_same_table
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import CommitConflict, MissingSource
from variantlake.jobs.progress import bytes_read
from variantlake.jobs.progress import watcher as step_watcher
from variantlake.jobs.tasks import Runner, TaskResult, collect, run_task
from variantlake.logs import logger
from variantlake.maintenance.rewrite.commit_rewrite import (
    CommittedRewrite,
    Operation,
    commit_rewrite,
    fits,
    still_there,
)
from variantlake.maintenance.rewrite.groups import (
    FileGroup,
    RewriteInput,
    TierCounts,
    joined,
    total,
)
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan, RewrittenGroup, rewrite_group
from variantlake.progress import OnProgress, Progress
from variantlake.shown import Result
from variantlake.writing.commit_files import NOT_COMMITTED
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.table_write import TableWrite

_LOG = logger("rewrite")

MAX_ATTEMPTS = 10
"""How often a rewrite is planned at most, if other writers keep changing its files first."""


class Work(Protocol):
    """The files of one version of a table to rewrite."""

    @property
    def plan(self) -> RewritePlan:
        """How to rewrite them."""

    @property
    def bytes(self) -> int:
        """Bytes of all input files."""

    def steps(self) -> Iterator[list[FileGroup]]:
        """Yield the groups of each commit; makes them one commit at a time."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """The body of the tasks of one step; pickles. `work` has the groups by task number."""

    plan: RewritePlan
    work: tuple[FileGroup, ...]

    @property
    def files(self) -> FilePlan:
        """The plan of new files."""
        return self.plan.files

    @property
    def groups(self) -> Sequence[Sequence[RewriteInput]]:
        """The input files of each task."""
        return [group.files for group in self.work]

    def __call__(self, number: int, /) -> Iterable[bytes]:
        """Rewrite one group."""

        def write(check: Callable[[], None]) -> TaskResult:
            return rewrite_group(self.plan, self.work[number], check)

        return run_task(self.plan.files, number, write)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriteResult(Result):
    """The common fields of rewrites' results; subclasses document their exact meaning.

    `versions` are all commits, `version` the last of them.
    """

    versions: tuple[int, ...] = ()
    files_read: int = 0
    files_written: int = 0
    rows_rewritten: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class RewriteTotals:
    """Totals of finished steps.

    `versions` are the commits. `files` and `bytes_written` are of the new files, `tiers` of the
    input files. `vectors` counts deletion vectors that were applied, `conflicts` groups that
    another writer changed first.
    """

    versions: tuple[int, ...] = ()
    files: int = 0
    bytes_written: int = 0
    vectors: int = 0
    conflicts: int = 0
    tiers: TierCounts = field(default_factory=dict)

    @classmethod
    def of(cls, step: CommittedRewrite) -> Self:
        """Return the totals of one step."""
        done = [each for _, each in step.done]
        inputs = [file for group, _ in step.done for file in group.files]
        return cls(
            () if step.version is None else (step.version,),
            sum(len(each.adds) for each in done),
            sum(each.bytes_written for each in done),
            sum(file.vector is not None for file in inputs),
            len(step.lost),
            joined(each.tiers for each in done),
        )

    def __add__(self, more: RewriteTotals) -> RewriteTotals:
        return RewriteTotals(
            self.versions + more.versions,
            self.files + more.files,
            self.bytes_written + more.bytes_written,
            self.vectors + more.vectors,
            self.conflicts + more.conflicts,
            joined([self.tiers, more.tiers]),
        )

    def result_fields(self) -> dict[str, Any]:
        """Return the fields of a RewriteResult."""
        read = total(self.tiers)
        return {
            "versions": self.versions,
            "files_read": read.files,
            "files_written": self.files,
            "rows_rewritten": read.rows,
            "bytes_read": read.bytes,
            "bytes_written": self.bytes_written,
            "conflicts": self.conflicts,
        }


def run_rewrite(
    snapshot: Snapshot,
    prepare: Callable[[Snapshot], Work],
    run: Runner,
    operation: Operation,
    *,
    progress: OnProgress | None = None,
) -> RewriteTotals:
    """Run all steps of the work that `prepare` finds in a version of the table.

    If another writer was first, it prepares the rest of the work on the newest version. There are
    at most MAX_ATTEMPTS attempts.

    Raises what a task raises, and CommitConflict after the last attempt. Committed steps stay, and
    no file is left of the others.
    """
    started = time.perf_counter()
    steps = _Steps(snapshot, run, operation, progress)
    for _ in range(MAX_ATTEMPTS):
        if steps.do(prepare(steps.snapshot)):
            _say(steps.totals, snapshot, time.perf_counter() - started)
            return steps.totals
        _LOG.info("%s: another writer was first, planning anew", snapshot.store.uri)
    raise CommitConflict(
        f"other writers changed the files {MAX_ATTEMPTS} times before they were rewritten",
        file=snapshot.store.uri,
        hint=f"{len(steps.totals.versions)} commits are done; repeat when fewer rows are changed",
    )


def _say(totals: RewriteTotals, snapshot: Snapshot, seconds: float) -> None:
    _LOG.info(
        "%s: rewritten rows %d, new files %d, bytes %d, seconds %.2f",
        snapshot.store.uri, total(totals.tiers).rows, totals.files, totals.bytes_written, seconds,
    )  # fmt: skip
    for tier, counts in totals.tiers.items():
        _LOG.debug(
            "%s: files %d, rows %d, bytes %d",
            tier.name.lower(),
            counts.files,
            counts.rows,
            counts.bytes,
        )


@dataclass(slots=True)
class _Steps:
    """The newest known version, and the totals so far."""

    snapshot: Snapshot
    run: Runner
    operation: Operation
    progress: OnProgress | None
    totals: RewriteTotals = field(default_factory=RewriteTotals)

    def do(self, work: Work) -> bool:
        """Run the steps of one plan; returns whether all of it was done."""
        is_done, before = True, 0
        for planned in work.steps():
            if not fits(work.plan, self.snapshot):
                return False
            groups = still_there(self.snapshot, planned)
            is_done = is_done and len(groups) == len(planned)
            if not groups:
                continue
            # Each step has another load id: cleaning up after it must not touch others' files.
            task = RewriteTask(work.plan.another(), tuple(groups))
            shifted = _shifted(self.progress, before, work.bytes)
            try:
                step = self._step(task, step_watcher(task, self.snapshot.store, shifted))
            except (CommitConflict, MissingSource):
                newest = self.snapshot.refresh()
                check_same_table(self.snapshot, newest)
                if newest.version == self.snapshot.version:
                    raise
                self.snapshot = newest
                return False
            before += sum(group.bytes for group in groups)
            self.snapshot, self.totals = (
                step.snapshot.refresh(),
                self.totals + RewriteTotals.of(step),
            )
            is_done = is_done and not step.lost
        return is_done

    def _step(self, task: RewriteTask, watch: Callable[[int], None]) -> CommittedRewrite:
        target = TableWrite.of(self.snapshot, evaluated=True, kept=True)
        results = collect(task.files, target, lambda: self.run(task, watch))
        by_number = {each.number: each for each in results if isinstance(each, RewrittenGroup)}
        rewritten = [(group, by_number[group.number]) for group in task.work]
        try:
            return commit_rewrite(self.snapshot, task.plan, rewritten, self.operation)
        except NOT_COMMITTED:
            target.clean_up(task.files.load_id)
            raise


def _shifted(progress: OnProgress | None, before: int, total: int) -> OnProgress | None:
    """Convert the progress of a step to that of the whole work; `before` and `total` in bytes."""
    if progress is None:
        return None

    def show(state: Progress) -> None:
        progress(bytes_read(before + state.done, total, state.files_written))

    return show
