"""Make a clone, or bring a deep clone up to date. See `Table.clone`."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import Any

from variantlake.delta.actions.actions import AddFile, DomainMetadata, Metadata
from variantlake.delta.log.files.logical_files import bytes_of
from variantlake.delta.log.log_segment import has_log
from variantlake.delta.log.snapshot import HistoryEntry, Snapshot
from variantlake.delta.protocol.clustering import DOMAIN as CLUSTERING
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.protocol.needed_features import extended_protocol
from variantlake.delta.protocol.row_tracking import materialized_columns
from variantlake.delta.transaction.commit import OF_OTHER_FILES, commit, commit_new
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.creation import own_configuration
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import InvalidValue
from variantlake.maintenance.cloning.clone_files import CopiedFile, copied, copy_files, shared
from variantlake.progress import OnProgress
from variantlake.shown import Result
from variantlake.storage.opening import open_store
from variantlake.storage.store import Store, as_hadoop

OPERATION = "CLONE"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CloneResult(Result):
    """What a clone did, or would do.

    `version` is the clone's version with the rows of `source_version`; None for a dry run and if a
    deep clone had these rows already. It has `table_files` files of `table_bytes` bytes. A deep
    clone copied `files_copied` files of `bytes_copied` bytes, deletion vectors included; the others
    were there. `files_removed` counts files of the clone's last version that this one lacks.
    """

    source_version: int
    is_deep: bool
    table_files: int
    table_bytes: int
    files_copied: int = 0
    bytes_copied: int = 0
    files_removed: int = 0


def clone(
    source: Snapshot,
    location: str,
    *,
    deep: bool = False,
    dry_run: bool = False,
    progress: OnProgress | None = None,
) -> CloneResult:
    """Clone a version of a table to `location`. See `Table.clone`."""
    source.check_writable(evaluated=True, kept=True)  # the clone gets its features
    store = open_store(location)
    if f"{store.uri}/".startswith(f"{source.store.uri}/"):
        raise InvalidValue(
            "a clone cannot lie within its source", file=store.uri, hint="choose another place"
        )
    adds, files = _files_of_clone(source, deep=deep)
    before = _clone_before(store, source, deep=deep)
    change = _Change.of(adds, before)
    named = {add.path for add in change.adds}
    files = [each for each in files if each.of in named]
    copying = copy_files(files, store, dry_run=dry_run, progress=progress)
    version = None
    if not dry_run:
        if before is None:
            version = _commit_new(source, store, adds, copying)
        else:
            version = _commit_again(source, before, change, copying)
    return CloneResult(
        source_version=source.version,
        version=version,
        is_deep=deep,
        dry_run=dry_run,
        table_files=len(adds),
        table_bytes=sum(add.size for add in adds),
        files_copied=len(copying),
        bytes_copied=_bytes(copying),
        files_removed=len(change.gone),
    )


def _files_of_clone(source: Snapshot, *, deep: bool) -> tuple[list[AddFile], list[CopiedFile]]:
    """Return the clone's files, and the copies that they need."""
    adds: list[AddFile] = []
    files: list[CopiedFile] = []
    for each in source.add_files():
        # As in Delta Spark, rows get new ids: they belong to another table.
        add = replace(each, base_row_id=None, default_row_commit_version=None, data_change=True)
        if deep:
            add, some = copied(source, add)
            files += some
        adds.append(add if deep else shared(source, add))
    return adds, files


@dataclass(frozen=True, slots=True)
class _Change:
    """The files that the clone's last version lacks, and those that it has and should lose."""

    adds: tuple[AddFile, ...]
    gone: tuple[AddFile, ...] = ()

    @classmethod
    def of(cls, adds: list[AddFile], before: Snapshot | None) -> _Change:
        if before is None:
            return cls(tuple(adds))
        there = {_key(add): add for add in before.add_files()}
        wanted = set(map(_key, adds))
        return cls(
            tuple(add for add in adds if _key(add) not in there),
            tuple(add for key, add in there.items() if key not in wanted),
        )


def _key(add: AddFile) -> tuple[str, str | None]:
    vector = add.deletion_vector
    return add.path, None if vector is None else vector.unique_id


def _clone_before(store: Store, source: Snapshot, *, deep: bool) -> Snapshot | None:
    """Return the deep clone in `store`, None if there is no table.

    Raises InvalidValue if a table is there and the clone is shallow, if it is another table, and if
    it was changed since it was cloned.
    """
    if not has_log(store):
        return None
    if not deep:
        raise InvalidValue(
            "there is a table already, and a shallow clone is a new one",
            file=store.uri,
            hint="choose another place; deep=True brings a deep clone up to date",
            cli_hint="choose another place; --deep brings a deep clone up to date",
        )
    newest = Snapshot.read(store.uri, store=store, applies=SCAN_FEATURES)
    last = next((each for each in newest.history() if each.operation == OPERATION), None)
    if last is None or _source_of(last) not in (_name(source), f"delta.`{source.store.uri}`"):
        raise InvalidValue(
            f"the table that is there is not a clone of {source.store.uri}, as far as its log says",
            file=store.uri,
            hint="choose another place",
        )
    cloned = newest.at(last.version)
    if set(map(_key, newest.add_files())) != set(map(_key, cloned.add_files())):
        raise InvalidValue(
            f"the clone was changed after its version {last.version}, and cloning again would undo "
            "that",
            file=store.uri,
            hint=f"choose another place, or restore version {last.version} first",
        )
    return newest


def _source_of(cloned: HistoryEntry) -> object:
    """Return the source that a CLONE names in its operation parameters."""
    parameters = cloned.info.get("operationParameters")
    return parameters.get("source") if isinstance(parameters, dict) else None


def _name(source: Snapshot) -> str:
    """Return the source as Delta Spark's history names it."""
    return f"delta.`{as_hadoop(source.store.uri)}`"


def _commit_new(
    source: Snapshot, store: Store, adds: list[AddFile], copying: list[CopiedFile]
) -> int:
    metadata = replace(
        source.metadata,
        id=str(uuid.uuid4()),
        name=None,
        description=None,
        created_time=time.time_ns() // 1_000_000,
        configuration=own_configuration(source, materialized_columns()),
    )
    return commit_new(
        store,
        source.protocol,
        metadata,
        adds=adds,
        domains=_domains(source),
        operation=OPERATION,
        parameters=_parameters(source),
        metrics=_metrics(source, copying, ()),
        file_metrics=False,
        provenance=OF_OTHER_FILES,
    )


def _commit_again(
    source: Snapshot, before: Snapshot, change: _Change, copying: list[CopiedFile]
) -> int | None:
    metadata: Metadata | None = replace(
        before.metadata,
        schema_string=source.metadata.schema_string,
        partition_columns=source.metadata.partition_columns,
        configuration=own_configuration(source, before.metadata.configuration),
    )
    metadata = None if metadata == before.metadata else metadata
    listed = (*(source.protocol.writer_features or ()), *(source.protocol.reader_features or ()))
    protocol = extended_protocol(before.protocol, listed)
    domains = tuple(each for each in _domains(source) if before.domains.get(each.domain) != each)
    if not (change.adds or change.gone or metadata or domains or protocol != before.protocol):
        return None
    changes = Changes(
        OPERATION,
        adds=change.adds,
        removes=removes_of(change.gone),
        metadata=metadata,
        protocol=None if protocol == before.protocol else protocol,
        domains=domains,
        reads=whole_table,
        serializable=True,
        evaluated=True,
        kept=True,
        file_metrics=False,
        keeps_row_ids=False,
        parameters=_parameters(source),
        metrics=_metrics(source, copying, change.gone),
    )
    return commit(before, changes)


def _domains(source: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the source's clustering; its other domains are not copied."""
    clustering = source.domains.get(CLUSTERING)
    return () if clustering is None else (clustering,)


def _parameters(source: Snapshot) -> dict[str, Any]:
    return {"source": _name(source), "sourceVersion": source.version}


def _metrics(
    source: Snapshot, copying: list[CopiedFile], gone: tuple[AddFile, ...]
) -> dict[str, str]:
    return {
        "sourceTableSize": str(bytes_of(source.files)),
        "sourceNumOfFiles": str(source.files.num_rows),
        "numCopiedFiles": str(len(copying)),
        "copiedFilesSize": str(_bytes(copying)),
        "numRemovedFiles": str(len(gone)),
        "removedFilesSize": str(sum(add.size for add in gone)),
    }


def _bytes(copying: list[CopiedFile]) -> int:
    return sum(each.size or 0 for each in copying)
