"""Remembers the last commit of this process to each table, and checks that it is still there.

Log stores that check and then rename can overwrite a commit after it was read back. The next read
of the table finds such a loss and reports it once. If the commit before it changed as well, no such
writer was at work: the table was made again, or restored from a copy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from variantlake.delta.log.log_segment import commit_path
from variantlake.errors import CommitLost, MissingSource
from variantlake.storage.store import Entry, Store

SECONDS = 60.0
"""How long a commit is checked: no writer sleeps so long between its check and its rename."""


_BEGINNING = 64 << 10
"""Bytes at the start of a commit that contain its `txnId`."""


@dataclass(frozen=True, slots=True)
class _OwnCommit:
    version: int
    txn_id: str
    before: Entry
    moment: float


_last: dict[str, _OwnCommit] = {}


def remember(store: Store, version: int, txn_id: str, before: Entry) -> None:
    """Note that this process committed `version`, under this id, after the commit `before`."""
    _last[store.uri] = _OwnCommit(version, txn_id, before, time.monotonic())


def forget(store: Store) -> None:
    """Stop expecting a commit in the table, as when another one is made in its place."""
    _last.pop(store.uri, None)


def check(store: Store) -> None:
    """Raise CommitLost if the last commit of this process to a table was overwritten since.

    If the commit's file is gone, the log was cleaned up or the table removed. Forgets that commit
    silently, as it does if the table was replaced.
    """
    own = _last.get(store.uri)
    if own is None:
        return
    if time.monotonic() - own.moment > SECONDS:
        forget(store)
    path = commit_path(own.version)
    try:
        found = store.read_range(path, 0, _BEGINNING)
    except MissingSource:
        forget(store)
        return
    if own.txn_id.encode() not in found:
        forget(store)
        if not own.before.is_same(store.entry(own.before.path)):
            return
        raise CommitLost(
            f"another writer overwrote version {own.version} after this process had committed it",
            file=store.join(path),
            hint="what was written then is not in the table: repeat that write, then this call",
        )
