"""Keeping tables in shape: files that are joined, removed or brought back, rows that are erased."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING

from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.erase.erase import EraseResult, erase
from variantlake.expressions.from_python import Condition
from variantlake.maintenance.health import health
from variantlake.maintenance.health_findings import Health
from variantlake.maintenance.restore import Missing, RestoreResult, restore
from variantlake.maintenance.vacuuming.listing import UnneededFile
from variantlake.maintenance.vacuuming.vacuum import (
    Retention,
    VacuumProgress,
    VacuumResult,
    vacuum,
)
from variantlake.spark.lake.layouts import LakeLayouts
from variantlake.spark.query.table_locations import Location
from variantlake.writing.files import TARGET_FILE_BYTES

if TYPE_CHECKING:
    from variantlake.jobs.progress import LoadProgress
    from variantlake.maintenance.optimize import OptimizeResult


class LakeMaintenance(LakeLayouts):
    """The part of `Lake` that keeps tables in shape."""

    def optimize(
        self,
        table: Location,
        where: str | Condition | None = None,
        *,
        target_file_bytes: int = TARGET_FILE_BYTES,
        max_deleted_share: float = 0.05,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> OptimizeResult:
        """Join small files, and rewrite files of which many rows are deleted; no row changes.

        Spark's executors rewrite the files, a group a task, and the driver commits. `table` is its
        name, path or URL, as for `read`; else as `Table.optimize`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.maintenance.optimize import optimize
        from variantlake.maintenance.plan_compaction import CompactionOptions

        snapshot = self._snapshot(table)
        return optimize(
            snapshot,
            self._rewriter(snapshot),
            where=None if where is None else str(where),
            options=CompactionOptions(target_file_bytes, max_deleted_share),
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )

    def vacuum(
        self,
        table: Location,
        retention: Retention | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
        quarantine: bool = False,
        lite: bool = False,
        report: Callable[[UnneededFile], None] | None = None,
        progress: Callable[[VacuumProgress], None] | None = None,
    ) -> VacuumResult:
        """Remove files below a table's folder that no version within the retention needs.

        The driver lists and deletes, by its own store; no Spark job runs. `table` is its name, path
        or URL, as for `read`; else as `Table.vacuum`.
        """
        return vacuum(
            self._snapshot(table),
            retention,
            dry_run=dry_run,
            force=force,
            quarantine=quarantine,
            lite=lite,
            report=report,
            progress=progress,
        )

    def restore(
        self,
        table: Location,
        version: int | None = None,
        timestamp: dt.datetime | None = None,
        *,
        dry_run: bool = False,
        missing: Missing = "refuse",
        progress: Callable[[int, int], None] | None = None,
    ) -> RestoreResult:
        """Make an older version of a table the newest one, in one commit; the driver does it.

        `table` is its name, path or URL, as for `read`; else as `Table.restore`.
        """
        return restore(
            self._snapshot(table),
            version,
            timestamp,
            dry_run=dry_run,
            missing=missing,
            progress=progress,
        )

    def health(self, table: Location, *, orphans: bool = False) -> Health:
        """What makes a table slow or large, each finding with what mends it; the driver reads.

        `table` is its name, path or URL, as for `read`; else as `Table.health`.
        """
        return health(self._snapshot(table), orphans=orphans)

    def checkpoint(self, table: Location) -> int:
        """Write a checkpoint of a table's newest version; gives the version.

        `table` is its name, path or URL, as for `read`; else as `Table.checkpoint`.
        """
        return write_checkpoint(self._snapshot(table).store)

    def erase(
        self,
        table: Location,
        where: str | Condition,
        *,
        purge: bool = False,
        dry_run: bool = False,
    ) -> EraseResult:
        """Erase rows so that in the end nothing below the table's folder holds them.

        The driver finds and rewrites, without a Spark job; the condition is one that `Table.scan`
        takes. `table` is its name, path or URL, as for `read`; else as `Table.erase`.
        """
        text = None if where is None else str(where)
        return erase(self._snapshot(table), text, purges=purge, dry_run=dry_run)
