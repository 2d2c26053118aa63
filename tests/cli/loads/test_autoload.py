"""`variantlake autoload` and `variantlake loads`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import variantlake as vl
from tests.autoloading.sources import ids, put
from tests.cli.command import run
from tests.corpora import library


def test_the_commands_load_and_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source, table = tmp_path / "in", tmp_path / "table"
    put(source / "a.json", 1, 2)
    put(source / "bad.json", data=b"{")
    done = run(
        monkeypatch, capfd, "autoload", source, table, "--once", "--name", "events", "--json"
    )
    result = json.loads(done.out)
    assert (result["files_read"], result["files_failed"], result["version"]) == (1, 1, 0)
    assert done.code == 3
    assert "bad.json" in done.err
    listed = run(monkeypatch, capfd, "loads", table, "--json", "--state", "failed")
    assert json.loads(listed.out)["file"] == "bad.json"
    assert "a.json" in run(monkeypatch, capfd, "loads", table, "--file", "a*").out
    again = run(monkeypatch, capfd, "loads", table, "--retry", "--json")
    assert json.loads(again.out)["files_retried"] == 1


def test_a_source_without_files_says_which_files_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source, table = tmp_path / "in", tmp_path / "table"
    put(source / "a.txt", 1)
    done = run(monkeypatch, capfd, "autoload", source, table)
    assert done.code == 0
    assert "files must end with .ndjson" in done.err
    put(source / "a.json", 1)
    for _ in range(2):  # nothing new is not a mistake
        assert "must end" not in run(monkeypatch, capfd, "autoload", source, table).err


def test_a_table_without_autoloads_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    vl.Table.create(tmp_path / "t", "event VARIANT")
    assert (
        "`variantlake autoload` starts one" in run(monkeypatch, capfd, "loads", tmp_path / "t").out
    )
    assert run(monkeypatch, capfd, "loads", tmp_path / "t", "--json").out == ""


def test_sigterm_ends_it_after_the_batch_with_code_0(tmp_path: Path) -> None:
    library("prometheus_client")
    source, table = tmp_path / "in", tmp_path / "table"
    put(source / "a.json", 1, 2)
    command = [sys.executable, "-m", "variantlake.cli.main", "autoload", str(source), str(table)]
    metrics = tmp_path / "x.prom"
    process = subprocess.Popen(
        [*command, "--every", "50ms", "--quiet", "--json", "--metrics-file", str(metrics)],
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
    try:
        deadline = time.monotonic() + 60
        while ids(table) != [1, 2] and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert json.loads(output)["rows_written"] == 2
    assert "variantlake_autoload_rows_total" in metrics.read_text()


def test_a_missing_source_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    done = run(monkeypatch, capfd, "autoload", tmp_path / "none", tmp_path / "table")
    assert done.code == 1
    assert "does not exist" in done.err
