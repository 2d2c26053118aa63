"""What follows a commit: its checksum, and at the interval a checkpoint and a cleanup of the log.

The commit stands whatever becomes of these: a version is as good without, so that a failure is a
warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from variantlake.delta.checkpoint_writer import checkpoint_due, write_checkpoint
from variantlake.delta.log_cleanup import clean_log
from variantlake.delta.replay import State
from variantlake.delta.version_checksum import write_checksum
from variantlake.errors import VariantLakeError
from variantlake.storage.store import Store


def follow_up(store: Store, version: int, state: State) -> None:
    """Do what the table's properties want after the commit of `version`, which made `state`."""
    properties = {} if state.metadata is None else dict(state.metadata.configuration)
    _attempt("checksum", version, lambda: write_checksum(store, version, state))
    if checkpoint_due(version, properties):
        done = _attempt("checkpoint", version, lambda: write_checkpoint(store, version))
        if done:
            _attempt("cleanup of the log", version, lambda: clean_log(store, properties))


def _attempt(what: str, version: int, work: Callable[[], object]) -> bool:
    try:
        work()
    except VariantLakeError as error:
        warnings.warn(f"no {what} after version {version}: {error}", stacklevel=5)
        return False
    return True
