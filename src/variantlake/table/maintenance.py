"""Keeping a table in shape: files that are rewritten, removed or brought back."""

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
from variantlake.table.compaction import TableCompaction


class TableMaintenance(TableCompaction):
    """The part of `Table` that keeps its files in shape; no row changes."""

    __slots__ = ()

    def vacuum(
        self,
        retention: Retention | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
        quarantine: bool = False,
        lite: bool = False,
        report: Callable[[UnneededFile], None] | None = None,
        progress: Callable[[VacuumProgress], None] | None = None,
    ) -> VacuumResult:
        """Remove files below the table's folder that no version within the retention needs.

        Data files, deletion vectors and change files that left the table, what killed loads and
        rewrites left behind, and folders that are empty then. Only files that are older than the
        retention go, and never the log's. Versions that are older cannot be read after it.

        Args:
            retention: Hours, or a timedelta; None is the table's own
                (`delta.deletedFileRetentionDuration`, a week where it says nothing).
            dry_run: Remove nothing; the result tells what would go.
            force: Allow a retention that is shorter than the table's own. Only where nothing else
                uses the table: readers of older versions and running writers lose their files.
            quarantine: Remove old quarantine files of loads that were committed, too.
            lite: Go by the log alone, as Delta's VACUUM LITE: files that left the table go, what
                was never in the log stays, and no folder is listed. For large tables that are
                vacuumed often. The log must reach back to version 0 or to an earlier vacuum.
            report: Called with each file (`path`, `size`, `kind`) before any is removed.
            progress: Called now and then with how far it is.

        Raises:
            InvalidValue: A retention that is too short or none; with `lite`, a log that does not
                reach back far enough.
            StoreFailed: Files could not be deleted, by name; the others are gone.
            CommitConflict: Another writer changed the protocol or the properties meanwhile; nothing
                is gone.
            UnsupportedFeature: The table needs a feature that we do not write.
        """
        return vacuum(
            self._newest(),
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
        version: int | None = None,
        timestamp: dt.datetime | None = None,
        *,
        dry_run: bool = False,
        missing: Missing = "refuse",
        progress: Callable[[int, int], None] | None = None,
    ) -> RestoreResult:
        """Make an older version the newest one, in one commit: rows, schema, properties.

        Files that are still in the table stay; features that it has got since stay as well, as do
        the progress of applications and the history. The versions in between can still be read.

        Args:
            version: The version to go back to.
            timestamp: The version of this time instead; in UTC without a time zone.
            dry_run: Commit nothing; the result tells what would be, and which files are gone.
            missing: What to do if files of the version are gone: "refuse", or "skip" to leave out
                the rows of these files.
            progress: Called with the files that were looked for so far, and all that will be.

        Raises:
            MissingSource: There is no such version, or files of it are gone, by name.
            InvalidQuery: No version is as old as `timestamp`, or all are older.
            InvalidValue: Neither a version nor a time is given, or both.
            CommitConflict: Another writer changed the table meanwhile; nothing was committed.
            UnsupportedFeature: The version needs a feature that we do not write, or the table is
                append-only.
        """
        return restore(
            self._newest(),
            version,
            timestamp,
            dry_run=dry_run,
            missing=missing,
            progress=progress,
        )

    def health(self, *, orphans: bool = False) -> Health:
        """What makes this version of the table slow or large, each finding with what mends it.

        Small files, overlap along the paths that it is clustered by, deleted rows, values in
        residuals, files without statistics, the log and its checkpoints: all from the log, no data
        file is read. `orphans` also lists the folder for files that a vacuum would remove.

        Raises:
            MalformedLog, StoreFailed: A log that cannot be read.
        """
        return health(self.snapshot, orphans=orphans)

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version, which readers then start from; the version.

        Commits write one at `delta.checkpointInterval`; this is for a log without any, or whose
        writers write none. Raises as `open` for a log that cannot be read, StoreFailed.
        """
        return write_checkpoint(self._newest().store)
