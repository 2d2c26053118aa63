"""`variantlake vacuum`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.maintenance.folders import found, put
from tests.maintenance.vacuuming.test_vacuum import LONG_AGO, small_table


def test_the_command_says_what_goes_and_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    small_table(tmp_path)
    for n in range(60):
        put(tmp_path, f"o{n:02}.parquet", LONG_AGO)
    plan = run(monkeypatch, capfd, "vacuum", tmp_path, "--dry-run")
    assert "60 files, 6.0 kB" in plan.out
    assert "10 more files" in plan.err
    assert "shallow clones" in plan.err
    listed = run(monkeypatch, capfd, "vacuum", tmp_path, "--dry-run", "--json")
    *files, counts = map(json.loads, listed.out.splitlines())
    assert len(files) == counts["files_unneeded"] == 60
    assert files[0]["kind"] == "data"
    refused = run(monkeypatch, capfd, "vacuum", tmp_path, "--retention", "1", "--yes")
    assert refused.code == 1
    assert "--force" in refused.err
    assert len(found(tmp_path)) == 61
    done = run(monkeypatch, capfd, "vacuum", tmp_path, "--yes")
    assert (done.code, found(tmp_path)) == (0, {"live.parquet"})
    assert "60 files" in done.out
