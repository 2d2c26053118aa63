"""Run a clustering: options, result, and the run itself. See `Table.cluster`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.clustering import clustering_domain
from variantlake.delta.schema.columns_by_path import field_path
from variantlake.errors import InvalidSchema
from variantlake.jobs.tasks import Runner
from variantlake.maintenance.clustering.plan_clustering import ClusterPlan, plan_clustering
from variantlake.maintenance.rewrite.commit_rewrite import Operation
from variantlake.maintenance.rewrite.groups import check_whole
from variantlake.maintenance.rewrite.run import RewriteResult, run_rewrite
from variantlake.progress import OnProgress
from variantlake.scan.table_names import files_matching
from variantlake.units import Size, size_bytes
from variantlake.writing.options.file_sizes import CLUSTERED_FILE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClusterResult(RewriteResult):
    """What a run did, or would do.

    `versions` are its commits. `paths` are the table's clustering paths. `new_bytes` were in files
    that no run had ordered; the run was allowed to rewrite `budget_bytes`. It ordered `groups`
    groups of files, each by itself. `read_share_before` and `read_share_after` are the share of the
    bytes that a query for one value of a path reads, on average over all values and paths, if it
    skips files by their bounds alone. In a dry run the second is an estimate, as are
    `files_written` and `bytes_written`. `conflicts` counts groups that another writer changed
    first.
    """

    paths: tuple[str, ...] = ()
    groups: int = 0
    budget_bytes: int = 0
    new_bytes: int = 0
    read_share_before: float = 0.0
    read_share_after: float = 0.0


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of a run, see `Table.cluster`. Raises InvalidValue for a size out of range.

    `by` are columns to order files by in this run only (ZORDER BY), in a table without clustering.
    """

    where: str | None = None
    budget_bytes: int | None = None
    target_file_size: int = CLUSTERED_FILE_BYTES
    digest: bool = True
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_whole("target_file_size", self.target_file_size)
        if self.budget_bytes is not None:
            check_whole("budget_bytes", self.budget_bytes, 0)

    @classmethod
    def of(
        cls, where: object, budget: Size | None, target_file_size: Size, *, digest: bool
    ) -> Self:
        """Make options of a user's arguments."""
        return cls(
            None if where is None else str(where),
            None if budget is None else size_bytes("budget", budget),
            size_bytes("target_file_size", target_file_size),
            digest,
        )


def cluster(
    snapshot: Snapshot,
    run: Runner,
    options: ClusterOptions,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> ClusterResult:
    """Order the files that overlap most, in tasks of the runner `run`.

    Raises as `Table.cluster`.
    """
    started = time.perf_counter()
    where = options.where
    chosen = files_matching(snapshot, where)
    plans: list[ClusterPlan] = []
    turns: list[int] = []

    def planned(newest: Snapshot, budget: int | None) -> ClusterPlan:
        if options.by:
            newest = _ordered_by(newest, options.by)
        return plan_clustering(
            newest,
            chosen=chosen(newest),
            budget=budget,
            target=options.target_file_size,
            digest=options.digest,
            may_part=not plans,
        )

    def prepare(newest: Snapshot) -> ClusterPlan:
        budget = options.budget_bytes
        if turns:
            budget = turns[0]
        elif plans:  # another writer was first: plan for the rest of the budget
            budget = max(0, plans[0].budget - sum(_done(plan, newest) for plan in plans))
        plans.append(planned(newest, budget))
        return plans[-1]

    first = prepare(snapshot)
    now, expected = first.read_share
    result = ClusterResult(
        version=None if dry_run else snapshot.version,
        dry_run=dry_run,
        paths=tuple(path.text for path in first.paths),
        groups=len(first.groups),
        files_read=sum(map(len, first.groups)),
        files_written=first.files_written,
        rows_rewritten=_rows(first),
        bytes_read=first.bytes,
        bytes_written=first.bytes,
        budget_bytes=first.budget,
        new_bytes=first.new_bytes,
        read_share_before=now,
        read_share_after=expected,
        seconds=time.perf_counter() - started,
    )
    if dry_run or not first.groups:
        return result
    operation = Operation.optimize(where, result.paths, once=bool(options.by))
    waiting = [first]

    def next_plan(newest: Snapshot) -> ClusterPlan:
        return waiting.pop() if waiting else prepare(newest)

    totals = run_rewrite(snapshot, next_plan, run, operation, progress=progress)
    if first.is_parted:  # files have one range of values now; the second turn orders each range
        turns.append(totals.bytes_written)
        more = run_rewrite(snapshot.refresh(), prepare, run, operation, progress=progress)
        totals += more
    after = planned(snapshot.refresh(), 0)
    return replace(
        result,
        **totals.result_fields(),
        read_share_after=after.read_share[0],
        seconds=time.perf_counter() - started,
    )


def _ordered_by(snapshot: Snapshot, columns: Sequence[str]) -> Snapshot:
    """Return the snapshot as if it were clustered by these columns.

    Raises InvalidSchema for a partition column or one that there is not.
    """
    for column in columns:
        if field_path(snapshot.schema, column)[0] in snapshot.partition_columns:
            raise InvalidSchema(
                f"{column} is a partition column: a file has one value of it",
                hint="order by columns that the table is not partitioned by",
            )
    domain = clustering_domain(snapshot.schema, columns, ())
    return replace(snapshot, domains={**snapshot.domains, domain.domain: domain})


def _done(plan: ClusterPlan, newest: Snapshot) -> int:
    """Return the bytes of the groups whose files are all gone: nearly always, this run did it."""
    there = set(newest.files["path"].to_pylist())
    found = 0
    for rows in plan.groups:
        if there.isdisjoint(plan.snapshot.files["path"].take(rows).to_pylist()):
            found += int(plan.log.sizes[rows].sum())
    return found


def _rows(plan: ClusterPlan) -> int:
    counts = plan.log.of_log.num_records
    return int(sum(max(int(n), 0) for rows in plan.groups for n in counts[rows].tolist()))
