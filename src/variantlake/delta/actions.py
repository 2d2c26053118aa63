"""The actions of a Delta log as records: strict on what the protocol names, blind to the rest.

Unknown actions and unknown fields are ignored, as the protocol asks ("Protocol Evolution"); a known
field of a wrong type is a MalformedLog. Records are named and spelled as in the protocol, in snake
case. Spec: PROTOCOL, "Actions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import orjson

from variantlake.errors import LimitExceeded, MalformedLog

MAX_LINE_BYTES = 64 << 20
"""Our limit on one line of a log file (one action with its statistics)."""

StringMap = Mapping[str, str | None]
Json = dict[str, Any]


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
        reader = _int(fields, "minReaderVersion")
        writer = _int(fields, "minWriterVersion")
        reader_features = _strings(fields, "readerFeatures")
        writer_features = _strings(fields, "writerFeatures")
        if reader >= 3 and reader_features is None:
            raise MalformedLog("protocol of reader version 3 has no readerFeatures")
        if writer >= 7 and writer_features is None:
            raise MalformedLog("protocol of writer version 7 has no writerFeatures")
        return cls(reader, writer, reader_features, writer_features)

    def to_json(self) -> Json:
        """The action's fields."""
        return _present(
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
        configuration = _map(fields, "configuration", required=True)
        return cls(
            id=_text(fields, "id"),
            schema_string=_text(fields, "schemaString"),
            partition_columns=_strings(fields, "partitionColumns", required=True) or (),
            configuration={key: value for key, value in configuration.items() if value is not None},
            name=_optional_text(fields, "name"),
            description=_optional_text(fields, "description"),
            created_time=_optional_int(fields, "createdTime"),
            format_options=_map(file_format, "options"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        return _present(
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
        storage_type = _text(fields, "storageType")
        if storage_type not in ("u", "i", "p"):
            raise MalformedLog(f"deletion vector of unknown storage type {storage_type!r}")
        return cls(
            storage_type=storage_type,
            path_or_inline_dv=_text(fields, "pathOrInlineDv"),
            size_in_bytes=_int(fields, "sizeInBytes"),
            cardinality=_int(fields, "cardinality"),
            offset=_optional_int(fields, "offset"),
        )

    def to_json(self) -> Json:
        """The descriptor's fields."""
        return _present(
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
        size = _int(fields, "size")
        if size < 0:
            raise MalformedLog(f"file size {size} is negative")
        return cls(
            _text(fields, "path"),
            size,
            _int(fields, "modificationTime"),
            _map(fields, "partitionValues", required=True),
            _bool(fields, "dataChange"),
            _optional_text(fields, "stats"),
            _optional_map(fields, "tags"),
            _deletion_vector(fields),
            _optional_int(fields, "baseRowId"),
            _optional_int(fields, "defaultRowCommitVersion"),
            _optional_text(fields, "clusteringProvider"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        vector = self.deletion_vector
        return _present(
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
            path=_text(fields, "path"),
            deletion_timestamp=_optional_int(fields, "deletionTimestamp"),
            data_change=_bool(fields, "dataChange"),
            extended_file_metadata=_optional_bool(fields, "extendedFileMetadata"),
            partition_values=_optional_map(fields, "partitionValues"),
            size=_optional_int(fields, "size"),
            stats=_optional_text(fields, "stats"),
            tags=_optional_map(fields, "tags"),
            deletion_vector=_deletion_vector(fields),
            base_row_id=_optional_int(fields, "baseRowId"),
            default_row_commit_version=_optional_int(fields, "defaultRowCommitVersion"),
        )

    def to_json(self) -> Json:
        """The action's fields."""
        vector = self.deletion_vector
        return _present(
            path=self.path,
            deletionTimestamp=self.deletion_timestamp,
            dataChange=self.data_change,
            extendedFileMetadata=self.extended_file_metadata,
            partitionValues=_plain(self.partition_values),
            size=self.size,
            stats=self.stats,
            tags=_plain(self.tags),
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
            path=_text(fields, "path"),
            size=_int(fields, "size"),
            partition_values=_map(fields, "partitionValues"),
            tags=_optional_map(fields, "tags"),
        )

    def to_json(self) -> Json:
        """The action's fields; the protocol fixes `dataChange` to false."""
        return _present(
            path=self.path,
            partitionValues=dict(self.partition_values),
            size=self.size,
            dataChange=False,
            tags=_plain(self.tags),
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
            _text(fields, "appId"), _int(fields, "version"), _optional_int(fields, "lastUpdated")
        )

    def to_json(self) -> Json:
        """The action's fields."""
        return _present(appId=self.app_id, version=self.version, lastUpdated=self.last_updated)


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
            _text(fields, "domain"), _text(fields, "configuration"), _bool(fields, "removed")
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


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A file of a V2 checkpoint with `add` and `remove` actions."""

    KEY: ClassVar[str] = "sidecar"
    path: str
    size_in_bytes: int
    modification_time: int

    @classmethod
    def from_json(cls, fields: Json) -> Sidecar:
        """Parse a `sidecar`."""
        return cls(
            _text(fields, "path"), _int(fields, "sizeInBytes"), _int(fields, "modificationTime")
        )

    def to_json(self) -> Json:
        """The action's fields."""
        return {
            "path": self.path,
            "sizeInBytes": self.size_in_bytes,
            "modificationTime": self.modification_time,
        }


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """What makes a checkpoint one of the V2 spec."""

    KEY: ClassVar[str] = "checkpointMetadata"
    version: int
    tags: StringMap | None = None

    @classmethod
    def from_json(cls, fields: Json) -> CheckpointMetadata:
        """Parse a `checkpointMetadata`."""
        return cls(_int(fields, "version"), _optional_map(fields, "tags"))

    def to_json(self) -> Json:
        """The action's fields."""
        return _present(version=self.version, tags=_plain(self.tags))


Action = (
    Protocol
    | Metadata
    | AddFile
    | RemoveFile
    | AddCdcFile
    | Transaction
    | DomainMetadata
    | CommitInfo
    | Sidecar
    | CheckpointMetadata
)

_ACTIONS: dict[str, type[Action]] = {
    kind.KEY: kind
    for kind in (
        Protocol,
        Metadata,
        AddFile,
        RemoveFile,
        AddCdcFile,
        Transaction,
        DomainMetadata,
        CommitInfo,
        Sidecar,
        CheckpointMetadata,
    )
}


def parse_action(line: bytes) -> Action | None:
    """Parse one line of a log file; None for an action that this version does not know.

    Raises MalformedLog for text that is not one JSON object with one action, and for known fields
    of wrong types.
    """
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise MalformedLog(f"not JSON: {error}", hint="was the file cut?") from error
    if not isinstance(document, dict):
        raise MalformedLog("an action must be a JSON object")
    found: Action | None = None
    for key, fields in document.items():
        kind = _ACTIONS.get(key)
        if kind is None or fields is None:
            continue
        if not isinstance(fields, dict):
            raise MalformedLog(f"{key} is not an object")
        if found is not None:
            raise MalformedLog(f"two actions on one line: {found.KEY} and {key}")
        try:
            found = kind.from_json(fields)
        except MalformedLog as error:
            error.message = f"{key}: {error.message}"
            raise
    return found


def parse_log(pieces: Iterable[bytes], file: str) -> Iterator[Action]:
    """The actions of a log file, given in pieces of any size.

    Raises MalformedLog and LimitExceeded naming `file` and the line.
    """
    for number, line in enumerate(_lines(pieces, file), start=1):
        if not line or line.isspace():
            continue
        try:
            action = parse_action(line)
        except MalformedLog as error:
            error.file, error.line = file, number
            raise
        if action is not None:
            yield action


def serialise(actions: Iterable[Action]) -> bytes:
    """A log file: one action to a line."""
    return b"".join(
        orjson.dumps({action.KEY: action.to_json()}, option=orjson.OPT_APPEND_NEWLINE)
        for action in actions
    )


def _lines(pieces: Iterable[bytes], file: str) -> Iterator[bytes]:
    rest: list[bytes] = []
    held = number = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        held += len(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            number += len(others)
            rest, held = [others[-1]], len(others[-1])
        if held > MAX_LINE_BYTES:
            raise LimitExceeded(
                f"a line of the log is longer than {MAX_LINE_BYTES} bytes",
                file=file,
                line=number + 1,
            )
    yield b"".join(rest)


def _present(**fields: Any) -> Json:
    """The fields that have a value: the protocol leaves the others out."""
    return {key: value for key, value in fields.items() if value is not None}


def _plain(mapping: StringMap | None) -> dict[str, str | None] | None:
    return None if mapping is None else dict(mapping)


def _wrong(key: str, wanted: str, value: object) -> MalformedLog:
    if value is None:
        return MalformedLog(f"{key} is missing")
    return MalformedLog(f"{key} is {type(value).__name__}, expected {wanted}")


def _text(fields: Json, key: str) -> str:
    value = fields.get(key)
    if type(value) is not str:
        raise _wrong(key, "a string", value)
    return value


def _optional_text(fields: Json, key: str) -> str | None:
    return None if fields.get(key) is None else _text(fields, key)


def _int(fields: Json, key: str) -> int:
    value = fields.get(key)
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise _wrong(key, "an integer of 64 bits", value)
    return value


def _optional_int(fields: Json, key: str) -> int | None:
    return None if fields.get(key) is None else _int(fields, key)


def _bool(fields: Json, key: str) -> bool:
    value = fields.get(key)
    if type(value) is not bool:
        raise _wrong(key, "a boolean", value)
    return value


def _optional_bool(fields: Json, key: str) -> bool | None:
    return None if fields.get(key) is None else _bool(fields, key)


def _map(fields: Json, key: str, *, required: bool = False) -> StringMap:
    value = fields.get(key)
    if value is None and not required:
        return {}
    if type(value) is not dict:
        raise _wrong(key, "an object", value)
    for item in value.values():
        if item is not None and type(item) is not str:
            raise _wrong(f"a value in {key}", "a string", item)
    return value


def _optional_map(fields: Json, key: str) -> StringMap | None:
    return None if fields.get(key) is None else _map(fields, key)


def _strings(fields: Json, key: str, *, required: bool = False) -> tuple[str, ...] | None:
    value = fields.get(key)
    if value is None and not required:
        return None
    if type(value) is not list or any(type(item) is not str for item in value):
        raise _wrong(key, "a list of strings", value)
    return tuple(value)


def _deletion_vector(fields: Json) -> DeletionVectorDescriptor | None:
    value = fields.get("deletionVector")
    if value is None:
        return None
    if type(value) is not dict:
        raise _wrong("deletionVector", "an object", value)
    return DeletionVectorDescriptor.from_json(value)
