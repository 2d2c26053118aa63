"""A table at one version: immutable, and columns rather than objects.

Spec: PROTOCOL, "Delta Table Specification".
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.delta.actions.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    info_of,
)
from variantlake.delta.actions.actions import Transaction as Txn
from variantlake.delta.actions.commit_properties import USER_METADATA, properties_in
from variantlake.delta.log import lost_commit_check
from variantlake.delta.log.files.file_paths import AbsolutePaths, check_paths, check_vectors, locate
from variantlake.delta.log.files.logical_files import LogicalFiles, adds_of, files_of
from variantlake.delta.log.files.parted_files import check_unique, is_unread
from variantlake.delta.log.files.path_index import PathIndex
from variantlake.delta.log.log_segment import all_commits, commits_after
from variantlake.delta.log.reconciliation import LogState, apply_commits, read_commit
from variantlake.delta.log.snapshot_state import read_state
from variantlake.delta.log.time_travel import check_version, file_times, version_at
from variantlake.delta.protocol.features import (
    VARIANT_SHREDDING,
    check_protocol,
    check_readable,
    check_writable,
    reader_features,
    writer_features,
)
from variantlake.delta.protocol.named_versions import find_version
from variantlake.delta.schema.column_mapping import (
    ID_KEY,
    MODE,
    NAME_KEY,
    have_case,
    have_names,
    is_mapped,
    without_mapping,
)
from variantlake.delta.schema.table_schema import PrimitiveType, StructType
from variantlake.errors import (
    InvalidQuery,
    MalformedLog,
    MissingSource,
    UnsupportedFeature,
    VariantLakeError,
    in_file,
)
from variantlake.parquet.metadata.footer import Footer
from variantlake.shown import Shown
from variantlake.storage.opening import open_store
from variantlake.storage.store import Entry, Store
from variantlake.units import EPOCH


@dataclass(frozen=True, slots=True, repr=False)
class HistoryEntry(Shown):
    """One commit as its writer described it.

    `timestamp`, in milliseconds since 1970, is the one that time travel uses: that of the commit if
    the table has in-commit timestamps, else that of its file. `time` is the same as a datetime in
    UTC: `Table.open(…, timestamp=entry.time)` opens the version.
    """

    version: int
    timestamp: int
    operation: str | None
    info: Mapping[str, Any]

    @property
    def time(self) -> dt.datetime:
        """When the version was committed, in UTC, to the millisecond."""
        return EPOCH + dt.timedelta(milliseconds=self.timestamp)

    @property
    def user_metadata(self) -> str | None:
        """The text that the user gave with the commit (`userMetadata`); None without one."""
        text = self.info.get(USER_METADATA)
        return text if isinstance(text, str) else None

    @property
    def commit_properties(self) -> dict[str, str]:
        """The `commit_properties` of the call that committed; empty for other `userMetadata`."""
        return properties_in(self.info)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; `timestamp` is the time as text."""
        return {
            "version": self.version,
            "timestamp": self.time.isoformat(timespec="milliseconds"),
            "operation": self.operation,
            "parameters": self.info.get("operationParameters"),
            "metrics": self.info.get("operationMetrics"),
            "engine": self.info.get("engineInfo"),
            "user_metadata": self.user_metadata,
        }

    def __repr__(self) -> str:
        time = f"{self.time.replace(tzinfo=None).isoformat(' ', 'milliseconds')}Z"
        return f"HistoryEntry(version={self.version}, time={time!r}, operation={self.operation!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot(Shown):
    """One version of a table. Never changes: `refresh` gives another one.

    `last` is the file of the log that the version ends with, as it was when it was listed.
    `files` has a row for each file (columns: `logical_files.FILES`), with paths as in the log;
    `location` resolves them. `checkpoint` is as in LogState. A snapshot applies no deletion vectors
    and no column mapping: a scan that does must name them to `read`, which otherwise refuses a
    table that needs them.
    """

    store: Store
    version: int
    last: Entry
    protocol: Protocol
    metadata: Metadata
    schema: StructType
    files: LogicalFiles = field(repr=False)
    transactions: Mapping[str, Txn] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    commit_info: CommitInfo | None = None
    unknown_actions: frozenset[str] = frozenset()
    absolute_paths: AbsolutePaths = AbsolutePaths.ALLOW
    applies: frozenset[str] = frozenset()
    checkpoint: int = field(default=-1, compare=False, repr=False)
    index: PathIndex = field(default_factory=PathIndex, compare=False, repr=False)

    @classmethod
    def read(
        cls,
        location: str | os.PathLike[str],
        version: int | str | None = None,
        *,
        timestamp: int | None = None,
        store: Store | None = None,
        absolute_paths: AbsolutePaths | None = None,
        applies: Collection[str] = (),
    ) -> Snapshot:
        """Read the log of the table at `location` (or in `store`), at its newest version if None.

        If `version` is text, it is the name of a version (`Table.tag`).

        `timestamp`, in milliseconds since the epoch, selects the last version committed by then; it
        excludes `version`.

        `applies` names the reader features that the caller's scan implements: `columnMapping`,
        `deletionVectors`. `absolute_paths` is the setting of the process if None.

        Raises NotADeltaTable, MissingSource for a version that does not exist, MalformedLog naming
        the file and line, UnsupportedFeature by name, InvalidQuery when no version is that old,
        CommitLost, once, if this process's last commit to the table was overwritten since.
        """
        store = open_store(location) if store is None else store
        if isinstance(version, str):
            version = find_version(read_state(store, None)[1].domains, version, store.uri)
        check_version(version)
        if absolute_paths is None:
            absolute_paths = AbsolutePaths.setting()
        lost_commit_check.check(store)
        if timestamp is not None:
            if version is not None:
                raise InvalidQuery("a version and a timestamp are given, expected one of them")
            _, newest = read_state(store, None)
            if newest.metadata is not None:
                version = version_at(store, newest.metadata, timestamp)
        segment, state = read_state(store, version)
        snapshot = partial(
            _snapshot, store, absolute_paths=absolute_paths, applies=frozenset(applies)
        )
        try:
            # `read_checkpoint` already checked the files of a checkpoint.
            is_checkpoint = segment.checkpoint is not None and not segment.commits
            return snapshot(segment.version, segment.last, state, unique=is_checkpoint)
        except VariantLakeError:
            if not segment.compacted:
                raise
        # A log compaction may differ from its commits, which decide.
        segment, state = read_state(store, version, compactions=False)
        return snapshot(segment.version, segment.last, state)

    def refresh(self) -> Snapshot:
        """Return the newest version; reads only later commits, and returns `self` without any.

        If the log no longer holds this version as it was read, reads the whole log, which may then
        be another table's. Raises as `read`.
        """
        allowed = self.absolute_paths is AbsolutePaths.ALLOW
        if allowed and AbsolutePaths.setting() is AbsolutePaths.REFUSE:  # set since it was loaded
            check_paths(self.files.odd_paths(), AbsolutePaths.REFUSE)
            check_vectors(self.files["deletion_vector"], AbsolutePaths.REFUSE)
        lost_commit_check.check(self.store)
        commits = commits_after(self.store, self.version, self.last)
        if commits is None:
            return self.at(None)
        if not commits:
            return self
        actions = [read_commit(self.store, entry.path) for entry in commits]
        state = apply_commits(self.state(), actions)
        paths = [each.path for commit in actions for each in commit if isinstance(each, AddFile)]
        return _snapshot(
            self.store,
            self.version + len(commits),
            commits[-1],
            state,
            new_paths=pa.chunked_array([arrow_array(paths, pa.string())]),
            absolute_paths=self.absolute_paths,
            applies=self.applies,
        )

    def at(self, version: int | str | None) -> Snapshot:
        """Another version of the table, the newest if None, read as this one. Raises as `read`."""
        return Snapshot.read(
            self.store.uri,
            version,
            store=self.store,
            absolute_paths=self.absolute_paths,
            applies=self.applies,
        )

    def state(self) -> LogState:
        """Return the state of the log at this version, to apply later commits to."""
        return LogState(
            protocol=self.protocol,
            metadata=self.metadata,
            files=self.files,
            transactions=self.transactions,
            domains=self.domains,
            unknown_actions=self.unknown_actions,
            checkpoint=self.checkpoint,
            index=self.index,
        )

    @property
    def properties(self) -> dict[str, str]:
        """The table properties (`metaData.configuration`)."""
        return dict(self.metadata.configuration)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The logical names of the partition columns."""
        return self.metadata.partition_columns

    @property
    def features(self) -> frozenset[str]:
        """The features that readers or writers must support, by list or by legacy version."""
        return frozenset((*reader_features(self.protocol), *writer_features(self.protocol)))

    @property
    def shredding_enabled(self) -> bool:
        """Whether new files may be shredded: the protocol requires both feature and property.

        Existing files may be shredded in any case.
        """
        enabled = self.metadata.configuration.get("delta.enableVariantShredding", "")
        return enabled.lower() == "true" and not self.features.isdisjoint(VARIANT_SHREDDING)

    def with_files(self, files: LogicalFiles) -> Snapshot:
        """This version with only these of its files."""
        return replace(self, files=files, index=PathIndex())

    def without_files(self) -> Snapshot:
        """This version without its files, which is small to pickle for tasks."""
        return replace(self, files=files_of(()), transactions={}, domains={}, commit_info=None)

    def add_files(self) -> Iterator[AddFile]:
        """Return the files one by one; for many files work on the columns of `files` instead."""
        return adds_of(self.files)

    def location(self, path: str) -> str:
        """Return where a file is: a plain path on a local disk, else a URL, not percent-encoded."""
        return locate(path, self.store.uri)

    def has_stored_names(self, footer: Footer) -> bool:
        """Whether a file's columns, and their fields, have the physical names of the schema.

        Column mapping by id finds columns by field id, so a file may name them anything. Without
        mapping, names may differ in case.
        """
        if self.properties.get(MODE, "").lower() != "id":
            return is_mapped(self.properties) or have_case(self.schema, footer.schema.children)
        return have_names(self.schema, footer.schema.children)

    def check_writable(
        self, *, evaluated: bool = False, kept: bool = False, numbered: bool = False
    ) -> None:
        """Raise UnsupportedFeature, by name, unless files can be appended to this table.

        `evaluated`: their rows have gone through the table's SQL expressions. `kept`: the table
        already has their rows. `numbered`: they have the numbers of identity columns.
        """
        with in_file(self.store.uri):
            check_writable(
                self.protocol,
                self.properties,
                self.schema,
                evaluated=evaluated,
                kept=kept,
                numbered=numbered,
            )

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """Return the commits up to this version that the log still holds, newest first."""
        commits = all_commits(self.store, self.version)
        times = file_times(commits, self.metadata)
        found: list[HistoryEntry] = []
        for version in list(reversed(commits))[:limit]:
            try:
                entry = _history_entry(self.store, version, commits[version], times.get(version))
            except MissingSource:
                if not found:
                    raise
                break  # a cleanup deleted this commit, and all before it, since the listing
            found.append(entry)
        return found


def _snapshot(
    store: Store,
    version: int,
    last: Entry,
    state: LogState,
    *,
    new_paths: pa.ChunkedArray[Any] | None = None,
    absolute_paths: AbsolutePaths,
    applies: frozenset[str],
    unique: bool = False,
) -> Snapshot:
    """Check a state and make a snapshot of it.

    `new_paths` are the paths that the state before, already checked, did not have. `unique`: the
    caller knows that each data file is in the state once.
    """
    if state.protocol is None or state.metadata is None:
        what = "protocol" if state.protocol is None else "metaData"
        raise MalformedLog(f"no commit up to version {version} has a {what} action", file=store.uri)
    with in_file(store.uri):
        # Check the protocol first: an unknown feature may change the form of a schema.
        check_protocol(state.protocol)
        schema = StructType.from_json(state.metadata.schema_string)
        metadata = state.metadata
        if not _maps_names(state.protocol, metadata):
            # Ignore the names and ids of an inactive mapping: files have the table's names.
            schema = without_mapping(schema)
            metadata = replace(metadata, schema_string=schema.to_json())
        _check_metadata(metadata, schema)
        check_readable(state.protocol, dict(state.metadata.configuration), schema, applies=applies)
        files = state.files
        if is_unread(files) and "deletionVectors" in applies:
            files = files.obeying(absolute_paths)  # checked when they are read
        else:
            _check_files(state, new_paths, absolute_paths, unique=unique)
            _check_vectors_apply(files, store, applies)
    return Snapshot(
        store=store,
        version=version,
        last=last,
        protocol=state.protocol,
        metadata=metadata,
        schema=schema,
        files=files,
        transactions=state.transactions,
        domains=state.domains,
        commit_info=state.commit_info,
        unknown_actions=state.unknown_actions,
        absolute_paths=absolute_paths,
        applies=applies,
        checkpoint=state.checkpoint,
        index=state.index,
    )


def _maps_names(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether the schema's physical names are in force, or it has none. Spec: "Column Mapping"."""
    if NAME_KEY not in metadata.schema_string and ID_KEY not in metadata.schema_string:
        return True
    return is_mapped(metadata.configuration) and "columnMapping" in reader_features(protocol)


def _check_files(
    state: LogState,
    new_paths: pa.ChunkedArray[Any] | None,
    absolute_paths: AbsolutePaths,
    *,
    unique: bool,
) -> None:
    """See `_snapshot`."""
    files = state.files
    vectors = files["deletion_vector"]
    if not unique and (new_paths is None or vectors.null_count < len(vectors)):
        # Without vectors, an add of the same path replaces the one before.
        check_unique(files, state.index)
    check_paths(files.odd_paths() if new_paths is None else new_paths, absolute_paths)
    check_vectors(vectors, absolute_paths)


def _check_vectors_apply(files: LogicalFiles, store: Store, applies: frozenset[str]) -> None:
    """Raise UnsupportedFeature if the caller's scan would show deleted rows."""
    vectors = files["deletion_vector"]
    if "deletionVectors" not in applies and vectors.null_count < len(vectors):
        raise UnsupportedFeature(
            "the table uses the feature deletionVectors: some of its files have deleted rows",
            file=store.uri,
            hint="REORG TABLE ... APPLY (PURGE) in Delta Spark rewrites those files",
        )


def _check_metadata(metadata: Metadata, schema: StructType) -> None:
    """Raise MalformedLog if the metadata contradicts itself."""
    for struct in schema.structs():
        names = [field.name for field in struct.fields]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise MalformedLog(f"the schema has the column {twice!r} twice")
    for name in metadata.partition_columns:
        column = schema.get(name)
        if column is None or not isinstance(column.type, PrimitiveType):
            what = "is not in the schema" if column is None else f"is {column.type}"
            raise MalformedLog(f"the partition column {name!r} {what}")
    mode = metadata.configuration.get(MODE, "none")
    if mode.lower() not in ("none", "name", "id"):
        raise MalformedLog(f"the property {MODE} cannot be {mode!r}")


def _history_entry(store: Store, version: int, entry: Entry, written: int | None) -> HistoryEntry:
    """Return the entry of a commit; `written` is its file's time, None if it has a timestamp."""
    info = info_of(read_commit(store, entry.path))
    stamped = None if info is None else info.in_commit_timestamp
    time = next(each for each in (written, stamped, entry.modified) if each is not None)
    if info is None:
        return HistoryEntry(version, time, None, {})
    return HistoryEntry(version, time, info.operation, info.fields)
