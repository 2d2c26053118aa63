"""The actions of a Delta log as its lines: strict on what the protocol names, blind to the rest.

What they are stands in `table_actions` and `add_remove`, named and spelled as in the protocol, in
snake case. Unknown actions and unknown fields are ignored, as the protocol asks ("Protocol
Evolution"); a known field of a wrong type is a MalformedLog. Spec: PROTOCOL, "Actions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

import orjson

from variantlake.delta.actions.add_remove import (
    AddCdcFile,
    AddFile,
    DeletionVectorDescriptor,
    RemoveFile,
)
from variantlake.delta.actions.json_fields import Json, StringMap
from variantlake.delta.actions.table_actions import (
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Sidecar,
    Transaction,
)
from variantlake.errors import LimitExceeded, MalformedLog

__all__ = [
    "FEW",
    "MAX_LINE_BYTES",
    "Action",
    "AddCdcFile",
    "AddFile",
    "CheckpointMetadata",
    "CommitInfo",
    "DeletionVectorDescriptor",
    "DomainMetadata",
    "Json",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "Sidecar",
    "StringMap",
    "Transaction",
    "parse_action",
    "parse_line",
    "parse_log",
    "serialise",
]

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
)

_ACTIONS: dict[str, type[Action]] = {kind.KEY: kind for kind in get_args(Action)}

FEW = (Protocol, Metadata, Transaction, DomainMetadata, CheckpointMetadata, Sidecar)
"""The actions of a state that are few, however many files the table has."""


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
            error.say_first(key)
            raise
    return found


def parse_log(pieces: Iterable[bytes], file: str) -> Iterator[Action]:
    """The actions of a log file, given in pieces of any size.

    Raises MalformedLog and LimitExceeded naming `file` and the line.
    """
    for number, line in enumerate(_lines(pieces, file), start=1):
        if not line or line.isspace():
            continue
        action = parse_line(line, file, number)
        if action is not None:
            yield action


def parse_line(line: bytes, file: str, number: int) -> Action | None:
    """`parse_action`, whose errors name the file and the line, counted from 1."""
    if len(line) > MAX_LINE_BYTES:
        raise _too_long(file, number)
    try:
        return parse_action(line)
    except MalformedLog as error:
        error.file, error.line = file, number
        raise


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
            raise _too_long(file, number + 1)
    yield b"".join(rest)


def _too_long(file: str, number: int) -> LimitExceeded:
    message = f"a line of the log is longer than {MAX_LINE_BYTES} bytes"
    return LimitExceeded(message, file=file, line=number)
