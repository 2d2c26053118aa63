"""Report the growth of a table: files, bytes and rows at each of its last versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from variantlake.delta.actions.actions import Action, AddFile, RemoveFile
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats.stats_reader import StatsReader
from variantlake.errors import VariantLakeError
from variantlake.parquet.stats.facts import UNKNOWN

MAX_VERSIONS = 200
"""The number of newest versions to report; each costs one read of the log."""


def versions_of(snapshot: Snapshot, rows: int | None) -> list[dict[str, Any]]:
    """Return the last versions in the log, oldest first, with the table's size at each.

    `rows` is the number of rows at the newest version. A version's `rows` is None if the log does
    not show how many rows a later commit added or removed.
    """
    files, size = snapshot.files.num_rows, int(snapshot.files["size"].to_numpy().sum())
    reader = StatsReader(snapshot.schema)
    found = []
    for entry in snapshot.history(MAX_VERSIONS):
        try:
            actions = read_commit(snapshot.store, commit_path(entry.version))
        except VariantLakeError:  # cleaned up meanwhile, and so are older ones
            break
        adds = _new_files(actions)
        removes = [each for each in actions if isinstance(each, RemoveFile)]
        found.append(
            {
                "version": entry.version,
                "timestamp": entry.timestamp,
                "operation": entry.operation,
                "files": files,
                "bytes": size,
                "rows": rows,
                "added": len(adds),
                "removed": len(removes),
            }
        )
        files += len(removes) - len(adds)
        size += sum(each.size or 0 for each in removes) - sum(each.size for each in adds)
        rows = _before(rows, [*adds, *removes], reader)
    return found[::-1]


def _new_files(actions: Sequence[Action]) -> list[AddFile]:
    """Return the files that a commit added, without those that it described again (`analyze`)."""
    adds = [each for each in actions if isinstance(each, AddFile)]
    replaces = any(isinstance(each, RemoveFile) for each in actions)
    return [each for each in adds if each.data_change or replaces]


def _before(
    rows: int | None, files: Sequence[AddFile | RemoveFile], reader: StatsReader
) -> int | None:
    """Return the rows of the version before a commit that added and removed these files."""
    for file in files:
        records = reader.read(file.stats).num_records
        if rows is None or records == UNKNOWN:
            return None
        vector = file.deletion_vector
        kept = records - (vector.cardinality if vector else 0)
        rows += kept if isinstance(file, RemoveFile) else -kept
    return rows
