"""Which version a table had at a time.

With in-commit timestamps the commits themselves say when they were made; without, and for the
commits before these were switched on, it is when their files were written. Spec: PROTOCOL,
"In-Commit Timestamps", "Reader Requirements for In-Commit Timestamps".
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from variantlake.delta.actions.log_lines import CommitInfo, Metadata, parse_log
from variantlake.delta.log.log_segment import all_commits, commit_version
from variantlake.errors import InvalidQuery, InvalidValue, MalformedLog
from variantlake.storage.store import Entry, Store

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_ENABLED = "delta.enableInCommitTimestamps"
_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


def check_version(version: object) -> None:
    """Raise InvalidValue for what is neither None nor a number of a version."""
    if isinstance(version, bool) or not isinstance(version, int | None):
        raise InvalidValue(
            f"version is {version!r}, a {type(version).__name__}", hint="a whole number"
        )


def epoch_milliseconds(moment: dt.datetime, *, up: bool = False) -> int:
    """Milliseconds since the epoch, rounded down or up; a time without a zone is in UTC.

    Raises InvalidValue for what is no datetime.
    """
    if not isinstance(moment, dt.datetime):
        raise InvalidValue(
            f"timestamp is {moment!r}, a {type(moment).__name__}", hint="a datetime.datetime"
        )
    since = moment.replace(tzinfo=moment.tzinfo or dt.UTC) - _EPOCH
    return -(-since // _MILLISECOND) if up else since // _MILLISECOND


def version_at(store: Store, metadata: Metadata, timestamp: int) -> int:
    """The last version that was there at `timestamp`, in milliseconds since the epoch.

    `metadata` is that of the newest version.

    Raises InvalidQuery when the log holds no version that is that old, and for a time after the
    newest commit, which a later commit may yet give another version; MalformedLog for a commit that
    has no timestamp where the table promises one.
    """
    commits = all_commits(store)
    stamped = _stamped(commits, metadata, timestamp)
    if stamped is not None:
        count = bisect_right(
            stamped, timestamp, key=lambda entry: in_commit_timestamp(store, entry)
        )
        found = stamped[count - 1] if count else None
        time = in_commit_timestamp(store, found) if found else 0
    else:
        found, time = _last_written(_unstamped(commits, metadata), timestamp)
    if found is not None and found is commits[-1] and time < timestamp:
        raise InvalidQuery(
            f"{_text(timestamp)} is after the table's newest version, which is of {_text(time)}",
            file=store.uri,
            hint="ask for a time at or before that; without one the newest version is read",
        )
    if found is None:
        raise InvalidQuery(
            "the log holds no version of the table that is that old",
            file=store.uri,
            hint="Table.history() lists the versions with their times",
            cli_hint="`variantlake history` lists the versions with their times",
        )
    return commit_version(found.path) or 0


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


def file_times(commits: Sequence[Entry], metadata: Metadata) -> dict[str, int]:
    """When the commits were made that go by the times of their files, by path, in milliseconds.

    `commits` are those of the log from its first on, `metadata` those of the newest version. The
    others have timestamps of their own.
    """
    return {entry.path: time for entry, time in _written(_unstamped(commits, metadata))}


def _number(metadata: Metadata, name: str) -> int | None:
    text = metadata.configuration.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _first_stamped(metadata: Metadata) -> int | None:
    """The first version with a timestamp of its own; None where no version has one."""
    if metadata.configuration.get(_ENABLED, "").lower() != "true":
        return None
    return _number(metadata, _SINCE_VERSION) or 0


def _stamped(
    commits: Sequence[Entry], metadata: Metadata, timestamp: int
) -> Sequence[Entry] | None:
    """The commits to look through by their own timestamps; None to go by the files' times."""
    first = _first_stamped(metadata)
    since = _number(metadata, _SINCE_TIME)
    if first is None or (since is not None and timestamp < since):
        return None
    return [entry for entry in commits if (commit_version(entry.path) or 0) >= first]


def _unstamped(commits: Sequence[Entry], metadata: Metadata) -> Sequence[Entry]:
    first = _first_stamped(metadata)
    if first is None:
        return commits
    return [entry for entry in commits if (commit_version(entry.path) or 0) < first]


def _last_written(commits: Sequence[Entry], timestamp: int) -> tuple[Entry | None, int]:
    """The last commit that was written by then, and its time."""
    found: Entry | None = None
    time = -1
    for entry, next_time in _written(commits):
        if next_time > timestamp:
            break
        found, time = entry, next_time
    return found, time


def _written(commits: Sequence[Entry]) -> Iterator[tuple[Entry, int]]:
    """The times of the files, each moved to after the one before it, as clocks may go back."""
    time = -1
    for entry in commits:
        time = max(entry.modified, time + 1)
        yield entry, time


def _text(milliseconds: int) -> str:
    try:
        moment = _EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
