"""Cleaning up the log: what no reader of a kept version needs goes.

Spec: PROTOCOL, "Metadata Cleanup"; the property `delta.requireCheckpointProtectionBeforeVersion` is
that of the feature `checkpointProtection`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence

from variantlake.delta.actions.actions import natural
from variantlake.delta.log.checkpoint_reader import sidecar_paths
from variantlake.delta.log.log_segment import (
    LOG,
    SIDECARS,
    all_checkpoints,
    commit_path,
    commit_version,
)
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.time_travel import is_stamped, stamp_of
from variantlake.delta.protocol.intervals import DAY_MILLIS, property_millis
from variantlake.storage.store import Entry, Store

DEFAULT_RETENTION = "interval 30 days"
PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"

_VERSIONED = re.compile(r"\.?(\d{20})\.(?!.*\.tmp$).+")
_COMPACTED = re.compile(r"\.?(\d{20})\.\d{20}\.compacted\.json(\.crc)?")
_TEMPORARY = re.compile(r"\..+\.tmp")


def clean_log(
    store: Store,
    properties: Mapping[str, str],
    *,
    named: Collection[int] = (),
    now: int | None = None,
    before: int | None = None,
) -> int:
    """Delete the files of the log that expired (`delta.logRetentionDuration`); how many.

    Everything from the newest checkpoint on that is as old as the retention asks stays, so that
    every version that is young enough can be read. Nothing goes where
    `delta.enableExpiredLogCleanup` is false. `now` is in milliseconds since the epoch, as is
    `before`: what is older goes whatever the retention is. The caller
    has asked the protocol whether the log may be written (`check_log_writable`).

    Raises StoreFailed, MalformedLog for a checkpoint that names no sidecars that can be read.
    """
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return 0
    now = time.time_ns() // 1_000_000 if now is None else now
    entries = list(store.list_from(LOG))
    retention = property_millis(properties, "delta.logRetentionDuration", DEFAULT_RETENTION)
    # Midnight UTC: a log is not looked through for one more commit every minute.
    cutoff = (now - retention) // DAY_MILLIS * DAY_MILLIS if before is None else before
    expired = _newest_expired(store, entries, properties, cutoff)
    kept = None
    if expired is not None:
        kept = _cutoff_checkpoint(entries, properties, min([expired, *named]))
    doomed = [] if kept is None else [entry for entry in entries if _is_before(entry, kept)]
    yesterday = now // DAY_MILLIS * DAY_MILLIS - DAY_MILLIS
    doomed += [entry for entry in entries if _is_left_over(entry, yesterday)]
    # Oldest first: what is left after an interruption are whole versions, the newer ones.
    if PROTECTED in properties:
        # Here commits go before checkpoints. Spec: RFC "Checkpoint Protection", (d).
        doomed.sort(key=lambda entry: commit_version(entry.path) is None)
    for entry in doomed:
        store.delete(entry.path)
    if kept is not None:
        doomed += _clean_sidecars(store, yesterday)
    return len(doomed)


def _cutoff_checkpoint(
    entries: Sequence[Entry], properties: Mapping[str, str], expired: int
) -> int | None:
    """The version of the newest checkpoint that the commit `expired` can be read from."""
    versions = [found.version for found in all_checkpoints(entries) if found.version <= expired]
    # Below that version a cleanup must take all or nothing.
    least = natural(properties.get(PROTECTED, "0"))
    if least is None:
        return None
    return max((version for version in versions if version >= least), default=None)


def _newest_expired(
    store: Store, entries: Sequence[Entry], properties: Mapping[str, str], cutoff: int
) -> int | None:
    """The newest commit that is not younger than `cutoff`.

    By the time of its file, and by its own if the table keeps that.
    """
    found = [
        version
        for entry in entries
        if (version := commit_version(entry.path)) is not None and entry.modified <= cutoff
    ]
    if not is_stamped(properties):
        return max(found, default=None)
    for version in sorted(found, reverse=True):
        if stamp_of(read_commit(store, commit_path(version))) <= cutoff:
            return version
    return None


def _is_before(entry: Entry, kept: int) -> bool:
    """Whether a file of the log speaks of versions before `kept` only."""
    name = entry.path.rpartition("/")[2]
    if match := _COMPACTED.fullmatch(name):
        return int(match[1]) <= kept
    found = _VERSIONED.fullmatch(name)
    return found is not None and int(found[1]) < kept


def _is_left_over(entry: Entry, yesterday: int) -> bool:
    """Whether a file is what a writer of ours left that was killed."""
    return bool(_TEMPORARY.fullmatch(entry.path.rpartition("/")[2])) and entry.modified < yesterday


def _clean_sidecars(store: Store, yesterday: int) -> list[Entry]:
    """Delete the sidecars that no checkpoint names, but those of checkpoints just being written."""
    old = [entry for entry in store.list_from(SIDECARS) if entry.modified < yesterday]
    if not old:
        return []
    named = {
        path
        for checkpoint in all_checkpoints(store.list_from(LOG))
        for path in sidecar_paths(store, checkpoint)
    }
    doomed = [entry for entry in old if entry.path not in named]
    for entry in doomed:
        store.delete(entry.path)
    return doomed
