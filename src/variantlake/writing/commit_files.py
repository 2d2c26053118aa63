"""Commit the files of a load exactly once, whatever other writers do meanwhile."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from variantlake.contracts.contract import contract_texts
from variantlake.delta.actions.actions import (
    AddCdcFile,
    AddFile,
    Metadata,
    RemoveFile,
    Transaction,
)
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import (
    IdentityColumn,
    identity_columns,
    with_marks,
)
from variantlake.delta.protocol.known_properties import CONTRACT_PREFIX
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.learned_schemas import learned_schemas
from variantlake.delta.protocol.properties import constraints
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.schema.type_parts import without_comments
from variantlake.delta.stats.tags import residual_share
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import LOAD_ID, Changes, Reads, Rebase
from variantlake.delta.transaction.creation import Creation, commit_creation
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import (
    CommitConflict,
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    LostCheckpoint,
    NotADeltaTable,
    StoreFailed,
    TableReplaced,
    UnsupportedFeature,
)
from variantlake.storage.store import Store
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
"""Errors after which a commit has certainly not happened. After others (the store's answer was
lost) the log may name the new files, so they must stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedRows:
    """The file changes that a load decides on after comparing its rows with the table's.

    `written` are paths of files that are deleted if the commit fails; `unused` are files of the
    load that its commit does not name. `replaced` tells which files an overwrite removes.
    """

    adds: tuple[AddFile, ...]
    removes: tuple[RemoveFile, ...] = ()
    change_files: tuple[AddCdcFile, ...] = ()
    reads: Reads | None = None
    rebased: Rebase | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    written: Sequence[str] = ()
    unused: Sequence[str] = ()
    replaced: Reads | None = None


Decide = Callable[[TableWrite, Sequence[AddFile]], DecidedRows]
"""Decides on the files of a load for a version of the table; called again after a conflict."""


def loaded(target: TableWrite, load_id: str) -> int | None:
    """The version that a load of this id committed; None if there was none.

    If the log no longer holds that commit, it is an earlier version or the commit's own. Raises
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
    decide: Decide | None = None,
) -> tuple[int, bool]:
    """Add the files, and create or change the table, in one commit.

    Returns its version and True; or, if another load of the same id or `record` was first, that
    one's version and False. Of several concurrent first loads one creates the table, or sets its
    inferred shredding schema; the others only add their files, whatever their own layout.
    `decide` is called before each attempt.

    Raises CommitConflict if the request contradicts another writer's commit, or if `record` has
    become stale; LostCheckpoint as `StreamBatch.version_in`.
    """
    tried = target
    while True:
        try:
            decided = DecidedRows(adds=tuple(adds)) if decide is None else decide(tried, adds)
            decided = replace(decided, metrics={**metrics, **decided.metrics})
            return _commit_decided(tried, decided, load, record), True
        except CommitConflict:
            newest = Snapshot.read(target.store.uri, store=target.store, applies=READER_FEATURES)
            tried = replace(target, snapshot=newest, properties=newest.properties, altered=None)
            known = None if load.is_own else loaded(tried, load.text)
            if known is None and record is not None:
                known = record.version_in(newest)
            if known is not None:
                return known, False
            changes = target.altered is not None and target.snapshot is not None
            if target.replacing is not None or changes or target.creation is not None:
                raise
            if not _fits(target, newest) or (record is not None and record.is_stale(newest)):
                raise


def _commit_decided(
    target: TableWrite, decided: DecidedRows, load: LoadId, record: CommitRecord | None
) -> int:
    try:
        version = _commit(target, decided, load, record)
    except NOT_COMMITTED:
        _discard(target.store, decided.written)
        raise
    _discard(target.store, decided.unused)
    return version


def _discard(store: Store, paths: Sequence[str]) -> None:
    """Delete files that no commit names.

    If the store cannot delete one now, a vacuum will: the load, maybe committed, has not failed.
    """
    for path in paths:
        with contextlib.suppress(StoreFailed):
            store.delete(path)


def _commit(
    target: TableWrite,
    decided: DecidedRows,
    load: LoadId,
    record: CommitRecord | None,
) -> int:
    adds = decided.adds
    # The first version that this commit can get: a repeat of the load searches from there.
    first = 0 if target.snapshot is None else target.snapshot.version + 1
    now = time.time_ns() // 1_000_000
    own = [] if load.is_own else [Transaction(load.text, first, now)]
    transactions = (*own, *(() if record is None else record.transactions))
    domains = () if record is None else record.domains
    provenance: Mapping[str, Any] = {LOAD_ID: load.text} if load.is_own else {}
    provenance = provenance if record is None else record.provenance
    if target.reads_itself:
        provenance = {**provenance, "isBlindAppend": False}
    snapshot = target.snapshot
    known = None if snapshot is None else (snapshot.protocol, snapshot.metadata)
    if (described := target.altered or known) is None:
        raise TypeError("a new table is made by TableWrite.new")
    protocol, metadata = described
    metadata = replace(metadata, configuration=_measured(target, adds))
    if target.numbered:
        metadata = with_numbers(metadata, adds)
    created = target.creation and replace(target.creation, metadata=metadata)
    if snapshot is None:
        operation = "CREATE TABLE AS SELECT" if adds else "CREATE TABLE"
        new = created or Creation(protocol, metadata, (), operation)
        return commit_creation(
            target.store,
            new,
            adds=adds,
            metrics=decided.metrics,
            transactions=transactions,
            domains=domains,
            provenance=provenance,
        )
    replaced = decided.replaced
    if replaced is None and target.replacing is not None:
        replaced = target.replacing(adds)
    gone = (
        ()
        if replaced is None
        else [a for a in snapshot.add_files() if replaced(a.partition_values)]
    )
    changes = Changes(
        operation="WRITE" if created is None else created.operation,
        adds=tuple(adds),
        removes=(*decided.removes, *removes_of(gone)),
        change_files=decided.change_files,
        metadata=None if metadata == snapshot.metadata else metadata,
        protocol=None if protocol == snapshot.protocol else protocol,
        transactions=transactions,
        domains=domains if created is None else (*domains, *created.domains),
        reads=decided.reads or replaced,
        rebased=decided.rebased,
        serializable=target.serializable,
        evaluated=target.evaluated,
        numbered=target.numbered,
        parameters={
            "mode": "Append" if replaced is None else "Overwrite",
            "partitionBy": "[]",  # the writer does not choose the partitioning
            **target.parameters,
            **_new_contracts(snapshot.properties, metadata.configuration),
        }
        if created is None
        else created.parameters(len(adds)),
        metrics={**_deleted(target, gone), **decided.metrics},
        provenance=provenance,
    )
    return commit(snapshot, changes)


def _deleted(target: TableWrite, gone: Sequence[AddFile]) -> dict[str, str]:
    """The further metrics of whole files that a condition replaces; no row of them is copied."""
    if "predicate" not in target.parameters:
        return {}
    metrics = {"numCopiedRows": "0", "numAddedChangeFiles": "0"}
    counts = [add.num_records for add in gone]
    known = [each for each in counts if each is not None]
    if len(known) == len(counts):
        vectors = [each.cardinality for add in gone if (each := add.deletion_vector) is not None]
        metrics["numDeletedRows"] = str(sum(known) - sum(vectors))
    return metrics


def _new_contracts(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The history's entry for contracts that a load brings: their versions by column."""
    new = contract_texts(after).items() - contract_texts(before).items()
    versions = {
        name.removeprefix(CONTRACT_PREFIX): orjson.loads(text)["version"] for name, text in new
    }
    return {"contract": orjson.dumps(versions).decode()} if versions else {}


def with_numbers(metadata: Metadata, adds: Sequence[AddFile]) -> Metadata:
    """The metadata with the last numbers that these files use of each identity column.

    Numbers that the rows brought with them count, too. Raises UnsupportedFeature for a file
    without bounds of such a column.
    """
    schema = StructType.from_json(metadata.schema_string)
    marks: dict[str, int] = {}
    for column in identity_columns(schema):
        side = "maxValues" if column.step > 0 else "minValues"
        bounds = [each for add in adds if (each := _bound(add, side, column)) is not None]
        if bounds:
            marks[column.physical_name] = (max if column.step > 0 else min)(bounds)
    numbered = with_marks(schema, marks)
    return metadata if numbered == schema else replace(metadata, schema_string=numbered.to_json())


def _bound(add: AddFile, side: str, column: IdentityColumn) -> int | None:
    stats = orjson.loads(add.stats or "{}")
    name = column.physical_name
    bound = stats.get(side, {}).get(name)
    if bound is None and stats.get("nullCount", {}).get(name, -1) == stats.get("numRecords"):
        return None
    if type(bound) is not int:
        raise UnsupportedFeature(
            f"the identity column {column.name!r} has no statistics, which tell its last number",
            hint="let delta.dataSkippingNumIndexedCols or delta.dataSkippingStatsColumns have it",
        )
    return bound


def _measured(target: TableWrite, adds: Sequence[AddFile]) -> dict[str, str]:
    """The properties, with the residual share of learned schemas that these files use first."""
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
    """Whether files written for `target` may be added to its newest version unchanged."""
    return (
        (target.snapshot is None or newest.metadata.id == target.snapshot.metadata.id)
        and without_comments(newest.schema) == without_comments(target.schema)
        and newest.partition_columns == target.partition_columns
        and newest.shredding_enabled == target.shredding_enabled
        and target.requested.items() <= newest.properties.items()
        # The rows were checked against the constraints and contracts of `target`.
        and constraints(newest.properties) == constraints(target.properties)
        and contract_texts(newest.properties) == contract_texts(target.properties)
    )
