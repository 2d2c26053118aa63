"""Commit rewritten groups in one commit, which changes no row.

Concurrent appends never conflict with it. If another writer removed one of the files, or changed
its deletion vector, the commit leaves out the group with this file. Spec: PROTOCOL, "Add File and
Remove File" (`dataChange`), "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.identity import check_same_table
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.type_parts import without_comments
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import CommitConflict
from variantlake.maintenance.rewrite.groups import FileGroup, Key
from variantlake.maintenance.rewrite.rewrite_group import RewritePlan, RewrittenGroup

Rewritten = tuple[FileGroup, RewrittenGroup]


@dataclass(frozen=True, slots=True)
class Operation:
    """The name and parameters of a rewrite in the table's history, as Delta Spark writes them."""

    name: str = "OPTIMIZE"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def optimize(cls, where: str | None, by: Sequence[str] = (), *, once: bool = False) -> Self:
        """Return an OPTIMIZE with Delta Spark's parameters, so that its streams recognize it.

        `by` are the table's clustering paths or, with `once`, the columns of a ZORDER BY.
        """
        order = orjson.dumps(list(by)).decode()
        full = {"isFull": False} if by and not once else {}
        return cls(
            parameters={
                "predicate": predicate(where),
                "zOrderBy": order if once else "[]",
                "clusterBy": "[]" if once else order,
                "auto": False,
                **full,
            }
        )

    @classmethod
    def purge(cls, where: str | None) -> Self:
        """Return Delta Spark's `REORG TABLE ... APPLY (PURGE)`."""
        return cls("REORG", {"predicate": predicate(where), "applyPurge": True})


def predicate(where: str | None) -> str:
    """Return a condition on files as the history has it, a JSON list."""
    return orjson.dumps([] if where is None else [where]).decode()


@dataclass(frozen=True, slots=True)
class CommittedRewrite:
    """The outcome of a commit of some groups; `version` is None if no group was left.

    `snapshot` is the version that the commit was based on. `lost` are groups with a file that
    another writer removed or changed; their new files are deleted.
    """

    version: int | None
    snapshot: Snapshot
    done: tuple[Rewritten, ...]
    lost: tuple[FileGroup, ...]


def commit_rewrite(
    snapshot: Snapshot,
    plan: RewritePlan,
    rewritten: Sequence[Rewritten],
    operation: Operation,
) -> CommittedRewrite:
    """Replace the files of all groups that are still in the table, in one commit.

    `snapshot` is the version that the groups were planned on, or a later one.

    Raises CommitConflict if the table's schema, properties or features changed so that the new
    files may not fit (the caller deletes them), TableReplaced, CommitLost.
    """
    left, lost = list(rewritten), []
    while left:
        present = find_files(snapshot, [key for group, _ in left for key in group.keys])
        planned, left = left, []
        for group, done in planned:
            if present.keys() >= set(group.keys):
                left.append((group, done))
                continue
            _delete(snapshot, done)
            lost.append(group)
        if not left:
            break
        try:
            version = commit(snapshot, _changes(left, present, operation))
        except CommitConflict:
            newest = snapshot.refresh()
            check_same_table(snapshot, newest)
            if newest.version == snapshot.version or not fits(plan, newest):
                raise
            snapshot = newest
            continue
        return CommittedRewrite(version, snapshot, tuple(left), tuple(lost))
    return CommittedRewrite(None, snapshot, (), tuple(lost))


def fits(plan: RewritePlan, newest: Snapshot) -> bool:
    """Whether files of the plan may be added to this version of its table."""
    old = plan.table
    return (
        newest.metadata.id == old.metadata.id
        and without_comments(newest.schema) == without_comments(old.schema)
        and newest.partition_columns == old.partition_columns
        and newest.features == old.features
        and newest.metadata.configuration == old.metadata.configuration
    )


def find_files(snapshot: Snapshot, keys: Iterable[Key]) -> dict[Key, AddFile]:
    """Return the actions of those logical files that the version has, by key."""
    wanted = set(keys)
    files: Any = snapshot.files
    paths = arrow_array([path for path, _ in wanted], pa.string())
    found = files.filter(pc.is_in(files["path"], value_set=paths))
    adds = (add for add in adds_of(found) if add.key in wanted)
    return {add.key: add for add in adds}


def still_there(snapshot: Snapshot, groups: Sequence[FileGroup]) -> list[FileGroup]:
    """Return the groups all of whose files the version has."""
    present = find_files(snapshot, [key for group in groups for key in group.keys])
    return [group for group in groups if present.keys() >= set(group.keys)]


def _changes(
    rewritten: Sequence[Rewritten], present: Mapping[Key, AddFile], operation: Operation
) -> Changes:
    adds = tuple(add for _, done in rewritten for add in done.adds)
    removed = [present[key] for group, _ in rewritten for key in group.keys]
    return Changes(
        operation=operation.name,
        adds=adds,
        removes=removes_of(removed, data_change=False),
        evaluated=True,
        file_metrics=False,
        parameters=operation.parameters,
        metrics=_metrics(adds, removed),
        # As in Delta Spark's commits that change no data.
        provenance={"isolationLevel": "SnapshotIsolation"},
    )


def _metrics(adds: Sequence[AddFile], removed: Sequence[AddFile]) -> dict[str, str]:
    """Compute the metrics of Delta Spark's OPTIMIZE."""
    sizes = sorted(add.size for add in adds) or [0]
    old = sum(add.size for add in removed)
    vectors = sum(add.deletion_vector is not None for add in removed)
    found = {
        "numAddedFiles": len(adds),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": old,
        "numDeletionVectorsRemoved": vectors,
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
    }
    return {name: str(value) for name, value in found.items()}


def _delete(snapshot: Snapshot, done: RewrittenGroup) -> None:
    for add in done.adds:
        snapshot.store.delete(add.path)
