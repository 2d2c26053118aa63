"""Collect the files that a table's versions need: live files, and those of recent versions.

The set holds 64-bit hashes of paths, 8 MB for a million. If two paths have one hash, a file is kept
without need, never the opposite. In the same way, if the meaning of a path in the log is not
certain, all files that it may mean are kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from variantlake.batches import batched
from variantlake.delta.actions.actions import (
    AddCdcFile,
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    RemoveFile,
    parse_log,
)
from variantlake.delta.log.deletion_vectors import vector_location
from variantlake.delta.log.files.file_paths import decode_path, is_absolute
from variantlake.delta.log.files.logical_files import values
from variantlake.delta.log.log_segment import all_commits, commit_version
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_removes
from variantlake.delta.protocol.named_versions import named_versions
from variantlake.errors import MissingSource, VariantLakeError
from variantlake.storage.store import Entry, Store
from variantlake.writing.autoload_files import DOMAIN, RUN_PATH
from variantlake.writing.staged_files import list_stages

_SPECIAL = r"^/|[%:\\]|(^|/)\.{0,2}(/|$)"
"""Matches paths that may lead elsewhere; all others are plain relative names."""

MAX_DEPTH = 256
"""Our limit on nested folders of a table to which absolute paths may lead."""

COMMITS_AT_ONCE = 64
THREADS = min(16, 4 * (os.cpu_count() or 1))


class RetainedPaths:
    """A growing set of paths from the table's root; lookups are for many paths at a time."""

    def __init__(self) -> None:
        self._sorted: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._waiting: list[npt.NDArray[np.int64]] = []

    def keep(self, paths: Sequence[str]) -> None:
        """Keep files by their paths in the log, relative or absolute."""
        self._add([name for path in paths for name in meanings(path)])

    def keep_plain(self, paths: Sequence[str]) -> None:
        """Keep files by paths from the root that need no decoding."""
        self._add(paths)

    def holds(self, paths: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return a mask of these paths from the root that are kept."""
        if self._waiting:
            self._sorted = np.unique(np.concatenate([self._sorted, *self._waiting]))
            self._waiting = []
        hashes = _hashes(paths)
        places = np.searchsorted(self._sorted, hashes)
        places[places == self._sorted.size] = 0
        if not self._sorted.size:
            return np.zeros(len(paths), np.bool_)
        found: npt.NDArray[np.bool_] = self._sorted[places] == hashes
        return found

    def _add(self, paths: Sequence[str]) -> None:
        if paths:
            self._waiting.append(np.unique(_hashes(paths)))


def _hashes(paths: Sequence[str]) -> npt.NDArray[np.int64]:
    # Python's string hashes are salted, so nobody can craft paths with equal hashes.
    return np.fromiter(map(hash, paths), np.int64, len(paths))


def meanings(path: str) -> Iterator[str]:
    """Yield the paths from the table's root that a path of the log may mean.

    A relative path means one file. An absolute one may also lead into the table under another name
    of its root (a link, a mount, another scheme of the same store), so each suffix may be meant.
    """
    yield path
    try:
        decoded = decode_path(path)
    except VariantLakeError:
        return
    steps: list[str] = []
    left = is_absolute(path) or "\\" in decoded
    for step in decoded.replace("\\", "/").split("/"):
        if step == "..":
            left = left or not steps
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    yield "/".join(steps)
    if left:
        first = max(1, len(steps) - MAX_DEPTH)
        yield from ("/".join(steps[start:]) for start in range(first, len(steps)))


def retained_paths(snapshot: Snapshot, cutoff: int) -> RetainedPaths:
    """Return the files of all versions that were the newest at `cutoff` (milliseconds) or later.

    Files of versions with names, of open stages, and of autoload state are included, those of the
    log itself are not. Raises as `Snapshot.read` for a log that cannot be read.
    """
    found = RetainedPaths()
    _keep_live(found, snapshot)
    keep_named(found, snapshot)
    for staged in list_stages(snapshot.store):
        found.keep([add.path for add in staged.adds])
    _keep_all_runs(found, snapshot)
    removes = read_removes(snapshot.store, snapshot.version).values()
    young = (remove for remove in removes if (remove.deletion_timestamp or 0) >= cutoff)
    for some in batched(young, 4096):
        _keep_actions(found, snapshot.store, some)
    commits = _since(snapshot, cutoff)
    keep_commits(found, snapshot.store, commits)
    _keep_earlier_runs(found, snapshot, commits)
    return found


def _keep_earlier_runs(found: RetainedPaths, snapshot: Snapshot, young: Sequence[Entry]) -> None:
    """Keep the state of autoloads in the version before the young commits.

    State leaves the table without a tombstone, and an autoload may have started just before.
    """
    first = commit_version(young[0].path) if young else None
    if not first or not any(name.startswith(DOMAIN) for name in snapshot.domains):
        return
    with contextlib.suppress(MissingSource):  # cleaned up: no reader of that version is left
        _keep_all_runs(found, snapshot.at(first - 1))


def keep_named(found: RetainedPaths, snapshot: Snapshot) -> None:
    """Keep the files of versions that have names.

    Skips a version whose log another engine has cleaned up: nobody can read it any more.
    """
    for version in {each.version for each in named_versions(snapshot.domains.values())}:
        with contextlib.suppress(MissingSource):
            old = snapshot.at(version)
            _keep_live(found, old)
            _keep_all_runs(found, old)


def _keep_live(found: RetainedPaths, snapshot: Snapshot) -> None:
    for start in range(0, snapshot.files.num_rows, 65536):
        files = snapshot.files.slice(start, 65536)
        for paths in files["path"].chunks:
            _keep_paths(found, paths)
        if files["deletion_vector"].null_count < files.num_rows:
            vectors = values(files["deletion_vector"].drop_null())
            _keep_vectors(found, snapshot.store, (DeletionVectorDescriptor(**v) for v in vectors))


def keep_commits(found: RetainedPaths, store: Store, commits: Iterable[Entry]) -> None:
    """Keep every file that these commits name: added, removed, change data, or autoload state."""
    with ThreadPoolExecutor(THREADS) as pool:
        for some in batched(commits, COMMITS_AT_ONCE):
            for actions in pool.map(partial(_files_of, store), some):
                _keep_actions(found, store, actions)


FileAction = AddFile | RemoveFile | AddCdcFile | DomainMetadata


def _since(snapshot: Snapshot, cutoff: int) -> list[Entry]:
    """Return the commits from the first one whose file was modified at `cutoff` or later.

    Tombstones alone are not enough: the writer of a checkpoint left out those older than the
    retention at that time. Later commits count whatever their times, which need not rise.
    """
    commits = list(all_commits(snapshot.store, snapshot.version).values())
    young = (number for number, entry in enumerate(commits) if entry.modified >= cutoff)
    return commits[next(young, len(commits)) :]


def _files_of(store: Store, entry: Entry) -> list[FileAction]:
    """Return the actions of one commit that name files, none if it was cleaned up."""
    try:
        return [
            action
            for action in parse_log(store.stream(entry.path), store.join(entry.path))
            if isinstance(action, FileAction)
        ]
    except MissingSource:  # cleaned up in the meantime: no reader of that version is left
        return []


def _keep_actions(found: RetainedPaths, store: Store, actions: Sequence[FileAction]) -> None:
    files = [action for action in actions if not isinstance(action, DomainMetadata)]
    found.keep([action.path for action in files])
    others = (action for action in files if not isinstance(action, AddCdcFile))
    _keep_vectors(found, store, (a.deletion_vector for a in others if a.deletion_vector))
    for action in actions:
        if isinstance(action, DomainMetadata):
            _keep_runs(found, action)


def _keep_all_runs(found: RetainedPaths, snapshot: Snapshot) -> None:
    for domain in snapshot.domains.values():
        _keep_runs(found, domain)


def _keep_runs(found: RetainedPaths, domain: DomainMetadata) -> None:
    """Keep the files with the state of an autoload."""
    if domain.domain.startswith(DOMAIN):
        found.keep_plain(RUN_PATH.findall(domain.configuration))


def _keep_paths(found: RetainedPaths, paths: Any) -> None:
    special = pc.match_substring_regex(paths, _SPECIAL)
    found.keep_plain(paths.to_pylist())
    found.keep(paths.filter(special).to_pylist())


def _keep_vectors(
    found: RetainedPaths, store: Store, vectors: Iterable[DeletionVectorDescriptor]
) -> None:
    plain: list[str] = []
    paths: list[str] = []
    for vector in vectors:
        if vector.storage_type == "p":
            paths.append(vector.path_or_inline_dv)
        elif vector.storage_type == "u":
            plain.append(vector_location(store, vector).removeprefix(f"{store.uri}/"))
    found.keep_plain(plain)
    found.keep(paths)
