"""The actions that speak of one file: added, removed, of the change data feed.

Spec: PROTOCOL, "Add File and Remove File", "Add CDC File", "Deletion Vectors".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from variantlake.delta.fields import (
    Json,
    StringMap,
    boolean,
    integer,
    optional_boolean,
    optional_integer,
    optional_map,
    optional_text,
    plain,
    present,
    string_map,
    text,
    wrong,
)
from variantlake.errors import MalformedLog


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """Where the deleted rows of a file are listed. Spec: "Deletion Vector Descriptor Schema"."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """What tells two vectors of one file apart."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"

    @classmethod
    def from_json(cls, fields: Json) -> DeletionVectorDescriptor:
        """Parse a descriptor."""
        storage_type = text(fields, "storageType")
        if storage_type not in ("u", "i", "p"):
            raise MalformedLog(f"deletion vector of unknown storage type {storage_type!r}")
        return cls(
            storage_type=storage_type,
            path_or_inline_dv=text(fields, "pathOrInlineDv"),
            size_in_bytes=integer(fields, "sizeInBytes", bits=32),
            cardinality=integer(fields, "cardinality"),
            offset=None if fields.get("offset") is None else integer(fields, "offset", bits=32),
        )

    def to_json(self) -> Json:
        """The descriptor's fields."""
        return present(
            storageType=self.storage_type,
            pathOrInlineDv=self.path_or_inline_dv,
            offset=self.offset,
            sizeInBytes=self.size_in_bytes,
            cardinality=self.cardinality,
        )


@dataclass(frozen=True, slots=True)
class AddFile:
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

    @property
    def key(self) -> tuple[str, str | None]:
        """What identifies the logical file in reconciliation, `path` as it stands."""
        vector = self.deletion_vector
        return (self.path, None if vector is None else vector.unique_id)

    @classmethod
    def from_json(cls, fields: Json) -> AddFile:
        """Parse an `add`."""
        size = integer(fields, "size")
        if size < 0:
            raise MalformedLog(f"file size {size} is negative")
        return cls(
            text(fields, "path"),
            size,
            integer(fields, "modificationTime"),
            string_map(fields, "partitionValues", required=True),
            boolean(fields, "dataChange"),
            optional_text(fields, "stats"),
            optional_map(fields, "tags"),
            _deletion_vector(fields),
            optional_integer(fields, "baseRowId"),
            optional_integer(fields, "defaultRowCommitVersion"),
            optional_text(fields, "clusteringProvider"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        vector = self.deletion_vector
        return present(
            path=self.path,
            partitionValues=dict(self.partition_values),
            size=self.size,
            modificationTime=self.modification_time,
            dataChange=self.data_change,
            stats=self.stats,
            tags=None if self.tags is None else dict(self.tags),
            deletionVector=None if vector is None else vector.to_json(),
            baseRowId=self.base_row_id,
            defaultRowCommitVersion=self.default_row_commit_version,
            clusteringProvider=self.clustering_provider,
        )


@dataclass(frozen=True, slots=True)
class RemoveFile:
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

    @property
    def key(self) -> tuple[str, str | None]:
        """What identifies the logical file in reconciliation, `path` as it stands."""
        vector = self.deletion_vector
        return (self.path, None if vector is None else vector.unique_id)

    @classmethod
    def from_json(cls, fields: Json) -> RemoveFile:
        """Parse a `remove`."""
        return cls(
            path=text(fields, "path"),
            deletion_timestamp=optional_integer(fields, "deletionTimestamp"),
            data_change=boolean(fields, "dataChange"),
            extended_file_metadata=optional_boolean(fields, "extendedFileMetadata"),
            partition_values=optional_map(fields, "partitionValues"),
            size=optional_integer(fields, "size"),
            stats=optional_text(fields, "stats"),
            tags=optional_map(fields, "tags"),
            deletion_vector=_deletion_vector(fields),
            base_row_id=optional_integer(fields, "baseRowId"),
            default_row_commit_version=optional_integer(fields, "defaultRowCommitVersion"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        vector = self.deletion_vector
        return present(
            path=self.path,
            deletionTimestamp=self.deletion_timestamp,
            dataChange=self.data_change,
            extendedFileMetadata=self.extended_file_metadata,
            partitionValues=plain(self.partition_values),
            size=self.size,
            stats=self.stats,
            tags=plain(self.tags),
            deletionVector=None if vector is None else vector.to_json(),
            baseRowId=self.base_row_id,
            defaultRowCommitVersion=self.default_row_commit_version,
        )


@dataclass(frozen=True, slots=True)
class AddCdcFile:
    """A change data file."""

    KEY: ClassVar[str] = "cdc"
    path: str
    size: int
    partition_values: StringMap = field(default_factory=dict)
    tags: StringMap | None = None

    @classmethod
    def from_json(cls, fields: Json) -> AddCdcFile:
        """Parse a `cdc`."""
        return cls(
            path=text(fields, "path"),
            size=integer(fields, "size"),
            partition_values=string_map(fields, "partitionValues"),
            tags=optional_map(fields, "tags"),
        )

    def to_json(self) -> Json:
        """The action's fields; the protocol fixes `dataChange` to false."""
        return present(
            path=self.path,
            partitionValues=dict(self.partition_values),
            size=self.size,
            dataChange=False,
            tags=plain(self.tags),
        )


def _deletion_vector(fields: Json) -> DeletionVectorDescriptor | None:
    value = fields.get("deletionVector")
    if value is None:
        return None
    if type(value) is not dict:
        raise wrong("deletionVector", "an object", value)
    return DeletionVectorDescriptor.from_json(value)
