"""Find the files of `_delta_log` that make up a version of the table.

Spec: PROTOCOL, "Delta Log Entries", "Log Compaction Files", "Checkpoints",
"Last Checkpoint File".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from variantlake.delta.log.last_checkpoint import read_last_checkpoint
from variantlake.errors import MalformedLog, MissingSource, NotADeltaTable
from variantlake.storage.store import Entry, LocalStore, Store, is_local, local_path

LOG = "_delta_log"
SIDECARS = f"{LOG}/_sidecars"

_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
_CLASSIC = re.compile(r"(\d{20})\.checkpoint\.parquet")
_PART = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_V2 = re.compile(r"(\d{20})\.checkpoint\.[0-9A-Za-z-]{36}\.(?:json|parquet)")
_LISTINGS = 5
"""The most repeated listings, each with other files, before a hole in the last one counts."""


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """A complete checkpoint: one file, or all parts of it in order."""

    version: int
    files: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class LogSegment:
    """What to read for one version: a checkpoint, if any, and every commit after it, in order.

    `last` is the file that the version ends with: its commit, or its checkpoint if the commit
    was cleaned up. `compacted` has log compactions in place of the commits that they cover, and is
    empty if there are none. `checksum` is the file of the version's checksum.
    """

    version: int
    last: Entry
    checkpoint: CheckpointFiles | None
    commits: tuple[Entry, ...]
    compacted: tuple[Entry, ...] = ()
    checksum: Entry | None = None


@dataclass(frozen=True, slots=True)
class _Listing:
    commits: dict[int, Entry]
    checkpoints: tuple[CheckpointFiles, ...]
    compactions: dict[int, dict[int, Entry]]
    checksums: dict[int, Entry]


def commit_path(version: int) -> str:
    """Return the file of a commit, from the table's root."""
    return f"{LOG}/{version:020d}.json"


def compaction_path(first: int, last: int) -> str:
    """Return the file of the log compaction of some commits, from the table's root."""
    return f"{LOG}/{first:020d}.{last:020d}.compacted.json"


def checksum_path(version: int) -> str:
    """Return the file of a version's checksum, from the table's root."""
    return f"{LOG}/{version:020d}.crc"


def commit_version(path: str) -> int | None:
    """Return the version of a commit file, None for any other file."""
    match = _COMMIT.fullmatch(path.rpartition("/")[2])
    return int(match[1]) if match else None


def find_segment(
    store: Store, version: int | None = None, *, without: Collection[int] = ()
) -> LogSegment:
    """Return the files for `version`, the newest if None.

    Skips checkpoints of the versions in `without`, which turned out unreadable.
    Raises NotADeltaTable for a location without a log, MissingSource for a version that does not
    exist or whose log was cleaned up, MalformedLog for a hole, naming the missing file.
    """
    start = read_last_checkpoint(store)
    if start is not None and (version is None or start <= version):
        # The listing starts at a proper prefix of this version's names, so it includes them all.
        listing = _read_names(store.list_from(LOG, f"{start:020d}"))
        usable = {found.version for found in listing.checkpoints}.difference(without)
        if any(version is None or start <= found <= version for found in usable):
            segment = _segment(store, listing, version, without)
            if segment is not None:
                return segment
    segment = _segment_of_all(store, version, without)
    if segment is None:
        raise _not_a_table(store)
    return segment


def _segment_of_all(
    store: Store, version: int | None, without: Collection[int]
) -> LogSegment | None:
    """Like `_segment`, from a listing of the whole log.

    A listing has pages. During a cleanup it may name a checkpoint but no longer the commits that
    follow it, so a hole counts only if the next listing names the same files.
    """
    listing = _read_names(store.list_from(LOG))
    for _ in range(_LISTINGS):
        try:
            return _segment(store, listing, version, without)
        except MalformedLog:
            again = _read_names(store.list_from(LOG))
            if again == listing:
                raise
            listing = again
    return _segment(store, listing, version, without)


def has_log(store: Store) -> bool:
    """Whether the log has any commit or checkpoint."""
    listing = _read_names(store.list_from(LOG))
    return bool(listing.commits or listing.checkpoints)


def commits_after(store: Store, version: int, last: Entry) -> list[Entry] | None:
    """Return the commits that follow `version` without a hole, in order.

    None if they may not belong to it: `last`, the file that the version ends with, changed or is
    gone, or the later commits have a hole. Then the log was cleaned up or replaced.
    """
    commits = _commits_from(store, version)
    now = commits.pop(version, None)
    if not last.is_same(now) and (now is not None or not last.is_same(store.entry(last.path))):
        return None
    found: list[Entry] = []
    while (entry := commits.get(version + 1 + len(found))) is not None:
        found.append(entry)
    return found if len(found) == len(commits) else None


def _commits_from(store: Store, version: int) -> dict[int, Entry]:
    """Return the commits from `version` on.

    On a local disk it looks them up one by one, up to two missing ones in a row: the time of a
    listing grows with the log.
    """
    if not isinstance(store, LocalStore):
        return _read_names(store.list_from(LOG, f"{version:020d}")).commits
    found: dict[int, Entry] = {}
    absent = 0
    while absent < 2:
        entry = store.entry(commit_path(version))
        absent = 0 if entry else absent + 1
        if entry:
            found[version] = entry
        version += 1
    return found


def all_commits(store: Store, last: int | None = None) -> dict[int, Entry]:
    """Return the log's commit files by version, oldest first; up to `last` unless it is None."""
    commits = _read_names(store.list_from(LOG)).commits
    return {v: commits[v] for v in sorted(commits) if last is None or v <= last}


def all_checkpoints(entries: Iterable[Entry]) -> tuple[CheckpointFiles, ...]:
    """Return the complete checkpoints among these files of the log."""
    return _read_names(entries).checkpoints


def _segment(
    store: Store, listing: _Listing, version: int | None, without: Collection[int]
) -> LogSegment | None:
    versions = [*listing.commits, *(checkpoint.version for checkpoint in listing.checkpoints)]
    if not versions:
        return None
    newest = max(versions)
    target = newest if version is None else version
    if target > newest or target < 0:
        raise MissingSource(
            f"version {target} does not exist, the newest is {newest}",
            file=store.uri,
            hint="`Table.history` lists the versions",
            cli_hint="`variantlake history` lists the versions",
        )
    checkpoint: CheckpointFiles | None = None
    for found in listing.checkpoints:
        newer = checkpoint is None or checkpoint.version <= found.version
        # Of several checkpoints of one version, this takes the last, which is the classic one.
        if newer and found.version <= target and found.version not in without:
            checkpoint = found
    first = 0 if checkpoint is None else checkpoint.version + 1
    commits = []
    for number in range(first, target + 1):
        entry = listing.commits.get(number)
        if entry is None:
            raise _hole(store, listing, number, target, checkpoint)
        commits.append(entry)
    last = listing.commits.get(target) or (checkpoint.files[0] if checkpoint else commits[-1])
    return LogSegment(
        target,
        last,
        checkpoint,
        tuple(commits),
        _compacted(listing, first, target),
        listing.checksums.get(target),
    )


def _compacted(listing: _Listing, first: int, target: int) -> tuple[Entry, ...]:
    """Return the commits from `first` to `target` with log compactions for those that they cover.

    Of several compactions that start at one version it takes the longest. The last commit is always
    included, because no compaction has its `commitInfo`; applying its other actions twice does no
    harm.
    """
    found: list[Entry] = []
    number, shorter = first, False
    while number <= target:
        entry, last = listing.commits[number], number
        for end, compaction in listing.compactions.get(number, {}).items():
            if last < end <= target:
                entry, last, shorter = compaction, end, True
        found.append(entry)
        number = last + 1 if last == number else min(last + 1, target)
    return tuple(found) if shorter else ()


def _hole(
    store: Store, listing: _Listing, number: int, target: int, checkpoint: CheckpointFiles | None
) -> MalformedLog | MissingSource:
    oldest = min(listing.commits, default=target)
    if checkpoint is None and number < oldest and listing.checkpoints:
        return MissingSource(
            f"the log of version {target} was cleaned up",
            file=store.uri,
            hint=f"the oldest version that can be read is "
            f"{min(found.version for found in listing.checkpoints)}",
        )
    return MalformedLog(
        f"the log has a hole: version {number} is missing, needed for version {target}",
        file=store.join(commit_path(number)),
    )


def _not_a_table(store: Store) -> NotADeltaTable:
    if is_local(store.uri) and Path(local_path(store.uri)).is_file():
        return NotADeltaTable(
            "a file, not a Delta table, which is a folder",
            file=store.uri,
            hint="vl.parquet.read_table reads one Parquet file; of a table give the folder",
            cli_hint="name the folder of the table; `variantlake cat` and `variantlake inspect` "
            "take single Parquet files, `variantlake ingest` loads JSON",
        )
    return NotADeltaTable(
        "not a Delta table: there is no commit in its _delta_log folder",
        file=store.uri,
        hint="check the location; a load or vl.Table.create makes a table, vl.convert makes one of "
        "Parquet files, and vl.parquet.read_table reads one file",
        cli_hint="check the location; `variantlake ingest` makes a table of JSON documents, "
        "`variantlake convert` of Parquet files, which can also be named one by one",
    )


def _read_names(entries: Iterable[Entry]) -> _Listing:
    commits: dict[int, Entry] = {}
    compactions: dict[int, dict[int, Entry]] = {}
    checksums: dict[int, Entry] = {}
    single: list[CheckpointFiles] = []
    parts: dict[tuple[int, int], dict[int, Entry]] = {}
    for entry in entries:
        name = entry.path.rpartition("/")[2]
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = entry
        elif match := _COMPACTED.fullmatch(name):
            compactions.setdefault(int(match[1]), {})[int(match[2])] = entry
        elif match := _CHECKSUM.fullmatch(name):
            checksums[int(match[1])] = entry
        elif match := _CLASSIC.fullmatch(name) or _V2.fullmatch(name):
            single.append(CheckpointFiles(int(match[1]), (entry,)))
        elif match := _PART.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = entry
    whole = [
        CheckpointFiles(version, tuple(found[part] for part in range(1, count + 1)))
        for (version, count), found in parts.items()
        # Parts cannot be written atomically: an incomplete set is not a checkpoint.
        if len(found) == count and all(1 <= part <= count for part in found)
    ]
    return _Listing(commits, (*whole, *single), compactions, checksums)
