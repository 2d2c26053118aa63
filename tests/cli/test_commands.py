"""What all commands have: help with examples, a light start, quiet, and questions first."""

from __future__ import annotations

import enum
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.emoji import Emoji

import variantlake as vl
from tests.cli.command import run
from tests.dml.changed import new_table
from variantlake.cli.commands import load_command
from variantlake.cli.registry import COMMANDS
from variantlake.storage.options import reach_with, storage_options

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
    assert "<bool>" not in shown.out + of_one
    assert "files that killed loads left." in of_one
    assert "\n variantlake vacuum /lake/events --dry-run " in of_one


def check_loads_none(arguments: list[str], modules: set[str]) -> None:
    """Run a command in a process of its own, which must not have imported these modules."""
    code = (
        f"import sys; sys.argv = ['variantlake', *{arguments!r}]\n"
        "from variantlake.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        f"assert not {modules!r} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_version_and_the_help_load_no_command() -> None:
    for argument in ("--version", "-h"):
        check_loads_none([argument], {"numpy", "pyarrow", "sqlglot"})


def test_commands_do_without_pydantic(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=2)
    for arguments in (["info", table.uri], ["query", table.uri, "SELECT count(*) AS n FROM t"]):
        check_loads_none(arguments, {"pydantic"})


def _made(read: Callable[[Any, Any], Any], value: Any) -> Any:
    try:
        found = read(None, value)
    except Exception as error:  # noqa: BLE001 - of whichever class typer takes
        return type(error)
    return type(found), found


@pytest.mark.parametrize("name", [*COMMANDS])
def test_arguments_are_what_typer_makes_of_them(name: str) -> None:
    command = load_command(name)
    plain = {option.name: option.process_value for option in command.params}
    context = command.make_context(name, [], resilient_parsing=True)
    for option in command.get_params(context):
        if option.name not in plain:
            continue
        option.callback = None
        kind = option.type_descriptor.annotation
        members = [*kind] if isinstance(kind, type) and issubclass(kind, enum.Enum) else []
        texts = [each.value for each in members]
        for value in (None, "", "a", "7", 0, 7, -1, True, False, [], ["a"], *members, *texts):
            assert _made(option.process_value, value) == _made(plain[option.name], value), value


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


@pytest.mark.parametrize("name", COMMANDS)
def test_no_path_of_a_help_text_becomes_a_picture(name: str) -> None:
    command = load_command(name)
    for text in [command.help, command.epilog, *(each.help or "" for each in command.params)]:
        assert Emoji.replace(text) == text


def test_quiet_and_verbose_stand_before_the_command_too(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    vl.Table.create(tmp_path / "t", "id INT")
    before = run(monkeypatch, capfd, "-q", "query", tmp_path / "t", "SELECT id FROM t")
    after = run(monkeypatch, capfd, "query", tmp_path / "t", "SELECT id FROM t", "-q")
    assert (before.code, before.err) == (0, "")
    assert before == after
    assert run(monkeypatch, capfd, "-q").code == 2
    assert run(monkeypatch, capfd, "-v", "--version").code == 2


def test_a_query_that_cannot_be_written_says_where(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    vl.Table.create(tmp_path / "t", "id INT")
    query = ("query", tmp_path / "t", "SELECT id FROM t", "-o")
    folder = run(monkeypatch, capfd, *query, tmp_path)
    assert (folder.code, folder.err) == (1, f"Error: {tmp_path}: a folder, not a file\n")
    missing = run(monkeypatch, capfd, *query, tmp_path / "no" / "rows.csv")
    assert (missing.code, missing.err) == (1, f"Error: {tmp_path / 'no'}: no such folder\n")
    (tmp_path / "bad.sql").write_bytes(b"SELECT \xff")
    bad = run(monkeypatch, capfd, "query", tmp_path / "t", "-f", tmp_path / "bad.sql")
    assert bad.err == f"Error: {tmp_path / 'bad.sql'}: the query is not text in UTF-8\n"
    empty = run(monkeypatch, capfd, "query", tmp_path / "t", " ; ")
    assert (empty.code, "the query is empty" in empty.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("changes", "t", "--from", "soon"), "'soon' is neither a version's number nor a time"),
        (("vacuum", "t", "--retention", "soon"), "30s, 5m, 1h or 7d "),
        (("ingest", "a", "t", "--mode", "soft"), "'--mode': 'soft' is not one of"),
        (("ingest", "a", "t", "--target-file-size", "big"), "64MB or 1GB"),
        (("info", "t", "--storage-option", "KEY"), "NAME=VALUE, or s3://bucket:NAME=VALUE"),
    ],
)
def test_a_wrong_option_says_what_it_takes(
    arguments: tuple[str, ...], message: str, monkeypatch: Patch, capfd: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    shown = run(monkeypatch, capfd, *arguments)
    assert (shown.code, message in shown.err) == (2, True)


def test_buckets_are_reached_as_the_file_and_the_options_say(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    file = tmp_path / "variantlake.toml"
    file.write_text('[storage."s3://lake"]\nAWS_REGION = "a"\nAWS_ENDPOINT_URL = "https://e"\n')
    monkeypatch.setenv("VARIANTLAKE_CONFIG", str(file))
    vl.Table.create(tmp_path / "t", "id INT")
    said = ["s3://lake:AWS_REGION=b", "s3://raw:AWS_REGION=c", "AWS_REGION=d"]
    options = [word for each in said for word in ("--storage-option", each)]
    try:
        assert run(monkeypatch, capfd, "info", tmp_path / "t", *options).code == 0
        reached = [storage_options(f"s3://{name}/t") for name in ("lake", "raw", "other")]
    finally:
        vl.set_storage_options({})
        for name in ("lake", "raw"):
            reach_with(f"s3://{name}", {})
    assert [each["AWS_REGION"] for each in reached] == ["b", "c", "d"]
    assert [each.get("AWS_ENDPOINT_URL") for each in reached] == ["https://e", None, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[storage]\nlake = "x"', "names 'lake', which is not a bucket"),
        ('[storage."s3://lake"]\nAWS_REGION = 3', "'AWS_REGION' is not text"),
        ('[storage."s3://lake"]\nAWS_REGIO = "3"', "no storage option 'AWS_REGIO'"),
        ("[tabels]", "'tabels' is not a section"),
    ],
)
def test_a_wrong_configuration_says_where(
    text: str, message: str, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    file = tmp_path / "variantlake.toml"
    file.write_text(text)
    monkeypatch.setenv("VARIANTLAKE_CONFIG", str(file))
    shown = run(monkeypatch, capfd, "info", tmp_path / "t")
    assert (shown.code, message in shown.err) == (1, True)
