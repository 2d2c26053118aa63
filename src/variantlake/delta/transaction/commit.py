"""Commits: all or nothing, one winner for each version.

A commit is one put-if-absent of the next version's file. A writer that loses the race reads the
winner's commit and retries with the version after it, unless the two conflict. Spec: PROTOCOL,
"Delta Log Entries", "Commit Provenance Information", "In-Commit Timestamps".
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata as packages
from typing import Any

from variantlake.delta.actions.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Transaction,
    serialise,
)
from variantlake.delta.actions.commit_properties import described
from variantlake.delta.log import lost_commit_check
from variantlake.delta.log.identity import check_before_commit, replaced
from variantlake.delta.log.log_segment import commit_path, has_log
from variantlake.delta.log.reconciliation import LogState, apply_commits, read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.time_travel import SINCE_TIME, SINCE_VERSION, is_stamped, stamp_of
from variantlake.delta.protocol.features import writer_features
from variantlake.delta.protocol.row_tracking import DOMAIN as ROW_TRACKING
from variantlake.delta.protocol.row_tracking import assigns_ids, high_water_mark, with_row_ids
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.conflicts import Changes, check_conflicts
from variantlake.delta.transaction.post_commit import run_post_commit_hooks
from variantlake.errors import (
    CommitConflict,
    CommitLost,
    CommitUnknown,
    InvalidValue,
    MalformedLog,
    MissingSource,
    StoreFailed,
    UnsupportedFeature,
)
from variantlake.logs import logger
from variantlake.storage.store import Entry, Store
from variantlake.telemetry.tracing import traced

_LOG = logger("commit")

MAX_ATTEMPTS = 10_000
"""The most attempts of one commit, each lost to another writer, before it gives up."""

OF_OTHER_FILES: Mapping[str, Any] = {"readVersion": -1, "isBlindAppend": False}
"""Provenance of a new table of existing files (a clone, a conversion), as in Delta Spark."""


@traced(
    "commit",
    lambda store, *_, operation, **__: {"table": store.uri, "operation": operation},
    lambda version: {"version": version},
)
def commit_new(
    store: Store,
    protocol: Protocol,
    metadata: Metadata,
    *,
    operation: str,
    parameters: Mapping[str, Any],
    adds: Sequence[AddFile] = (),
    metrics: Mapping[str, str] | None = None,
    transactions: Sequence[Transaction] = (),
    domains: Sequence[DomainMetadata] = (),
    provenance: Mapping[str, Any] | None = None,
    file_metrics: bool = True,
) -> int:
    """Create a table, with its first files, in one commit; returns its version, 0.

    The parameters are fields of `Changes`. Raises CommitConflict if a log exists already.
    """
    schema = StructType.from_json(metadata.schema_string)
    if has_log(store):
        raise _exists(store)
    # Forget a table that this process wrote earlier at the same location.
    lost_commit_check.forget(store)
    _check_partitions(adds, schema, metadata.partition_columns)
    changes = Changes(
        operation=operation,
        adds=tuple(adds),
        metadata=metadata,
        protocol=protocol,
        domains=tuple(domains),
        transactions=tuple(transactions),
        parameters=parameters,
        file_metrics=file_metrics,
        metrics=metrics or {},
        provenance=provenance or {},
    )
    stamped = is_stamped(metadata.configuration)
    base = _CommitBase(metadata, writer_features(protocol), stamped=stamped)
    payload = _payload(changes, base, 0)
    # The store decides which writer is first: the check above only saves work.
    if _put(store, 0, payload) is not None:
        raise _exists(store)
    _confirm(store, 0, payload, LogState(), [])
    return 0


@traced(
    "commit",
    lambda snapshot, changes: {"table": snapshot.store.uri, "operation": changes.operation},
    lambda version: {"version": version},
)
def commit(snapshot: Snapshot, changes: Changes) -> int:
    """Commit `changes`, which are based on `snapshot`; returns the version.

    Raises UnsupportedFeature, by name, for a table that we must not write; CommitConflict when
    another writer's commit conflicts with this one (nothing is committed then), TableReplaced when
    another table has replaced this one; CommitLost when ours was overwritten after it had won
    (EXACTNESS, rule 26); StoreFailed when the store failed and the commit is not there,
    CommitUnknown when it failed and the outcome is unknown.
    """
    # Constraints and generated columns concern new rows; rewritten rows already satisfy them.
    rows_added = any(add.data_change for add in changes.adds)
    snapshot.check_writable(
        evaluated=changes.evaluated or not rows_added,
        kept=changes.kept or not rows_added,
        numbered=changes.numbered,
    )
    _check_append_only(snapshot, changes)
    metadata = changes.metadata or snapshot.metadata
    _check_partitions(
        changes.adds, StructType.from_json(metadata.schema_string), metadata.partition_columns
    )
    store = snapshot.store
    base = _CommitBase.of(snapshot, changes)
    isolation = snapshot.metadata.configuration.get("delta.isolationLevel", "Serializable")
    winners: list[list[Action]] = []
    for attempt in range(1, MAX_ATTEMPTS + 1):
        version = snapshot.version + attempt
        check_before_commit(snapshot)
        payload = _payload(changes, base, version, read_version=snapshot.version)
        winner = _put(store, version, payload)
        if winner is None:
            break
        weak = isolation.lower() != "serializable" and not changes.serializable
        against: Sequence[Action] = winner
        # Changes of rows may be rebased on the winner row by row where whole files conflict.
        if changes.rebased is not None:
            changes, against = changes.rebased(changes, winner, version)
        check_conflicts(changes, against, version, write_serializable=weak)
        winners.append(winner)
        _LOG.debug("%s: another writer committed version %d first", store.uri, version)
        base = base.after(winner)
    else:
        raise CommitConflict(f"{MAX_ATTEMPTS} other commits came first", file=store.uri)
    # Ours is in the log, so an error from here on must not look like a failed commit.
    with _unknown_if_unread(store, version, payload):
        before = snapshot.last if attempt == 1 else store.entry(commit_path(version - 1))
    _confirm(store, version, payload, snapshot.state(), winners, before=before)
    return version


@dataclass(frozen=True, slots=True)
class _CommitBase:
    """The state of the table that the next attempt of a commit builds on.

    `metadata` and `features` are the table's after the commit. `stamped`: the commit has an
    in-commit timestamp, which must exceed `stamp`. `high_water` is the highest row id so far.
    `enabling`: the commit enables timestamps in a table that already has commits.
    """

    metadata: Metadata
    features: tuple[str, ...]
    stamped: bool
    enabling: bool = False
    stamp: int = 0
    high_water: int = -1

    @classmethod
    def of(cls, snapshot: Snapshot, changes: Changes) -> _CommitBase:
        metadata = changes.metadata or snapshot.metadata
        features = writer_features(changes.protocol or snapshot.protocol)
        stamped = is_stamped(metadata.configuration) and "inCommitTimestamp" in features
        before = is_stamped(snapshot.metadata.configuration)
        last = 0
        if stamped:
            # The first timestamp must come after the file of the commit before it.
            last = _last_stamp(snapshot) if before else snapshot.last.modified
        mark = high_water_mark(snapshot.domains.values())
        return cls(
            metadata,
            features,
            stamped=stamped,
            enabling=stamped and not before,
            stamp=last,
            high_water=-1 if mark is None else mark,
        )

    def after(self, winner: Sequence[Action]) -> _CommitBase:
        """Return the base for the attempt after another writer's commit won."""
        mark = high_water_mark(winner)
        return replace(
            self,
            stamp=max(self.stamp, stamp_of(winner)),
            high_water=self.high_water if mark is None else max(mark, self.high_water),
        )


@dataclass(frozen=True, slots=True)
class _Payload:
    """The actions of a commit file, its bytes, and the id that marks it as ours."""

    actions: list[Action]
    txn_id: str
    data: bytes = field(repr=False)

    def is_in(self, actions: Sequence[Action]) -> bool:
        """Whether `actions`, read from a commit file, are those of this commit."""
        return any(
            isinstance(action, CommitInfo) and action.txn_id == self.txn_id for action in actions
        )


def _payload(
    changes: Changes, base: _CommitBase, version: int, *, read_version: int | None = None
) -> _Payload:
    txn_id = str(uuid.uuid4())
    timestamp = time.time_ns() // 1_000_000
    stamp = max(timestamp, base.stamp + 1) if base.stamped else None
    metadata = changes.metadata
    if base.enabling and stamp is not None:
        since = {SINCE_VERSION: str(version), SINCE_TIME: str(stamp)}
        configuration = {**base.metadata.configuration, **since}
        metadata = replace(base.metadata, configuration=configuration)
    adds, domains = changes.adds, changes.domains
    fields: dict[str, Any] = {} if stamp is None else {"inCommitTimestamp": stamp}
    fields |= {
        "timestamp": timestamp,
        "operation": changes.operation,
        **described(changes.parameters),
    }
    if read_version is not None:
        fields["readVersion"] = read_version
    isolation = base.metadata.configuration.get("delta.isolationLevel", "Serializable")
    fields |= {
        "isolationLevel": isolation,
        "isBlindAppend": changes.blind_append,
        "operationMetrics": {
            **(_file_metrics(changes) if changes.file_metrics else {}),
            **changes.metrics,
        },
        **changes.provenance,
    }
    if assigns_ids(base.features, base.metadata.configuration):
        fields["tags"] = {"delta.rowTracking.preserved": str(changes.keeps_row_ids).lower()}
        adds, mark = with_row_ids(adds, version, base.high_water)
        others = tuple(domain for domain in domains if domain.domain != ROW_TRACKING)
        domains = others if mark is None else (*others, mark)
    fields |= {"engineInfo": _engine(), "txnId": txn_id}
    actions: list[Action] = [CommitInfo(fields)]
    actions += [action for action in (changes.protocol, metadata) if action is not None]
    actions += [*changes.transactions, *domains, *changes.removes, *adds, *changes.change_files]
    return _Payload(actions, txn_id, serialise(actions))


def _put(store: Store, version: int, payload: _Payload) -> list[Action] | None:
    """Put a commit; returns None if it won, else the actions of the commit that did.

    A store may write the file and lose the answer. So after a put that failed, or that found a
    commit, the file decides. Raises StoreFailed if there is none, CommitUnknown if it cannot be
    read.
    """
    failure: StoreFailed | None = None
    try:
        if store.put_if_absent(commit_path(version), payload.data):
            return None
    except StoreFailed as error:
        failure = error
    winner: list[Action] | None = None
    with _unknown_if_unread(store, version, payload):
        try:
            winner = read_commit(store, commit_path(version))
        except MissingSource:
            if failure is None:
                raise
    if winner is None and failure is not None:
        failure.say_first("nothing was committed")
        raise failure
    if winner is not None and not payload.is_in(winner):
        return winner
    if failure is not None:
        _LOG.warning(
            "%s: the store lost the answer, version %d is committed all the same: %s",
            store.uri, version, failure.message,
        )  # fmt: skip
    return None


@contextmanager
def _unknown_if_unread(store: Store, version: int, payload: _Payload) -> Iterator[None]:
    """Raise CommitUnknown if the store fails to read the commit back."""
    try:
        yield
    except StoreFailed as error:
        unknown = CommitUnknown(
            f"it is unknown whether version {version} was committed: {error.message}",
            file=store.join(commit_path(version)),
            hint="do not repeat the write before the store answers: it was committed if this file "
            f"holds {payload.txn_id}",
        )
        unknown.txn_id = payload.txn_id
        raise unknown from error


def _confirm(
    store: Store,
    version: int,
    payload: _Payload,
    state: LogState,
    winners: Sequence[list[Action]],
    *,
    before: Entry | None = None,
) -> None:
    """Read the version back, as log stores of other writers can overwrite a commit; run the hooks.

    `state` is that of the snapshot, `winners` are the commits after it; `before` is the file of the
    version before this one, None if there is none.
    """
    first_line = payload.data[: payload.data.index(b"\n")]
    with _unknown_if_unread(store, version, payload):
        is_lost = store.read_range(commit_path(version), 0, len(first_line)) != first_line
    if is_lost:
        if before is not None and not before.is_same(store.entry(before.path)):
            raise replaced(store)
        raise CommitLost(
            f"another writer overwrote version {version} after it was committed here",
            file=store.join(commit_path(version)),
            hint="its store does not commit atomically with other writers; repeat the write",
        )
    if before is not None:
        lost_commit_check.remember(store, version, payload.txn_id, before)
    _say(store, version, payload)
    run_post_commit_hooks(store, version, apply_commits(state, [*winners, payload.actions]))


def _say(store: Store, version: int, payload: _Payload) -> None:
    if not _LOG.isEnabledFor(logging.INFO):
        return
    infos = [action for action in payload.actions if isinstance(action, CommitInfo)]
    metrics: Mapping[str, str] = infos[0].fields.get("operationMetrics", {})
    counts = ", ".join(f"{name} {value}" for name, value in metrics.items() if name[:3] == "num")
    what = f"{infos[0].fields['operation']} ({counts})" if counts else infos[0].fields["operation"]
    _LOG.info("%s: version %d committed: %s", store.uri, version, what)
    for action in payload.actions:
        if isinstance(action, AddFile):
            _LOG.debug("added %s, %d bytes", action.path, action.size)
        elif isinstance(action, RemoveFile):
            _LOG.debug("removed %s", action.path)


def _file_metrics(changes: Changes) -> dict[str, str]:
    metrics = {}
    if changes.adds or changes.operation == "WRITE":
        metrics["numFiles"] = str(len(changes.adds))
        metrics["numOutputBytes"] = str(sum(add.size for add in changes.adds))
    if changes.removes or changes.parameters.get("mode") == "Overwrite":
        metrics["numRemovedFiles"] = str(len(changes.removes))
        sizes = [remove.size for remove in changes.removes if remove.size is not None]
        if len(sizes) == len(changes.removes):
            metrics["numRemovedBytes"] = str(sum(sizes))
    return metrics


def _check_append_only(snapshot: Snapshot, changes: Changes) -> None:
    append_only = snapshot.metadata.configuration.get("delta.appendOnly", "").lower() == "true"
    if append_only and any(action.data_change for action in changes.removes):
        raise UnsupportedFeature(
            "the table is append-only (delta.appendOnly)",
            file=snapshot.store.uri,
            hint="ALTER TABLE ... SET TBLPROPERTIES ('delta.appendOnly' = 'false') lets rows go",
        )


def _check_partitions(
    adds: Sequence[AddFile], schema: StructType, partition_columns: Sequence[str]
) -> None:
    """Raise InvalidValue unless each file has a value for each partition column (PROTOCOL)."""
    wanted = {item.physical_name for item in schema.fields if item.name in partition_columns}
    for add in adds:
        if set(add.partition_values) != wanted:
            raise InvalidValue(
                f"file {add.path!r} has values for partition columns "
                f"{sorted(add.partition_values)}, the table has {sorted(wanted)}"
            )


def _last_stamp(snapshot: Snapshot) -> int:
    path = commit_path(snapshot.version)
    # A snapshot that was read from a checkpoint alone has no commitInfo.
    try:
        info = snapshot.commit_info
        infos = [info] if info else read_commit(snapshot.store, path)
    except MissingSource:
        check_before_commit(snapshot)  # raises if the log was cleaned up since
        raise
    stamp = stamp_of(infos)
    if not stamp:
        raise MalformedLog(
            "the commit has no inCommitTimestamp, which the next one has to come after",
            file=snapshot.store.join(path),
        )
    return stamp


def _exists(store: Store) -> CommitConflict:
    return CommitConflict(
        "there is a table already",
        file=store.uri,
        hint="vl.Table.open opens it, and create(..., exist_ok=True) takes it as it is",
        cli_hint="--if-not-exists leaves it alone, --replace replaces it",
    )


@cache
def _engine() -> str:
    return f"variantlake/{packages.version('variantlake')}"
