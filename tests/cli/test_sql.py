"""`variantlake sql`: a prompt on a terminal, and text from a pipe."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.cli.sql import _Prompt
from variantlake.cli.terminal.formats import OutputFormat
from variantlake.cli.terminal.options import QueryEngine

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    place = tmp_path_factory.mktemp("lake") / "events"
    source = place.with_suffix(".ndjson")
    source.write_text('{"user": {"name": "a"}, "n": 1}\n' * 20)
    vl.Table.create(place, "event VARIANT").append(vl.ndjson(source))
    return vl.Table.open(place)


def test_text_from_a_pipe_runs(table: vl.Table, monkeypatch: Patch, capfd: Capture) -> None:
    monkeypatch.setenv("TZ", "UTC")
    text = "SELECT count(*) AS n\nFROM events;\nSELECT 7 AS n FROM events LIMIT 1"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    done = run(monkeypatch, capfd, "sql", table.uri, "--json")
    assert [json.loads(line) for line in done.out.splitlines()] == [{"n": 20}, {"n": 7}]
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT a.n FROM a JOIN b ON a.event:n::int = 1"))
    joined = (f"a={table.uri}", f"b={table.uri}", "--engine", "duckdb", "--json")
    failed = run(monkeypatch, capfd, "sql", *joined)
    assert (failed.code, "no column 'n'" in failed.err) == (1, True)


def test_commands_come_from_a_pipe_too(table: vl.Table, monkeypatch: Patch, capfd: Capture) -> None:
    text = ".format jsonl\n.tables\nSELECT count(*) AS n\nFROM t;\n.quit\nSELECT nonsense;"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    done = run(monkeypatch, capfd, "sql", table.uri)
    assert done.code == 0
    assert done.out.splitlines()[-1] == '{"n":20}'
    assert table.uri in done.out


def test_older_versions_are_read(table: vl.Table, monkeypatch: Patch, capfd: Capture) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) AS n FROM events"))
    done = run(monkeypatch, capfd, "sql", table.uri, "--version", "0", "--json")
    assert json.loads(done.out) == {"n": 0}
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) AS n FROM e"))
    time = table.history()[0].time.isoformat()
    done = run(monkeypatch, capfd, "sql", f"e={table.uri}", "--timestamp", time, "--json")
    assert json.loads(done.out) == {"n": 20}
    for rows, *at in ((0, "--version", "0"), (20, "--timestamp", time), (20,)):
        done = run(monkeypatch, capfd, "profile", table.uri, *at, "--json")
        assert f'"rows": {rows}, ' in done.out, done.err
    file = table.uri + ".ndjson"
    assert run(monkeypatch, capfd, "profile", file, "--version", "0").code == 1


def test_the_prompt_shows_schemas_and_completes_paths(table: vl.Table, capfd: Capture) -> None:
    prompt = _Prompt({"events": table}, QueryEngine.AUTO, OutputFormat.TABLE)
    assert prompt.completenames("event:us") == ["event:user.name"]
    assert prompt.completenames("sel") == ["SELECT"]
    for line in (".schema", ".tables", ".explain on", ".format csv", ".nonsense", "", "SELECT"):
        assert prompt.onecmd(line) is False
    assert prompt.prompt.endswith("...> ")
    assert prompt.onecmd("count(*) AS n FROM t;") is False
    assert prompt.prompt == "variantlake> "
    shown = capfd.readouterr()
    assert "event:user.name\tSTRING" in shown.out
    assert shown.out.endswith("n\n20\n")
    assert '"files"' in shown.err
    assert prompt.onecmd(".quit")


def test_a_prompt_outlives_errors_and_keeps_its_history(table: vl.Table, tmp_path: Path) -> None:
    terminal, its_end = pty.openpty()
    os.write(terminal, b"SELECT nope FROM t;\nSELECT count(*) AS n FROM events;\n.quit\n")
    command = [sys.executable, "-m", "variantlake.cli.main", "sql", table.uri]
    done = subprocess.run(
        command, stdin=its_end, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    os.close(its_end)
    os.close(terminal)
    assert done.returncode == 0
    assert "no column 'nope'" in done.stderr
    assert "20" in done.stdout
    assert (tmp_path / "variantlake" / "history").stat().st_mode & 0o777 == 0o600
