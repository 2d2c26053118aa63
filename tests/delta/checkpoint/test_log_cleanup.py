"""Cleaning up the log: old versions go, and every version that is kept can be read."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.delta.tables import SCHEMA, append, create_table
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.intervals import property_millis
from variantlake.errors import CommitConflict, MissingSource
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore

DAY = 86_400


def _table(root: Path, **properties: str) -> None:
    """Versions 0 to 11, one a day, the newest of today; checkpoints of 3, 6 and 9."""
    every_third = {f"delta.{name}": value for name, value in properties.items()}
    every_third["delta.checkpointInterval"] = "3"
    create_table(open_store(root), SCHEMA, properties=every_third)
    for number in range(1, 12):
        file = AddFile(f"{number}.parquet", 1, 1, stats='{"numRecords":1}')
        append(Snapshot.read(root), [file])
    now = time.time()
    for path in (root / "_delta_log").iterdir():
        if path.name[0].isdecimal():
            then = now - DAY * (11 - int(path.name[:20]))
            os.utime(path, (then, then))


def _names(root: Path) -> list[str]:
    """The versions and kinds of the files that are left."""
    found = [path.name for path in (root / "_delta_log").iterdir() if path.name[0].isdecimal()]
    return sorted(f"{int(name[:20])}.{name[21:]}" for name in found)


def _clean(root: Path, properties: Mapping[str, str]) -> int:
    return clean_log(open_store(root), properties)


@pytest.mark.parametrize(
    ("days", "oldest"),
    [(1, 9), (2, 6), (3, 6), (5, 3), (8, 0), (9, 0), (30, 0)],
)
def test_what_no_kept_version_needs_goes(tmp_path: Path, days: int, oldest: int) -> None:
    _table(tmp_path)
    rows = {version: Snapshot.read(tmp_path, version).files.num_rows for version in range(12)}
    deleted = _clean(tmp_path, {"delta.logRetentionDuration": f"interval {days} days"})
    assert (deleted > 0) == (oldest > 0)
    left = _names(tmp_path)
    assert min(int(name.partition(".")[0]) for name in left) == oldest
    for version in range(oldest, 12):
        assert Snapshot.read(tmp_path, version).files.num_rows == rows[version]
    # Whatever is young enough is among them.
    assert oldest <= 11 - days or oldest == 0
    if oldest:
        with pytest.raises(MissingSource, match="cleaned up"):
            Snapshot.read(tmp_path, oldest - 1)
    assert _clean(tmp_path, {"delta.logRetentionDuration": f"interval {days} days"}) == 0


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableExpiredLogCleanup": "false", "delta.logRetentionDuration": "interval 1 day"},
        {"delta.logRetentionDuration": "interval 1 fortnight"},
        {},
        {
            "delta.logRetentionDuration": "interval 1 day",
            "delta.requireCheckpointProtectionBeforeVersion": "10",
        },
    ],
)
def test_nothing_goes_where_the_table_does_not_want_it(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    _table(tmp_path)
    assert _clean(tmp_path, properties) == 0


def test_protected_checkpoints_go_all_or_none(tmp_path: Path) -> None:
    _table(tmp_path)
    properties = {
        "delta.logRetentionDuration": "interval 1 day",
        "delta.requireCheckpointProtectionBeforeVersion": "9",
    }
    assert _clean(tmp_path, properties) > 0
    assert min(int(name.partition(".")[0]) for name in _names(tmp_path)) == 9


def test_protected_checkpoints_go_after_all_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC "Checkpoint Protection": an interrupted cleanup must leave the checkpoints."""
    _table(tmp_path)
    gone: list[str] = []
    monkeypatch.setattr(LocalStore, "delete", lambda _, path: gone.append(path))
    properties = {
        "delta.logRetentionDuration": "interval 1 day",
        "delta.requireCheckpointProtectionBeforeVersion": "9",
    }
    assert _clean(tmp_path, properties) == len(gone)
    commits = [re.search(r"/\d{20}\.json$", path) is not None for path in gone]
    assert commits == sorted(commits, reverse=True)
    assert any("checkpoint" in path for path in gone)


def test_a_log_without_checkpoints_stays(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    append(Snapshot.read(tmp_path), [AddFile("f", 1, 1)])
    for path in (tmp_path / "_delta_log").iterdir():
        os.utime(path, (0, 0))
    assert _clean(tmp_path, {}) == 0


def test_the_time_in_the_commit_counts_where_there_is_one(tmp_path: Path) -> None:
    """Files may be younger or older than the commits that they hold: those were just made."""
    _table(tmp_path, enableInCommitTimestamps="true")
    properties = {
        "delta.logRetentionDuration": "interval 1 day",
        "delta.enableInCommitTimestamps": "true",
    }
    assert _clean(tmp_path, properties) == 0


def test_sidecars_that_no_checkpoint_names_go_after_a_day(tmp_path: Path) -> None:
    _table(tmp_path, checkpointPolicy="v2")
    sidecars = tmp_path / "_delta_log" / "_sidecars"
    assert len(list(sidecars.iterdir())) == 3
    (sidecars / "orphan.parquet").write_bytes(b"of a writer that was killed")
    for path in sidecars.iterdir():
        os.utime(path, (0, 0))
    (sidecars / "young.parquet").write_bytes(b"of a writer at work")
    assert _clean(tmp_path, {"delta.logRetentionDuration": "interval 3 days"}) > 0
    left = {path.name for path in sidecars.iterdir()}
    assert len(left) == 3  # of the two checkpoints that are left, and the young one
    assert "young.parquet" in left
    for version in (6, 9, 11):
        assert Snapshot.read(tmp_path, version).files.num_rows == version


def test_cleaning_up_follows_a_checkpoint(tmp_path: Path) -> None:
    one_day = "interval 1 day"
    _table(tmp_path, logRetentionDuration=one_day, deletedFileRetentionDuration=one_day)
    append(Snapshot.read(tmp_path), [AddFile("f", 1, 1)])  # version 12: the next checkpoint
    assert min(int(name.partition(".")[0]) for name in _names(tmp_path)) == 9


def test_what_a_killed_writer_left_goes_after_a_day(tmp_path: Path) -> None:
    _table(tmp_path)
    old, young = (tmp_path / "_delta_log" / name for name in (".a.tmp", ".b.tmp"))
    old.write_bytes(b"")
    young.write_bytes(b"")
    os.utime(old, (0, 0))
    assert _clean(tmp_path, {}) == 1
    assert young.exists()


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("interval 1 week", 604_800_000),
        ("30 days", 2_592_000_000),
        ("INTERVAL 1 day 2 hours 3 minutes 4 seconds 5 milliseconds", 93_784_005),
        ("interval 0 seconds", 0),
        ("soon", 1 << 62),
        ("interval 1 month", 1 << 62),
        pytest.param(f"interval {'9' * 5000} days", 1 << 62, id="many digits"),
        ("", 1 << 62),
    ],
)
def test_durations(text: str, millis: int) -> None:
    assert property_millis({"d": text}, "d", "1 day") == millis
    assert property_millis({}, "d", "1 day") == DAY * 1000


def test_an_old_snapshot_does_not_take_the_cleaned_up_log_for_its_end(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    stale = Snapshot.read(tmp_path)
    for number in range(3):
        append(Snapshot.read(tmp_path), [AddFile(f"{number}.parquet", 1, 1)])
    write_checkpoint(open_store(tmp_path))
    for path in (tmp_path / "_delta_log").iterdir():
        os.utime(path, (0, 0))
    assert _clean(tmp_path, {}) > 0
    # Its next version's file could be put once more, and nobody would ever read it.
    with pytest.raises(CommitConflict, match="cleaned up beyond version 0"):
        append(stale, [AddFile("lost.parquet", 1, 1)])
    assert stale.refresh().version == 3
    append(stale.refresh(), [AddFile("kept.parquet", 1, 1)])
    assert Snapshot.read(tmp_path).files.num_rows == 4


def test_an_old_snapshot_of_a_checkpoint_is_told_that_the_log_was_cleaned_up(
    tmp_path: Path,
) -> None:
    """Its commit, which is gone, would say what the next timestamp has to come after."""
    create_table(
        open_store(tmp_path), SCHEMA, properties={"delta.enableInCommitTimestamps": "true"}
    )
    write_checkpoint(open_store(tmp_path))
    stale = Snapshot.read(tmp_path)
    append(stale, [AddFile("kept.parquet", 1, 1)])
    write_checkpoint(open_store(tmp_path))
    for path in (tmp_path / "_delta_log").glob("0*0.*"):
        path.unlink()
    with pytest.raises(CommitConflict, match="cleaned up beyond version 0"):
        append(stale, [AddFile("lost.parquet", 1, 1)])


def test_a_checkpoint_just_written_is_never_what_goes(tmp_path: Path) -> None:
    _table(tmp_path)
    write_checkpoint(open_store(tmp_path))
    for path in (tmp_path / "_delta_log").iterdir():
        os.utime(path, (0, 0))
    _clean(tmp_path, {})
    assert _names(tmp_path) == ["11.checkpoint.parquet", "11.crc", "11.json"]
    assert Snapshot.read(tmp_path).files.num_rows == 11


def test_a_sidecar_stays_that_a_later_checkpoint_names_again(tmp_path: Path) -> None:
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000"}
    store = open_store(tmp_path)
    adds = [AddFile(f"{number}.parquet", 1, 1) for number in range(9)]
    create_table(store, SCHEMA, properties=properties, adds=adds)
    write_checkpoint(store)
    log = tmp_path / "_delta_log"
    (first,) = (log / "_sidecars").iterdir()
    append(Snapshot.read(tmp_path), [AddFile("9.parquet", 1, 1)])
    write_checkpoint(store)
    for path in (*log.glob("*.*"), *(log / "_sidecars").iterdir()):
        os.utime(path, (0, 0))
    assert _clean(tmp_path, {}) > 0
    assert {name.partition(".")[0] for name in _names(tmp_path)} == {"1"}
    assert first.exists()
    assert Snapshot.read(tmp_path).files.num_rows == 10


def test_a_sidecar_that_a_checkpoint_names_with_an_escape_stays(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[AddFile("a", 1, 1)])
    log = tmp_path / "_delta_log"
    write_checkpoint(open_store(tmp_path))
    (log / "_sidecars").mkdir()
    sidecar = log / "_sidecars" / "o ne.parquet"
    (log / f"{0:020d}.checkpoint.parquet").rename(sidecar)
    lines = (log / f"{0:020d}.json").read_text().splitlines()
    lines = [line for line in lines if '"protocol"' in line or '"metaData"' in line]
    side = '{"sidecar":{"path":"o%20ne.parquet","sizeInBytes":1,"modificationTime":1}}'
    lines += ['{"checkpointMetadata":{"version":0}}', side]
    name = f"{0:020d}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json"
    (log / name).write_text("\n".join(lines))
    for path in (*log.glob("*.*"), sidecar):
        os.utime(path, (0, 0))
    _clean(tmp_path, {})
    assert sidecar.exists()
    assert Snapshot.read(tmp_path).files.num_rows == 1
