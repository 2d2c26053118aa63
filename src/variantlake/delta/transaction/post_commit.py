"""What follows a commit: its checksum; at the interval a checkpoint and a cleanup of the log.

If checkpoints are rare, commits are compacted between them.

The commit stands whatever becomes of these: a version is as good without, so that a failure is a
warning.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping

from variantlake.delta.checkpoint.checkpoint_writer import checkpoint_due, write_state
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.delta.checkpoint.log_compaction import INTERVAL, compaction_due, write_compaction
from variantlake.delta.log.log_segment import all_commits
from variantlake.delta.log.reconciliation import LogState
from variantlake.delta.log.version_checksum import write_checksum
from variantlake.delta.protocol.intervals import DAY_MILLIS
from variantlake.delta.protocol.named_versions import named_versions
from variantlake.storage.store import Entry, Store


def run_post_commit_hooks(store: Store, version: int, state: LogState) -> None:
    """Do what the table's properties want after the commit of `version`, which made `state`."""
    properties = {} if state.metadata is None else dict(state.metadata.configuration)
    _attempt("checksum", version, lambda: write_checksum(store, version, state))
    if checkpoint_due(version, properties):
        # It asks the protocol first: without a checkpoint there is no cleanup.
        done = _attempt("checkpoint", version, lambda: write_state(store, version, state))
        if done:
            _attempt("cleanup of the log", version, lambda: _clean_daily(store, properties, state))
    elif compaction_due(version, properties):
        first = version - INTERVAL + 1
        _attempt("log compaction", version, lambda: write_compaction(store, first, version))


_cleaned: dict[str, tuple[object, Entry]] = {}
"""When logs were cleaned up last, by their tables, and the oldest commits that were left."""


def _clean_daily(store: Store, properties: Mapping[str, str], state: LogState) -> None:
    """Clean up unless this process did today: files expire at midnight, and the log is long."""
    named = [each.version for each in named_versions(state.domains.values())]
    now = (time.time_ns() // (DAY_MILLIS * 1_000_000), dict(properties), named)
    when, oldest = _cleaned.get(store.uri, (None, None))
    if when == now and oldest is not None and oldest.is_same(store.entry(oldest.path)):
        return
    clean_log(store, properties, named=named)
    first = next(iter(all_commits(store).values()), None)
    if first is not None:
        _cleaned[store.uri] = now, first


def _attempt(what: str, version: int, work: Callable[[], object]) -> bool:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the commit stands, whatever this is
        warnings.warn(f"no {what} after version {version}: {error}", stacklevel=5)
        return False
    return True
