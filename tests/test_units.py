"""Times, durations and sizes are read alike in Python and on the command line."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from variantlake.errors import InvalidValue
from variantlake.units import EPOCH, milliseconds, moment, seconds, size_bytes


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [("12", 12), ("64MB", 64 << 20), (" 2 gib ", 2 << 30), ("1k", 1 << 10), (7, 7), ("0", 0)],
)
def test_a_size_has_a_unit_or_none(given: Any, bytes_: int) -> None:
    assert size_bytes("size", given) == bytes_


@pytest.mark.parametrize(
    "given",
    ["", "MB", "-1", "1.5GB", "9" * 5000, "\u0663", -1, 1.5, True, None],
    ids=lambda given: f"{given!r:.8}",
)
def test_what_is_not_a_size_is_refused(given: Any) -> None:
    with pytest.raises(InvalidValue, match="size is"):
        size_bytes("size", given)


@pytest.mark.parametrize(
    ("given", "length"),
    [
        ("30s", 30), ("1.5m", 90), ("2min", 120), ("1h", 3600), ("7d", 604_800), ("1w", 604_800),
        ("250 ms", 0.25), (5, 5), (0.5, 0.5), ("5", 5), (dt.timedelta(days=1), 86400),
    ],
)  # fmt: skip
def test_a_duration_is_text_a_number_or_a_timedelta(given: Any, length: float) -> None:
    assert seconds("time", given) == length


def test_a_number_has_the_unit_of_its_argument() -> None:
    assert seconds("retention", 168, unit="h") == seconds("retention", "168", unit="h") == 604_800
    assert seconds("retention", "7d", unit="h") == 604_800


@pytest.mark.parametrize(
    "given", ["", "7 days", "-1s", "s", -1, float("nan"), float("inf"), True, None, b"1s"]
)
def test_what_is_not_a_duration_is_refused(given: Any) -> None:
    with pytest.raises(InvalidValue, match="time is"):
        seconds("time", given)


def test_a_time_is_utc_unless_it_says_a_zone() -> None:
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    zoned = noon.astimezone(dt.timezone(dt.timedelta(hours=2)))
    for given in ("2026-01-31 12:00", "2026-01-31T12:00:00Z", "2026-01-31 14:00+02:00", zoned,
                  noon.replace(tzinfo=None), "2026-01-31 12:00:00 UTC"):  # fmt: skip
        assert moment("timestamp", given) == noon
    assert milliseconds("t", EPOCH + dt.timedelta(microseconds=1500)) == 1
    assert milliseconds("t", EPOCH + dt.timedelta(microseconds=1500), up=True) == 2


@pytest.mark.parametrize("given", ["", "noon", 0, dt.date(2026, 1, 1), None])
def test_what_is_not_a_time_is_refused(given: Any) -> None:
    with pytest.raises(InvalidValue, match="timestamp"):
        moment("timestamp", given)


def test_what_history_prints_opens_the_version(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id BIGINT")
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    table.set_properties({"a": "b"})
    for entry in table.refresh().history():
        printed = repr(entry).split("time='")[1].split("'")[0]
        for time in (printed, entry.time, f"{entry.time}"):
            assert vl.Table.open(tmp_path / "t", timestamp=time).version == entry.version


def test_sizes_and_durations_of_methods_are_texts_too(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    assert table.optimize(target_file_size="64MB", dry_run=True).versions == ()
    with pytest.raises(InvalidValue, match="target_file_size is '64 parsecs'"):
        table.optimize(target_file_size="64 parsecs")
    with pytest.raises(InvalidValue, match="budget is"):
        table.cluster(budget="a lot")
    assert table.vacuum("8d", dry_run=True).retention_hours == 192
