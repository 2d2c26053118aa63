"""Compact a table, or report what a compaction would do."""

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

    `versions` lists its commits, in order. `files_read`, `rows_rewritten` and `bytes_read` count
    the files that were rewritten, `files_written` and `bytes_written` the files that replace them
    (in a dry run, `bytes_written` is an estimate and `files_written` the number of groups).
    `copied`, `encoded` and `reshredded` split the files read by how their rows were rewritten: row
    groups copied as bytes, columns decoded and encoded, or Variants rebuilt. Compaction runs in
    rounds, and a file written in one round may be joined, and counted, again in the next. A dry run
    covers only the first round, because later ones depend on what it writes. `not_copied` is set
    in a dry run: the number of `encoded` files by the reason why they are not copied. `conflicts`
    counts the groups that were planned again because another writer changed their files first.
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
    """Compact the files that may match `where`, with `run` as the runner of tasks.

    `dropped` finds the files that a purge rewrites in addition to those with deleted rows.
    `z_order` names the columns by which the rows are already ordered. Raises as `Table.optimize`.
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
        # The files of this round may be small enough to be joined again.
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
    """Return what the plan would do. Reads the footers of files that may be copied."""
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
    """Return what must shrink each round: the file count, then minus the sum of APART_TAG."""
    return snapshot.files.num_rows, -sum(numbers_in(snapshot.files, APART_TAG))
