"""Writing log compactions: the reconciled actions of some commits, in one file.

A reader reads a compaction in place of its commits, which saves time. It does not replace a
checkpoint: it names only the files that its commits add or remove.
Spec: PROTOCOL, "Log Compaction Files", "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from variantlake.delta.actions.actions import Action, DomainMetadata, natural, serialise
from variantlake.delta.checkpoint.checkpoint_writer import DEFAULT_INTERVAL
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.log_segment import commit_path, compaction_path
from variantlake.delta.log.reconciliation import LogState, apply_commits, read_commit
from variantlake.storage.store import Store

INTERVAL = 10
"""The number of commits in one compaction."""


def compaction_due(version: int, properties: Mapping[str, str]) -> bool:
    """Whether the commits up to this version should be compacted.

    Only if the table writes no checkpoints, or its interval is more than twice the default.
    """
    interval = natural(properties.get("delta.checkpointInterval", ""))
    rare = interval is not None and (interval == 0 or interval > 2 * DEFAULT_INTERVAL)
    return rare and version >= INTERVAL and version % INTERVAL == 0


def write_compaction(store: Store, first: int, last: int) -> bool:
    """Write the compaction of the commits `first` to `last`; False if it would lose actions.

    It would lose actions that this version does not know. Raises as `read_commit`, and
    ValueError unless there are two commits at least.
    """
    if not first < last:
        raise ValueError(f"commits {first} to {last} are not two at least")
    commits = [read_commit(store, commit_path(version)) for version in range(first, last + 1)]
    state = apply_commits(LogState(removes={}), commits)
    if state.unknown_actions:
        return False
    # Keep removed domains, which a state omits: commits before `first` may have set them.
    domains = {
        action.domain: action
        for commit in commits
        for action in commit
        if isinstance(action, DomainMetadata)
    }
    few: list[Action | None] = [state.protocol, state.metadata]
    actions = [action for action in few if action is not None]
    actions += [*state.transactions.values(), *domains.values()]
    # Reconciled files have no data change, as in a checkpoint.
    actions += [replace(file, data_change=False) for file in (state.removes or {}).values()]
    actions += [replace(file, data_change=False) for file in adds_of(state.files)]
    store.put(compaction_path(first, last), serialise(actions))
    return True
