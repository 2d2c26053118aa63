"""Find the version that added each file of a table, as far as the log still tells."""

from __future__ import annotations

from collections.abc import Mapping

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.log_segment import all_commits
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot

MAX_COMMITS = 2_000
"""Our limit on the commits that are read, newest first."""


def versions_of_files(snapshot: Snapshot, most: int = MAX_COMMITS) -> Mapping[str, int]:
    """Map the paths of a snapshot's files to the versions that added them; omits unknown ones.

    A file that was added again under the same path (for statistics or a deletion vector) has the
    latest version. Reads at most `most` commits, the newest.
    """
    wanted = set(snapshot.files["path"].to_pylist())
    found: dict[str, int] = {}
    commits = all_commits(snapshot.store, snapshot.version)
    for read, (version, entry) in enumerate(reversed(commits.items())):
        if len(found) == len(wanted) or read == most:
            break
        for action in read_commit(snapshot.store, entry.path):
            if isinstance(action, AddFile) and action.path in wanted:
                found.setdefault(action.path, version)
    return found


def order_of_files(snapshot: Snapshot, versions: Mapping[str, int]) -> list[tuple[int, str, int]]:
    """List (version, path, bytes) of every file, oldest first; an unknown version is -1."""
    files = snapshot.files
    rows = zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)
    return sorted((versions.get(path, -1), path, size) for path, size in rows)
