"""Several processes append to one table on a local disk: nothing is lost, no version is skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.delta.tables import SCHEMA
from variantlake.delta.commit import create_table
from variantlake.delta.listing import commit_path
from variantlake.delta.snapshot import Snapshot
from variantlake.delta.store import open_store

PROCESSES, APPENDS = 4, 10

WRITER = """
import sys
from variantlake.delta.actions import AddFile
from variantlake.delta.commit import append
from variantlake.delta.snapshot import Snapshot

table, writer, appends = sys.argv[1], sys.argv[2], int(sys.argv[3])
snapshot = Snapshot.load(table)
for number in range(appends):
    append(snapshot, [AddFile(f"{writer}-{number}.parquet", 1, 1)])
    if number % 3 == 2:
        snapshot = snapshot.refresh()
"""


def test_concurrent_appends_lose_nothing(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, str(tmp_path), str(i), str(APPENDS)]
        )
        for i in range(PROCESSES)
    ]
    assert [process.wait(timeout=120) for process in running] == [0] * PROCESSES
    snapshot = Snapshot.load(tmp_path)
    assert snapshot.version == PROCESSES * APPENDS
    assert {file.path for file in snapshot.add_files()} == {
        f"{writer}-{number}.parquet" for writer in range(PROCESSES) for number in range(APPENDS)
    }
    assert list((tmp_path / "_delta_log").glob(".*")) == []
    # The checkpoints on the way hold the same.
    for version in range(PROCESSES * APPENDS):
        (tmp_path / commit_path(version)).unlink()
    by_checkpoint = Snapshot.load(tmp_path)
    assert by_checkpoint.files.sort_by("path") == snapshot.files.sort_by("path")
