"""Check whether the table at a location is still the one that a snapshot was read from.

A table can be removed and made again at its path, or its log restored from a copy, while a caller
holds a snapshot. The size, time and etag or inode of the snapshot's last log file show this. This
module reads the log only if that file changed, to find out what happened.
"""

from __future__ import annotations

from variantlake.delta.actions.actions import CommitInfo
from variantlake.delta.log.log_segment import commit_version
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_state
from variantlake.errors import CommitConflict, MissingSource, TableReplaced
from variantlake.storage.store import Entry, Store

_AGAIN = "open the table again"


def check_before_commit(snapshot: Snapshot) -> None:
    """Refuse a write that is based on a snapshot which the log no longer holds.

    Raises TableReplaced if another table is at the location, CommitConflict if the log was
    cleaned up beyond the version (the commit file of the next version could be put again, but no
    reader would see it) or was rewritten, NotADeltaTable if it is gone.
    """
    newest = _newest_if_changed(snapshot)
    if newest is None:
        return
    if newest > snapshot.version:
        what = f"the log was cleaned up beyond version {snapshot.version}"
    else:
        what = f"the log was rewritten at or before version {snapshot.version}"
    raise CommitConflict(
        f"{what}, which this write was decided on",
        file=snapshot.store.uri,
        hint=f"nothing was committed; {_AGAIN} and repeat",
    )


def check_before_read(snapshot: Snapshot) -> None:
    """Refuse to read files of a snapshot that the table at the location never had.

    A version whose log was cleaned up stays readable while its files exist.

    Raises TableReplaced if another table is at the location, MissingSource if the log was
    rewritten without the version, NotADeltaTable if it is gone.
    """
    newest = _newest_if_changed(snapshot)
    if newest is not None and newest <= snapshot.version:
        raise MissingSource(
            f"version {snapshot.version} is not in the log any more as it was read: "
            "the log was restored from a copy, or another writer overwrote it",
            file=snapshot.store.uri,
            hint=_AGAIN,
        )


def check_same_table(snapshot: Snapshot, newest: Snapshot) -> None:
    """Raise TableReplaced unless the newest snapshot of a location is of the same table."""
    if newest.metadata.id != snapshot.metadata.id:
        raise replaced(snapshot.store)


def _newest_if_changed(snapshot: Snapshot) -> int | None:
    """Return the log's newest version, None if the log still has the snapshot's version unchanged.

    If the snapshot's last log file was rewritten, at most the snapshot's version.
    """
    store = snapshot.store
    now = store.entry(snapshot.last.path)
    if snapshot.last.is_same(now):
        return None
    segment, state = read_state(store, None)
    if state.metadata is None or state.metadata.id != snapshot.metadata.id:
        raise replaced(snapshot.store)
    if now is None:
        return segment.version
    return None if _says_the_same(snapshot, now) else min(segment.version, snapshot.version)


def _says_the_same(snapshot: Snapshot, now: Entry) -> bool:
    """Whether the snapshot's last log file was only copied or touched."""
    if snapshot.commit_info is None or commit_version(now.path) is None:
        return now.size == snapshot.last.size
    actions = read_commit(snapshot.store, now.path)
    return any(isinstance(each, CommitInfo) and each == snapshot.commit_info for each in actions)


def replaced(store: Store) -> TableReplaced:
    """Return the error for another table at the location of the one that was opened."""
    return TableReplaced(
        "the table was replaced by another one since it was opened",
        file=store.uri,
        hint=_AGAIN,
    )
