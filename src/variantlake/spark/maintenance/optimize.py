"""Compact a table with Spark: its executors rewrite groups of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from variantlake.delta.log.snapshot import Snapshot
from variantlake.ingest.load import LoadProgress, Runner, Tasks
from variantlake.maintenance.optimize import OptimizeResult
from variantlake.maintenance.optimize import optimize as optimize_by
from variantlake.maintenance.plan_compaction import CompactionOptions
from variantlake.spark.session.jobs import run_tasks


def optimize(
    spark: SparkSession,
    snapshot: Snapshot,
    *,
    where: str | None = None,
    options: CompactionOptions,
    dry_run: bool = False,
    digest: bool = True,
    progress: Callable[[LoadProgress], None] | None = None,
) -> OptimizeResult:
    """`Table.optimize` on Spark's executors, a group of files a task.

    The table must be reachable from the executors by the same name. Raises as it does, and
    MissingDependency when the executors' Python has no `variantlake`.
    """
    return optimize_by(
        snapshot,
        rewrite_runner(spark, snapshot.store.uri),
        where=where,
        options=options,
        dry_run=dry_run,
        digest=digest,
        progress=progress,
    )


def rewrite_runner(spark: SparkSession, table: str) -> Runner:
    """What runs the tasks of a rewrite on Spark's executors."""

    def run(task: Tasks, watch: Callable[[int], None]) -> Iterable[bytes]:
        return run_tasks(
            spark,
            task,
            len(task.groups),
            description=f"variantlake: rewrite files of {table}",
            watch=watch,
        )

    return run
