"""Cleaning up the log: deletes the files that no reader of a kept version needs.

Spec: PROTOCOL, "Metadata Cleanup"; the property `delta.requireCheckpointProtectionBeforeVersion`
belongs to the feature `checkpointProtection`.
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
    """Delete expired files of the log (`delta.logRetentionDuration`); returns their number.

    Keeps the newest expired checkpoint and everything after it, so that every version within the
    retention can be read, and so can the versions in `named`. Deletes nothing if
    `delta.enableExpiredLogCleanup` is false. `now` and `before` are in milliseconds since the
    epoch; `before` replaces the end of the retention. The caller has checked that the protocol
    allows writing the log (`check_log_writable`).

    Raises StoreFailed, MalformedLog for a checkpoint whose sidecars cannot be determined.
    """
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return 0
    now = time.time_ns() // 1_000_000 if now is None else now
    entries = list(store.list_from(LOG))
    retention = property_millis(properties, "delta.logRetentionDuration", DEFAULT_RETENTION)
    # Midnight UTC, so that a cleanup finds something only once a day.
    cutoff = (now - retention) // DAY_MILLIS * DAY_MILLIS if before is None else before
    expired = _newest_expired(store, entries, properties, cutoff)
    kept = None
    if expired is not None:
        kept = _cutoff_checkpoint(entries, properties, min([expired, *named]))
    doomed = [] if kept is None else [entry for entry in entries if _is_before(entry, kept)]
    yesterday = now // DAY_MILLIS * DAY_MILLIS - DAY_MILLIS
    doomed += [entry for entry in entries if _is_left_over(entry, yesterday)]
    # Oldest first: after an interruption, whole newer versions are left.
    if PROTECTED in properties:
        # Delete commits before checkpoints. Spec: RFC "Checkpoint Protection", (d).
        doomed.sort(key=lambda entry: commit_version(entry.path) is None)
    for entry in doomed:
        store.delete(entry.path)
    if kept is not None:
        doomed += _clean_sidecars(store, yesterday)
    return len(doomed)


def _cutoff_checkpoint(
    entries: Sequence[Entry], properties: Mapping[str, str], expired: int
) -> int | None:
    """Return the version of the newest checkpoint from which version `expired` can be read."""
    versions = [found.version for found in all_checkpoints(entries) if found.version <= expired]
    # Below that version a cleanup must take all or nothing.
    least = natural(properties.get(PROTECTED, "0"))
    if least is None:
        return None
    return max((version for version in versions if version >= least), default=None)


def _newest_expired(
    store: Store, entries: Sequence[Entry], properties: Mapping[str, str], cutoff: int
) -> int | None:
    """Return the newest version whose commit is not younger than `cutoff`; None if there is none.

    By the time of its file, and by its in-commit timestamp too if the table has these.
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
    """Whether a file is of a version before `kept`, or a compaction from `kept` or earlier on."""
    name = entry.path.rpartition("/")[2]
    if match := _COMPACTED.fullmatch(name):
        return int(match[1]) <= kept
    found = _VERSIONED.fullmatch(name)
    return found is not None and int(found[1]) < kept


def _is_left_over(entry: Entry, yesterday: int) -> bool:
    """Whether a file is a temporary one, last written before `yesterday`, of a killed writer."""
    return bool(_TEMPORARY.fullmatch(entry.path.rpartition("/")[2])) and entry.modified < yesterday


def _clean_sidecars(store: Store, yesterday: int) -> list[Entry]:
    """Delete old sidecars that no checkpoint names; newer ones may be of one in progress."""
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
