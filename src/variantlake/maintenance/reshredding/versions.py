"""Which version of a table brought each of its files, as far as the log still tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variantlake.delta.actions.log_lines import AddFile
from variantlake.delta.log.log_segment import all_commits, commit_version
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot

MAX_COMMITS = 2_000
"""Our limit on the commits that are read, newest first."""


def versions_of_files(snapshot: Snapshot, most: int = MAX_COMMITS) -> Mapping[str, int]:
    """The versions that added the files of a snapshot, by path; those that are not known are left.

    A file that was added again under its own path (statistics, deletion vectors) counts from the
    last time. At most `most` commits are read, the newest.
    """
    wanted = set(snapshot.files["path"].to_pylist())
    found: dict[str, int] = {}
    read = 0
    for entry in reversed(all_commits(snapshot.store)):
        version = commit_version(entry.path)
        if version is None or version > snapshot.version:
            continue
        if len(found) == len(wanted) or read == most:
            break
        read += 1
        for action in read_commit(snapshot.store, entry.path):
            if isinstance(action, AddFile) and action.path in wanted:
                found.setdefault(action.path, version)
    return found


def order_of_files(snapshot: Snapshot, versions: Mapping[str, int]) -> list[tuple[int, str, int]]:
    """(version, path, bytes) of every file, -1 for a version that is not known, oldest first."""
    files: Any = snapshot.files.select(["path", "size"])
    rows = zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)
    return sorted((versions.get(path, -1), path, size) for path, size in rows)
