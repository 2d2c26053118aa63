"""Keeping tables in shape: files that are rewritten, removed or brought back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
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
from variantlake.spark.lake.compaction import LakeCompaction
from variantlake.spark.query.places import Location


class LakeMaintenance(LakeCompaction):
    """The part of `Lake` that keeps tables in shape."""

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
            self._tables.open(self._written_to(table)).snapshot,
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
            self._tables.open(self._written_to(table)).snapshot,
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
        return health(self._tables.open(self._written_to(table)).snapshot, orphans=orphans)

    def checkpoint(self, table: Location) -> int:
        """Write a checkpoint of a table's newest version; gives the version.

        `table` is its name, path or URL, as for `read`; else as `Table.checkpoint`.
        """
        return write_checkpoint(self._tables.open(self._written_to(table)).snapshot.store)
