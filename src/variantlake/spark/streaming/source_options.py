"""What a stream that reads a table is asked for: Delta's names of options, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.feed.appended import ChangeCommits
from variantlake.spark.scan.source_options import (
    flag,
    given_options,
    milliseconds,
    version_number,
    whole_number,
)
from variantlake.units import size_bytes

STREAM_OPTIONS = (
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "startingVersion",
    "startingTimestamp",
    "ignoreDeletes",
    "ignoreChanges",
    "skipChangeCommits",
    "readChangeFeed",
    "failOnDataLoss",
    "select",
    "where",
)
"""The options of a stream; a table that is read once has others."""

MAX_FILES = 1000
"""Files of a batch if no limit is asked for: Delta Spark has the same number."""

LATEST = "latest"


def is_stream(options: Mapping[str, str]) -> bool:
    """Whether there are options that streams alone have."""
    known = {name.lower() for name in STREAM_OPTIONS}
    return any(name.lower() in known for name in options)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream reads of a table, and how much of it at a time.

    `max_files` and `max_bytes` bound a batch; None does not. `asks_limit` tells that the user said
    one of them. `first` is a version, `since` a time
    in milliseconds since the epoch; `latest` asks for what comes from now on. None of them: the
    table as it is, then what comes. `select` and `where` are SQL text; empty for all columns and
    rows.
    """

    location: str
    max_files: int | None
    max_bytes: int | None
    asks_limit: bool
    first: int | None
    since: int | None
    latest: bool
    changes: ChangeCommits
    change_feed: bool
    fail_on_data_loss: bool
    select: str
    where: str

    @property
    def selects(self) -> bool:
        """Whether rows are read by SQL text, and not as they are in the table."""
        return bool(self.select or self.where)

    @classmethod
    def of(cls, options: Mapping[str, str], zone: str) -> Self:
        """The options as Spark gives them; `zone` is that of a time that says none.

        Raises InvalidQuery for an unknown option or one without a meaning.
        """
        given = given_options(options, STREAM_OPTIONS, "a stream of a table")
        start = given.get("startingVersion", "").strip().lower()
        time = given.get("startingTimestamp")
        if start and time is not None:
            raise InvalidQuery("both startingVersion and startingTimestamp are given")
        max_bytes = _bytes(given, "maxBytesPerTrigger")
        max_files = whole_number(given, "maxFilesPerTrigger", least=1)
        return cls(
            given["path"],
            max_files if max_files is not None or max_bytes is not None else MAX_FILES,
            max_bytes,
            max_files is not None or max_bytes is not None,
            version_number(start) if start and start != LATEST else None,
            None if time is None else milliseconds(time, zone),
            start == LATEST,
            _change_commits(given),
            flag(given, "readChangeFeed", default=False),
            flag(given, "failOnDataLoss", default=True),
            given.get("select", ""),
            given.get("where", ""),
        )


def _change_commits(given: Mapping[str, str]) -> ChangeCommits:
    """The choice that leaves out the least of those that are made."""
    asked = [each for each in ChangeCommits if flag(given, each.value, default=False)]
    if ChangeCommits.GIVE_ADDED in asked and ChangeCommits.SKIP in asked:
        raise InvalidQuery(
            "skipChangeCommits leaves out what ignoreChanges gives", hint="choose one of them"
        )
    return asked[-1] if asked else ChangeCommits.FAIL


def _bytes(given: Mapping[str, str], name: str) -> int | None:
    """A size in bytes of more than 0, if there is one."""
    text = given.get(name)
    if text is None:
        return None
    if not (size := size_bytes(name, text)):
        raise InvalidValue(f"the option {name} is {text!r}", hint="1 or more bytes")
    return size
