"""Old versions whose files a vacuum may be removing: they come back, or get a name, after it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.maintenance.name_versions import name_version
from variantlake.maintenance.restore import restore

AT_ONCE = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
NEEDS_OLD: dict[str, Callable[[vl.Table], object]] = {
    "restore": lambda table: table.restore(1),
    "tag": lambda table: table.tag("audit", 1),
}
needs_old = pytest.mark.parametrize("verb", NEEDS_OLD.values(), ids=NEEDS_OLD)


def _table(root: Path, properties: dict[str, str] | None = None) -> vl.Table:
    """Version 1 has rows that version 2 replaced; a vacuum may have its files."""
    table = vl.Table.create(root, "n INT", properties=properties)
    table.append(pa.table({"n": pa.array([1], pa.int32())}))
    table.overwrite(pa.table({"n": pa.array([2], pa.int32())}))
    return table


def _vacuum(table: vl.Table, part: str) -> int:
    """A commit of a vacuum in another process."""
    provenance = {"isolationLevel": "SnapshotIsolation", "isBlindAppend": True}
    return commit(vl.Table.open(table.uri).snapshot, Changes(part, provenance=provenance))


@needs_old
def test_expired_files_wait_for_the_end_of_a_vacuum(
    tmp_path: Path, verb: Callable[[vl.Table], object]
) -> None:
    table = _table(tmp_path, AT_ONCE)
    time.sleep(0.002)  # the tombstones are older than the retention
    started = _vacuum(table, "VACUUM START")
    with pytest.raises(vl.CommitConflict, match=f"started as version {started} and has not ended"):
        verb(table)
    _vacuum(table, "VACUUM END")
    version = table.version
    verb(table)
    assert table.version > version


@needs_old
def test_of_two_vacuums_the_end_of_one_is_not_that_of_both(
    tmp_path: Path, verb: Callable[[vl.Table], object]
) -> None:
    table = _table(tmp_path, AT_ONCE)
    time.sleep(0.002)
    started = _vacuum(table, "VACUUM START")
    _vacuum(table, "VACUUM START")
    _vacuum(table, "VACUUM END")
    with pytest.raises(vl.CommitConflict, match=f"started as version {started} and has not ended"):
        verb(table)
    _vacuum(table, "VACUUM END")
    verb(table)


@needs_old
def test_a_vacuum_that_was_killed_a_day_ago_counts_no_more(
    tmp_path: Path, verb: Callable[[vl.Table], object]
) -> None:
    table = _table(tmp_path, AT_ONCE)
    time.sleep(0.002)
    started = _vacuum(table, "VACUUM START")
    long_ago = time.time() - 25 * 3600
    os.utime(tmp_path / commit_path(started), (long_ago, long_ago))
    verb(table)


def test_a_vacuum_that_starts_first_is_a_conflict(tmp_path: Path) -> None:
    table = _table(tmp_path, AT_ONCE)
    time.sleep(0.002)
    before = table.snapshot
    started = _vacuum(table, "VACUUM START")
    for verb in (lambda: restore(before, 1), lambda: name_version(before, "audit", 1)):
        with pytest.raises(vl.CommitConflict, match=f"version {started} first and started to vac"):
            verb()
    assert table.refresh().version == started


@needs_old
def test_files_within_the_retention_wait_for_no_vacuum(
    tmp_path: Path, verb: Callable[[vl.Table], object]
) -> None:
    table = _table(tmp_path)
    started = _vacuum(table, "VACUUM START")
    verb(table)
    assert table.version > started


def test_a_version_whose_files_are_gone_gets_no_name(tmp_path: Path) -> None:
    table = _table(tmp_path, AT_ONCE)
    time.sleep(0.002)
    table.vacuum()
    with pytest.raises(vl.MissingSource, match="1 files of version 1 are gone: part-"):
        table.tag("audit", 1)
    assert not table.tags()
