"""Compaction of a table: what is asked for, and what was done or would be."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from variantlake.delta.log.identity import check_same_table
from variantlake.delta.log.snapshot import Snapshot
from variantlake.jobs.tasks import Runner
from variantlake.maintenance.dropped_columns import DroppedColumns
from variantlake.maintenance.plan_compaction import (
    CompactionOptions,
    CompactionPlan,
    numbers_in,
    plan_compaction,
)
from variantlake.maintenance.rewrite.commit_rewrite import Operation
from variantlake.maintenance.rewrite.copy_group import why_not_copied
from variantlake.maintenance.rewrite.groups import (
    APART_TAG,
    InputCounts,
    Tier,
    TierCounts,
    joined,
)
from variantlake.maintenance.rewrite.run import RewriteResult, RewriteTotals, run_rewrite
from variantlake.progress import OnProgress
from variantlake.scan.table_names import files_matching


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OptimizeResult(RewriteResult):
    """What a compaction did, or would do.

    `versions` are its commits, in order. `files_read`, `rows_rewritten` and `bytes_read` are of the
    files that were rewritten, `files_written` and `bytes_written` of those in their place (of a dry
    run `bytes_written` is an estimate and `files_written` the number of groups). `copied`,
    `encoded` and `reshredded` are the files that were read by how their rows came: row groups as
    bytes, columns decoded and encoded, Variants rebuilt. What very many files became, or files that
    shrank by much, is joined in turn, and counts again; a dry run knows of the first turn alone,
    because what a turn writes is not known before it. `not_copied` tells of a dry run why files of
    `encoded` are not copied: how many for each reason. `conflicts` counts groups that another
    writer was first to change, which were planned anew.
    """

    copied: InputCounts = field(default_factory=InputCounts)
    encoded: InputCounts = field(default_factory=InputCounts)
    reshredded: InputCounts = field(default_factory=InputCounts)
    not_copied: Mapping[str, int] = field(default_factory=dict)
    deletion_vectors: int = 0
    commits: int = 0


def optimize(
    snapshot: Snapshot,
    run: Runner,
    *,
    where: str | None = None,
    options: CompactionOptions,
    dry_run: bool = False,
    digest: bool = True,
    progress: OnProgress | None = None,
    dropped: DroppedColumns | None = None,
    z_order: Sequence[str] = (),
) -> OptimizeResult:
    """Compact the files that may match `where`, with this runner of tasks.

    `dropped` says which files a purge rewrites, besides those with deleted rows; `z_order` names
    columns in whose order the rows are already. Raises as `Table.optimize`.
    """
    started = time.perf_counter()
    chosen = files_matching(snapshot, where)

    dropped = dropped or DroppedColumns()

    def prepare(newest: Snapshot) -> CompactionPlan:
        return plan_compaction(newest, options, chosen(newest), digest=digest, dropped=dropped)

    if dry_run:
        return _expected(prepare(snapshot), started)
    operation = Operation.optimize(where, z_order, once=bool(z_order))
    if options.purge:
        operation = Operation.purge(where)
    totals = RewriteTotals()
    for turn in itertools.count():
        before = _to_join(snapshot)
        done = run_rewrite(snapshot, prepare, run, operation, progress=progress)
        totals += done
        if not done.versions:
            break
        # What very many files became, or files that shrank by much, is joined in turn.
        newest = snapshot.refresh()
        check_same_table(snapshot, newest)
        snapshot = newest
        if turn and _to_join(snapshot) >= before:
            break
    version = totals.versions[-1] if totals.versions else snapshot.version
    return _result(totals, started, version=version, commits=len(totals.versions))


def _result(totals: RewriteTotals, started: float, **others: Any) -> OptimizeResult:
    return OptimizeResult(
        **totals.result_fields(),
        **others,
        copied=totals.tiers.get(Tier.COPY, InputCounts()),
        encoded=totals.tiers.get(Tier.COLUMNS, InputCounts()),
        reshredded=totals.tiers.get(Tier.SHRED, InputCounts()),
        deletion_vectors=totals.vectors,
        seconds=time.perf_counter() - started,
    )


def _expected(plan: CompactionPlan, started: float) -> OptimizeResult:
    """What the plan would do. Reads the footers of files that may be copied."""
    written = vectors = commits = 0
    tiers: list[TierCounts] = []
    not_copied: dict[str, int] = {}
    for step in plan.steps():
        commits += 1
        for group in step:
            written += group.live_bytes
            vectors += sum(file.vector is not None for file in group.files)
            reason = plan.why_not(plan.groups[group.number])
            if reason is None:
                reason = why_not_copied(plan.snapshot, group)
            if reason is None:
                tiers.append(group.tiers)
                continue
            decoded = (replace(each, tier=max(each.tier, Tier.COLUMNS)) for each in group.files)
            tiers.append(replace(group, files=tuple(decoded)).tiers)
            encoded = tiers[-1].get(Tier.COLUMNS, InputCounts()).files
            not_copied[reason] = not_copied.get(reason, 0) + encoded
    totals = RewriteTotals((), len(plan.groups), written, vectors, tiers=joined(tiers))
    not_copied = {reason: files for reason, files in not_copied.items() if files}
    return _result(totals, started, dry_run=True, commits=commits, not_copied=not_copied)


def _to_join(snapshot: Snapshot) -> tuple[int, int]:
    """What each turn makes less: the files, or those that may go with others."""
    return snapshot.files.num_rows, -sum(numbers_in(snapshot.files, APART_TAG))
