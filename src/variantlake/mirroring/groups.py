"""Track which files of a mirror hold the rows of which files of its table, version by version.

A group is some files of the table and the files of the mirror that hold exactly their rows. A
compaction only replaces the group's files of the table: the rows stay the same. New deletion
vectors may be applied to the mirror's file. Any other change of a file makes its group stale, and
its rows are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import orjson
import pyarrow.compute as pc

from variantlake.delta.actions.actions import Action, AddFile, DeletionVectorDescriptor, RemoveFile
from variantlake.delta.log.files.file_paths import decode_path
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MissingSource

GROUP_TAG = "variantlake.mirror.group"
"""Tag of each file of a mirror: the name of its group."""

SOURCES_TAG = "variantlake.mirror.sources"
"""Tag of one file of each group: the table's files as a list of [path, deletion vector, rows].
`rows` is null unless the mirror's file has the rows of the sources in this order."""


@dataclass(slots=True, eq=False)
class MirrorGroup:
    """`sources`: files of the table by decoded path, with the ids of their deletion vectors.

    `mirrored` are the files of the mirror with their rows, or with outdated rows if the group
    `is_stale`. With `is_renamed` the tags in the mirror's log name older files of the table.
    `counts` are the numbers of rows of each source in the only mirrored file, which has them in
    this order; None if it has not. `grown` has the old and the new vector of sources with more
    deleted rows, in a group that is not stale.
    """

    sources: dict[str, str | None]
    mirrored: list[AddFile] = field(default_factory=list)
    is_stale: bool = False
    is_renamed: bool = False
    counts: list[int] | None = None
    grown: dict[str, tuple[DeletionVectorDescriptor | None, DeletionVectorDescriptor]] = field(
        default_factory=dict
    )


@dataclass(slots=True)
class MirrorGroups:
    """All groups of a mirror; each file of the table is in at most one."""

    all: list[MirrorGroup]
    of_path: dict[str, MirrorGroup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for group in self.all:
            for path in group.sources:
                self.of_path[path] = group

    def follow(self, actions: Sequence[Action]) -> None:
        """Apply a commit of the table to the groups."""
        removes = [each for each in actions if isinstance(each, RemoveFile)]
        adds = [each for each in actions if isinstance(each, AddFile)]
        self._move(
            [decode_path(each.path) for each in removes if not each.data_change],
            [each for each in adds if not each.data_change],
        )
        grown = self._grow(removes, adds)
        for remove in removes:
            if remove.data_change and remove.path not in grown:
                self._leave(decode_path(remove.path))
        for add in adds:
            if add.data_change and add.path not in grown:
                self._come(decode_path(add.path), _vector(add))

    def settle(self, files: dict[str, str | None]) -> None:
        """Compare the groups with the table's files, and mark those that differ as stale."""
        for path, vector in files.items():
            group = self.of_path.get(path)
            if group is None or group.sources[path] != vector:
                self._come(path, vector)
        for path in [path for path in self.of_path if path not in files]:
            self._leave(path)

    def _grow(self, removes: Sequence[RemoveFile], adds: Sequence[AddFile]) -> set[str]:
        """Follow files whose deletion vectors alone changed; returns their paths in the log."""
        before = {each.path: each.deletion_vector for each in removes if each.data_change}
        grown = set()
        for add in adds:
            path, now = decode_path(add.path), add.deletion_vector
            group = self.of_path.get(path)
            if not add.data_change or add.path not in before or now is None or group is None:
                continue
            old = before[add.path]
            known = None if old is None else old.unique_id
            if group.is_stale or group.counts is None or group.sources[path] != known:
                continue
            first = group.grown[path][0] if path in group.grown else old
            group.grown[path] = (first, now)
            group.sources[path] = now.unique_id
            grown.add(add.path)
        return grown

    def _come(self, path: str, vector: str | None) -> None:
        group = self.of_path.get(path)
        if group is None:
            group = self.of_path[path] = MirrorGroup({})
            self.all.append(group)
        group.sources[path] = vector
        group.is_stale = True

    def _leave(self, path: str) -> None:
        group = self.of_path.pop(path, None)
        if group is not None:
            del group.sources[path]
            group.is_stale = True

    def _move(self, gone: Sequence[str], adds: Sequence[AddFile]) -> None:
        """Move groups from files that are gone to `adds`, which have the same rows."""
        new = {decode_path(add.path): _vector(add) for add in adds}
        again = {path for path in new if path in self.of_path}
        for path in again:  # new metadata of a file, or a new vector for the same rows
            group = self.of_path[path]
            if group.sources[path] != new[path]:
                self._come(path, new[path])
        left = [path for path in gone if path not in new]
        come = {path: vector for path, vector in new.items() if path not in again}
        known = [self.of_path[path] for path in left if path in self.of_path]
        if not come or not known:
            for path in left:
                self._leave(path)
            for path, vector in come.items():
                self._come(path, vector)
            return
        one = self._joined(list(dict.fromkeys(known)))
        for path in left:
            one.sources.pop(path, None)
            self.of_path.pop(path, None)
        for path, vector in come.items():
            one.sources[path] = vector
            self.of_path[path] = one
        one.is_renamed = True

    def _joined(self, groups: Sequence[MirrorGroup]) -> MirrorGroup:
        first, *others = groups
        for other in others:
            first.sources |= other.sources
            first.mirrored += other.mirrored
            first.is_stale |= other.is_stale or bool(other.grown)
            for path in other.sources:
                self.of_path[path] = first
        first.is_stale |= bool(first.grown)
        first.counts = None
        gone = set(others)
        self.all = [group for group in self.all if group not in gone]
        return first


def groups_in(mirror: Snapshot) -> MirrorGroups | None:
    """The groups in the log of a mirror; None if some of its files are in no group."""
    groups: dict[str, MirrorGroup] = {}
    for add in mirror.add_files():
        tags = add.tags or {}
        name = tags.get(GROUP_TAG)
        if name is None:
            return None
        group = groups.setdefault(name, MirrorGroup({}))
        group.mirrored.append(add)
        sources = tags.get(SOURCES_TAG)
        if sources is not None:
            listed = orjson.loads(sources)
            group.sources |= {path: vector for path, vector, *_ in listed}
            counts = [rows for _, _, *known in listed for rows in known if rows is not None]
            group.counts = counts if len(counts) == len(listed) else None
    if not all(group.sources for group in groups.values()):
        return None
    for group in groups.values():
        if group.counts is not None and [sum(group.counts)] != list(map(_rows, group.mirrored)):
            group.counts = None
    return MirrorGroups(list(groups.values()))


def tagged(group: MirrorGroup, adds: Sequence[AddFile]) -> Iterator[AddFile]:
    """The files of a group, with tags that name the group and its files of the table."""
    if not adds:
        return
    name = decode_path(adds[0].path)
    counts = group.counts if len(adds) == 1 else None
    listed = [
        [path, vector, None if counts is None else counts[number]]
        for number, (path, vector) in enumerate(group.sources.items())
    ]
    sources = orjson.dumps(listed).decode()
    for number, add in enumerate(adds):
        tags = {k: text for k, text in (add.tags or {}).items() if k != SOURCES_TAG}
        tags[GROUP_TAG] = name
        if number == 0:
            tags[SOURCES_TAG] = sources
        yield replace(add, tags=tags)


def files_in(table: Snapshot) -> dict[str, str | None]:
    """The files of the table with live rows, in the form of `MirrorGroup.sources`."""
    files = {decode_path(add.path): _vector(add) for add in adds_of(table.files, texts=False)}
    for add in marked_files(table):
        if _rows(add) == 0:
            del files[decode_path(add.path)]
    return files


def marked_files(table: Snapshot) -> Iterator[AddFile]:
    """The files with deletion vectors."""
    return adds_of(table.files.filter(pc.is_valid(table.files["deletion_vector"])))


def commits_of(table: Snapshot, versions: Iterable[int]) -> Iterator[Sequence[Action]]:
    """The commits of these versions, up to the first that the log no longer holds."""
    for version in versions:
        try:
            yield read_commit(table.store, commit_path(version))
        except MissingSource:
            return


def _rows(add: AddFile) -> int | None:
    """The number of rows of a file that are not deleted."""
    deleted = 0 if add.deletion_vector is None else add.deletion_vector.cardinality
    return None if add.num_records is None else add.num_records - deleted


def _vector(add: AddFile) -> str | None:
    return None if add.deletion_vector is None else add.deletion_vector.unique_id
