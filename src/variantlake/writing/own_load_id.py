"""Generated ids of loads, for loads to which the caller gives none.

A generated id is stored in the commit's `commitInfo` (`loadId`), not as a transaction: every
snapshot of a table carries all transactions, and most loads are never repeated. If a store's answer
was lost, a repeat of the load with this id searches the commits from the first possible one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from variantlake.delta.actions.actions import CommitInfo
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.transaction.conflicts import LOAD_ID
from variantlake.errors import CommitUnknown, MissingSource

_OWN = re.compile(r"variantlake-([0-9]{1,18})-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class LoadId:
    """The id of a load: the caller's, or a generated one (`is_own`)."""

    text: str
    is_own: bool

    @classmethod
    def of(cls, given: str | None, snapshot: Snapshot | None, files_id: str) -> Self:
        """The caller's id, else one with the first version that the load can commit.

        `files_id` is the id in the names of its files.
        """
        if given is not None:
            return cls(given, is_own=False)
        first = 0 if snapshot is None else snapshot.version + 1
        return cls(f"variantlake-{first}-{files_id}", is_own=True)


def find_own_load(snapshot: Snapshot, load_id: str) -> int | None:
    """The version that a load with this generated id committed; None if there is none.

    Raises CommitUnknown if the log no longer holds a commit that may be the load's.
    """
    match = _OWN.fullmatch(load_id)
    if match is None:
        return None
    for version in range(int(match[1]), snapshot.version + 1):
        path = commit_path(version)
        try:
            actions = read_commit(snapshot.store, path)
        except MissingSource:
            unknown = CommitUnknown(
                f"it is unknown whether version {version} is of the load {load_id}: the log no"
                " longer holds it",
                file=snapshot.store.join(path),
                hint="look in the table whether the rows are there; a load without this id adds "
                "them in any case",
            )
            unknown.load_id = load_id
            raise unknown from None
        infos = [action for action in actions if isinstance(action, CommitInfo)]
        if any(info.fields.get(LOAD_ID) == load_id for info in infos):
            return version
    return None
