"""What all commands have: help with examples, a light start, quiet, and questions first."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import typer

import variantlake as vl
from tests.cli.command import run
from tests.dml.changed import new_table
from variantlake.cli.commands import load_command
from variantlake.cli.registry import COMMANDS

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_complete_commands(name: str) -> None:
    command = load_command(name)
    for example in COMMANDS[name].examples:
        program, called, *arguments = shlex.split(
            example.partition(" < events")[0].partition(" < query")[0]
        )
        assert (program, called) == ("variantlake", name)
        assert len(example) <= 78
        command.make_context(name, arguments)
    with pytest.raises(Exception, match="No such option") as caught:
        command.make_context(name, ["--nonsense"])
    assert isinstance(caught.value, typer.BadParameter.__bases__[0])


def test_the_help_fits_a_terminal(monkeypatch: Patch, capfd: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(monkeypatch, capfd, "-h")
    assert shown.code == 0
    for name, entry in COMMANDS.items():
        line = next(each for each in shown.out.splitlines() if f"│ {name} " in each)
        assert entry.line in line
    of_one = run(monkeypatch, capfd, "vacuum", "-h").out
    assert "files that killed loads left." in of_one
    assert "\n variantlake vacuum /lake/events --dry-run " in of_one


def test_the_version_and_the_help_load_no_command() -> None:
    for argument in ("--version", "-h"):
        code = (
            f"import sys; sys.argv = ['variantlake', '{argument}']\n"
            "from variantlake.cli.main import main\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            "assert not {'numpy', 'pyarrow', 'sqlglot'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_quiet_prints_results_and_errors(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = new_table(tmp_path / "t", rows=2)
    variantlake = partial(run, monkeypatch, capfd)
    query = ("query", table.uri, "SELECT count(*) AS n FROM t")
    assert "Run by the local engine" in variantlake(*query).err
    assert (variantlake(*query, "-q").err, variantlake(*query, "-q").code) == ("", 0)
    assert "no column" in variantlake("query", table.uri, "SELECT x FROM t", "-q").err


def test_a_load_starts_no_spark(tmp_path: Path, monkeypatch: Patch, capfd: Capture) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("variantlake.spark.local_session", refuse)
    source = tmp_path / "a.ndjson"
    source.write_text('{"n": 1}\n')
    done = run(monkeypatch, capfd, "ingest", source, tmp_path / "t", "--json")
    assert json.loads(done.out)["rows_written"] == 1
    vl.Table.create(
        tmp_path / "checked",
        "event VARIANT",
        properties={"delta.constraints.some": "event IS NULL"},
    )
    checked = run(monkeypatch, capfd, "ingest", source, tmp_path / "checked")
    assert (checked.code, "checkConstraints" in checked.err) == (1, True)
    by_spark = run(monkeypatch, capfd, "ingest", source, tmp_path / "t", "--engine", "spark")
    assert "Spark was started" in by_spark.err
