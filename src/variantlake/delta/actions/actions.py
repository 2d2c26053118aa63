"""The actions of a Delta log and its lines: strict on what the protocol names, blind to the rest.

Actions have the protocol's names, in snake case. The parser keeps only the name of an unknown
action and ignores unknown fields, as the protocol requires ("Protocol Evolution"). It raises
MalformedLog for a known field of a wrong type. Spec: PROTOCOL, "Actions", "Deletion Vectors",
"V2 Spec".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, get_args

import orjson

from variantlake.delta.actions.json_fields import Int, Json, Record, StringMap
from variantlake.errors import LimitExceeded, MalformedLog


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
        """An id that differs between two vectors of one file (`deletionVector.uniqueId`)."""
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
        """The key of the logical file in reconciliation, with `path` as in the log."""
        vector = self.deletion_vector
        return (self.path, None if vector is None else vector.unique_id)


@dataclass(frozen=True, slots=True)
class AddFile(_LogicalFile):
    """A logical file of the table.

    `path` is as in the log: a URI, percent-encoded, relative to the table's root or absolute
    (`Snapshot.location` decodes it). `partition_values` and the columns in `stats` (JSON text)
    use physical names. `modification_time` is in milliseconds since the epoch.
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

    @property
    def num_records(self) -> int | None:
        """The number of rows, deleted ones included; None if the statistics lack it."""
        try:
            document = orjson.loads(self.stats or "{}")
        except orjson.JSONDecodeError:
            return None
        count = document.get("numRecords") if isinstance(document, dict) else None
        return count if type(count) is int and count >= 0 else None


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
        """Return the action's fields; the protocol fixes `dataChange` to false."""
        return {**Record.to_json(self), "dataChange": False}


@dataclass(frozen=True, slots=True)
class Protocol(Record):
    """The features that a client must implement. A list is None if the log has none."""

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
class FileFormat(Record):
    """How the table's files are encoded."""

    ABSENT_MAPS: ClassVar[frozenset[str]] = frozenset({"options"})
    provider: str = "parquet"
    options: StringMap = field(default_factory=dict)

    def check(self) -> None:
        """Files of any format but Parquet are refused."""
        if self.provider != "parquet":
            raise MalformedLog(f"files of format {self.provider!r} are not Parquet")


NO_COLUMNS = '{"type":"struct","fields":[]}'
"""The schema of a table without columns."""


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
    format: FileFormat = field(default_factory=FileFormat)

    @classmethod
    def from_json(cls, fields: Json) -> Self:
        """Parse the fields. A table whose schema is not set yet has no columns, as in Spark."""
        if fields.get("schemaString") is None:
            fields = {**fields, "schemaString": NO_COLUMNS}
        return super(Metadata, cls).from_json(fields)


@dataclass(frozen=True, slots=True)
class Transaction(Record):
    """The latest version that an application has recorded (`txn`)."""

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
    """Return the natural number in a table property; None for other text or more than 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The provenance of a commit: free-form JSON, of which the properties read a few fields."""

    KEY: ClassVar[str] = "commitInfo"
    fields: Mapping[str, Any]

    @property
    def txn_id(self) -> str | None:
        """The id with which a writer recognizes its commit."""
        value = self.fields.get("txnId")
        return value if isinstance(value, str) else None

    @property
    def in_commit_timestamp(self) -> int | None:
        """Milliseconds since the epoch, rising with every commit, if the table keeps them."""
        value = self.fields.get("inCommitTimestamp")
        return value if type(value) is int else None

    @property
    def operation(self) -> str | None:
        """The operation, such as `WRITE` or `CREATE TABLE`."""
        value = self.fields.get("operation")
        return value if isinstance(value, str) else None

    @classmethod
    def from_json(cls, fields: Json) -> CommitInfo:
        """Accepts any JSON object."""
        return cls(fields)

    def to_json(self) -> Json:
        """Return the action's fields."""
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
    """The action that marks a checkpoint of the V2 spec."""

    KEY: ClassVar[str] = "checkpointMetadata"
    version: int
    tags: StringMap | None = None


@dataclass(frozen=True, slots=True)
class UnknownAction(Record):
    """The name of an action that this version does not know.

    Readers ignore it (PROTOCOL, "Protocol Evolution"). We write no checkpoint of a log that has it,
    because the checkpoint would lose its content.
    """

    KEY: ClassVar[str] = ""
    name: str


MAX_LINE_BYTES = 64 << 20
"""Our limit on one line of a log file (one action with its statistics)."""

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
    | UnknownAction
)

ACTIONS: dict[str, type[Action]] = {
    kind.KEY: kind for kind in get_args(Action) if kind is not UnknownAction
}
"""The kinds of actions that this version knows, by their names in the log."""

FEW = (Protocol, Metadata, Transaction, DomainMetadata, CheckpointMetadata, Sidecar)
"""The kinds of actions whose number does not grow with the files of the table."""


def parse_action(line: bytes) -> Action | None:
    """Parse one line of a log file; None for an object without any action.

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
    unknown: UnknownAction | None = None
    for key, fields in document.items():
        kind = ACTIONS.get(key)
        if fields is None:
            continue
        if kind is None:
            unknown = unknown or UnknownAction(key)
            continue
        if not isinstance(fields, dict):
            raise MalformedLog(f"{key} is not an object")
        if found is not None:
            raise MalformedLog(f"two actions on one line: {found.KEY} and {key}")
        try:
            found = kind.from_json(fields)
        except MalformedLog as error:
            error.say_first(key)
            raise
    return found or unknown


def parse_log(pieces: Iterable[bytes], file: str) -> Iterator[Action]:
    """Yield the actions of a log file, given in pieces of any size.

    Raises MalformedLog and LimitExceeded naming `file` and the line.
    """
    for number, line in enumerate(_lines(pieces, file), start=1):
        if not line or line.isspace():
            continue
        action = parse_line(line, file, number)
        if action is not None:
            yield action


def parse_line(line: bytes, file: str, number: int) -> Action | None:
    """Like `parse_action`, but its errors name the file and the line, counted from 1."""
    if len(line) > MAX_LINE_BYTES:
        raise _too_long(file, number)
    try:
        return parse_action(line)
    except MalformedLog as error:
        error.file, error.line = file, number
        raise


def serialise(actions: Iterable[Action]) -> bytes:
    """Return the bytes of a log file: one action per line."""
    return b"".join(
        orjson.dumps({action.KEY: action.to_json()}, option=orjson.OPT_APPEND_NEWLINE)
        for action in actions
    )


def info_of(actions: Iterable[Action]) -> CommitInfo | None:
    """Return the commitInfo of a commit; None if it has none."""
    return next((action for action in actions if isinstance(action, CommitInfo)), None)


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
            raise _too_long(file, number + 1)
    yield b"".join(rest)


def _too_long(file: str, number: int) -> LimitExceeded:
    message = f"a line of the log is longer than {MAX_LINE_BYTES} bytes"
    return LimitExceeded(message, file=file, line=number)
