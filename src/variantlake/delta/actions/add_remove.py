"""The actions that speak of one file: added, removed, of the change data feed.

Spec: PROTOCOL, "Add File and Remove File", "Add CDC File", "Deletion Vectors".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from variantlake.delta.actions.json_fields import Int, Json, Record, StringMap
from variantlake.errors import MalformedLog


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor(Record):
    """Where the deleted rows of a file are listed. Spec: "Deletion Vector Descriptor Schema"."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: Int
    cardinality: int
    offset: Int | None = None

    @property
    def unique_id(self) -> str:
        """What tells two vectors of one file apart."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"

    def check(self) -> None:
        """See Record."""
        if self.storage_type not in ("u", "i", "p"):
            raise MalformedLog(f"deletion vector of unknown storage type {self.storage_type!r}")


class _LogicalFile(Record):
    """An action of a logical file: a data file with its deletion vector."""

    __slots__ = ()
    path: str
    deletion_vector: DeletionVectorDescriptor | None

    @property
    def key(self) -> tuple[str, str | None]:
        """What identifies the logical file in reconciliation, `path` as it stands."""
        vector = self.deletion_vector
        return (self.path, None if vector is None else vector.unique_id)


@dataclass(frozen=True, slots=True)
class AddFile(_LogicalFile):
    """A logical file of the table.

    `path` stands as in the log: a URI, percent-encoded, relative to the table's root or absolute
    (`location` of a snapshot decodes it). `partition_values` and the columns in `stats` (JSON text)
    go by physical names. `modification_time` is in milliseconds since the epoch.
    """

    KEY: ClassVar[str] = "add"
    path: str
    size: int
    modification_time: int
    partition_values: StringMap = field(default_factory=dict)
    data_change: bool = True
    stats: str | None = None
    tags: StringMap | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    def check(self) -> None:
        """See Record."""
        if self.size < 0:
            raise MalformedLog(f"file size {self.size} is negative")


@dataclass(frozen=True, slots=True)
class RemoveFile(_LogicalFile):
    """A tombstone. Fields as in AddFile; `deletion_timestamp` in milliseconds since the epoch."""

    KEY: ClassVar[str] = "remove"
    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: StringMap | None = None
    size: int | None = None
    stats: str | None = None
    tags: StringMap | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True, slots=True)
class AddCdcFile(Record):
    """A change data file."""

    KEY: ClassVar[str] = "cdc"
    ABSENT_MAPS: ClassVar[frozenset[str]] = frozenset({"partition_values"})
    path: str
    size: int
    partition_values: StringMap = field(default_factory=dict)
    tags: StringMap | None = None

    def to_json(self) -> Json:
        """The action's fields; the protocol fixes `dataChange` to false."""
        return {**Record.to_json(self), "dataChange": False}
