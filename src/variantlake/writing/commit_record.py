"""What a commit says of its load beside the rows: how far it has come, in the table's own log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from variantlake.delta.actions.actions import Action, DomainMetadata, Transaction
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MissingSource
from variantlake.storage.store import Store


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Actions of one commit that stand for progress, decided on what the table said before.

    `is_stale` tells whether a newer version says something else, so that the rows may be in the
    table already: then nothing is committed. `version_in` gives the version that brought these very
    rows if one did. `provenance` are fields of `commitInfo` in the place
    of a load's own.
    """

    transactions: tuple[Transaction, ...]
    domains: tuple[DomainMetadata, ...]
    is_stale: Callable[[Snapshot], bool]
    version_in: Callable[[Snapshot], int | None] = lambda _: None
    provenance: Mapping[str, Any] = field(default_factory=dict)


def find_commit(
    store: Store, versions: Iterable[int], app_id: str, number: int | None = None
) -> tuple[int, list[Action]] | None:
    """The first of these versions with a `txn` of an application, of any number if None.

    Gives the version with the actions of its commit; None if there is none, or if the log
    no longer holds a version before it.
    """
    for version in versions:
        try:
            actions = read_commit(store, commit_path(version))
        except MissingSource:
            return None
        found = [each for each in actions if isinstance(each, Transaction)]
        if any(each.app_id == app_id and number in (None, each.version) for each in found):
            return version, actions
    return None
