"""Staged loads: data files that are written but not committed, listed in a file of the table.

`_variantlake/staged/<hash of the id>.jsonl` has the lines of a commit: `commitInfo`, the table's
metadata at that time, and the adds. Our vacuum keeps these files until the load is published or
dropped.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from variantlake.contracts.contract import contract_texts
from variantlake.delta.actions.actions import (
    AddFile,
    CommitInfo,
    Metadata,
    parse_log,
    serialise,
)
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.known_properties import SCHEMA_PREFIX, SHREDDING_PROPERTY
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.properties import constraints
from variantlake.delta.transaction.conflicts import LOAD_ID
from variantlake.errors import CommitConflict, InvalidValue, MalformedLog, MissingSource
from variantlake.storage.store import Store
from variantlake.writing.autoload_files import OWN_FOLDER
from variantlake.writing.commit_files import commit_files, loaded
from variantlake.writing.own_load_id import LoadId
from variantlake.writing.table_write import TableWrite

FOLDER = f"{OWN_FOLDER}/staged"

_FIXED: dict[str, Callable[[Metadata], object]] = {
    # The schema also holds the last numbers of identity columns.
    "schema": lambda table: (table.id, table.schema_string, table.partition_columns),
    "constraints": lambda table: constraints(table.configuration),
    "contract": lambda table: contract_texts(table.configuration),
    f"property {SHREDDING_PROPERTY}": lambda table: table.configuration.get(SHREDDING_PROPERTY),
}
"""Parts of the metadata that must not have changed since the files were written."""

_THREADS = 16

_LEARNED = (SCHEMA_PREFIX, LEARNED_PREFIX)


@dataclass(frozen=True, slots=True)
class StagedLoad:
    """The content of a staged load's file; `created` is in milliseconds since 1970."""

    load_id: str
    created: int
    metrics: Mapping[str, str]
    metadata: Metadata
    adds: tuple[AddFile, ...]


def stage_path(load_id: str) -> str:
    """The file of a staged load, from the table's root."""
    return f"{FOLDER}/{uuid.uuid5(uuid.NAMESPACE_OID, load_id).hex}.jsonl"


def write_stage(
    target: TableWrite, adds: Sequence[AddFile], metrics: Mapping[str, str], load_id: str
) -> int:
    """Stage the files of a load instead of committing; returns the version they were written for.

    Raises InvalidValue for a table that does not exist or would change, for no rows, and for the id
    of another staged load.
    """
    if not adds:
        bad = metrics.get("numQuarantinedRows", "0")
        raise InvalidValue(
            "there are no rows to stage" + (f": all {bad} are bad" if bad != "0" else ""),
            file=target.store.uri,
            hint="mode='strict' says what is wrong with the first" if bad != "0" else "",
            cli_hint="",
        )
    snapshot = target.snapshot
    if snapshot is None or target.altered is not None:
        raise InvalidValue(
            "a staged load adds rows to a table as it is",
            file=target.store.uri,
            hint="create the table, or add the columns, first",
        )
    metadata = replace(snapshot.metadata, configuration=dict(target.properties))
    info = CommitInfo(
        {LOAD_ID: load_id, "timestamp": time.time_ns() // 1_000_000, "metrics": dict(metrics)}
    )
    path, data = stage_path(load_id), serialise([info, metadata, *adds])
    # After a put whose answer was lost the client's retry finds our own file there.
    if not target.store.put_if_absent(path, data) and target.store.read(path) != data:
        raise InvalidValue(
            f"a load {load_id!r} is staged already",
            file=target.store.uri,
            hint="publish or drop it (Table.stages), or give this one another load_id",
        )
    return snapshot.version


def read_stage(store: Store, load_id: str) -> StagedLoad:
    """Read a staged load. Raises MissingSource if there is none, MalformedLog for another file."""
    try:
        return _read(store, stage_path(load_id))
    except MissingSource:
        raise MissingSource(
            f"no load {load_id!r} is staged",
            file=store.uri,
            hint="it was dropped, or never staged; Table.stages() lists those that are",
        ) from None


def list_stages(store: Store) -> Iterator[StagedLoad]:
    """The staged loads of a table."""
    for entry in store.list_from(FOLDER):
        try:
            yield _read(store, entry.path)
        except MissingSource:  # published or dropped meanwhile
            continue


def _read(store: Store, path: str) -> StagedLoad:
    actions = list(parse_log(store.stream(path), store.join(path)))
    match actions:
        case [CommitInfo(fields), Metadata() as metadata, *adds]:
            load_id, created, metrics = map(fields.get, (LOAD_ID, "timestamp", "metrics"))
            files = tuple(each for each in adds if isinstance(each, AddFile))
            if isinstance(load_id, str) and type(created) is int and isinstance(metrics, dict):
                return StagedLoad(load_id, created, metrics, metadata, files)
    raise MalformedLog("the file is not that of a staged load", file=store.join(path))


def publish_stage(newest: Snapshot, load_id: str) -> tuple[int, bool, StagedLoad | None]:
    """Commit a staged load; returns the version, whether this call made it, and the load.

    The commit has the id as a `txn` action, so that no load is published twice.

    Raises MissingSource if there is no such load or its files are gone, CommitConflict if the
    table's schema or rules have changed.
    """
    # Staging evaluated the rows by rules that still hold, and used identity numbers still free.
    target = TableWrite.of(newest, evaluated=True, numbered=True)
    version = loaded(target, load_id)
    if version is not None:
        newest.store.delete(stage_path(load_id))  # left by a publisher that was killed
        return version, False, None
    try:
        staged = read_stage(newest.store, load_id)
    except MissingSource:
        # Another process may have published it since `newest` was read.
        newest = newest.refresh()
        version = loaded(TableWrite.of(newest, evaluated=True, numbered=True), load_id)
        if version is None:
            raise
        return version, False, None
    then, now = staged.metadata, newest.metadata
    changed = next((what for what, of in _FIXED.items() if of(then) != of(now)), None)
    if changed is not None:
        raise CommitConflict(
            f"the {changed} of the table changed since the load {load_id!r} was staged",
            file=newest.store.uri,
            hint="drop it, and stage the rows again",
        )
    _check_files(newest.store, staged)
    # The shredding schema of these files becomes the table's, unless it has one by now.
    learned = {
        name: text
        for name, text in then.configuration.items()
        if name.startswith(_LEARNED) and name not in now.configuration
    }
    target = replace(target, properties={**target.properties, **learned})
    load = LoadId(load_id, is_own=False)
    version, done = commit_files(target, staged.adds, staged.metrics, load=load)
    newest.store.delete(stage_path(load_id))
    return version, done, staged


def _check_files(store: Store, staged: StagedLoad) -> None:
    """Raise MissingSource unless all files of a staged load exist.

    The vacuum of another engine does not know staged loads, and deletes their files.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        paths = [add.path for add in staged.adds]
        for path, entry in zip(paths, pool.map(store.entry, map(decode_path, paths)), strict=True):
            if entry is None:
                raise MissingSource(
                    f"a file of the staged load {staged.load_id!r} is not there any more",
                    file=store.join(path),
                    hint="drop it, and stage the rows again; VACUUM of another engine takes files "
                    "that are staged",
                )


def drop_stage(newest: Snapshot, load_id: str) -> StagedLoad:
    """Drop a staged load; a vacuum deletes its files. Raises InvalidValue if it was published."""
    version = loaded(TableWrite.of(newest, evaluated=True, numbered=True), load_id)
    if version is not None:
        raise InvalidValue(
            f"the load {load_id!r} was published as version {version}",
            file=newest.store.uri,
            hint="Table.restore brings back the version before it",
        )
    staged = read_stage(newest.store, load_id)
    # Keep the data files: another process may be publishing them at this moment.
    newest.store.delete(stage_path(load_id))
    return staged


class Staging:
    """Makes a load stage its files instead of committing them; used like an `Overwrite`."""

    def applied(self, target: TableWrite) -> Any:
        """The table, marked for staging."""
        return replace(target, is_staged=True)
