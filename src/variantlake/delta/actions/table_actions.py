"""The actions that speak of the whole table: protocol, metadata, progress, domains, provenance.

Also those that only V2 checkpoints hold. Spec: PROTOCOL, "Actions", "V2 Spec".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from variantlake.delta.actions.json_fields import Int, Json, Record, StringMap
from variantlake.errors import MalformedLog


@dataclass(frozen=True, slots=True)
class Protocol(Record):
    """What a client must implement. Feature lists are None where the versions have none."""

    KEY: ClassVar[str] = "protocol"
    min_reader_version: Int
    min_writer_version: Int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    def check(self) -> None:
        """Version 3 must list reader features, version 7 writer features."""
        if self.min_reader_version >= 3 and self.reader_features is None:
            raise MalformedLog("protocol of reader version 3 has no readerFeatures")
        if self.min_writer_version >= 7 and self.writer_features is None:
            raise MalformedLog("protocol of writer version 7 has no writerFeatures")


@dataclass(frozen=True, slots=True)
class Format(Record):
    """How the table's files are encoded."""

    ABSENT_MAPS: ClassVar[frozenset[str]] = frozenset({"options"})
    provider: str = "parquet"
    options: StringMap = field(default_factory=dict)

    def check(self) -> None:
        """Files of any format but Parquet are refused."""
        if self.provider != "parquet":
            raise MalformedLog(f"files of format {self.provider!r} are not Parquet")


@dataclass(frozen=True, slots=True)
class Metadata(Record):
    """The table's identity, schema and properties. `created_time` is in milliseconds."""

    KEY: ClassVar[str] = "metaData"
    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format: Format = field(default_factory=Format)


@dataclass(frozen=True, slots=True)
class Transaction(Record):
    """How far an application has come (`txn`)."""

    KEY: ClassVar[str] = "txn"
    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True, slots=True)
class DomainMetadata(Record):
    """The configuration of one metadata domain; `removed` is a tombstone."""

    KEY: ClassVar[str] = "domainMetadata"
    domain: str
    configuration: str
    removed: bool = False


def natural(text: str) -> int | None:
    """The number that a table property says; None for another text, and beyond 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Where a commit comes from: free-form JSON, of which a few fields are read when they fit."""

    KEY: ClassVar[str] = "commitInfo"
    fields: Mapping[str, Any]

    @property
    def txn_id(self) -> str | None:
        """The id by which a writer knows its own commit."""
        value = self.fields.get("txnId")
        return value if isinstance(value, str) else None

    @property
    def in_commit_timestamp(self) -> int | None:
        """Milliseconds since the epoch, rising with every commit, where the table keeps them."""
        value = self.fields.get("inCommitTimestamp")
        return value if type(value) is int else None

    @property
    def operation(self) -> str | None:
        """What was done: `WRITE`, `CREATE TABLE`."""
        value = self.fields.get("operation")
        return value if isinstance(value, str) else None

    @classmethod
    def from_json(cls, fields: Json) -> CommitInfo:
        """Any object will do."""
        return cls(fields)

    def to_json(self) -> Json:
        """The action's fields."""
        return dict(self.fields)


@dataclass(frozen=True, slots=True)
class Sidecar(Record):
    """A file of a V2 checkpoint with `add` and `remove` actions."""

    KEY: ClassVar[str] = "sidecar"
    path: str
    size_in_bytes: int
    modification_time: int
    tags: StringMap | None = None


@dataclass(frozen=True, slots=True)
class CheckpointMetadata(Record):
    """What makes a checkpoint one of the V2 spec."""

    KEY: ClassVar[str] = "checkpointMetadata"
    version: int
    tags: StringMap | None = None
