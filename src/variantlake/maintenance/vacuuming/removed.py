"""Find files that left a table and that no version needs, from the log alone, without a listing.

Commits name the files that they remove, change data files, and deletion vectors. The log must reach
back to the table's first commit, or to the files that an earlier vacuum removed. Files that never
were in the log (orphans of killed loads) are not found. A listing finds all that is found here.
Spec: PROTOCOL, "Add File and Remove File", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from variantlake.batches import batched
from variantlake.delta.actions.actions import (
    AddCdcFile,
    CommitInfo,
    DeletionVectorDescriptor,
    RemoveFile,
    info_of,
    parse_log,
)
from variantlake.delta.log.deletion_vectors import vector_location
from variantlake.delta.log.files.file_paths import decode_path, is_absolute
from variantlake.delta.log.log_segment import LOG, all_commits, commit_version
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidValue, MissingSource, VariantLakeError
from variantlake.maintenance.vacuuming.listing import (
    FolderNames,
    Listing,
    UnneededFile,
    UnneededFiles,
)
from variantlake.maintenance.vacuuming.retained import COMMITS_AT_ONCE, THREADS, RetainedPaths
from variantlake.storage.store import Entry, LocalStore, Store

_FILES_AT_ONCE = 4096


def list_removed(
    snapshot: Snapshot,
    retained: RetainedPaths,
    cutoff: int,
    found: UnneededFiles,
    *,
    progress: Callable[[int], object],
) -> Listing:
    """Add to `found` the files that left the table before `cutoff` and are still there.

    Arguments as in `list_unneeded`; `progress` gets the number of files looked up in the store.

    Raises InvalidValue if the log does not reach back far enough, MalformedLog.
    """
    try:
        return _list_removed(snapshot, retained, cutoff, found, progress)
    except MissingSource as error:  # another writer has cleaned up the log meanwhile
        raise _too_short(snapshot, f"{error.file} was removed while the log was read") from error


def _list_removed(
    snapshot: Snapshot,
    retained: RetainedPaths,
    cutoff: int,
    found: UnneededFiles,
    progress: Callable[[int], object],
) -> Listing:
    commits = list(all_commits(snapshot.store, snapshot.version).values())
    _check_reach(snapshot, commits)
    names, listing, seen = FolderNames.of(snapshot), Listing(visited=0), RetainedPaths()
    place = _Place(snapshot.store, names)
    with ThreadPoolExecutor(THREADS) as pool:
        for some in batched(_named(snapshot.store, pool, commits, cutoff), _FILES_AT_ONCE):
            paths = list(dict.fromkeys(some))
            known = retained.holds(paths) | seen.holds(paths)
            seen.keep_plain(paths)
            wanted = [path for path, skip in zip(paths, known, strict=True) if not skip]
            wanted = [path for path in wanted if place.is_own(path)]
            for path, entry in zip(wanted, pool.map(snapshot.store.entry, wanted), strict=True):
                kind = names.kind(path)
                if entry is not None and kind is not None and entry.modified < cutoff:
                    found.add(UnneededFile(path, entry.size, kind))
            listing.files += len(wanted)
            progress(listing.files)
    return listing


def _check_reach(snapshot: Snapshot, commits: list[Entry]) -> None:
    """Raise InvalidValue unless these commits name all files that left the table.

    Files that an earlier vacuum handled need not be named.
    """
    first = commits[0] if commits else snapshot.last
    version = commit_version(first.path)
    if version == 0:
        return
    store = snapshot.store
    infos = [
        (entry, info_of(parse_log(store.stream(entry.path), store.join(entry.path))))
        for entry in commits
    ]
    for (entry, start), (_, end) in pairwise(_vacuums(infos)):
        if start.operation == "VACUUM START" and _is_done(end):
            retention = _retention(start)
            if retention is not None and first.modified < entry.modified - retention:
                return
    begin = snapshot.version if version is None else version
    raise _too_short(snapshot, f"the log begins with version {begin}")


def _too_short(snapshot: Snapshot, why: str) -> InvalidValue:
    return InvalidValue(
        f"{why}: the log does not name the files that left the table earlier, nor a vacuum that"
        " removed them",
        file=snapshot.store.uri,
        hint="leave out lite=True: a vacuum that lists the folder finds everything",
        cli_hint="leave out --lite: a vacuum that lists the folder finds everything",
    )


def _vacuums(
    infos: list[tuple[Entry, CommitInfo | None]],
) -> Iterator[tuple[Entry, CommitInfo]]:
    for entry, info in infos:
        if info is not None and info.operation in ("VACUUM START", "VACUUM END"):
            yield entry, info


def _is_done(end: CommitInfo) -> bool:
    parameters = end.fields.get("operationParameters")
    status = parameters.get("status") if isinstance(parameters, dict) else None
    return end.operation == "VACUUM END" and status == "COMPLETED"


def _retention(start: CommitInfo) -> int | None:
    """Return the retention of a vacuum in milliseconds, None if its start does not tell."""
    parameters = start.fields.get("operationParameters")
    if not isinstance(parameters, dict):
        return None
    names = ("specifiedRetentionMillis", "defaultRetentionMillis")
    text = next((str(parameters[name]) for name in names if name in parameters), "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _named(
    store: Store, pool: ThreadPoolExecutor, commits: list[Entry], cutoff: int
) -> Iterator[str]:
    """Yield the files that left the table in these commits, as paths from its root."""
    for some in batched(commits, COMMITS_AT_ONCE):
        for paths in pool.map(partial(_removed, store, cutoff), some):
            yield from paths


def _removed(store: Store, cutoff: int, entry: Entry) -> list[str]:
    found = []
    for action in parse_log(store.stream(entry.path), store.join(entry.path)):
        if isinstance(action, RemoveFile) and (action.deletion_timestamp or 0) < cutoff:
            found.append(_plain(action.path))
            if action.deletion_vector is not None:
                found.append(_vector(store, action.deletion_vector))
        elif isinstance(action, AddCdcFile):
            found.append(_plain(action.path))
    return [path for path in found if path is not None]


def _plain(path: str) -> str | None:
    """Return the path from the root, None for one that may lead elsewhere."""
    try:
        decoded = decode_path(path)
    except VariantLakeError:
        return None
    odd = is_absolute(path) or "\\" in decoded
    return None if odd or not {"", ".", ".."}.isdisjoint(decoded.split("/")) else decoded


def _vector(store: Store, vector: DeletionVectorDescriptor) -> str | None:
    if vector.storage_type != "u":
        return None
    return vector_location(store, vector).removeprefix(f"{store.uri}/")


@dataclass(slots=True)
class _Place:
    """Decides which folders a listing would enter as the table's own."""

    store: Store
    names: FolderNames
    _existing: dict[str, bool] = field(default_factory=lambda: {"": True})

    def is_own(self, path: str) -> bool:
        """Whether a file is no link, and all folders above it are the table's."""
        store = self.store
        if isinstance(store, LocalStore) and (store.root / path).is_symlink():
            return False
        return self._is_entered(path.rpartition("/")[0])

    def _is_entered(self, folder: str) -> bool:
        if folder not in self._existing:
            above = self._is_entered(folder.rpartition("/")[0])
            entered = above and self.names.is_entered(folder) and not self._is_another(folder)
            self._existing[folder] = entered
        return self._existing[folder]

    def _is_another(self, folder: str) -> bool:
        """Whether the folder is a link, or has a separate log."""
        store = self.store
        if isinstance(store, LocalStore):
            return (store.root / folder).is_symlink() or (store.root / folder / LOG).is_dir()
        return next(iter(store.list_from(f"{folder}/{LOG}")), None) is not None
