"""The version that a table had at a time, by its files' times and by in-commit timestamps."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pytest

from tests.delta.tables import PROTOCOL, add, metadata, write_log
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidQuery, MalformedLog
from variantlake.table import Table

STAMPED = {
    **PROTOCOL,
    "writerFeatures": [*PROTOCOL["writerFeatures"], "inCommitTimestamp"],  # type: ignore[misc]
}


_ON = "delta.enableInCommitTimestamps"


def _table(root: Path, stamps: list[int | None], written: list[int], **properties: str) -> str:
    """A table with one commit for each stamp, written at these seconds."""
    commits: list[list[dict[str, Any]]] = []
    for number, stamp in enumerate(stamps):
        info = {"timestamp": 999} | ({} if stamp is None else {"inCommitTimestamp": stamp})
        commit: list[dict[str, Any]] = [{"commitInfo": info}, add(f"f{number}")]
        if number == 0:
            commit += [{"protocol": STAMPED}, {"metaData": metadata(**properties)}]
        commits.append(commit)
    location = write_log(root, *commits)
    for number, seconds in enumerate(written):
        os.utime(root / "_delta_log" / f"{number:020d}.json", (seconds, seconds))
    return location


def _at(location: str, milliseconds: int) -> int:
    return Snapshot.read(location, timestamp=milliseconds).version


def test_by_the_times_of_the_files(tmp_path: Path) -> None:
    location = _table(tmp_path, [None] * 3, [10, 20, 30])
    assert [_at(location, ms) for ms in (10_000, 19_999, 20_000, 30_000)] == [0, 0, 1, 2]
    with pytest.raises(InvalidQuery, match="that old"):
        _at(location, 9_999)


def test_times_of_files_never_go_back(tmp_path: Path) -> None:
    # A copy of a table, or a clock that was set: version 1 counts as a millisecond after 0.
    location = _table(tmp_path, [None] * 3, [10, 5, 30])
    assert [_at(location, ms) for ms in (10_000, 10_001, 30_000)] == [0, 1, 2]
    os.utime(tmp_path / commit_path(2), (1, 1))
    assert _at(location, 10_002) == 2
    with pytest.raises(InvalidQuery, match=r"10\.003Z is after .* of .*10\.002Z"):
        _at(location, 10_003)


def test_a_time_after_the_newest_version_is_refused(tmp_path: Path) -> None:
    location = _table(tmp_path / "files", [None] * 2, [10, 20])
    stamped = {"delta.enableInCommitTimestamps": "true"}
    table = _table(tmp_path / "stamps", [10_000, 20_000], [1, 1], **stamped)
    for each in (location, table):
        assert _at(each, 20_000) == 1
        for milliseconds in (20_001, 99_000, 10**18):
            with pytest.raises(InvalidQuery, match="is after the table's newest version"):
                _at(each, milliseconds)
        # Part of a millisecond does not count, as in Delta Spark.
        moment = dt.datetime(1970, 1, 1, 0, 0, 20, 999, tzinfo=dt.UTC)
        assert Table.open(each, timestamp=moment).version == 1
        with pytest.raises(InvalidQuery, match="ask for a time at or before that"):
            Table.open(each, timestamp=moment.replace(microsecond=1000))


def test_by_in_commit_timestamps(tmp_path: Path) -> None:
    on = {"delta.enableInCommitTimestamps": "true"}
    location = _table(tmp_path, [100, 200, 300], [30, 20, 10], **on)
    assert [_at(location, ms) for ms in (100, 199, 200, 300)] == [0, 0, 1, 2]


def test_by_both_where_they_were_switched_on_later(tmp_path: Path) -> None:
    on = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "50000",
    }
    location = _table(tmp_path, [None, None, 50_000, 60_000], [10, 20, 1, 1], **on)
    times = (10_000, 20_000, 49_999, 50_000, 59_999, 60_000)
    assert [_at(location, ms) for ms in times] == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("stamps", "written", "properties"),
    [
        ([None] * 3, [10, 20, 30], {}),
        ([None] * 3, [10, 5, 5], {}),
        ([100, 200, 300], [30, 20, 10], {_ON: "true"}),
        ([100, 200, 300], [30, 31, 31], {_ON: "false"}),
        (
            [None, 50_000, 60_000],
            [10, 1, 1],
            {
                _ON: "true",
                "delta.inCommitTimestampEnablementVersion": "1",
                "delta.inCommitTimestampEnablementTimestamp": "50000",
            },
        ),
    ],
)
def test_the_times_of_the_history_are_those_to_ask_by(
    tmp_path: Path, stamps: list[int | None], written: list[int], properties: dict[str, str]
) -> None:
    location = _table(tmp_path, stamps, written, **properties)
    history = Table.open(location).history()
    assert [_at(location, entry.timestamp) for entry in history] == [2, 1, 0]
    assert Table.open(location).history(1)[0].timestamp == history[0].timestamp


def test_a_commit_without_the_timestamp_that_is_promised(tmp_path: Path) -> None:
    location = _table(tmp_path, [None], [10], **{"delta.enableInCommitTimestamps": "true"})
    with pytest.raises(MalformedLog, match="inCommitTimestamp") as error:
        _at(location, 10_000)
    assert error.value.file.endswith("0.json")


def test_a_version_or_a_time(tmp_path: Path) -> None:
    location = _table(tmp_path, [None] * 2, [10, 20])
    with pytest.raises(InvalidQuery, match="one of them"):
        Snapshot.read(location, 0, timestamp=0)
    moment = dt.datetime(1970, 1, 1, 0, 0, 15)  # noqa: DTZ001 - without a zone it is UTC
    assert Table.open(location, timestamp=moment).version == 0
    zoned = dt.datetime(1970, 1, 1, 1, 0, 20, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert Table.open(location, timestamp=zoned).version == 1


def test_a_number_that_no_table_has_counts_as_absent(tmp_path: Path) -> None:
    since = {"delta.inCommitTimestampEnablementVersion": "9" * 5000}
    location = _table(tmp_path, [1000, 2000], [10, 20], **{_ON: "true"}, **since)
    assert [_at(location, milliseconds) for milliseconds in (1000, 2000)] == [0, 1]
