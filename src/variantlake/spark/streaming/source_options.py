"""The options of a stream that reads a table, by Delta's names and by ours."""

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
"""The options of a stream; a batch read has others."""

MAX_FILES = 1000
"""The most files of a batch if the options set no limit, as in Delta Spark."""

LATEST = "latest"


def is_stream(options: Mapping[str, str]) -> bool:
    """Whether the options include one that only streams have."""
    known = {name.lower() for name in STREAM_OPTIONS}
    return any(name.lower() in known for name in options)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream reads of a table, and how much of it at a time.

    `max_files` and `max_bytes` limit a batch; None is no limit. `asks_limit` says that the user set
    one of them. `first` is the first version to read, `since` a time in milliseconds since the
    epoch; with `latest` the stream reads only later versions. Without these three it first reads
    the whole table. `select` and `where` are SQL text; empty for all columns and rows.
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
        """Whether the stream reads a selection in SQL instead of the table's rows as they are."""
        return bool(self.select or self.where)

    @classmethod
    def of(cls, options: Mapping[str, str], zone: str) -> Self:
        """Parse Spark's options; `zone` is the time zone of a time without one.

        Raises InvalidQuery for an unknown option or an invalid value.
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
    """Return the last of the chosen options in the order of ChangeCommits; FAIL without any."""
    asked = [each for each in ChangeCommits if flag(given, each.value, default=False)]
    if ChangeCommits.GIVE_ADDED in asked and ChangeCommits.SKIP in asked:
        raise InvalidQuery(
            "skipChangeCommits leaves out what ignoreChanges gives", hint="choose one of them"
        )
    return asked[-1] if asked else ChangeCommits.FAIL


def _bytes(given: Mapping[str, str], name: str) -> int | None:
    """Parse a size in bytes; None without the option. Raises InvalidValue unless it is above 0."""
    text = given.get(name)
    if text is None:
        return None
    if not (size := size_bytes(name, text)):
        raise InvalidValue(f"the option {name} is {text!r}", hint="1 or more bytes")
    return size
