"""Cleaning up the log: what no reader of a kept version needs goes.

Spec: PROTOCOL, "Metadata Cleanup"; the property `delta.requireCheckpointProtectionBeforeVersion` is
that of the feature `checkpointProtection`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence

from variantlake.delta.actions.log_lines import CommitInfo, Sidecar
from variantlake.delta.log.checkpoint_reader import sidecars_of
from variantlake.delta.log.log_segment import (
    LOG,
    SIDECARS,
    CheckpointFiles,
    all_checkpoints,
    commit_path,
    commit_version,
)
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.protocol.intervals import DAY_MILLIS, property_millis
from variantlake.storage.store import Entry, Store

DEFAULT_RETENTION = "interval 30 days"

_VERSIONED = re.compile(r"\.?(\d{20})\.(?!.*\.tmp$).+")
_COMPACTED = re.compile(r"\.?(\d{20})\.\d{20}\.compacted\.json(\.crc)?")
_TEMPORARY = re.compile(r"\..+\.tmp")


def clean_log(store: Store, properties: Mapping[str, str], *, now: int | None = None) -> int:
    """Delete the files of the log that expired (`delta.logRetentionDuration`); how many.

    Everything from the newest checkpoint on that is as old as the retention asks stays, so that
    every version that is young enough can be read. Nothing goes where
    `delta.enableExpiredLogCleanup` is false. `now` is in milliseconds since the epoch.

    Raises StoreFailed, MalformedLog for a checkpoint that names no sidecars that can be read.
    """
    if properties.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return 0
    now = time.time_ns() // 1_000_000 if now is None else now
    entries = list(store.list_from(LOG))
    retention = property_millis(properties, "delta.logRetentionDuration", DEFAULT_RETENTION)
    # Midnight UTC: a log is not looked through for one more commit every minute.
    cutoff = (now - retention) // DAY_MILLIS * DAY_MILLIS
    kept = _cutoff_checkpoint(store, entries, properties, cutoff)
    doomed = [] if kept is None else [entry for entry in entries if _is_before(entry, kept)]
    yesterday = now // DAY_MILLIS * DAY_MILLIS - DAY_MILLIS
    doomed += [entry for entry in entries if _is_left_over(entry, yesterday)]
    # Oldest first: what is left after an interruption are whole versions, the newer ones.
    for entry in doomed:
        store.delete(entry.path)
    if kept is not None:
        doomed += _clean_sidecars(store, yesterday)
    return len(doomed)


def _cutoff_checkpoint(
    store: Store, entries: Sequence[Entry], properties: Mapping[str, str], cutoff: int
) -> int | None:
    """The version of the newest checkpoint that the newest expired commit can be read from."""
    expired = _newest_expired(store, entries, properties, cutoff)
    if expired is None:
        return None
    versions = [found.version for found in all_checkpoints(entries) if found.version <= expired]
    protected = properties.get("delta.requireCheckpointProtectionBeforeVersion", "0")
    # Below that version a cleanup must take all or nothing.
    least = int(protected) if protected.isdecimal() else 1 << 63
    return max((version for version in versions if version >= least), default=None)


def _newest_expired(
    store: Store, entries: Sequence[Entry], properties: Mapping[str, str], cutoff: int
) -> int | None:
    """The newest commit that is not younger than `cutoff`.

    By the time of its file, and by its own where the table keeps that.
    """
    found = [
        version
        for entry in entries
        if (version := commit_version(entry.path)) is not None and entry.modified <= cutoff
    ]
    if properties.get("delta.enableInCommitTimestamps", "").lower() != "true":
        return max(found, default=None)
    for version in sorted(found, reverse=True):
        if _stamp(store, version) <= cutoff:
            return version
    return None


def _stamp(store: Store, version: int) -> int:
    infos = [a for a in read_commit(store, commit_path(version)) if isinstance(a, CommitInfo)]
    return max((info.in_commit_timestamp or 0 for info in infos), default=0)


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
        sidecar.path.rpartition("/")[2]
        for checkpoint in all_checkpoints(store.list_from(LOG))
        for sidecar in _sidecars(store, checkpoint)
    }
    doomed = [entry for entry in old if entry.path.rpartition("/")[2] not in named]
    for entry in doomed:
        store.delete(entry.path)
    return doomed


def _sidecars(store: Store, checkpoint: CheckpointFiles) -> Iterator[Sidecar]:
    for entry in checkpoint.files:
        yield from sidecars_of(store, entry)
