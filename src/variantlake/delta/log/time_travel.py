"""Which version a table had at a time.

With in-commit timestamps the commits themselves say when they were made; without, and for the
commits before these were switched on, it is when their files were written. Spec: PROTOCOL,
"In-Commit Timestamps", "Reader Requirements for In-Commit Timestamps".
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
    """Raise InvalidValue for what is neither None nor a number of a version."""
    if isinstance(version, bool) or not isinstance(version, int | None):
        raise InvalidValue(
            f"version is {version!r}, {describe_type(version)}", hint="a whole number"
        )


def version_at(store: Store, metadata: Metadata, timestamp: int) -> int:
    """`find_version`. Raises InvalidQuery when the log holds no version that is that old."""
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
    """The last version that was there at `timestamp`, in milliseconds since the epoch.

    None when all that the log holds are newer. `metadata` is that of the newest version. With
    `before` it is the last version that is older than that.

    Raises InvalidQuery for a time after the newest commit, which a later commit may yet give
    another version; MalformedLog for a commit that has no timestamp if the table promises one.
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
    """When a commit was made, by its own word; reads no further than to its `commitInfo`."""
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
    """When the commits were made that go by the times of their files, in milliseconds, by version.

    `commits` are those of the log from its first on, `metadata` those of the newest version. The
    others have timestamps of their own. As clocks may go back, each time is moved to after the one
    before it.
    """
    first = _first_stamped(metadata)
    times: dict[int, int] = {}
    time = -1
    for version, entry in commits.items():
        if first is None or version < first:
            time = times[version] = max(entry.modified, time + 1)
    return times


def is_stamped(properties: Mapping[str, str]) -> bool:
    """Whether a table keeps in-commit timestamps."""
    return properties.get(_ENABLED, "").lower() == "true"


def stamp_of(actions: Iterable[Action]) -> int:
    """The in-commit timestamp of a commit with these actions, 0 if it has none."""
    infos = [action for action in actions if isinstance(action, CommitInfo)]
    return max((info.in_commit_timestamp or 0 for info in infos), default=0)


def _first_stamped(metadata: Metadata) -> int | None:
    """The first version with a timestamp of its own; None if no version has one."""
    if not is_stamped(metadata.configuration):
        return None
    return natural(metadata.configuration.get(SINCE_VERSION, "")) or 0


def _stamped(commits: Iterable[int], metadata: Metadata, timestamp: int) -> list[int] | None:
    """The versions to look through by their own timestamps; None to go by the files' times."""
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
