"""The last commit of this process to each table, to be looked at again.

Log stores that look and then rename can overwrite a commit after it was read back. Such a loss is
found at the next look at the table, and said once. If the commit before it changed as well it
was no such writer: the table was made again, or restored from a copy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from variantlake.delta.log.log_segment import commit_path
from variantlake.errors import CommitLost, MissingSource
from variantlake.storage.store import Entry, Store

SECONDS = 60.0
"""How long a commit is looked at again: no writer sleeps so long between a look and a rename."""


_BEGINNING = 64 << 10
"""Bytes at the start of a commit in which its own id stands."""


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
    """Expect nothing of a table any more: another one is to be made in its place."""
    _last.pop(store.uri, None)


def check(store: Store) -> None:
    """Raise CommitLost if the last commit of this process to a table was overwritten since.

    A commit that is not there at all was cleaned up, or the table removed: it is forgotten. So is
    one of a table that was replaced.
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
