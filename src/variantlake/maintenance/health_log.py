"""The state of a log: how long it is, and how far its newest checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from variantlake.delta.checkpoint.checkpoint_writer import DEFAULT_INTERVAL
from variantlake.delta.log.log_segment import LOG, all_checkpoints, commit_version
from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.health_findings import Finding, Severity
from variantlake.shown import counted

_LATE = 5
"""Intervals without a checkpoint from which on it is missing."""

_INTERVAL = "delta.checkpointInterval"


@dataclass(frozen=True, slots=True)
class _Log:
    """`size` in bytes; `parts` are the files of the newest checkpoint, at `checkpoint`."""

    files: int
    size: int
    oldest: int
    commits: int
    checkpoint: int | None
    parts: int


def log_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """What there is to say of the log, and of its checkpoints."""
    log = _read(snapshot)
    text = snapshot.properties.get(_INTERVAL, "")
    interval = int(text) if text.isdecimal() and len(text) < 10 and int(text) else DEFAULT_INTERVAL
    since = snapshot.version if log.checkpoint is None else snapshot.version - log.checkpoint
    yield Finding(
        "log",
        Severity.INFO,
        f"{counted(log.commits, 'commit')} from version {log.oldest} on, "
        f"{counted(log.size, 'byte')} in {counted(log.files, 'file')}",
        details={"commits": log.commits, "bytes": log.size, "files": log.files,
                 "oldest_version": log.oldest},
    )  # fmt: skip
    details = {
        "checkpoint": log.checkpoint,
        "commits_since": since,
        "interval": interval,
        "parts": log.parts,
    }
    where = "there is no checkpoint" if log.checkpoint is None else (
        f"the newest checkpoint is of version {log.checkpoint}"
    )  # fmt: skip
    late = since >= _LATE * interval or (since >= 100 and since > 2 * DEFAULT_INTERVAL)
    yield Finding(
        "checkpoint",
        Severity.WARNING if late else Severity.INFO,
        f"{where}, {counted(since, 'commit')} before the newest version"
        + (": every reader reads them one by one" if late else ""),
        mend="Table.checkpoint()" if late else "",
        command="variantlake checkpoint" if late else "",
        details=details,
    )
    if log.parts > 1:
        yield Finding(
            "checkpoint",
            Severity.INFO,
            f"the newest checkpoint has {log.parts} parts in a form that is no longer recommended; "
            "one of ours is one file",
            mend="Table.checkpoint()",
            command="variantlake checkpoint",
            details=details,
        )


def _read(snapshot: Snapshot) -> _Log:
    entries = list(snapshot.store.list_from(LOG))
    versions = [v for e in entries if (v := commit_version(e.path)) is not None]
    versions = [version for version in versions if version <= snapshot.version]
    found = [each for each in all_checkpoints(entries) if each.version <= snapshot.version]
    newest = max(found, key=lambda each: each.version, default=None)
    return _Log(
        files=len(entries),
        size=sum(entry.size for entry in entries),
        oldest=min(versions, default=snapshot.version),
        commits=len(versions),
        checkpoint=None if newest is None else newest.version,
        parts=0 if newest is None else len(newest.files),
    )
