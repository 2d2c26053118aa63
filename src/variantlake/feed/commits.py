"""Find the changed files of a range of commits: added, removed, or with a list of changes.

If a commit has change data files, only these count. Otherwise the rows of added files are inserts,
those of removed files deletes; for a file that stays, the difference of its deletion vectors
counts. Actions whose `dataChange` is false are not changes. Spec: PROTOCOL, "Change Data Files",
"Add CDC File".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from variantlake.delta.actions.actions import (
    Action,
    AddCdcFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    Metadata,
    RemoveFile,
    info_of,
)
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.log_segment import all_commits
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_state
from variantlake.delta.log.time_travel import check_version, find_version, version_at
from variantlake.delta.protocol.change_feed import CHANGE_FEED
from variantlake.delta.schema.column_mapping import is_mapped
from variantlake.delta.schema.table_schema import PrimitiveType, StructType
from variantlake.errors import (
    InvalidQuery,
    MissingSource,
    UnsupportedFeature,
    in_file,
)
from variantlake.storage.store import Entry

INSERT, DELETE = "insert", "delete"
_ROW_COUNTS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file whose rows a version inserted or deleted, or that lists changed rows.

    `change` is INSERT or DELETE for all rows, None if a column of the file has it for each row.
    `timestamp` is that of the commit, in milliseconds since the epoch. Rows in the deletion vector
    of `file` do not count; with `among`, only rows in `among` count.
    """

    version: int
    timestamp: int
    change: str | None
    file: AddFile
    among: DeletionVectorDescriptor | None = None


def version_range(
    snapshot: Snapshot,
    first: int | None,
    last: int | None,
    *,
    since: int | None = None,
    until: int | None = None,
) -> VersionRange:
    """Return the versions from `first`, or the first one not before `since`, to `last` or `until`.

    Times are milliseconds since the epoch. The default start is version 0, the default end the
    snapshot's version.

    Raises InvalidQuery for a range that is empty or has two starts or ends, and for a time after
    the newest version; MissingSource for a version that does not exist.
    """
    if first is not None and since is not None:
        raise InvalidQuery(
            "a first version and a first time are given: leave out one of them",
            file=snapshot.store.uri,
        )
    if last is not None and until is not None:
        raise InvalidQuery(
            "a last version and a last time are given: leave out one of them",
            file=snapshot.store.uri,
        )
    check_version(first)
    check_version(last)
    # The last version at `until`, and the first one not before `since`: both ends are inclusive.
    if until is not None:
        last = version_at(snapshot.store, snapshot.metadata, until)
    if first is None and since is not None:
        first = first_since(snapshot, since)
    found = VersionRange(first or 0, snapshot.version if last is None else last)
    for version in (found.first, found.last):
        if not 0 <= version <= snapshot.version:
            raise MissingSource(
                f"version {version} does not exist, the newest is {snapshot.version}",
                file=snapshot.store.uri,
                hint="`Table.history` lists the versions",
                cli_hint="`variantlake history` lists the versions",
            )
    if found.first > found.last:
        raise InvalidQuery(
            f"the changes from version {found.first} to version {found.last}: "
            "the end is before the beginning",
            file=snapshot.store.uri,
        )
    return found


def changed_files(
    snapshot: Snapshot, versions: VersionRange, read: Snapshot
) -> Iterator[ChangedFile]:
    """Yield the changed files of these versions, which are read with the schema of `read`.

    Raises UnsupportedFeature, with its number, for a version that recorded no changes or has
    another schema; MissingSource for one that the log does not hold any more; MalformedLog.
    """
    commits = _commits(snapshot, versions)
    _check_metadata(snapshot, metadata_at(snapshot, versions.first), versions.first, read)
    clock = -1
    for version, entry in commits:
        actions = read_commit(snapshot.store, entry.path)
        info = info_of(actions)
        for action in actions:
            if isinstance(action, Metadata):
                _check_metadata(snapshot, action, version, read)
        clock = max(entry.modified, clock + 1)
        stamped = info.in_commit_timestamp if info is not None else None
        time = clock if stamped is None else stamped
        for change, file, among in _changes(snapshot, version, actions, info):
            yield ChangedFile(version, time, change, file, among)


def _changes(
    snapshot: Snapshot, version: int, actions: Sequence[Action], info: CommitInfo | None
) -> Iterator[tuple[str | None, AddFile, DeletionVectorDescriptor | None]]:
    listed = [action for action in actions if isinstance(action, AddCdcFile)]
    if listed:
        for each in listed:
            yield None, AddFile(each.path, each.size, 0, each.partition_values), None
        return
    if _changed_no_rows(info):
        return
    adds = {
        decode_path(each.path): each
        for each in actions
        if isinstance(each, AddFile) and each.data_change
    }
    removes = [each for each in actions if isinstance(each, RemoveFile) and each.data_change]
    gone = {decode_path(add.path): add for add in _as_adds(snapshot, version, removes)}
    for path, add in adds.items():
        before = gone.pop(path, None)
        if before is None:
            yield INSERT, add, None
        elif before.deletion_vector != add.deletion_vector:
            # Deleted are the rows in the new vector and not in the old one; inserted the reverse.
            if add.deletion_vector is not None:
                yield DELETE, before, add.deletion_vector
            if before.deletion_vector is not None:
                yield INSERT, add, before.deletion_vector
    for add in gone.values():
        yield DELETE, add, None


def _changed_no_rows(info: CommitInfo | None) -> bool:
    """Whether a MERGE changed no rows by its metrics: it may have moved rows to other files.

    Delta Spark ignores these, too.
    """
    metrics = info.fields.get("operationMetrics") if info is not None else None
    if info is None or info.operation != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(metrics.get(name) == "0" for name in _ROW_COUNTS)


def _as_adds(snapshot: Snapshot, version: int, removes: Iterable[RemoveFile]) -> Iterator[AddFile]:
    """Convert removed files to added ones; looks up incomplete ones in the previous version."""
    unknown = []
    for each in removes:
        if each.partition_values is None or each.size is None:
            unknown.append(each)
            continue
        yield AddFile(
            each.path,
            each.size,
            0,
            each.partition_values,
            stats=each.stats,
            tags=each.tags,
            deletion_vector=each.deletion_vector,
        )
    if unknown:
        before = snapshot.at(version - 1)
        known = {decode_path(add.path): add for add in before.add_files()}
        for each in unknown:
            add = known.get(decode_path(each.path))
            if add is not None:
                yield add


def _commits(snapshot: Snapshot, versions: VersionRange) -> list[tuple[int, Entry]]:
    commits = all_commits(snapshot.store)
    wanted = range(versions.first, versions.last + 1)
    gone = next((version for version in wanted if version not in commits), None)
    if gone is not None:
        raise MissingSource(
            f"the log does not hold version {gone} any more",
            file=snapshot.store.uri,
            hint=f"the changes can be read from version {min(commits, default=0)} on",
        )
    return [(version, commits[version]) for version in wanted]


def first_since(snapshot: Snapshot, time: int) -> int:
    """Return the first version that is not older than a time, in milliseconds since the epoch.

    It may be newer than the snapshot.
    Raises InvalidQuery for a time after the newest version.
    """
    older = find_version(snapshot.store, snapshot.metadata, time, before=True)
    if older is None:
        return min(all_commits(snapshot.store), default=0)
    return older + 1


def metadata_at(snapshot: Snapshot, version: int) -> Metadata:
    """Return the metadata of a version. Raises as `read_state`."""
    if version == snapshot.version:
        return snapshot.metadata
    _, state = read_state(snapshot.store, version)
    return state.metadata or snapshot.metadata


def _check_metadata(snapshot: Snapshot, metadata: Metadata, version: int, read: Snapshot) -> None:
    """Check that a version records changes, and that the schema of `read` can read its rows."""
    if metadata.configuration.get(CHANGE_FEED, "").lower() != "true":
        raise UnsupportedFeature(
            f"version {version} recorded no changes: the property {CHANGE_FEED} was not true",
            file=snapshot.store.uri,
            hint=f"set_properties({{'{CHANGE_FEED}': 'true'}}) records those from then on; begin "
            "with a version after that",
            cli_hint=f"`variantlake set TABLE {CHANGE_FEED}=true` records those from then on; "
            "begin with a version after that",
        )
    check_schema(snapshot, metadata, version, read)


def check_schema(snapshot: Snapshot, metadata: Metadata, version: int, read: Snapshot) -> None:
    """Raise UnsupportedFeature if rows of a version cannot be read with the schema of `read`."""
    with in_file(snapshot.store.uri):
        problem = _problem(StructType.from_json(metadata.schema_string), metadata, version, read)
    if problem:
        raise UnsupportedFeature(
            f"the schema of version {version} is not that of version {read.version}: {problem}",
            file=snapshot.store.uri,
            hint=_NEWER_SCHEMA if version > read.version else _OLDER_SCHEMA,
        )


_OLDER_SCHEMA = "read the changes before and after the change of the schema by themselves"
_NEWER_SCHEMA = "start the stream again: it reads the table by its new schema then"


def _problem(schema: StructType, metadata: Metadata, version: int, read: Snapshot) -> str:
    """Return why the schema of `read` cannot read rows of a version; empty if it can."""
    if metadata.partition_columns != read.metadata.partition_columns:
        return "it is partitioned by other columns"
    if is_mapped(metadata.configuration) != is_mapped(read.properties):
        return "columns were mapped to other names since"
    newer = version > read.version
    widens = "typeWidening" in read.features or "typeWidening-preview" in read.features
    known = {field.physical_name: field for field in read.schema.fields}
    for field in schema.fields:
        found = known.get(field.physical_name)
        if found is None and newer:
            return f"it has the column {field.name!r}"
        if found is None or found.name != field.name:
            return f"the column {field.name!r} was renamed or dropped"
        if newer and str(found.type) != str(field.type):
            return f"the column {field.name!r} is {field.type}, and was {found.type}"
        plain = isinstance(field.type, PrimitiveType) and isinstance(found.type, PrimitiveType)
        if str(found.type) != str(field.type) and plain and not widens:
            return f"the column {field.name!r} was {field.type}"
        if type(found.type) is not type(field.type):
            return f"the column {field.name!r} was {field.type}"
    return ""
