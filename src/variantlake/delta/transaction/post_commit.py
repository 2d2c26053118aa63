"""Work after a commit: its checksum and, when due, a checkpoint and a cleanup of the log.

It also rewrites the manifests of a table that keeps them, and writes log compactions if checkpoints
are rare.

The commit is valid without any of these, so a failure is only a warning.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping

from variantlake.delta.checkpoint.checkpoint_writer import checkpoint_due, write_state
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.delta.checkpoint.log_compaction import INTERVAL, compaction_due, write_compaction
from variantlake.delta.log.files.parted_files import is_unread
from variantlake.delta.log.last_checkpoint import read_last_checkpoint
from variantlake.delta.log.log_segment import LOG, commit_path, commit_version
from variantlake.delta.log.reconciliation import LogState
from variantlake.delta.log.version_checksum import write_checksum
from variantlake.delta.protocol.intervals import DAY_MILLIS
from variantlake.delta.protocol.named_versions import named_versions
from variantlake.delta.transaction.manifests import is_kept_up, write_manifests
from variantlake.storage.store import Entry, Store


def run_post_commit_hooks(store: Store, version: int, state: LogState) -> None:
    """Do the work that the table's properties require after `version`, whose state is `state`."""
    properties = {} if state.metadata is None else dict(state.metadata.configuration)
    if (metadata := state.metadata) is not None and is_kept_up(properties):
        _attempt("manifest", version, lambda: write_manifests(store, metadata, state.files))
    _attempt("checksum", version, lambda: write_checksum(store, version, state))
    if checkpoint_due(version, properties) and not _is_early(store, version, state, properties):
        # The checkpoint checks the protocol, so the cleanup runs only after a checkpoint.
        done = _attempt("checkpoint", version, lambda: write_state(store, version, state))
        if done:
            _attempt("cleanup of the log", version, lambda: _clean_daily(store, properties, state))
    elif compaction_due(version, properties):
        first = version - INTERVAL + 1
        _attempt("log compaction", version, lambda: write_compaction(store, first, version))


LATEST = 40
"""The most commits after a checkpoint in a table that sets no interval."""

BYTES_OF_FILE = 16
"""Bytes of commits that are read about as fast as one file's row of a checkpoint is written."""


def _is_early(store: Store, version: int, state: LogState, properties: Mapping[str, str]) -> bool:
    """Whether reading the commits since the last checkpoint costs less than writing another one.

    A checkpoint lists all files of the table, so at a fixed interval the cost of a commit grows
    with their number. A table that sets an interval gets its checkpoints at that interval.
    """
    last = None if "delta.checkpointInterval" in properties else read_last_checkpoint(store)
    if last is None or not 0 < version - last < LATEST:
        return False
    files = state.files
    most, size = BYTES_OF_FILE * (files.most_rows if is_unread(files) else files.num_rows), 0
    for number in range(last + 1, version + 1):
        commit = store.entry(commit_path(number)) if size <= most else None
        if commit is None:
            return False
        size += commit.size
    return size <= most


_cleaned: dict[str, tuple[object, Entry]] = {}
"""By table: the day, properties and named versions of the last cleanup, and the oldest commit
that it left."""


def _clean_daily(store: Store, properties: Mapping[str, str], state: LogState) -> None:
    """Clean up the log unless this process did today: files expire at midnight UTC."""
    named = [each.version for each in named_versions(state.domains.values())]
    now = (time.time_ns() // (DAY_MILLIS * 1_000_000), dict(properties), named)
    when, oldest = _cleaned.get(store.uri, (None, None))
    if when == now and oldest is not None and oldest.is_same(store.entry(oldest.path)):
        return
    clean_log(store, properties, named=named)
    entries = store.list_from(LOG)
    first = next((entry for entry in entries if commit_version(entry.path) is not None), None)
    if first is not None:
        _cleaned[store.uri] = now, first


def _attempt(what: str, version: int, work: Callable[[], object]) -> bool:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the commit stands, whatever this is
        warnings.warn(f"no {what} after version {version}: {error}", stacklevel=5)
        return False
    return True
