"""Commits: all or nothing, one winner for each version.

A commit is one put-if-absent of the next version's file. Who comes second reads what won, and goes
on with the version after it unless the two contradict each other. Spec: PROTOCOL, "Delta Log
Entries", "Commit Provenance Information", "In-Commit Timestamps".
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata as packages
from typing import Any

import orjson

from variantlake.delta.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Transaction,
    serialise,
)
from variantlake.delta.checkpoint_writer import checkpoint_due, write_checkpoint
from variantlake.delta.conflicts import Changes, check_conflicts
from variantlake.delta.features import VARIANT_SHREDDING, writer_features
from variantlake.delta.listing import commit_path, has_log
from variantlake.delta.locations import encode_path
from variantlake.delta.new_table import new_table
from variantlake.delta.replay import read_commit
from variantlake.delta.schema import StructType
from variantlake.delta.snapshot import Snapshot
from variantlake.delta.stats import StatsOptions, write_stats
from variantlake.delta.store import Store
from variantlake.delta.tags import file_tags
from variantlake.errors import (
    CommitConflict,
    CommitLost,
    InvalidValue,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.parquet.facts import FileFacts

MAX_ATTEMPTS = 10_000
"""Our limit on versions lost to other writers before a commit gives up."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that is in the log. `timestamp` in milliseconds; `attempts` counts the puts."""

    version: int
    txn_id: str
    timestamp: int
    attempts: int


def new_add(
    path: str,
    facts: FileFacts,
    *,
    schema: StructType,
    properties: Mapping[str, str],
    partition_columns: Sequence[str] = (),
    partition_values: Mapping[str, str | None] | None = None,
    variant_bounds: bool = True,
) -> AddFile:
    """The `add` of a finished file, with its statistics and our tags.

    `path` is relative to the table's root and not percent-encoded. `partition_values` are
    serialised, by physical names. `variant_bounds` is false for a table without the feature
    `variantShredding`.
    """
    options = StatsOptions.from_properties(properties)
    columns = options.chosen(schema, partition_columns)
    return AddFile(
        path=encode_path(path),
        size=facts.size,
        modification_time=time.time_ns() // 1_000_000,
        partition_values=dict(partition_values or {}),
        stats=write_stats(facts, columns, options, variant_bounds=variant_bounds),
        tags=file_tags(facts, options),
    )


def add_for(
    snapshot: Snapshot,
    path: str,
    facts: FileFacts,
    partition_values: Mapping[str, str | None] | None = None,
) -> AddFile:
    """`new_add` for a file of an existing table."""
    return new_add(
        path,
        facts,
        schema=snapshot.schema,
        properties=snapshot.properties,
        partition_columns=snapshot.partition_columns,
        partition_values=partition_values,
        variant_bounds=not snapshot.features.isdisjoint(VARIANT_SHREDDING),
    )


def create_table(
    store: Store,
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    adds: Sequence[AddFile] = (),
    metrics: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Committed:
    """Create a table, with its first files, in one commit of version 0.

    Raises CommitConflict where a log exists already, InvalidSchema and UnsupportedFeature as
    `new_table`.
    """
    protocol, metadata = new_table(
        schema, partition_columns, properties or {}, name=name, description=description
    )
    if has_log(store):
        raise _exists(store)
    _check_partitions(adds, schema, partition_columns)
    changes = Changes(
        operation="CREATE TABLE AS SELECT" if adds else "CREATE TABLE",
        adds=tuple(adds),
        metadata=metadata,
        protocol=protocol,
        parameters={
            "isManaged": "false",
            "partitionBy": _json(list(partition_columns)),
            "properties": _json(dict(metadata.configuration)),
        },
        metrics=metrics or {},
    )
    stamped = metadata.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"
    payload = _payload(changes, read_version=None, stamp=_now() if stamped else None)
    if not store.put_if_absent(commit_path(0), payload.data):
        winner = read_commit(store, commit_path(0))
        if not payload.is_in(winner):
            raise _exists(store)
    return _confirmed(store, 0, payload, attempts=1)


def append(
    snapshot: Snapshot,
    adds: Sequence[AddFile],
    *,
    metrics: Mapping[str, str] | None = None,
    transactions: Sequence[Transaction] = (),
) -> Committed:
    """Append files to the table that `snapshot` is a version of, be it the newest or not.

    Raises as `commit`.
    """
    changes = Changes(
        operation="WRITE",
        adds=tuple(adds),
        transactions=tuple(transactions),
        parameters={"mode": "Append", "partitionBy": _json(list(snapshot.partition_columns))},
        metrics=metrics or {},
    )
    return commit(snapshot, changes)


def with_properties(snapshot: Snapshot, properties: Mapping[str, str]) -> Metadata:
    """The table's metadata with these properties set, for `Changes.metadata`."""
    configuration = {**snapshot.metadata.configuration, **properties}
    return replace(snapshot.metadata, configuration=configuration)


def commit(snapshot: Snapshot, changes: Changes) -> Committed:
    """Commit `changes`, decided on the ground of `snapshot`.

    Raises UnsupportedFeature, by name, for a table that we must not write; CommitConflict when
    another writer's commit contradicts this one (nothing is committed then); CommitLost when ours
    was overwritten after it had won (EXACTNESS, rule 26).
    """
    snapshot.check_writable()
    _check_append_only(snapshot, changes)
    _check_partitions(changes.adds, snapshot.schema, snapshot.partition_columns)
    store = snapshot.store
    stamped = _in_commit_timestamps(snapshot)
    last = _last_stamp(snapshot) if stamped else 0
    for attempt in range(1, MAX_ATTEMPTS + 1):
        version = snapshot.version + attempt
        stamp = max(_now(), last + 1) if stamped else None
        payload = _payload(changes, read_version=snapshot.version, stamp=stamp)
        if store.put_if_absent(commit_path(version), payload.data):
            return _committed(snapshot, version, payload, attempts=attempt)
        winner = read_commit(store, commit_path(version))
        if payload.is_in(winner):
            # The store did the work and lost the answer; its own retry then met our commit.
            return _committed(snapshot, version, payload, attempts=attempt)
        check_conflicts(changes, winner, version)
        last = max(last, _stamp_of(winner))
    raise CommitConflict(f"{MAX_ATTEMPTS} other commits came first", file=store.uri)


@dataclass(frozen=True, slots=True)
class _Payload:
    """The bytes of a commit file, and what tells that they are ours."""

    data: bytes
    txn_id: str
    timestamp: int

    def is_in(self, actions: Sequence[Action]) -> bool:
        """Whether a commit that was read is this one."""
        return any(
            isinstance(action, CommitInfo) and action.txn_id == self.txn_id for action in actions
        )


def _payload(changes: Changes, *, read_version: int | None, stamp: int | None) -> _Payload:
    txn_id = str(uuid.uuid4())
    timestamp = _now()
    fields: dict[str, Any] = {} if stamp is None else {"inCommitTimestamp": stamp}
    fields |= {
        "timestamp": timestamp,
        "operation": changes.operation,
        "operationParameters": dict(changes.parameters),
    }
    if read_version is not None:
        fields["readVersion"] = read_version
    fields |= {
        "isolationLevel": "Serializable",
        "isBlindAppend": changes.blind_append,
        "operationMetrics": {**_file_metrics(changes), **changes.metrics},
        "engineInfo": _engine(),
        "txnId": txn_id,
    }
    actions: list[Action] = [CommitInfo(fields)]
    actions += [action for action in (changes.protocol, changes.metadata) if action is not None]
    actions += [*changes.transactions, *changes.domains, *changes.removes, *changes.adds]
    return _Payload(serialise(actions), txn_id, timestamp)


def _committed(snapshot: Snapshot, version: int, payload: _Payload, *, attempts: int) -> Committed:
    """A commit that won, with a checkpoint where the table's interval wants one."""
    done = _confirmed(snapshot.store, version, payload, attempts=attempts)
    if checkpoint_due(version, snapshot.metadata.configuration):
        try:
            write_checkpoint(snapshot.store, version)
        except VariantLakeError as error:
            # The commit stands; a reader without this checkpoint reads more commits, no more.
            warnings.warn(f"no checkpoint of version {version}: {error}", stacklevel=4)
    return done


def _confirmed(store: Store, version: int, payload: _Payload, *, attempts: int) -> Committed:
    """Read the version back: log stores of other writers can overwrite a commit."""
    first_line = payload.data[: payload.data.index(b"\n")]
    if store.read_range(commit_path(version), 0, len(first_line)) != first_line:
        raise CommitLost(
            f"another writer overwrote version {version} after it was committed here",
            file=store.join(commit_path(version)),
            hint="its store does not commit atomically beside other writers; repeat the write",
        )
    return Committed(version, payload.txn_id, payload.timestamp, attempts)


def _file_metrics(changes: Changes) -> dict[str, str]:
    metrics = {}
    if changes.adds:
        metrics["numFiles"] = str(len(changes.adds))
        metrics["numOutputBytes"] = str(sum(add.size for add in changes.adds))
    if changes.removes:
        metrics["numRemovedFiles"] = str(len(changes.removes))
    return metrics


def _check_append_only(snapshot: Snapshot, changes: Changes) -> None:
    append_only = snapshot.metadata.configuration.get("delta.appendOnly", "").lower() == "true"
    if append_only and any(action.data_change for action in changes.removes):
        raise UnsupportedFeature(
            "the table is append-only (delta.appendOnly)", file=snapshot.store.uri
        )


def _check_partitions(
    adds: Sequence[AddFile], schema: StructType, partition_columns: Sequence[str]
) -> None:
    """Every file must have a value for every partition column (PROTOCOL)."""
    wanted = {item.physical_name for item in schema.fields if item.name in partition_columns}
    for add in adds:
        if set(add.partition_values) != wanted:
            raise InvalidValue(
                f"file {add.path!r} has values for partition columns "
                f"{sorted(add.partition_values)}, the table has {sorted(wanted)}"
            )


def _in_commit_timestamps(snapshot: Snapshot) -> bool:
    enabled = snapshot.metadata.configuration.get("delta.enableInCommitTimestamps", "")
    return enabled.lower() == "true" and "inCommitTimestamp" in writer_features(snapshot.protocol)


def _last_stamp(snapshot: Snapshot) -> int:
    if snapshot.commit_info is not None:
        return snapshot.commit_info.in_commit_timestamp or 0
    # The version came from a checkpoint, which holds no commit information.
    return _stamp_of(read_commit(snapshot.store, commit_path(snapshot.version)))


def _stamp_of(actions: Sequence[Action]) -> int:
    infos = [action for action in actions if isinstance(action, CommitInfo)]
    return max((info.in_commit_timestamp or 0 for info in infos), default=0)


def _exists(store: Store) -> CommitConflict:
    return CommitConflict(
        "there is a table already", file=store.uri, hint="open it, or choose another location"
    )


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _now() -> int:
    return time.time_ns() // 1_000_000


@cache
def _engine() -> str:
    return f"variantlake/{packages.version('variantlake')}"
