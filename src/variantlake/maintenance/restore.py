"""Restore an older version's rows and metadata as the newest version, in one commit.

The commit adds the files that were removed since and removes those that were added. A vacuum may
have deleted files of the old version, so the restore looks for them before it commits, and once
more afterwards in case of a concurrent vacuum.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from variantlake.arrays import arrow_array
from variantlake.batches import batched
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.deletion_vectors import vector_location
from variantlake.delta.log.files.logical_files import LogicalFiles, adds_of, bytes_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import InvalidValue, MissingSource
from variantlake.maintenance.restore_state import Difference, difference
from variantlake.maintenance.vacuuming.running import are_expired, check_no_vacuum
from variantlake.progress import OnProgress, Progress
from variantlake.shown import Result
from variantlake.storage.opening import store_of
from variantlake.units import Time, milliseconds, moment

MAX_NAMED = 100
"""The most missing files that are named; the others are only counted."""

_THREADS = min(16, 4 * (os.cpu_count() or 1))

Missing = Literal["refuse", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RestoreResult(Result):
    """What a restore did, or would do.

    `restored_version` is the old version whose state is restored as `version`. `table_files` and
    `table_bytes` describe the table afterwards; `files_restored` files come back and
    `files_removed` are removed. `files_missing` counts the files that cannot come back, because
    they or their deletion vectors are gone from the store; `missing` names the first of them.
    `changes_metadata` is true if the schema or properties change as well.
    """

    restored_version: int
    table_files: int
    table_bytes: int
    files_restored: int
    bytes_restored: int
    files_removed: int
    bytes_removed: int
    changes_metadata: bool
    files_missing: int = 0
    missing: tuple[str, ...] = ()


def restore(
    newest: Snapshot,
    version: int | str | None = None,
    *,
    timestamp: Time | None = None,
    dry_run: bool = False,
    missing: Missing = "refuse",
    progress: OnProgress | None = None,
) -> RestoreResult:
    """Make an older version the newest one. See `Table.restore`.

    `progress` gets the number of files looked for so far, and of all to look for.
    """
    started = time.perf_counter()
    if (version is None) == (timestamp is None):
        raise InvalidValue("give version= or timestamp=, one of them")
    if missing not in ("refuse", "skip"):
        raise InvalidValue(f"missing is {missing!r}", hint="one of 'refuse', 'skip'")
    old = version_of(newest, version, timestamp)
    found = difference(newest, old)
    gone = MissingFiles.of(old, found.back, progress)
    if gone.count and missing == "refuse" and not dry_run:
        raise gone.error(old, found.back.num_rows)
    if gone.count and missing == "skip":
        found = replace(found, back=found.back.filter(arrow_array(gone.is_there)))
    result = _result(newest, old, found, gone, dry_run=dry_run)
    if dry_run:
        return result
    if old.version == newest.version:  # as Delta Spark, which commits nothing either
        return replace(result, version=newest.version)
    revives = are_expired(newest, found.back)
    if revives:
        check_no_vacuum(newest)
    asked = None if timestamp is None else _text(timestamp)
    number = None if timestamp else old.version
    changes = _changes(found, result, number, asked, revives=revives)
    committed = commit(newest, changes)
    lost = MissingFiles.of(old, found.back)
    if lost.count:
        raise lost.error_since(old, committed)
    seconds = time.perf_counter() - started
    return replace(result, version=committed, seconds=seconds)


def version_of(newest: Snapshot, version: int | str | None, timestamp: Time | None) -> Snapshot:
    """Read another version of a table by its number, name or time. Raises as `Table.open`."""
    millis = None
    if timestamp is not None:
        millis = milliseconds("timestamp", timestamp)
    store = newest.store
    old = Snapshot.read(store.uri, version, timestamp=millis, store=store, applies=SCAN_FEATURES)
    if old.version > newest.version:
        raise MissingSource(
            f"version {old.version} was committed meanwhile; this one is {newest.version}",
            file=store.uri,
        )
    return old


def _text(timestamp: Time) -> str:
    return (
        moment("timestamp", timestamp)
        .astimezone(dt.UTC)
        .isoformat(sep=" ", timespec="milliseconds")
        .removesuffix("+00:00")
    )


def _changes(
    found: Difference,
    result: RestoreResult,
    version: int | None,
    timestamp: str | None,
    *,
    revives: bool,
) -> Changes:
    return Changes(
        "RESTORE",
        adds=tuple(replace(add, data_change=True) for add in adds_of(found.back)),
        removes=removes_of(adds_of(found.gone)),
        metadata=found.metadata,
        protocol=found.protocol,
        domains=found.domains,
        # Otherwise files that others added or removed meanwhile would silently be lost or return.
        reads=whole_table,
        serializable=True,
        evaluated=True,  # these rows were in the table under the same constraints
        kept=True,
        file_metrics=False,
        keeps_row_ids=False,
        revives=revives,
        parameters={"version": version, "timestamp": timestamp},
        metrics={
            "tableSizeAfterRestore": str(result.table_bytes),
            "numOfFilesAfterRestore": str(result.table_files),
            "numRemovedFiles": str(result.files_removed),
            "numRestoredFiles": str(result.files_restored),
            "removedFilesSize": str(result.bytes_removed),
            "restoredFilesSize": str(result.bytes_restored),
        },
    )


def _result(
    newest: Snapshot, old: Snapshot, found: Difference, gone: MissingFiles, *, dry_run: bool
) -> RestoreResult:
    back, removed = bytes_of(found.back), bytes_of(found.gone)
    return RestoreResult(
        restored_version=old.version,
        dry_run=dry_run,
        table_files=newest.files.num_rows + found.back.num_rows - found.gone.num_rows,
        table_bytes=bytes_of(newest.files) + back - removed,
        files_restored=found.back.num_rows,
        bytes_restored=back,
        files_removed=found.gone.num_rows,
        bytes_removed=removed,
        changes_metadata=found.metadata is not None,
        files_missing=gone.count,
        missing=tuple(gone.names),
    )


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """The files to restore that are not in the store: their number, and the first names.

    `is_there` tells for each file to restore whether it and its deletion vector exist.
    """

    count: int
    names: list[str]
    is_there: list[bool]

    @classmethod
    def of(
        cls, old: Snapshot, back: LogicalFiles, progress: OnProgress | None = None
    ) -> MissingFiles:
        """Look for the files `back` of version `old`, each with its deletion vector."""
        names: list[str] = []
        is_there: list[bool] = []
        count = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            for some in batched(adds_of(back, texts=False), 64 * _THREADS):
                for lacking in pool.map(lambda add: _lacking(old, add), some):
                    is_there.append(not lacking)
                    count += bool(lacking)
                    names += lacking[: MAX_NAMED - len(names)]
                if progress is not None:
                    progress(Progress(len(is_there), back.num_rows, "files", "looked for"))
        return cls(count, names, is_there)

    def error(self, old: Snapshot, of: int) -> MissingSource:
        """Return the error of a restore that commits nothing."""
        return MissingSource(
            f"{self.count:,} of the {of:,} files that version {old.version} needs back are gone: "
            f"{self._named()}",
            file=old.store.uri,
            hint="a vacuum removed them; restore a newer version, or missing='skip' restores the "
            "rows of the others",
            cli_hint="a vacuum removed them; restore a newer version, or --skip-missing restores "
            "the rows of the others",
        )

    def error_since(self, old: Snapshot, committed: int) -> MissingSource:
        """Return the error of a restore that has already committed."""
        return MissingSource(
            f"version {old.version} was restored as version {committed}, and meanwhile a vacuum "
            f"removed {self.count:,} of its files: {self._named()}",
            file=old.store.uri,
            hint=f"restore version {committed - 1}, or a newer one than {old.version}",
        )

    def error_named(self, version: int, location: str) -> MissingSource:
        """Return the error for naming a version that cannot be read any more."""
        return MissingSource(
            f"{self.count:,} files of version {version} are gone: {self._named()}",
            file=location,
            hint="a vacuum removed them; name a newer version",
        )

    def _named(self) -> str:
        more = self.count - len(self.names)
        return ", ".join(self.names) + (f" and {more:,} more" if more > 0 else "")


def _lacking(old: Snapshot, add: AddFile) -> list[str]:
    """Return which of a file and its deletion vector are gone, by name."""
    found = []
    store, name = store_of(old.location(add.path))
    if store.entry(name) is None:
        found.append(add.path)
    vector = add.deletion_vector
    if vector is not None and vector.storage_type != "i":
        place = vector_location(old.store, vector)
        store, name = store_of(place)
        if store.entry(name) is None:
            found.append(place.removeprefix(f"{old.store.uri}/"))
    return found
