"""The state of a version: its checkpoint, if any, and the commits after it."""

from __future__ import annotations

from variantlake.delta.checkpoint import read_checkpoint
from variantlake.delta.listing import LogSegment, find_segment
from variantlake.delta.replay import State, apply_commits, read_commit, read_large_commit
from variantlake.delta.store import Store
from variantlake.errors import MalformedLog, MissingSource

LARGE_LOG = 2 << 20
"""Bytes of commits from which on they are read by columns: by objects they take longer than the
kernels take to be loaded."""


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
        large = sum(entry.size for entry in segment.commits) > LARGE_LOG
        read = read_large_commit if large else read_commit
        return segment, apply_commits(state, (read(store, each.path) for each in segment.commits))
