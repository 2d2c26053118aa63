"""Keeping a table in shape: files that are joined, removed or brought back, rows erased."""

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
from variantlake.table.layouts import TableLayouts
from variantlake.writing.files import TARGET_FILE_BYTES

if TYPE_CHECKING:
    from variantlake.jobs.progress import LoadProgress
    from variantlake.maintenance.optimize import OptimizeResult


class TableMaintenance(TableLayouts):
    """The part of `Table` that keeps its files in shape, and erases rows for good."""

    __slots__ = ()

    def optimize(
        self,
        where: str | Condition | None = None,
        *,
        target_file_bytes: int = TARGET_FILE_BYTES,
        max_deleted_share: float = 0.05,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> OptimizeResult:
        """Join small files, and rewrite files of which many rows are deleted; no row changes.

        Readers of older versions find their files as before. Appends of others at the same time
        never contradict it. Of files that another writer removed or deleted rows of meanwhile, the
        rest is done again.

        Args:
            where: Only files that may hold a match: a condition over partition columns and paths.
            target_file_bytes: Files below three quarters of it are joined up to about this size.
            max_deleted_share: The share of deleted rows above which a file is rewritten.
            dry_run: Say what would be done, and do nothing.
            digest: Compare the rows that are read and written by their digest; a difference raises
                before anything is committed.
            progress: Called a few times a second while files are rewritten.

        Raises:
            UnsupportedFeature: The table needs a feature that we do not write, by name.
            InvalidQuery, InvalidPath: A condition that does not parse, or names what is not there.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
            CommitConflict: Others changed the same files again and again.
        """
        # Loads the kernels, which a table does without.
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.optimize import optimize
        from variantlake.maintenance.plan_compaction import CompactionOptions

        return optimize(
            self._newest(),
            run_in_threads,
            where=None if where is None else str(where),
            options=CompactionOptions(target_file_bytes, max_deleted_share),
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )

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
            force: Allow a retention that is shorter than the table's own. Only if nothing else
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

    def erase(
        self, where: str | Condition, *, purge: bool = False, dry_run: bool = False
    ) -> EraseResult:
        """Erase rows so that in the end nothing below the table's folder holds them.

        Deletes the rows in one commit that writes every file anew in which they are, also where a
        deletion vector hides them already, and every file that holds a key which no remaining row
        of the table uses. The commit says neither the condition nor bounds of the
        old files. Older versions still hold the rows: the result says after which time
        `vacuum` removes their files, and until when the log says bounds of them.

        Args:
            where: A condition, as for `scan`.
            purge: Do not wait: remove every other version now, its files, change files and
                quarantine files, and all of the log before the newest version. Only if nothing
                else uses the table: readers of older versions, readers of changes and running
                writers lose what they need, and the history begins anew.
            dry_run: Change nothing; the answer tells how many rows and files there are.

        Raises:
            InvalidQuery: Text that does not parse, or names what the table does not have.
            InvalidValue: A value that a cast in the condition fails at.
            UnsupportedFeature: An expression that only Spark takes; an append-only table; a VARIANT
                inside of another column; a table that tracks its rows, where files would be
                written anew; with `purge` a table whose log must not be cut.
            CommitConflict: Other writers were first, again and again.
        """
        text = None if where is None else str(where)
        return erase(self._newest(), text, purges=purge, dry_run=dry_run)
