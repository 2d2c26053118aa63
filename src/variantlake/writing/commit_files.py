"""Committing the files of a load to their table: once, whatever other writers do meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from variantlake.delta.actions.actions import AddFile, Transaction
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.learned_schemas import learned_schemas
from variantlake.delta.protocol.properties import constraints
from variantlake.delta.stats.tags import residual_share
from variantlake.delta.transaction.commit import commit, commit_new
from variantlake.delta.transaction.conflicts import LOAD_ID, Changes
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import (
    CommitConflict,
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    LostCheckpoint,
    NotADeltaTable,
    TableReplaced,
    UnsupportedFeature,
)
from variantlake.writing.commit_record import CommitRecord, find_commit
from variantlake.writing.own_load_id import LoadId, find_own_load
from variantlake.writing.table_write import READER_FEATURES, TableWrite

NOT_COMMITTED = (
    CommitConflict,
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    LostCheckpoint,
    NotADeltaTable,
    TableReplaced,
    UnsupportedFeature,
)
"""After these a commit has certainly not happened. After others (a store that lost its answer) the
log may refer to the new files, so they must stay."""


def loaded(target: TableWrite, load_id: str) -> int | None:
    """The version that a load of this id committed; None when there was none.

    Where the log no longer holds that version, it is one that was before or at it. Raises
    CommitUnknown as `find_own_load`.
    """
    if target.snapshot is None:
        return None
    if load_id not in target.snapshot.transactions:
        return find_own_load(target.snapshot, load_id)
    first = target.snapshot.transactions[load_id].version  # see _commit
    found = find_commit(target.store, range(first, target.snapshot.version + 1), load_id)
    return min(first, target.snapshot.version) if found is None else found[0]


def commit_files(
    target: TableWrite,
    adds: Sequence[AddFile],
    metrics: Mapping[str, str],
    *,
    load: LoadId,
    record: CommitRecord | None = None,
) -> tuple[int, bool]:
    """Add the files, and create or change the table, in one commit.

    Gives its version and True; or, when another load of the same id or `record` was first,
    that one's version and False. Of several first loads at once one makes the table, or gives
    it its inferred shredding schema; the others then only add their files, whose own layout is
    as good.

    Raises CommitConflict if what was asked for contradicts another writer's commit, or the
    `record` has become stale; LostCheckpoint as `StreamBatch.version_in`.
    """
    tried = target
    while True:
        try:
            return _commit(tried, adds, metrics, load, record), True
        except CommitConflict:
            newest = Snapshot.read(target.store.uri, store=target.store, applies=READER_FEATURES)
            tried = replace(target, snapshot=newest, properties=newest.properties, altered=None)
            known = None if load.is_own else loaded(tried, load.text)
            if known is None and record is not None:
                known = record.version_in(newest)
            if known is not None:
                return known, False
            changes = target.altered is not None and target.snapshot is not None
            if target.replacing is not None or changes:
                raise
            if not _fits(target, newest) or (record is not None and record.is_stale(newest)):
                raise


def _commit(
    target: TableWrite,
    adds: Sequence[AddFile],
    metrics: Mapping[str, str],
    load: LoadId,
    record: CommitRecord | None,
) -> int:
    # The first version that can be this one: what a later load of the same id looks for.
    first = 0 if target.snapshot is None else target.snapshot.version + 1
    now = time.time_ns() // 1_000_000
    own = [] if load.is_own else [Transaction(load.text, first, now)]
    transactions = (*own, *(() if record is None else record.transactions))
    domains = () if record is None else record.domains
    provenance: Mapping[str, Any] = {LOAD_ID: load.text} if load.is_own else {}
    provenance = provenance if record is None else record.provenance
    snapshot = target.snapshot
    known = None if snapshot is None else (snapshot.protocol, snapshot.metadata)
    if (described := target.altered or known) is None:
        raise TypeError("a new table is made by TableWrite.new")
    protocol, metadata = described
    metadata = replace(metadata, configuration=_measured(target, adds))
    if snapshot is None:
        return commit_new(
            target.store,
            protocol,
            metadata,
            adds=adds,
            metrics=metrics,
            transactions=transactions,
            domains=domains,
            provenance=provenance,
        )
    reads = None if target.replacing is None else target.replacing(adds)
    changes = Changes(
        operation="WRITE",
        adds=tuple(adds),
        removes=()
        if reads is None
        else removes_of(add for add in snapshot.add_files() if reads(add.partition_values)),
        metadata=None if metadata == snapshot.metadata else metadata,
        protocol=None if protocol == snapshot.protocol else protocol,
        transactions=transactions,
        domains=domains,
        reads=reads,
        serializable=target.serializable,
        evaluated=target.evaluated,
        parameters={
            "mode": "Append" if reads is None else "Overwrite",
            "partitionBy": orjson.dumps(list(target.partition_columns)).decode(),
        },
        metrics=metrics,
        provenance=provenance,
    )
    return commit(snapshot, changes)


def _measured(target: TableWrite, adds: Sequence[AddFile]) -> dict[str, str]:
    """The properties, where schemas that these files are the first of say how well they do."""
    properties = dict(target.properties)
    if target.snapshot is not None and properties == target.snapshot.properties:
        return properties
    for name in target.shreddings():
        learned = learned_schemas(properties, name)
        share = residual_share(name, [add.tags or {} for add in adds])
        if learned is not None and learned.residuals is None and share is not None:
            properties[LEARNED_PREFIX + name] = learned.measured(share).text()
    return properties


def _fits(target: TableWrite, newest: Snapshot) -> bool:
    """Whether files written for this table may be added to that version of it as they are."""
    return (
        (target.snapshot is None or newest.metadata.id == target.snapshot.metadata.id)
        and newest.schema == target.schema
        and newest.partition_columns == target.partition_columns
        and newest.shredding_enabled == target.shredding_enabled
        and target.requested.items() <= newest.properties.items()
        # Rows were held against the constraints of then.
        and constraints(newest.properties) == constraints(target.properties)
    )
