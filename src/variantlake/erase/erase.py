"""Erase rows with one commit, after which no file of the newest version holds them.

It rewrites every file with such a row, also if a deletion vector already hides the row. The commit
contains neither the condition nor bounds of the old files, since both may hold erased values. Older
versions remain: their files, and their commits in the log. `purge` removes these.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, replace

from variantlake.delta.actions.actions import AddCdcFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import CHANGE_FEED
from variantlake.delta.protocol.intervals import property_millis
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.dml.files.change_feed import DELETE, write_changes
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.removed_rows import ROW_TRACKING, is_on
from variantlake.dml.row_change import check_not_append_only, predicate_parameter
from variantlake.erase.found_rows import ErasedRows, erased_rows, staying_rows, visible_rows
from variantlake.erase.purge import check_may_purge, purge
from variantlake.erase.unused_keys import unused_keys, without_keys
from variantlake.errors import CommitConflict, InvalidQuery, UnsupportedFeature
from variantlake.shown import Result
from variantlake.sql.select import QueryText
from variantlake.writing.commit_files import NOT_COMMITTED

_ATTEMPTS = 5
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONGEST = 100 * 365 * 24 * 3_600_000
"""Milliseconds beyond which a retention never ends."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EraseResult(Result):
    """The result of an erase, or of its dry run.

    `version` is the first one without the rows: `rows_erased` that were in the table, and
    `rows_hidden` that were already deleted but still in its files. `files_rewritten` were written
    again without them, or without keys that no row uses any more; `files_removed` held nothing
    else. Older versions hold the rows until a vacuum after `vacuum_after`, and the log has bounds
    of them until it is cleaned up after `log_until`; None if the table's properties keep them
    forever. If `purged`, both are done: `files_purged` and `log_files_purged` are gone.
    """

    rows_erased: int
    rows_hidden: int = 0
    files_rewritten: int = 0
    files_removed: int = 0
    files_purged: int = 0
    log_files_purged: int = 0
    purged: bool = False
    vacuum_after: dt.datetime | None = None
    log_until: dt.datetime | None = None


def erase(
    snapshot: Snapshot, where: str | None, *, purges: bool = False, dry_run: bool = False
) -> EraseResult:
    """Erase the rows for which `where` is true; `snapshot` is the newest version.

    See `Table.erase`.
    """
    if where is None or not where.strip():
        raise InvalidQuery("erase needs a condition", hint="name the rows in the condition")
    _check(snapshot)
    if purges:
        check_may_purge(snapshot)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            done = _erase(snapshot, where, dry_run=dry_run)
            break
        except CommitConflict:
            if attempt == _ATTEMPTS:
                raise
            snapshot = snapshot.refresh()
            _check(snapshot)
    if not purges or dry_run:
        return done
    files, log_files = purge(snapshot.refresh())
    return replace(
        done,
        purged=True,
        vacuum_after=None,
        log_until=None,
        files_purged=files,
        log_files_purged=log_files,
    )


def _check(snapshot: Snapshot) -> None:
    """Refuse tables from which we could not erase everything."""
    check_not_append_only(snapshot)
    for field in snapshot.schema.fields:
        if not isinstance(field.type, VariantType) and StructType((field,)).holds_variant():
            raise UnsupportedFeature(
                f"column {field.name!r} holds a VARIANT inside of a struct, array or map: keys of "
                "erased rows could stay in the dictionaries of other rows",
                file=snapshot.store.uri,
                hint="move the VARIANT to a column of its own",
            )


def _erase(snapshot: Snapshot, where: str, *, dry_run: bool) -> EraseResult:
    NewFiles.of(snapshot, evaluated=True)  # refuses a table that we must not write
    found = erased_rows(snapshot, QueryText(snapshot.schema).condition(where))
    keys, holding = unused_keys(snapshot, found)
    found += holding
    planned = without_keys(snapshot, keys)
    rewritten = [each for each in found if len(each.staying)]
    done = _result(snapshot, found, len(rewritten))
    if dry_run:
        return replace(done, version=None, dry_run=True)
    if not found and planned is snapshot:
        return done
    files = NewFiles.of(planned, evaluated=True)
    with files.taken_back_on(BaseException):
        changes = _written(snapshot, files, found, rewritten, done)
    if planned is not snapshot:
        changes = replace(changes, metadata=planned.metadata)
    with files.taken_back_on(*NOT_COMMITTED):
        return replace(done, version=commit(snapshot, changes))


def _written(
    snapshot: Snapshot,
    files: NewFiles,
    found: list[ErasedRows],
    rewritten: list[ErasedRows],
    done: EraseResult,
) -> Changes:
    """Write the files of the commit, and return its changes."""
    change_files: tuple[AddCdcFile, ...] = ()
    if is_on(snapshot, CHANGE_FEED) and done.rows_erased:
        # Readers of the feed see a normal delete; a vacuum removes these files.
        change_files = write_changes(files, [(DELETE, visible_rows(snapshot, found))])
    changed = bool(done.rows_erased)
    adds = files.write(staying_rows(snapshot, rewritten))
    removes = removes_of((each.add for each in found), data_change=changed)
    return Changes(
        operation="DELETE",
        adds=tuple(replace(add, data_change=changed) for add in adds),
        # Bounds of the old files may be erased values.
        removes=tuple(replace(each, stats=None, tags=None) for each in removes),
        change_files=change_files,
        reads=whole_table,
        evaluated=True,
        numbered=True,  # staying rows keep their numbers
        keeps_row_ids=is_on(snapshot, ROW_TRACKING) or not rewritten,
        file_metrics=False,
        parameters={"predicate": predicate_parameter("erased")},
        metrics={
            "numDeletedRows": str(done.rows_erased),
            "numRemovedFiles": str(len(found)),
            "numAddedFiles": str(len(adds)),
            "numCopiedRows": str(sum(len(each.staying) for each in rewritten)),
            "numAddedChangeFiles": str(len(change_files)),
        },
    )


def _result(snapshot: Snapshot, found: list[ErasedRows], rewritten: int) -> EraseResult:
    now = time.time_ns() // 1_000_000
    return EraseResult(
        version=snapshot.version,
        rows_erased=sum(len(each.visible) for each in found),
        rows_hidden=sum(len(each.hidden) for each in found),
        files_rewritten=rewritten,
        files_removed=len(found) - rewritten,
        vacuum_after=_after(snapshot, now, "delta.deletedFileRetentionDuration", "interval 1 week"),
        log_until=_log_until(snapshot, now),
    )


def _log_until(snapshot: Snapshot, now: int) -> dt.datetime | None:
    if snapshot.properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return None
    return _after(snapshot, now, "delta.logRetentionDuration", "interval 30 days")


def _after(snapshot: Snapshot, now: int, name: str, default: str) -> dt.datetime | None:
    millis = property_millis(snapshot.properties, name, default)
    return None if millis > _LONGEST else _EPOCH + dt.timedelta(milliseconds=now + millis)
