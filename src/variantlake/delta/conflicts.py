"""When a commit that came first contradicts one that still wants in.

Spec: PROTOCOL asks for serializable writes; the rules are those of Delta's reference conflict
checker, as far as our operations need them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from variantlake.delta.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Transaction,
)
from variantlake.errors import CommitConflict


@dataclass(frozen=True, slots=True)
class Changes:
    """What a commit does. `reads_table` is true where its content depends on the table's rows.

    An append that looks at no row is blind, and conflicts with no other change of data.
    `operation`, `parameters` and `metrics` describe it in the history.
    """

    operation: str
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    transactions: tuple[Transaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    reads_table: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)

    @property
    def blind_append(self) -> bool:
        """Only adds, decided without reading the table."""
        other = self.removes or self.metadata or self.protocol
        return bool(self.adds) and not other and not self.reads_table


def check_conflicts(changes: Changes, winner: Iterable[Action], version: int) -> None:
    """Raise CommitConflict when the commit that won `version` contradicts `changes`."""
    removed = {action.path for action in changes.removes}
    applications = {action.app_id for action in changes.transactions}
    domains = {action.domain for action in changes.domains}
    for action in winner:
        match action:
            case Protocol():
                raise _conflict(version, "changed the protocol of the table")
            case Metadata():
                raise _conflict(version, "changed the schema or the properties of the table")
            case Transaction() if action.app_id in applications:
                raise _conflict(version, f"recorded progress of application {action.app_id!r}")
            case DomainMetadata() if action.domain in domains:
                raise _conflict(version, f"changed the metadata domain {action.domain!r}")
            case RemoveFile() if action.path in removed:
                raise _conflict(version, f"removed file {action.path!r}, which this one removes")
            case RemoveFile() if changes.reads_table and action.data_change:
                raise _conflict(version, f"removed file {action.path!r}, which was read")
            case AddFile() if changes.reads_table and action.data_change:
                raise _conflict(version, f"added file {action.path!r}, which was not read")


def _conflict(version: int, what: str) -> CommitConflict:
    return CommitConflict(
        f"another writer committed version {version} first and {what}",
        hint="nothing was committed; open the table again and repeat",
    )
