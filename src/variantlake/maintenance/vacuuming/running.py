"""Find out whether a vacuum may be removing files that an old version needs.

A vacuum reads new commits before each batch of files, and spares the files that they name. It does
not see a commit that lands between this check and the end of the batch. So a commit that restores
expired files, or names a version that has such files, conflicts with a vacuum that has started.
"""

from __future__ import annotations

import time

from variantlake.delta.actions.actions import CommitInfo, parse_log
from variantlake.delta.log.files.file_keys import key_of
from variantlake.delta.log.files.logical_files import LogicalFiles, adds_of
from variantlake.delta.log.log_segment import all_commits
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_removes
from variantlake.delta.protocol.intervals import property_millis
from variantlake.delta.transaction.conflicts import VACUUM_START
from variantlake.errors import CommitConflict
from variantlake.maintenance.vacuuming.vacuum import DEFAULT_RETENTION, PROPERTY

_LONGEST_RUN = 24 * 3_600_000
"""Milliseconds. A killed vacuum commits no end, so it counts as running for this long."""


def are_expired(newest: Snapshot, back: LogicalFiles) -> bool:
    """Whether a vacuum of `newest` may remove some of these files, none of which is live in it."""
    if not back.num_rows:
        return False
    retention = property_millis(newest.properties, PROPERTY, DEFAULT_RETENTION)
    cutoff = time.time_ns() // 1_000_000 - retention
    removes = read_removes(newest.store, newest.version)
    for add in adds_of(back, texts=False):
        remove = removes.get(key_of(add))
        if remove is None or (remove.deletion_timestamp or 0) < cutoff:
            return True
    return False


def check_no_vacuum(newest: Snapshot) -> None:
    """Raise CommitConflict if a vacuum in the log has started and not ended.

    An end does not name its start, so each start needs an end of its own.
    """
    ended = 0
    oldest = time.time_ns() // 1_000_000 - _LONGEST_RUN
    for version, entry in reversed(all_commits(newest.store, newest.version).items()):
        if entry.modified < oldest:
            return
        actions = parse_log(newest.store.stream(entry.path), newest.store.join(entry.path))
        info = next((action for action in actions if isinstance(action, CommitInfo)), None)
        operation = "" if info is None else info.fields.get("operation")
        if operation == "VACUUM END":
            ended += 1
        elif operation == VACUUM_START and ended:
            ended -= 1
        elif operation == VACUUM_START:
            raise CommitConflict(
                f"a vacuum started as version {version} and has not ended; it may be removing the "
                "files of that old version",
                file=newest.store.uri,
                hint="repeat it after the vacuum; if the vacuum was killed, a day after its start",
            )
