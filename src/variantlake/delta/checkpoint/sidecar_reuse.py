"""Reuses unchanged sidecars of the checkpoint before, so that a new one writes only changes.

Spec: PROTOCOL, "Sidecar Files", "V2 Spec".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.delta.actions.actions import (
    Action,
    AddFile,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
)
from variantlake.delta.log.checkpoint_reader import read_sidecar_actions, read_sidecar_paths
from variantlake.delta.log.files.file_keys import key_of
from variantlake.delta.log.files.file_paths import decoded_paths
from variantlake.delta.log.files.logical_files import LogicalFiles
from variantlake.delta.log.log_segment import find_segment
from variantlake.delta.log.reconciliation import LogState, read_commit
from variantlake.errors import VariantLakeError
from variantlake.storage.store import Store


@dataclass(frozen=True, slots=True)
class ReusedSidecars:
    """Sidecars that a new checkpoint reuses, the count of their files, and the other files."""

    sidecars: tuple[Sidecar, ...]
    count: int
    others: LogicalFiles


def no_sidecars(_store: Store, _version: int, state: LogState) -> ReusedSidecars:
    """Reuse no sidecar."""
    return ReusedSidecars((), 0, state.files)


def reusable_sidecars(store: Store, version: int, state: LogState) -> ReusedSidecars:
    """Return the sidecars of the newest checkpoint up to `version` that have only files of `state`.

    No commit since then touches their files. Small ones are not reused, to keep their number low.
    Reuses none if the table's protocol or metadata changed, as the columns of a sidecar depend on
    these, or if anything about the sidecars cannot be read.
    """
    nothing = no_sidecars(store, version, state)
    try:
        unchanged = list(_unchanged(store, version, state))
    except VariantLakeError:
        return nothing
    paths = decoded_paths(state.files["path"])
    fresh = len(paths) - sum(len(p) for _, p in unchanged)
    # Rewrite a sidecar that is not much larger than the files that must be written anyway.
    unchanged.sort(key=lambda pair: len(pair[1]))
    while unchanged and len(unchanged[0][1]) <= 2 * fresh:
        fresh += len(unchanged.pop(0)[1])
    if not unchanged:
        return nothing
    there = pc.is_in(paths, value_set=pa.concat_arrays([p for _, p in unchanged]))
    others = state.files.filter(pc.invert(there))
    count = sum(len(p) for _, p in unchanged)
    if count + others.num_rows != state.files.num_rows:  # a sidecar has a file that the state lacks
        return nothing
    return ReusedSidecars(tuple(sidecar for sidecar, _ in unchanged), count, others)


def _unchanged(store: Store, version: int, state: LogState) -> Iterator[tuple[Sidecar, Any]]:
    """Yield the sidecars without tombstones and touched files, and the decoded paths in each."""
    segment = find_segment(store, version)
    if segment.checkpoint is None:
        return
    actions = read_sidecar_actions(store, segment.checkpoint)
    kept: list[Action | None] = [state.protocol, state.metadata]
    if [each for each in actions if isinstance(each, Protocol | Metadata)] != kept:
        return
    commits = [read_commit(store, entry.path) for entry in segment.commits]
    touched = {
        key_of(action)[0]
        for commit in commits
        for action in commit
        if isinstance(action, AddFile | RemoveFile)
    }
    changed = arrow_array([*touched], pa.string())
    for sidecar in actions:
        if isinstance(sidecar, Sidecar):
            paths = read_sidecar_paths(store, sidecar)
            if paths is not None and not pc.any(pc.is_in(paths, value_set=changed)).as_py():
                yield sidecar, paths
