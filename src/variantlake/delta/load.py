"""The state of a version: its checkpoint, if any, and the commits after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from variantlake.delta.actions import Action
from variantlake.delta.checkpoint import read_checkpoint
from variantlake.delta.listing import LogSegment, find_segment
from variantlake.delta.replay import (
    Commit,
    State,
    apply_commits,
    read_commit,
    read_large_commit,
)
from variantlake.delta.store import Store
from variantlake.errors import MalformedLog, MissingSource

LARGE_LOG = 2 << 20
"""Bytes of commits from which on they are read by columns: by objects they take longer than the
kernels take to be loaded."""

_THREADS = min(4, os.cpu_count() or 1)


def load_state(
    store: Store, version: int | None, *, tombstones: bool = False
) -> tuple[LogSegment, State]:
    """The files of `version` (the newest if None) and the state that they make.

    An unreadable checkpoint gives way to an older one or to none. `tombstones` asks for the removed
    files too. Raises as `find_segment`, `read_checkpoint` and `read_commit`.
    """
    unreadable: dict[int, MalformedLog] = {}
    while True:
        try:
            segment = find_segment(store, version, without=unreadable)
        except (MalformedLog, MissingSource) as error:
            if unreadable:
                # Without the damaged checkpoint the version cannot be had: that is what to say.
                raise next(iter(unreadable.values())) from error
            raise
        state = State(removes={} if tombstones else None)
        if segment.checkpoint is not None:
            try:
                state = read_checkpoint(store, segment.checkpoint, tombstones=tombstones)
            except MalformedLog as error:
                unreadable[segment.checkpoint.version] = error
                continue
        return segment, apply_commits(state, _commits(store, segment))


def _commits(store: Store, segment: LogSegment) -> Iterator[list[Action] | Commit]:
    """The commits in their order."""
    paths = [entry.path for entry in segment.commits]
    if sum(entry.size for entry in segment.commits) <= LARGE_LOG:
        yield from (read_commit(store, path) for path in paths)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(partial(read_large_commit, store), paths)
