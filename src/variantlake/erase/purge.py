"""Purge: make a table's newest version its only one, in its folder and in its log, now.

Files of older versions go (a vacuum without retention, quarantine files too), then a checkpoint of
the newest version is written that remembers no removed file, and all of the log before it goes.
Killed anywhere, a repeat does the rest: the table can be read at its newest version all the time.
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
    """Raise UnsupportedFeature, by name if the log must not be cut."""
    if "checkpointProtection" in snapshot.features:
        raise UnsupportedFeature(
            "the table's log must not be cut (the feature checkpointProtection)",
            file=snapshot.store.uri,
            hint="erase without a purge, and vacuum when the retention is over",
        )
    with in_file(snapshot.store.uri):
        check_actions_known(snapshot)


def purge(snapshot: Snapshot) -> tuple[int, int]:
    """Remove all but the newest version; how many files of the folder and of the log are gone.

    Raises as `vacuum`, StoreFailed.
    """
    check_may_purge(snapshot)
    # Not before what was committed last, whatever the clocks say.
    now = max(time.time_ns() // 1_000_000, snapshot.last.modified) + 1
    done = vacuum(snapshot, 0, force=True, quarantine=True, now=now)
    newest = snapshot.refresh()
    store = newest.store
    # The versions that files were removed from are gone: no reader needs these names.
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
    # Oldest first: what is left after an interruption are whole versions, the newer ones.
    for path in doomed:
        store.delete(path)
    return done.files_removed, len(doomed)


def _goes(name: str, newest: Snapshot) -> bool:
    """Whether it speaks of older versions, or is another checkpoint of the newest."""
    version = int(name.lstrip(".")[:20])
    if version < newest.version:
        return True
    return version == newest.version and ".checkpoint." in name
