"""The actions that speak of the whole table: protocol, metadata, progress, domains, provenance.

Spec: PROTOCOL, "Actions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from variantlake.delta.fields import (
    Json,
    StringMap,
    boolean,
    integer,
    optional_integer,
    optional_text,
    present,
    string_map,
    strings,
    text,
)
from variantlake.errors import MalformedLog


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a client must implement. Feature lists are None where the versions have none."""

    KEY: ClassVar[str] = "protocol"
    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, fields: Json) -> Protocol:
        """Parse; version 3 must list reader features, version 7 writer features."""
        reader = integer(fields, "minReaderVersion")
        writer = integer(fields, "minWriterVersion")
        reader_features = strings(fields, "readerFeatures")
        writer_features = strings(fields, "writerFeatures")
        if reader >= 3 and reader_features is None:
            raise MalformedLog("protocol of reader version 3 has no readerFeatures")
        if writer >= 7 and writer_features is None:
            raise MalformedLog("protocol of writer version 7 has no writerFeatures")
        return cls(reader, writer, reader_features, writer_features)

    def to_json(self) -> Json:
        """The action's fields."""
        return present(
            minReaderVersion=self.min_reader_version,
            minWriterVersion=self.min_writer_version,
            readerFeatures=self.reader_features,
            writerFeatures=self.writer_features,
        )


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table's identity, schema and properties. `created_time` is in milliseconds."""

    KEY: ClassVar[str] = "metaData"
    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format_options: StringMap = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: Json) -> Metadata:
        """Parse; files of any format but Parquet are refused."""
        file_format = fields.get("format")
        if not isinstance(file_format, dict):
            raise MalformedLog("metaData.format is not an object")
        if file_format.get("provider") != "parquet":
            raise MalformedLog(f"files of format {file_format.get('provider')!r} are not Parquet")
        configuration = string_map(fields, "configuration", required=True)
        return cls(
            id=text(fields, "id"),
            schema_string=text(fields, "schemaString"),
            partition_columns=strings(fields, "partitionColumns", required=True) or (),
            configuration={key: value for key, value in configuration.items() if value is not None},
            name=optional_text(fields, "name"),
            description=optional_text(fields, "description"),
            created_time=optional_integer(fields, "createdTime"),
            format_options=string_map(file_format, "options"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        return present(
            id=self.id,
            name=self.name,
            description=self.description,
            format={"provider": "parquet", "options": dict(self.format_options)},
            schemaString=self.schema_string,
            partitionColumns=self.partition_columns,
            configuration=dict(self.configuration),
            createdTime=self.created_time,
        )


@dataclass(frozen=True, slots=True)
class Transaction:
    """How far an application has come (`txn`)."""

    KEY: ClassVar[str] = "txn"
    app_id: str
    version: int
    last_updated: int | None = None

    @classmethod
    def from_json(cls, fields: Json) -> Transaction:
        """Parse a `txn`."""
        return cls(
            text(fields, "appId"),
            integer(fields, "version"),
            optional_integer(fields, "lastUpdated"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        return present(appId=self.app_id, version=self.version, lastUpdated=self.last_updated)


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """The configuration of one metadata domain; `removed` is a tombstone."""

    KEY: ClassVar[str] = "domainMetadata"
    domain: str
    configuration: str
    removed: bool = False

    @classmethod
    def from_json(cls, fields: Json) -> DomainMetadata:
        """Parse a `domainMetadata`."""
        return cls(
            text(fields, "domain"), text(fields, "configuration"), boolean(fields, "removed")
        )

    def to_json(self) -> Json:
        """The action's fields."""
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}


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
    def timestamp(self) -> int | None:
        """Milliseconds since the epoch by the writer's clock."""
        return self._integer("timestamp")

    @property
    def in_commit_timestamp(self) -> int | None:
        """Milliseconds since the epoch, rising with every commit, where the table keeps them."""
        return self._integer("inCommitTimestamp")

    @property
    def operation(self) -> str | None:
        """What was done: `WRITE`, `CREATE TABLE`."""
        value = self.fields.get("operation")
        return value if isinstance(value, str) else None

    def _integer(self, key: str) -> int | None:
        value = self.fields.get(key)
        return value if type(value) is int else None

    @classmethod
    def from_json(cls, fields: Json) -> CommitInfo:
        """Any object will do."""
        return cls(fields)

    def to_json(self) -> Json:
        """The action's fields."""
        return dict(self.fields)
