"""Which version a table had at a time.

An in-commit timestamp gives the time of a commit. Without them, and for commits from before the
table had them, it is the time when the commit's file was written. Spec: PROTOCOL, "In-Commit
Timestamps", "Reader Requirements for In-Commit Timestamps".
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from variantlake.delta.actions.actions import Action, CommitInfo, Metadata, natural, parse_log
from variantlake.delta.log.log_segment import all_commits
from variantlake.errors import InvalidQuery, InvalidValue, MalformedLog, describe_type
from variantlake.storage.store import Entry, Store
from variantlake.units import EPOCH

_ENABLED = "delta.enableInCommitTimestamps"
SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


def check_version(version: object) -> None:
    """Raise InvalidValue unless `version` is None or an integer."""
    if isinstance(version, bool) or not isinstance(version, int | None):
        raise InvalidValue(
            f"version is {version!r}, {describe_type(version)}", hint="a whole number"
        )


def version_at(store: Store, metadata: Metadata, timestamp: int) -> int:
    """Like `find_version`, but raises InvalidQuery if the log holds no version that is that old."""
    found = find_version(store, metadata, timestamp)
    if found is None:
        raise InvalidQuery(
            "the log holds no version of the table that is that old",
            file=store.uri,
            hint="Table.history() lists the versions with their times",
            cli_hint="`variantlake history` lists the versions with their times",
        )
    return found


def find_version(
    store: Store, metadata: Metadata, timestamp: int, *, before: bool = False
) -> int | None:
    """Return the last version committed at or before `timestamp`, in milliseconds since the epoch.

    None if all versions in the log are newer. `metadata` is that of the newest version. With
    `before`, the last version that is older than `timestamp`.

    Raises InvalidQuery for a time after the newest commit, because a later commit may still fall
    before it; MalformedLog for a commit that has no timestamp if the table promises one.
    """
    commits = all_commits(store)
    latest = timestamp - 1 if before else timestamp
    stamped = _stamped(commits, metadata, latest)
    found: int | None = None
    time = 0
    if stamped is not None:
        count = bisect_right(
            stamped, latest, key=lambda version: in_commit_timestamp(store, commits[version])
        )
        if count:
            found = stamped[count - 1]
            time = in_commit_timestamp(store, commits[found])
    else:
        for version, written in file_times(commits, metadata).items():
            if written <= latest:
                found, time = version, written
    if found is not None and found == max(commits) and time < timestamp:
        raise InvalidQuery(
            f"{_text(timestamp)} is after the table's newest version, which is of {_text(time)}",
            file=store.uri,
            hint="ask for a time at or before that; without one the newest version is read",
        )
    return found


def in_commit_timestamp(store: Store, entry: Entry) -> int:
    """Return the in-commit timestamp of a commit; reads its file only up to `commitInfo`."""
    file = store.join(entry.path)
    for action in parse_log(store.stream(entry.path), file):
        if isinstance(action, CommitInfo):
            if action.in_commit_timestamp is None:
                break
            return action.in_commit_timestamp
    raise MalformedLog(
        "the commit has no inCommitTimestamp, which the table's properties promise", file=file
    )


def file_times(commits: Mapping[int, Entry], metadata: Metadata) -> dict[int, int]:
    """Return the times of commits without in-commit timestamps, in milliseconds, by version.

    `commits` are those of the log from its first on, `metadata` is that of the newest version. A
    time comes from the commit's file. As clocks may go back, each time is moved past the one before
    it.
    """
    first = _first_stamped(metadata)
    times: dict[int, int] = {}
    time = -1
    for version, entry in commits.items():
        if first is None or version < first:
            time = times[version] = max(entry.modified, time + 1)
    return times


def is_stamped(properties: Mapping[str, str]) -> bool:
    """Whether the properties enable in-commit timestamps."""
    return properties.get(_ENABLED, "").lower() == "true"


def stamp_of(actions: Iterable[Action]) -> int:
    """Return the in-commit timestamp of a commit with these actions, 0 if it has none."""
    infos = [action for action in actions if isinstance(action, CommitInfo)]
    return max((info.in_commit_timestamp or 0 for info in infos), default=0)


def _first_stamped(metadata: Metadata) -> int | None:
    """Return the first version with an in-commit timestamp; None if the table has none."""
    if not is_stamped(metadata.configuration):
        return None
    return natural(metadata.configuration.get(SINCE_VERSION, "")) or 0


def _stamped(commits: Iterable[int], metadata: Metadata, timestamp: int) -> list[int] | None:
    """Return the versions to search by in-commit timestamps; None to search by the files' times."""
    first = _first_stamped(metadata)
    since = natural(metadata.configuration.get(SINCE_TIME, ""))
    if first is None or (since is not None and timestamp < since):
        return None
    return [version for version in commits if version >= first]


def _text(milliseconds: int) -> str:
    try:
        moment = EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
