"""Refresh a typed mirror in one commit, which records the table's version that it follows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from variantlake.batches import packed
from variantlake.delta.actions.actions import AddFile, RemoveFile, Transaction
from variantlake.delta.actions.commit_properties import CommitProperties, takes_commit_properties
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.log_segment import has_log
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.features import check_writable
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.creation import Creation, commit_creation
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.dml.files.new_files import NewFiles
from variantlake.errors import (
    CommitConflict,
    CommitUnknown,
    InvalidSchema,
    InvalidValue,
    MissingSource,
    StoreFailed,
    in_file,
)
from variantlake.familiar_names import says_its_keywords
from variantlake.logs import logger
from variantlake.mirroring.columns import PROPERTY, MirrorColumns
from variantlake.mirroring.deleted_rows import DeletedRows
from variantlake.mirroring.groups import (
    MirrorGroup,
    MirrorGroups,
    commits_of,
    files_in,
    groups_in,
    tagged,
)
from variantlake.planning.files import ScanFile
from variantlake.planning.log_files import LogFiles
from variantlake.scan.table_scan import Scan
from variantlake.shown import Result
from variantlake.storage.opening import open_store
from variantlake.storage.options import reach_with
from variantlake.storage.store import Store
from variantlake.table import Table
from variantlake.telemetry.lineage import add_inputs, reported
from variantlake.units import Duration, seconds
from variantlake.writing.commit_files import NOT_COMMITTED
from variantlake.writing.options.keywords import names_of
from variantlake.writing.table_write import READER_FEATURES

if TYPE_CHECKING:
    from variantlake.expressions.from_python import Expr

APPLICATION = "variantlake.mirror"
"""The `appId` of the `txn` with the table's version that the mirror follows."""

GROUP_BYTES = 16 << 20
"""Bytes of the table's files in one group, about."""

ROW_BYTES = 128
"""The least bytes counted per row of a group: a change of one row rewrites the others."""

_ATTEMPTS = 10
_STEP_SECONDS = 0.2

_LOG = logger("mirror")

_MIRRORS, _MIRROR_FILES = 8, 1 << 16
_mirrors: dict[str, Snapshot] = {}
"""Snapshots of mirrors with few files that this process refreshed last, by location."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MirrorResult(Result):
    """What refreshes of a mirror did.

    `version` is the mirror's version, `source_version` the table's version that it follows.
    `files_read` counts files of the table, `files_removed` files of the mirror whose rows were read
    again or are gone. `is_rebuilt` says that all rows were read again.
    """

    version: int
    source_version: int
    rows_written: int = 0
    files_read: int = 0
    files_written: int = 0
    files_removed: int = 0
    bytes_written: int = 0
    is_rebuilt: bool = False


@takes_commit_properties
@says_its_keywords
def mirror(
    table: Table | str | os.PathLike[str],
    target: str | os.PathLike[str],
    select: str | Expr | Sequence[str | Expr] | None = None,
    *,
    cluster_by: str | Sequence[str] = (),
    partition_by: str | Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    rebuild: bool = False,
    every: Duration | None = None,
    stop: Callable[[], bool] | None = None,
    on_refresh: Callable[[MirrorResult], None] | None = None,
    commit_properties: CommitProperties = None,
    storage_options: Mapping[str, str] | None = None,
) -> MirrorResult:
    """Keep chosen columns and paths as an ordinary Delta table that every Delta reader can read.

    `vl.mirror(events, "mirror", "event:id::bigint AS id, event:kind::string AS kind")`.

    The first call creates the target. Each call reads the table's log since the last one, and only
    those files of the table whose rows changed; it follows a compaction without reading a row. One
    commit stores the rows together with the table's version, so a call that was killed can be
    repeated and applies nothing twice.

    Args:
        table: The table or its location; the mirror follows its newest version.
        target: The mirror's location.
        select: Columns and paths with types, as for `Table.scan`; each needs its own name. None
            keeps the columns of the mirror.
        cluster_by: Columns of the mirror that sort the rows within each of its files.
        partition_by: Columns of the mirror that partition it. An existing mirror keeps its
            `partition_by` and `cluster_by`.
        properties: Table properties of a new mirror.
        rebuild: Read all rows again, and give the mirror the columns of `select` with their current
            types.
        every: The seconds between two refreshes, or text such as `5m`; None refreshes once.
        stop: Called between refreshes; true ends the call.
        on_refresh: Called after each refresh.
        commit_properties: As for `Table.append`, for the mirror's commits.
        storage_options: Options to access the mirror's bucket, as for `Table.open`.

    Raises:
        InvalidSchema: A column is VARIANT; the target is not a mirror; or its columns or types
            differ from the requested ones and `rebuild` is false.
        InvalidValue: A cast fails for a value; an option is invalid; the mirror has another layout;
            a new mirror has no columns.
        InvalidQuery, UnsupportedFeature: As `Table.scan`.
        CommitConflict: Other writers keep changing the mirror.
    """
    reach_with(target, storage_options)
    opened = Table.of(table)
    location = os.fspath(target)
    items = None if select is None else _texts(select)
    request = _MirrorRequest(
        items,
        names_of("cluster_by", cluster_by),
        names_of("partition_by", partition_by),
        dict(properties or {}),
    )
    source = opened.snapshot
    if every is None:
        result = _refresh(source.refresh(), location, request, rebuild=rebuild)
        if on_refresh is not None:
            on_refresh(result)
        return result
    interval = seconds("every", every)
    is_stopped: Callable[[], bool] = (lambda: False) if stop is None else stop
    total: MirrorResult | None = None
    while True:
        begun = time.monotonic()
        try:
            source = source.refresh()
            result = _refresh(source, location, request, rebuild=rebuild)
            total, rebuild = _sum(total, result), False
            if on_refresh is not None:
                on_refresh(result)
        except (StoreFailed, MissingSource, CommitUnknown) as error:
            if total is None:
                raise
            _LOG.warning("the refresh failed, the next one tries again: %s", error.sentence())
        while time.monotonic() - begun < interval and not is_stopped():
            time.sleep(min(_STEP_SECONDS, interval))
        if is_stopped() and total is not None:
            return total


def _sum(total: MirrorResult | None, result: MirrorResult) -> MirrorResult:
    if total is None:
        return result
    return replace(
        result,
        rows_written=total.rows_written + result.rows_written,
        files_read=total.files_read + result.files_read,
        files_written=total.files_written + result.files_written,
        files_removed=total.files_removed + result.files_removed,
        bytes_written=total.bytes_written + result.bytes_written,
        is_rebuilt=total.is_rebuilt or result.is_rebuilt,
        seconds=total.seconds + result.seconds,
    )


def _texts(select: Any) -> tuple[str, ...]:
    if isinstance(select, str) or not isinstance(select, Iterable):
        select = (select,)
    return tuple(each if isinstance(each, str) else each.text for each in select)


@dataclass(frozen=True, slots=True)
class _MirrorRequest:
    select: tuple[str, ...] | None
    cluster_by: tuple[str, ...]
    partition_by: tuple[str, ...]
    properties: dict[str, str]


@reported("mirror", lambda _, location, *__, **___: location)
def _refresh(
    table: Snapshot, location: str, request: _MirrorRequest, *, rebuild: bool
) -> MirrorResult:
    started = time.perf_counter()
    for attempt in range(1, _ATTEMPTS + 1):
        target, columns = _target(table, location, request, rebuild=rebuild)
        try:
            result = _MirrorRefresh.of(table, target, columns, rebuild=rebuild).run()
            add_inputs([table.store.uri], result.source_version)
            return replace(result, seconds=time.perf_counter() - started)
        except CommitConflict:
            if attempt == _ATTEMPTS:
                raise
            table = table.refresh()
    raise AssertionError("unreachable")


def _target(
    table: Snapshot, location: str, request: _MirrorRequest, *, rebuild: bool
) -> tuple[Snapshot, MirrorColumns]:
    """The mirror, created if it does not exist, and its columns."""
    store = open_store(location)
    if not has_log(store):
        if request.select is None:
            raise InvalidValue(
                "there is no mirror yet: name its columns and paths",
                file=location,
                hint='select="event:id::bigint AS id, …"',
                cli_hint="--select 'event:id::bigint AS id, …'",
            )
        columns = MirrorColumns.of(table, request.select)
        properties = dict(request.properties)
        if request.cluster_by:
            properties[CLUSTER_BY] = ", ".join(request.cluster_by)
        if request.partition_by:  # Polars takes partition values from files, not from the log
            properties.setdefault("delta.enableMaterializePartitionColumnsFeature", "true")
        creation = Creation.of(None, columns.schema, request.partition_by, properties)
        description = {PROPERTY: columns.description(table)}
        configuration = {**creation.metadata.configuration, **description}
        metadata = replace(creation.metadata, configuration=configuration)
        with in_file(store.uri):
            check_writable(creation.protocol, configuration, columns.schema)
        commit_creation(store, replace(creation, metadata=metadata))
    snapshot = _newest(store)
    if PROPERTY not in snapshot.properties:
        raise InvalidSchema(
            f"the table is not a mirror: it has no property {PROPERTY}",
            file=location,
            hint="name another target",
        )
    snapshot.check_writable()
    _check_layout(snapshot, request, location)
    there = MirrorColumns.in_mirror(snapshot)
    if request.select is None or request.select == there.select:
        columns = there.again(table)
    else:
        columns = MirrorColumns.of(table, request.select)
    if not rebuild:
        _check_columns(columns, there, location)
    return snapshot, columns


def _newest(store: Store) -> Snapshot:
    """The newest version of the mirror; of a cached one only new commits are read."""
    last = _mirrors.pop(store.uri, None)
    if last is None:
        snapshot = Snapshot.read(store.uri, store=store, applies=READER_FEATURES)
    else:
        snapshot = replace(last, store=store).refresh()
    if snapshot.files.num_rows <= _MIRROR_FILES:
        _mirrors[store.uri] = snapshot
    for uri in [*_mirrors][:-_MIRRORS]:
        _mirrors.pop(uri, None)
    return snapshot


def _check_columns(columns: MirrorColumns, there: MirrorColumns, location: str) -> None:
    """Raise InvalidSchema for columns that a refresh cannot continue with."""
    others = columns.differences(there)
    if columns.select == there.select:
        if others:
            raise InvalidSchema(
                "the table's columns have changed since the last refresh: " + "; ".join(others),
                file=location,
                hint="rebuild=True reads all rows again and gives the mirror the new columns",
                cli_hint="--rebuild reads all rows again and gives the mirror the new columns",
            )
        return
    if not others and not columns.reads_as(there):
        others = [f"{', '.join(there.select)} is there, not {', '.join(columns.select)}"]
    if others:
        raise InvalidSchema(
            "the mirror has other columns: " + "; ".join(others),
            file=location,
            hint="leave out select to keep them; rebuild=True reads all rows again and gives the "
            "mirror these columns",
            cli_hint="leave out --select to keep them; --rebuild reads all rows again and gives "
            "the mirror these columns",
        )


def _check_layout(mirror: Snapshot, request: _MirrorRequest, location: str) -> None:
    """Raise InvalidValue if the mirror is partitioned or sorted otherwise than requested."""
    order = mirror.properties.get(CLUSTER_BY, "")
    for name, requested, there in (
        ("partition_by", ", ".join(request.partition_by), ", ".join(mirror.partition_columns)),
        ("cluster_by", ", ".join(request.cluster_by), order),
    ):
        if requested and requested.lower() != there.lower():
            raise InvalidValue(
                f"the mirror has {name} {there!r}, not {requested!r}",
                file=location,
                hint=f"leave out {name}, or make another mirror with it",
                cli_hint=f"leave out --{name.replace('_', '-')}, or make another mirror with it",
            )


def _counted(scan: Scan, files: Iterable[ScanFile], counts: list[int]) -> Iterator[pa.Table]:
    """The rows of files, one after the other; appends each file's number of rows to `counts`."""
    for file in files:
        counts.append(0)
        for batch in scan.batches_of([file]):
            counts[-1] += batch.num_rows
            yield pa.Table.from_batches([batch])


@dataclass(frozen=True, slots=True)
class _MirrorRefresh:
    """One refresh of a mirror to a version of its table.

    `there` is the mirror as it is, `target` is the mirror with its new columns.
    """

    table: Snapshot
    there: Snapshot
    target: Snapshot
    columns: MirrorColumns
    groups: MirrorGroups
    is_rebuilt: bool

    @classmethod
    def of(
        cls, table: Snapshot, there: Snapshot, columns: MirrorColumns, *, rebuild: bool
    ) -> _MirrorRefresh:
        known = groups_in(there)
        followed = there.transactions.get(APPLICATION)
        same = columns.reads_as(MirrorColumns.in_mirror(there))
        groups, is_rebuilt = known, False
        if rebuild or not same or groups is None or followed is None:
            whole = MirrorGroup({}, list(there.add_files()), is_stale=True)
            groups, is_rebuilt = MirrorGroups([whole]), True
        else:
            for actions in commits_of(table, range(followed.version + 1, table.version + 1)):
                groups.follow(actions)
        groups.settle(files_in(table))
        return cls(table, there, columns.within(there), columns, groups, is_rebuilt)

    def run(self) -> MirrorResult:
        """Write the rows of stale groups again, and commit. Raises CommitConflict."""
        shrunk = [each for each in self.groups.all if each.grown and not each.is_stale]
        deleted = DeletedRows(self.table, self.target, shrunk)
        stale = [group for group in self.groups.all if group.is_stale]
        renamed = [group for group in self.groups.all if group.is_renamed and not group.is_stale]
        followed = self.target.transactions.get(APPLICATION)
        unchanged = MirrorResult(version=self.target.version, source_version=self.table.version)
        if not stale and not renamed and not deleted.groups and followed is not None:
            return unchanged
        files = NewFiles.of(self.target, evaluated=True)
        gone = [add for group in stale for add in group.mirrored] + deleted.gone
        with files.taken_back_on(BaseException):
            new, read = self._written(files, stale)
            less = deleted.written(files)
        if not new and not gone and not renamed and followed is not None and not self.is_rebuilt:
            return unchanged  # the new files of the table have no rows
        again = [
            replace(add, data_change=False)
            for group in renamed
            for add in tagged(group, group.mirrored)
        ]
        with files.taken_back_on(*NOT_COMMITTED):
            version = commit(self.target, self._changes(new, [*less, *again], removes_of(gone)))
        return replace(
            unchanged,
            version=version,
            rows_written=sum(add.num_records or 0 for add in new),
            files_read=read,
            files_written=len(new),
            files_removed=len(gone),
            bytes_written=sum(add.size for add in new),
            is_rebuilt=self.is_rebuilt,
        )

    def _written(self, files: NewFiles, stale: Sequence[MirrorGroup]) -> tuple[list[AddFile], int]:
        """Write the new files of stale groups; returns them, and how many files were read."""
        scan = Scan(self.table, self.columns.items)
        paths: list[Any] = self.table.files["path"].to_pylist()
        numbers = {decode_path(path): at for at, path in enumerate(paths)}
        waiting = [path for group in stale for path in group.sources]
        waiting.sort(key=numbers.__getitem__)
        log, properties = LogFiles(self.table), self.target.properties
        taken = np.array([numbers[path] for path in waiting], np.int64)
        rows = LogFiles(self.table, files=self.table.files.take(taken)).of_log.num_records
        sizes = dict(zip(waiting, np.maximum(log.sizes[taken], rows * ROW_BYTES), strict=True))
        new: list[AddFile] = []
        for part in packed(waiting, sizes.__getitem__, GROUP_BYTES):
            places = np.array([numbers[path] for path in part], np.int64)
            counts: list[int] = []
            adds = files.write(_counted(scan, log.files(places), counts))
            vectors = {path: self.groups.of_path[path].sources[path] for path in part}
            keeps_order = not self.target.partition_columns and CLUSTER_BY not in properties
            new += tagged(MirrorGroup(vectors, counts=counts if keeps_order else None), adds)
        return new, len(waiting)

    def _changes(
        self, new: Sequence[AddFile], again: Sequence[AddFile], removes: tuple[RemoveFile, ...]
    ) -> Changes:
        now = time.time_ns() // 1_000_000
        described = {PROPERTY: self.columns.description(self.table)}
        configuration = {**self.target.metadata.configuration, **described}
        metadata = replace(self.target.metadata, configuration=configuration)
        protocol = self.target.protocol
        return Changes(
            operation="WRITE",
            adds=(*new, *again),
            removes=removes,
            metadata=None if metadata == self.there.metadata else metadata,
            protocol=None if protocol == self.there.protocol else protocol,
            transactions=(Transaction(APPLICATION, self.table.version, now),),
            reads=whole_table,
            serializable=True,
            evaluated=True,
            file_metrics=False,
            parameters={
                "mode": "Overwrite" if self.is_rebuilt else "Append",
                "mirrorOf": self.table.store.uri,
                "sourceVersion": str(self.table.version),
            },
            metrics={
                "numFiles": str(len(new)),
                "numRemovedFiles": str(len(removes)),
                "numOutputRows": str(sum(add.num_records or 0 for add in new)),
            },
        )
