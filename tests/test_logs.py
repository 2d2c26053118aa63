"""What the package says in its logs, and to whom."""

from __future__ import annotations

import logging
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import variantlake as vl
from tests.cli import command
from tests.corpora import REPOSITORY


def test_loads_commits_plans_and_rewrites_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "variantlake")
    source = tmp_path / "a.ndjson"
    source.write_text('{"n": 1}\n{"n": 1, "n": 2}\n')
    t = vl.Table.create(tmp_path / "t", "event VARIANT")
    for _ in range(2):
        t.append(vl.ndjson(source), mode="quarantine")
    list(t.refresh().scan("event:n::int", where="event:n::int > 5").to_batches())
    t.optimize()
    t.vacuum()
    found = {(record.name.partition(".")[2], record.levelname) for record in caplog.records}
    told = {
        "commit": "DEBUG INFO", "load": "INFO WARNING", "plan": "DEBUG",
        "rewrite": "DEBUG INFO", "vacuum": "INFO",
    }  # fmt: skip
    assert found == {(part, level) for part, levels in told.items() for level in levels.split()}
    text = caplog.text
    assert "version 1 committed: WRITE (" in text
    assert "loaded rows 1, files 1, bytes" in text
    assert "left out bad rows 1, with reasons in" in text
    assert "skipped files 2 by event:n::int > 5" in text
    assert "rewritten rows 2, new files 1" in text


def test_a_program_without_logging_hears_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.ndjson").write_text("{\n")
    program = "import variantlake as vl; t = vl.Table.create('t', 'event VARIANT')\n"
    program += "t.append(vl.ndjson('bad.ndjson'), mode='quarantine')"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout + done.stderr == ""


def test_a_command_says_warnings_and_on_request_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = partial(command.run, monkeypatch, capfd)
    name = "a\x1b[31m.ndjson"
    (tmp_path / name).write_text('{"n": 1}\n{\n')
    place = tmp_path / "t\x1b[31m"
    load = ("ingest", tmp_path / name, place, "--mode", "quarantine")
    quiet, told, all_of_it = run(*load), run(*load, "-v"), run(*load, "-vv")
    assert quiet.err == ""  # the result on stdout counts bad documents
    assert "WARNING left out bad rows 1" in told.err
    assert "INFO" in told.err
    assert "version 1 committed" in told.err
    assert "DEBUG added" in all_of_it.err
    for done in (quiet, told, all_of_it):
        assert done.code == 0
        assert "\x1b[31m" not in done.out + done.err
    assert logging.getLogger("variantlake").level == logging.NOTSET


def test_every_logger_is_on_its_page() -> None:
    page = (REPOSITORY / "docs" / "reference" / "logging.md").read_text(encoding="utf-8")
    parts = set()
    for source in (REPOSITORY / "src").rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        parts |= {piece.partition('"')[0] for piece in text.split(' logger("')[1:]}
    assert parts
    assert {part for part in parts if f"`variantlake.{part}`" not in page} == set()
