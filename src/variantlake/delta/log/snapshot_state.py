"""The state of a version: a checkpoint that can be read, if any, and the commits after it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from variantlake.delta.actions.actions import Action, RemoveFile
from variantlake.delta.log.checkpoint_reader import read_checkpoint, read_tombstones
from variantlake.delta.log.files.file_keys import Key, check_unique_paths
from variantlake.delta.log.files.parted_files import is_unread
from variantlake.delta.log.log_segment import CheckpointFiles, LogSegment, find_segment
from variantlake.delta.log.reconciliation import (
    Commit,
    LogState,
    apply_commits,
    read_commit,
    read_large_commit,
)
from variantlake.delta.log.version_checksum import verify_checksum
from variantlake.errors import MalformedLog, MissingSource, VariantLakeError
from variantlake.logs import logger
from variantlake.storage.store import Entry, Store

_LOG = logger("log")

LARGE_COMMIT = 1 << 20
"""Bytes of a commit above which it is read by columns: that starts a millisecond later, and then
takes a third of the time."""

MANY_COMMITS = 10_000
"""From this many commits on, the reader warns the user: reading them takes long."""

PROGRESS_SECONDS = 5.0
"""Seconds between two reports of progress in that case."""

_THREADS = min(4, os.cpu_count() or 1)


def read_state(
    store: Store, version: int | None, *, tombstones: bool = False, compactions: bool = True
) -> tuple[LogSegment, LogState]:
    """Return the log files of `version` (the newest if None) and the state that they make.

    If a checkpoint is unreadable, an older one or none takes its place. If log compactions are
    broken, or disagree with the checksum of the version, their commits are read instead; without
    `compactions`, the commits are always read. With `tombstones`, the state has `removes`. Raises
    as `find_segment`, `read_checkpoint`, `read_commit` and `verify_checksum`.
    """
    unreadable: dict[int, MalformedLog] = {}
    while True:
        try:
            segment = find_segment(store, version, without=unreadable)
        except (MalformedLog, MissingSource) as error:
            if not unreadable:
                raise
            # A cleanup of the log may have deleted the checkpoint: then look again.
            latest = find_segment(store, version).checkpoint
            if latest is None or latest.version in unreadable:
                # The version needs the damaged checkpoint, so report that one.
                raise next(iter(unreadable.values())) from error
            continue
        state = LogState(removes={} if tombstones else None)
        if segment.checkpoint is not None:
            try:
                state = read_checkpoint(store, segment.checkpoint, tombstones=tombstones)
            except MalformedLog as error:
                unreadable[segment.checkpoint.version] = error
                continue
            _check_complete(store, segment.checkpoint, state)
            state = replace(state, checkpoint=segment.checkpoint.version)
        compacted = _by_compactions(store, segment, state) if compactions else None
        return segment, compacted or _by_commits(store, segment, state)


def check_checkpoint(store: Store, version: int) -> None:
    """Read the checkpoint of `version`. Raises MalformedLog if it is damaged or missing."""
    checkpoint = find_segment(store, version).checkpoint
    if checkpoint is None or checkpoint.version != version:
        raise MalformedLog(f"the checkpoint of version {version} is missing", file=store.uri)
    _check_complete(store, checkpoint, read_checkpoint(store, checkpoint))


def _check_complete(store: Store, checkpoint: CheckpointFiles, state: LogState) -> None:
    """Raise MalformedLog for a checkpoint that has no protocol or no metaData action.

    Unlike a damaged checkpoint, it is not replaced by an older one: its writer has a bug, which
    may have affected that one too.
    """
    for name, action in (("protocol", state.protocol), ("metaData", state.metadata)):
        if action is None:
            raise MalformedLog(
                f"the checkpoint has no {name} action",
                file=store.join(checkpoint.files[0].path),
                hint="its writer went wrong; if the log has every commit from version 0 on, the "
                "table can be read without the file",
            )


def read_removes(store: Store, version: int) -> Mapping[Key, RemoveFile]:
    """Read the tombstones in the log of `version`, as `LogState.removes`.

    Does not read the adds of the checkpoint if it is readable. Raises as `read_state`.
    """
    segment = find_segment(store, version)
    try:
        removes = read_tombstones(store, segment.checkpoint) if segment.checkpoint else {}
    except MalformedLog:
        _, state = read_state(store, version, tombstones=True)  # by an older checkpoint or none
    else:
        state = apply_commits(LogState(removes=removes), _commits(store, segment.commits))
    return state.removes or {}


def _by_commits(store: Store, segment: LogSegment, state: LogState) -> LogState:
    state = apply_commits(state, _commits(store, segment.commits))
    verify_checksum(store, segment, state)
    return state


def _by_compactions(store: Store, segment: LogSegment, state: LogState) -> LogState | None:
    """Return the state by log compactions, None if there are none or the commits must be read."""
    # An empty commit is valid, but an empty compaction would hide the commits that it covers.
    if not segment.compacted or not all(entry.size for entry in segment.compacted):
        return None
    try:
        state = apply_commits(state, _commits(store, segment.compacted))
        if not is_unread(state.files):
            check_unique_paths(state.files)
        verify_checksum(store, segment, state)
    except VariantLakeError:
        return None
    return None if state.protocol is None or state.metadata is None else state


def _commits(store: Store, entries: Sequence[Entry]) -> Iterator[list[Action] | Commit]:
    """Yield the commits or log compactions in order; report progress if there are very many."""
    commits = _read(store, entries)
    if len(entries) < MANY_COMMITS:
        yield from commits
        return
    _LOG.warning(
        "%s: the log has %d commits after its newest checkpoint, all of which are read; after "
        "`Table.checkpoint()` the table opens fast",
        store.uri, len(entries),
    )  # fmt: skip
    said = time.monotonic()
    for number, commit in enumerate(commits):
        if time.monotonic() - said >= PROGRESS_SECONDS:
            said = time.monotonic()
            _LOG.warning("%s: read %d of %d commits", store.uri, number, len(entries))
        yield commit


def _read(store: Store, entries: Sequence[Entry]) -> Iterator[list[Action] | Commit]:
    if all(entry.size <= LARGE_COMMIT for entry in entries):
        yield from (read_commit(store, entry.path) for entry in entries)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(partial(_commit, store), entries)


def _commit(store: Store, entry: Entry) -> list[Action] | Commit:
    read = read_large_commit if entry.size > LARGE_COMMIT else read_commit
    return read(store, entry.path)
