"""Conflicts between a commit that won a version and one that retries after it.

Spec: PROTOCOL requires serializable writes. The rules are those of Delta's reference conflict
checker, as far as our operations need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from variantlake.delta.actions.actions import (
    Action,
    AddCdcFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Transaction,
)
from variantlake.delta.actions.json_fields import StringMap
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.protocol.row_tracking import DOMAIN as ROW_TRACKING
from variantlake.errors import CommitConflict

LOAD_ID = "loadId"
"""Field of `commitInfo`: the id of a load whose caller gave none. See `ingest`."""

VACUUM_START = "VACUUM START"
"""The operation of the commit that a vacuum makes before it deletes the first file."""

Reads = Callable[[StringMap], bool]
"""Whether a change depends on a file, by the partition values of the file."""

Rebase = Callable[["Changes", Sequence[Action], int], tuple["Changes", Sequence[Action]]]
"""Takes a change, the winner's actions and version. Returns the change rebased on them, and those
of the actions to check it against. Raises CommitConflict."""


def whole_table(_partition_values: StringMap) -> bool:
    """Select all files: `Reads` of a change that depends on every row."""
    return True


@dataclass(frozen=True, slots=True)
class Changes:
    """The content of a commit. `reads` selects the files that it depends on; None means none.

    An append that reads no row is blind, and conflicts with no other change of data.
    `serializable`: it conflicts with blind appends to what it read at any isolation level of the
    table. `operation`, `parameters` and `metrics` describe it in the history, together with file
    counts and sizes if `file_metrics` is true. `evaluated`: the rows of its files have gone through
    the table's SQL expressions. `kept`: these rows were in the table before. `numbered`: they have
    the numbers of identity columns. `rebased` rebases it on a commit that won. `keeps_row_ids` is
    false if a row gets another row id than it had. `revives`: it restores or keeps files that a
    vacuum may be deleting. `provenance` holds fields of `commitInfo` that override derived ones.
    """

    operation: str
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    change_files: tuple[AddCdcFile, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    transactions: tuple[Transaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    reads: Reads | None = None
    serializable: bool = False
    evaluated: bool = False
    kept: bool = False
    numbered: bool = False
    rebased: Rebase | None = None
    file_metrics: bool = True
    keeps_row_ids: bool = True
    revives: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def blind_append(self) -> bool:
        """Whether it only adds new files, without reading the table.

        As in Delta Spark, also true for a commit of metadata alone.
        """
        new = all(add.data_change for add in self.adds)
        return new and not self.removes and self.reads is None


def check_conflicts(
    changes: Changes, winner: Iterable[Action], version: int, *, write_serializable: bool = False
) -> None:
    """Raise CommitConflict when the commit that won `version` conflicts with `changes`.

    `write_serializable`: the table has that isolation level, so `changes` need not have read the
    rows of a blind append.
    """
    # Existing files whose statistics, tags or other fields change.
    again = {decode_path(action.path) for action in changes.adds if not action.data_change}
    touched = again | {decode_path(action.path) for action in changes.removes}
    applications = {action.app_id for action in changes.transactions}
    domains = {action.domain for action in changes.domains} - {ROW_TRACKING}
    actions = list(winner)
    tolerated = write_serializable and _is_blind(actions)
    for action in actions:
        match action:
            case Protocol():
                raise _conflict(version, "changed the protocol of the table")
            case Metadata():
                raise _conflict(version, "changed the schema or the properties of the table")
            case Transaction() if action.app_id in applications:
                raise _conflict(version, f"recorded progress of application {action.app_id!r}")
            case CommitInfo() if action.fields.get(LOAD_ID) in applications:
                raise _conflict(version, "is this load, whose repeat this one is")
            case CommitInfo() if changes.revives and action.fields.get("operation") == VACUUM_START:
                raise _conflict(version, "started to vacuum files that this one needs")
            case DomainMetadata() if action.domain in domains:
                raise _conflict(version, f"changed the metadata domain {action.domain!r}")
            case RemoveFile() if decode_path(action.path) in touched:
                raise _conflict(version, f"removed file {action.path!r}, which this one touches")
            case AddFile() if decode_path(action.path) in again:
                raise _conflict(version, f"added file {action.path!r}, which this one touches")
            case RemoveFile() if action.data_change and _read(changes, action):
                raise _conflict(version, f"removed file {action.path!r}, which was read")
            case AddFile() if action.data_change and not tolerated and _read(changes, action):
                raise _conflict(version, f"added file {action.path!r}, which was not read")


def _read(changes: Changes, action: AddFile | RemoveFile) -> bool:
    """Whether a change depends on a file; True if the file's partition values are unknown."""
    if changes.reads is None:
        return False
    return action.partition_values is None or changes.reads(action.partition_values)


def _is_blind(actions: Iterable[Action]) -> bool:
    infos = [action for action in actions if isinstance(action, CommitInfo)]
    return any(info.fields.get("isBlindAppend") is True for info in infos)


def _conflict(version: int, what: str) -> CommitConflict:
    return CommitConflict(
        f"another writer committed version {version} first and {what}",
        hint="nothing was committed; open the table again and repeat",
    )
