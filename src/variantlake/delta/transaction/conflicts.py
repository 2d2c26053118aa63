"""When a commit that came first contradicts one that still wants in.

Spec: PROTOCOL asks for serializable writes; the rules are those of Delta's reference conflict
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
from variantlake.delta.log.file_paths import decode_path
from variantlake.delta.protocol.row_tracking import DOMAIN as ROW_TRACKING
from variantlake.errors import CommitConflict

LOAD_ID = "loadId"
"""Of `commitInfo`: the id of a load that has none from its caller. See `ingest`."""

VACUUM_START = "VACUUM START"
"""The operation of the commit before the first file of a vacuum goes."""

Reads = Callable[[StringMap], bool]
"""Which files a change depends on, by their partition values."""

Rebase = Callable[["Changes", Sequence[Action], int], tuple["Changes", Sequence[Action]]]
"""A change, the actions that won, their version: the change after them, and which of them still
have to be held against it. Raises CommitConflict."""


def whole_table(_partition_values: StringMap) -> bool:
    """`Reads` of a change that depends on every row."""
    return True


@dataclass(frozen=True, slots=True)
class Changes:
    """What a commit does. `reads` tells which files its content depends on, None for none.

    An append that looks at no row is blind, and conflicts with no other change of data.
    `serializable` holds it against the appends of others whatever the table's isolation level is.
    `operation`, `parameters` and `metrics` describe it in the history, with the numbers of files
    if `file_metrics` are asked for. `evaluated` says that the rows of its files have gone
    through the table's SQL expressions, `kept` that they were in the table before, `numbered` that
    they have the numbers of identity columns. `rebased` puts
    it on the ground of a commit that came first. `keeps_row_ids` is false if a row gets another
    row id than it had. `revives` says that files come back, or are kept, which a vacuum may be
    removing. `provenance` are fields of `commitInfo` in the place of those that follow from the
    rest.
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
        """No file but new ones, decided without reading the table.

        As Delta Spark has it, so is a commit of metadata alone.
        """
        new = all(add.data_change for add in self.adds)
        return new and not self.removes and self.reads is None


def check_conflicts(
    changes: Changes, winner: Iterable[Action], version: int, *, write_serializable: bool = False
) -> None:
    """Raise CommitConflict when the commit that won `version` contradicts `changes`.

    `write_serializable` is true for tables of that isolation level: what was read need not have
    included the rows of a blind append.
    """
    # Files that are in the table already, and get other words about them.
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
    """Whether a change depends on a file; on one without its partition values it may."""
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
