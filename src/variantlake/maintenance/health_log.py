"""Check the state of the log: its length, and the age of its newest checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from variantlake.delta.checkpoint.checkpoint_writer import DEFAULT_INTERVAL
from variantlake.delta.log.log_segment import LOG, all_checkpoints, commit_version
from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.health_findings import HealthFinding, Severity
from variantlake.shown import counted
from variantlake.storage.store import Entry

_LATE = 5
"""After this many checkpoint intervals without one, the checkpoint is late."""

_INTERVAL = "delta.checkpointInterval"


def log_findings(snapshot: Snapshot) -> Iterator[HealthFinding]:
    """Yield the findings about the log and its checkpoints."""
    entries = list(snapshot.store.list_from(LOG))
    versions = [v for e in entries if (v := commit_version(e.path)) is not None]
    versions = [version for version in versions if version <= snapshot.version]
    oldest = min(versions, default=snapshot.version)
    size = sum(entry.size for entry in entries)
    yield HealthFinding(
        "log",
        Severity.INFO,
        f"{counted(len(versions), 'commit')} from version {oldest} on, "
        f"{counted(size, 'byte')} in {counted(len(entries), 'file')}",
        details={"commits": len(versions), "bytes": size, "files": len(entries),
                 "oldest_version": oldest},
    )  # fmt: skip
    yield from _checkpoint(snapshot, entries)


def _checkpoint(snapshot: Snapshot, entries: list[Entry]) -> Iterator[HealthFinding]:
    found = [each for each in all_checkpoints(entries) if each.version <= snapshot.version]
    newest = max(found, key=lambda each: each.version, default=None)
    text = snapshot.properties.get(_INTERVAL, "")
    interval = int(text) if text.isdecimal() and len(text) < 10 and int(text) else DEFAULT_INTERVAL
    since = snapshot.version - (0 if newest is None else newest.version)
    parts = 0 if newest is None else len(newest.files)
    details = {
        "checkpoint": None if newest is None else newest.version,
        "commits_since": since,
        "interval": interval,
        "parts": parts,
    }
    where = "there is no checkpoint" if newest is None else (
        f"the newest checkpoint is of version {newest.version}"
    )  # fmt: skip
    late = since >= _LATE * interval or (since >= 100 and since > 2 * DEFAULT_INTERVAL)
    yield HealthFinding(
        "checkpoint",
        Severity.WARNING if late else Severity.INFO,
        f"{where}, {counted(since, 'commit')} before the newest version"
        + (": every reader reads them one by one" if late else ""),
        fix="Table.checkpoint()" if late else "",
        command="variantlake checkpoint" if late else "",
        details=details,
    )
    if parts > 1:
        yield HealthFinding(
            "checkpoint",
            Severity.INFO,
            f"the newest checkpoint has {parts} parts in a form that is no longer recommended;"
            " Variantlake writes a single file",
            fix="Table.checkpoint()",
            command="variantlake checkpoint",
            details=details,
        )
