"""Progress that a commit records in the table's log, together with the rows."""

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
    """Actions of a commit that record progress, computed from an earlier version of the table.

    `is_stale` tells whether a newer version has other progress, so that the rows may be in the
    table already: then nothing is committed. `version_in` returns the version that added exactly
    these rows, if there is one. `provenance` are fields of `commitInfo` that replace a load's own.
    """

    transactions: tuple[Transaction, ...]
    domains: tuple[DomainMetadata, ...]
    is_stale: Callable[[Snapshot], bool]
    version_in: Callable[[Snapshot], int | None] = lambda _: None
    provenance: Mapping[str, Any] = field(default_factory=dict)


def find_commit(
    store: Store, versions: Iterable[int], app_id: str, number: int | None = None
) -> tuple[int, list[Action]] | None:
    """Find the first of these versions with a `txn` of an application; None is any number.

    Returns the version and the actions of its commit; None if there is none, or if the log no
    longer holds a version before it.
    """
    for version in versions:
        try:
            actions = read_commit(store, commit_path(version))
        except MissingSource:
            return None
        transactions = [each for each in actions if isinstance(each, Transaction)]
        if any(each.app_id == app_id and number in (None, each.version) for each in transactions):
            return version, actions
    return None
