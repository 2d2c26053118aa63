"""Purge: remove all older versions of a table at once, from its folder and from its log.

First remove the files of older versions (a vacuum without retention, with quarantine files). Then
write a checkpoint of the newest version without tombstones, and remove all of the log before it.
If this is killed, repeat it; the newest version can be read at any time.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace

from variantlake.delta.checkpoint.checkpoint_writer import check_actions_known, write_state
from variantlake.delta.log.log_segment import LOG, SIDECARS
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import UnsupportedFeature, in_file
from variantlake.maintenance.vacuuming.vacuum import vacuum

_VERSIONED = re.compile(r"\.?(\d{20})\..+")


def check_may_purge(snapshot: Snapshot) -> None:
    """Raise UnsupportedFeature if the log must not be truncated, or has unknown actions."""
    if "checkpointProtection" in snapshot.features:
        raise UnsupportedFeature(
            "the table's log must not be cut (the feature checkpointProtection)",
            file=snapshot.store.uri,
            hint="erase without a purge, and vacuum when the retention is over",
        )
    with in_file(snapshot.store.uri):
        check_actions_known(snapshot)


def purge(snapshot: Snapshot) -> tuple[int, int]:
    """Remove all but the newest version; returns the number of removed data and log files.

    Raises as `check_may_purge` and `vacuum`, StoreFailed.
    """
    check_may_purge(snapshot)
    # A time after the last commit, whatever the clocks show.
    now = max(time.time_ns() // 1_000_000, snapshot.last.modified) + 1
    done = vacuum(snapshot, 0, force=True, quarantine=True, now=now)
    newest = snapshot.refresh()
    store = newest.store
    # No reader needs tombstones: the versions that had these files are gone.
    state = replace(newest.state(), removes={})
    kept = write_state(store, newest.version, state, reuse=False)
    kept_names = {name.rpartition("/")[2] for name in kept}
    doomed = []
    for entry in store.list_from(LOG):
        name = entry.path.rpartition("/")[2]
        found = _VERSIONED.fullmatch(name)
        if name.startswith(".") or (found and name not in kept_names and _goes(name, newest)):
            doomed.append(entry.path)
    doomed += [
        entry.path
        for entry in store.list_from(SIDECARS)
        if entry.path.rpartition("/")[2] not in kept_names
    ]
    # Oldest first, so that after an interruption the newer versions are still complete.
    for path in doomed:
        store.delete(path)
    return done.files_removed, len(doomed)


def _goes(name: str, newest: Snapshot) -> bool:
    """Whether a log file is of an older version, or another checkpoint of the newest."""
    version = int(name.lstrip(".")[:20])
    if version < newest.version:
        return True
    return version == newest.version and ".checkpoint." in name
