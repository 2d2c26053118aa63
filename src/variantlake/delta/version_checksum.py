"""Version checksums: what `N.crc` says about the state of version N.

A checksum is a witness and nothing more: a version is as good without, and one that belongs to
another commit of that version, or cannot be parsed, says nothing. One that contradicts the log is
an error, because one of the two was changed. Spec: PROTOCOL, "Version Checksum File".
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow.compute as pc

from variantlake.delta.actions import CommitInfo, Metadata, Protocol
from variantlake.delta.replay import State
from variantlake.delta.store import Store
from variantlake.errors import MalformedLog, MissingSource, StoreFailed, VariantLakeError


def checksum_path(version: int) -> str:
    """The file of a version's checksum, from the table's root."""
    return f"_delta_log/{version:020d}.crc"


def write_checksum(store: Store, version: int, state: State) -> None:
    """Write the checksum of a version that is in the log, unless there is one."""
    store.put_if_absent(checksum_path(version), orjson.dumps(checksum(state)))


def checksum(state: State) -> dict[str, Any]:
    """The document for a state."""
    if state.protocol is None or state.metadata is None:
        raise MalformedLog("a version without protocol or metadata has no checksum")
    document: dict[str, Any] = {
        "tableSizeBytes": pc.sum(state.files["size"]).as_py() or 0,
        "numFiles": state.files.num_rows,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [action.to_json() for action in state.transactions.values()],
        "domainMetadata": [action.to_json() for action in state.domains.values()],
        "metadata": state.metadata.to_json(),
        "protocol": state.protocol.to_json(),
    }
    info = state.commit_info
    if info is not None and info.txn_id is not None:
        document["txnId"] = info.txn_id
    if info is not None and info.in_commit_timestamp is not None:
        document["inCommitTimestampOpt"] = info.in_commit_timestamp
    return document


def verify_checksum(store: Store, version: int, state: State) -> None:
    """Compare a state with the checksum of its version, if there is one that speaks of it.

    Raises MalformedLog naming the checksum and what differs.
    """
    path = checksum_path(version)
    try:
        document = orjson.loads(store.read(path))
    except (MissingSource, StoreFailed, orjson.JSONDecodeError):
        return
    if not isinstance(document, dict) or not _speaks_of(document, state.commit_info):
        return
    for what, found, recorded in _compared(document, state):
        if recorded is not None and recorded != found:
            raise MalformedLog(
                f"the checksum of version {version} and its log disagree about {what}: "
                f"{_short(recorded)} and {_short(found)}",
                file=store.join(path),
                hint="a log file was changed; delete the checksum if the log is right",
            )


def _speaks_of(document: dict[str, Any], info: CommitInfo | None) -> bool:
    """Whether a checksum is of this commit, and not of one that was overwritten."""
    recorded = document.get("txnId")
    return recorded is None or info is None or info.txn_id is None or recorded == info.txn_id


def _compared(document: dict[str, Any], state: State) -> list[tuple[str, Any, Any]]:
    """What is compared: its name, what the log says, what the checksum says (None: nothing)."""
    size = pc.sum(state.files["size"]).as_py() or 0
    return [
        ("the number of files", state.files.num_rows, document.get("numFiles")),
        ("the size of the table in bytes", size, document.get("tableSizeBytes")),
        ("the protocol", state.protocol, _parsed(Protocol, document.get("protocol"))),
        ("the metadata", state.metadata, _parsed(Metadata, document.get("metadata"))),
    ]


def _parsed(kind: type[Protocol | Metadata], fields: Any) -> Protocol | Metadata | None:
    if not isinstance(fields, dict):
        return None
    try:
        return kind.from_json(fields)
    except VariantLakeError:
        return None


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
