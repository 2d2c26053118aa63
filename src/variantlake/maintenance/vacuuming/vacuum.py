"""Vacuum: remove the files below a table's folder that no version within the retention needs.

A vacuum reads from the log which files are needed and lists the folder. It commits the size of what
will go (`VACUUM START`), deletes the files, and commits the outcome (`VACUUM END`). If it is killed
at any point, a repeat does the rest: every deleted file was unneeded.

A vacuum keeps a file for one of three reasons. A version within the retention names it, or a
version that has a name. It is younger than the retention, so a running writer may be about to
commit it. Or it is not ours to judge (hidden names, links, tables within the table). A concurrent
commit adds young files. A commit may also bring old files back (a restore of a version older than
the retention), so the vacuum reads new commits before each thousand files. Spec: PROTOCOL, "VACUUM
Protocol Check", "Delta Log Entries".
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from variantlake.delta.log.files.file_paths import absolute_paths
from variantlake.delta.log.log_segment import commits_after
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.intervals import property_millis
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import VACUUM_START, Changes
from variantlake.errors import CommitConflict, InvalidValue, StoreFailed, VariantLakeError
from variantlake.logs import logger
from variantlake.maintenance.vacuuming.deletion import Deletion, delete_empty_folders, delete_files
from variantlake.maintenance.vacuuming.listing import (
    FileKind,
    Listing,
    UnneededFile,
    UnneededFiles,
    list_unneeded,
)
from variantlake.maintenance.vacuuming.removed import list_removed
from variantlake.maintenance.vacuuming.retained import (
    RetainedPaths,
    keep_commits,
    keep_named,
    retained_paths,
)
from variantlake.progress import OnProgress, Progress
from variantlake.shown import Result
from variantlake.storage.store import Entry
from variantlake.units import Duration, seconds

_LOG = logger("vacuum")

PROPERTY = "delta.deletedFileRetentionDuration"
DEFAULT_RETENTION = "interval 1 week"
HOUR_MILLIS = 3_600_000

MAX_SAMPLE = 100
"""A result names at most this many paths; `on_file` gets all."""

_LONGEST = 100 * 365 * 24 * HOUR_MILLIS
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VacuumResult(Result):
    """What a vacuum removed, or would remove.

    No version within the retention needs `files_unneeded` files of `bytes_unneeded` bytes; `kinds`
    counts them by kind, and `sample` names the first, from the table's root. The vacuum removed
    `files_removed` of them, and `folders_removed` folders that were empty then. It listed
    `files_listed` files; with `lite`, it looked them up by name. Quarantine files that stay are
    `files_quarantined`, of `bytes_quarantined` bytes. `retention_hours` is the retention that
    applied. `version` is that of `VACUUM END`, or the table's if that commit failed. A shallow
    clone has `files_outside` in the folder of its source, which stay.
    """

    files_unneeded: int
    bytes_unneeded: int
    retention_hours: float
    files_listed: int
    files_removed: int = 0
    folders_removed: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    sample: tuple[str, ...] = ()
    files_quarantined: int = 0
    bytes_quarantined: int = 0
    files_outside: int = 0

    @property
    def may_break_clones(self) -> bool:
        """Whether a shallow clone of an older version could need some of the unneeded files.

        A table's log does not name its clones.
        """
        return bool(self.kinds.get(FileKind.DATA) or self.kinds.get(FileKind.VECTOR))


def vacuum(
    snapshot: Snapshot,
    retention: Duration | None = None,
    *,
    dry_run: bool = False,
    force: bool = False,
    quarantine: bool = False,
    lite: bool = False,
    on_file: Callable[[UnneededFile], None] | None = None,
    progress: OnProgress | None = None,
    now: int | None = None,
) -> VacuumResult:
    """Remove the files that no version within the retention needs; `snapshot` is the newest one.

    `on_file` is called with each file before any is removed. `now` is in milliseconds since the
    epoch. See `Table.vacuum`.
    """
    started = time.perf_counter()
    snapshot.check_writable(evaluated=True, kept=True)  # a vacuum adds no row
    if lite and quarantine:
        raise InvalidValue(
            "the log does not name quarantine files, and lite reads only the log",
            hint="leave out one of lite and quarantine",
            cli_hint="leave out one of --lite and --quarantine",
        )
    span = _Span.of(snapshot, retention, force=force)
    cutoff = (time.time_ns() // 1_000_000 if now is None else now) - span.millis
    told = progress or _silent
    retained = retained_paths(snapshot, cutoff)
    with UnneededFiles() as listed, UnneededFiles() as found:
        watch = lambda files: told(Progress(files, None, "files", "listed"))
        if lite:
            listing = list_removed(snapshot, retained, cutoff, listed, progress=watch)
        else:
            listing = list_unneeded(
                snapshot, retained, cutoff, listed, quarantine=quarantine, progress=watch
            )
        sample: list[str] = []
        # Only a complete listing knows all targets of links, and all tables within this one.
        for each in listed:
            if listing.keeps(each.path):
                continue
            found.add(each)
            if len(sample) < MAX_SAMPLE:
                sample.append(each.path)
            if on_file is not None:
                on_file(each)
        run = _Run(snapshot, span, retained, found, listing, told)
        done, folders, version = (Deletion(), 0, None) if dry_run else run.delete()
        if not dry_run:
            _LOG.info("%s: vacuum, deleted files %d", snapshot.store.uri, done.deleted)
        return VacuumResult(
            version=snapshot.version if version is None and not dry_run else version,
            dry_run=dry_run,
            seconds=time.perf_counter() - started,
            files_unneeded=found.count,
            bytes_unneeded=found.size,
            retention_hours=span.millis / HOUR_MILLIS,
            files_listed=listing.files,
            files_removed=done.deleted,
            folders_removed=folders,
            kinds={str(kind): count for kind, count in sorted(found.kinds.items())},
            sample=tuple(sample),
            files_quarantined=listing.quarantine_files,
            bytes_quarantined=listing.quarantine_size,
            files_outside=_outside(snapshot),
        )


def _outside(snapshot: Snapshot) -> int:
    """Count live files and deletion vectors that are not below the table's folder."""
    root = f"{snapshot.store.uri}/"
    found = map(snapshot.location, absolute_paths(snapshot.files))
    return sum(not location.startswith(root) for location in found)


@dataclass(frozen=True, slots=True)
class _Span:
    """The retention in milliseconds: of this run, of the table's property, and as specified."""

    millis: int
    default: int
    specified: int | None
    is_checked: bool

    @classmethod
    def of(cls, snapshot: Snapshot, retention: Duration | None, *, force: bool) -> _Span:
        """Raises InvalidValue for a retention that is invalid, or too short without `force`."""
        default = property_millis(snapshot.properties, PROPERTY, DEFAULT_RETENTION)
        specified = None if retention is None else _millis(retention)
        if specified is None and default > _LONGEST:
            raise InvalidValue(
                f"the table property {PROPERTY} is {snapshot.properties.get(PROPERTY)!r}, which"
                " is not a duration in weeks, days, hours, minutes or seconds",
                file=snapshot.store.uri,
                hint="set it to one, 'interval 7 days', or give retention=",
                cli_hint="set it to one, 'interval 7 days', or give --retention",
            )
        if specified is not None and specified < default and not force:
            raise InvalidValue(
                f"a retention of {_hours(specified)} is shorter than the table's own, "
                f"{_hours(default)}: a reader of an older version would lose its files, and a"
                " running writer those that it has not committed yet",
                file=snapshot.store.uri,
                hint=f"if nothing else uses the table, force=True vacuums it anyway; {PROPERTY}"
                " sets the "
                "table's own",
                cli_hint=f"if nothing else uses the table, --force vacuums it anyway; {PROPERTY}"
                " sets the "
                "table's own",
            )
        millis = default if specified is None else specified
        return cls(millis, default, specified, is_checked=not force)


def _millis(retention: Duration) -> int:
    return min(round(seconds("retention", retention, unit="h") * 1000), _LONGEST)


def _hours(millis: int) -> str:
    hours = millis / HOUR_MILLIS
    return "for ever" if millis > _LONGEST else f"{hours:g} hour{'' if hours == 1 else 's'}"


@dataclass(slots=True)
class _Run:
    """Deletes files. `snapshot` is the newest version whose files are in `retained`."""

    snapshot: Snapshot
    span: _Span
    retained: RetainedPaths
    unneeded: UnneededFiles
    listing: Listing
    report: OnProgress

    def delete(self) -> tuple[Deletion, int, int | None]:
        """Delete the files; returns the outcome, the number of folders, and the end's version.

        Raises StoreFailed naming files that could not be deleted.
        """
        started = self._start()
        done = Deletion()
        folders = 0
        status = "FAILED"
        try:
            delete_files(
                self.snapshot.store,
                (each.path for each in self.unneeded),
                self._still_unneeded,
                done,
                lambda d: self.report(Progress(d.deleted, self.unneeded.count, "files", "deleted")),
            )
            folders = delete_empty_folders(self.snapshot.store, self.listing.folders)
            status = "FAILED" if done.failed else "COMPLETED"
        finally:
            # Also after an interruption, so that the history tells how many files are gone.
            ended = self._end(status, done, started)
        if done.failed:
            names = "; ".join(done.failures)
            more = done.failed - len(done.failures)
            raise StoreFailed(
                f"{done.failed:,} of {self.unneeded.count:,} files could not be deleted: {names}"
                + (f"; and {more:,} more" if more else ""),
                file=self.snapshot.store.uri,
                hint="the others are gone; a repeat tries these again",
            )
        return done, folders, ended

    def _start(self) -> int:
        parameters: dict[str, object] = {
            "retentionCheckEnabled": self.span.is_checked,
            "defaultRetentionMillis": self.span.default,
        }
        if self.span.specified is not None:
            parameters["specifiedRetentionMillis"] = self.span.specified
        metrics = {
            "numFilesToDelete": str(self.unneeded.count),
            "sizeOfDataToDelete": str(self.unneeded.size),
        }
        # A concurrent change of the protocol or the properties is a conflict: nothing is gone yet.
        changes = Changes(VACUUM_START, parameters=parameters, metrics=metrics, provenance=_BLIND)
        return commit(self.snapshot, changes)

    def _still_unneeded(self, paths: list[str]) -> list[str]:
        """Return those of these files that no commit since the snapshot has brought back."""
        if self._commits():
            newest = self.snapshot.refresh()
            # Listed again after the refresh, to include all commits of the newer snapshot.
            keep_commits(self.retained, newest.store, self._commits())
            self.snapshot = newest
            keep_named(self.retained, newest)
        needed = self.retained.holds(paths).tolist()
        return [path for path, is_needed in zip(paths, needed, strict=True) if not is_needed]

    def _commits(self) -> list[Entry]:
        """List the commits after the snapshot. Raises CommitConflict if the log is gone."""
        store = self.snapshot.store
        commits = commits_after(store, self.snapshot.version, self.snapshot.last)
        if commits is None:
            raise CommitConflict(
                "the table was removed, or its log was cleaned up, while its files were deleted",
                file=store.uri,
                hint="nothing more was deleted; repeat it",
            )
        return commits

    def _end(self, status: str, done: Deletion, started: int) -> int | None:
        metrics = {
            "numDeletedFiles": str(done.deleted),
            "numVacuumedDirectories": str(self.listing.visited),
        }
        changes = Changes(
            "VACUUM END", parameters={"status": status}, metrics=metrics, provenance=_BLIND
        )
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return commit(self.snapshot.refresh(), changes)
            except CommitConflict:
                if attempt < _ATTEMPTS:
                    continue
            except VariantLakeError as error:
                # The files were not needed, so a missing VACUUM END does no harm.
                warnings.warn(f"no VACUUM END after version {started}: {error}", stacklevel=5)
                return None
        return None


_BLIND = {"isolationLevel": "SnapshotIsolation", "isBlindAppend": True}


def _silent(_progress: Progress) -> None:
    pass
