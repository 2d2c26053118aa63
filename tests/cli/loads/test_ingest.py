"""`variantlake ingest` and `history`: results, exit codes, errors without tracebacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.ingest import bad_input
from variantlake.delta.log.snapshot import Snapshot
from variantlake.table import Table

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "events.ndjson"
    path.write_text('{"a": 1, "b": "x"}\n' * 5)
    return path


def test_ingest_says_what_it_did(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "ingest", source, tmp_path / "table")
    assert (done.code, done.err) == (0, "")
    assert "a BIGINT, b STRING" in done.out
    assert "version" in done.out


def test_ingest_gives_json(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "table"
    options = ["--json", "--max-rows-per-file", "2", "--shredding", "a INT"]
    done = run(monkeypatch, capfd, "ingest", *options, source, table)
    assert done.code == 0
    result = json.loads(done.out)
    assert (result["version"], result["rows_written"], result["files_written"]) == (0, 5, 3)
    assert result["shredding"] == {"event": "a INT"}
    done = run(monkeypatch, capfd, "ingest", "--json", f"{tmp_path}/*.ndjson", source, table)
    assert json.loads(done.out)["version"] == 1
    assert Snapshot.read(table).version == 1


def test_ingest_replaces_the_rows_of_a_table(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "table"
    for _ in range(2):
        run(monkeypatch, capfd, "ingest", "--overwrite", source, table)
    snapshot = Snapshot.read(table)
    assert (snapshot.version, snapshot.files.num_rows) == (1, 1)


def test_history_shows_every_version(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "table"
    for _ in range(2):
        run(monkeypatch, capfd, "ingest", source, table)
    done = run(monkeypatch, capfd, "history", "--json", table)
    entries = [json.loads(line) for line in done.out.splitlines()]
    assert [(e["version"], e["operation"]) for e in entries] == [
        (1, "WRITE"),
        (0, "CREATE TABLE AS SELECT"),
    ]
    assert entries[0]["metrics"]["numOutputRows"] == "5"
    done = run(monkeypatch, capfd, "history", "--limit", "1", table)
    assert done.code == 0
    assert "WRITE" in done.out
    assert "CREATE" not in done.out


@pytest.mark.parametrize("name", bad_input.CASES)
def test_a_bad_input_is_a_sentence(
    tmp_path: Path, name: str, monkeypatch: Patch, capfd: Capture
) -> None:
    case = bad_input.CASES[name]
    source = case.prepare(tmp_path, monkeypatch)
    done = run(monkeypatch, capfd, "ingest", source, tmp_path / "table")
    assert (done.code, done.out) == (1, "")
    assert "Traceback" not in done.err
    first, *others = done.err.splitlines()
    assert first.startswith(f"Error: {source}")
    assert all(line.startswith("Hint: ") for line in others)
    if case.line is not None:
        assert f"line {case.line}, column {case.column}" in first
    assert not (tmp_path / "table").exists() or not bad_input.listing(tmp_path / "table")


def test_a_missing_source_is_said_before_spark_starts(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    monkeypatch.setattr("variantlake.spark.local_session", lambda: pytest.fail("Spark was started"))
    done = run(monkeypatch, capfd, "ingest", tmp_path / "missing.json", tmp_path / "table")
    assert done.code == 1
    assert "the source does not exist" in done.err
    assert "missing.json" in done.err
    assert not (tmp_path / "table").exists()


def test_a_folder_that_is_no_table_is_a_sentence(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    for arguments in (["ingest", source, tmp_path], ["history", tmp_path]):
        done = run(monkeypatch, capfd, *arguments)
        assert done.code == 1
        assert done.err.startswith(f"Error: {tmp_path}: ")
        assert "Delta" in done.err
        assert "Traceback" not in done.err


def test_a_table_that_cannot_be_written_is_a_sentence(
    source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = source / "table"
    done = run(monkeypatch, capfd, "ingest", source, table)
    assert done.code == 1
    assert done.err.startswith(f"Error: {table}: the table cannot be written")
    assert done.err.splitlines()[1].startswith("Hint: ")


def test_an_unknown_reader_feature_is_named(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "table"
    run(monkeypatch, capfd, "ingest", source, table)
    log = table / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for action in lines:
        if "protocol" in action:
            action["protocol"]["readerFeatures"].append("timeMachine")
            action["protocol"]["writerFeatures"].append("timeMachine")
    log.write_text("".join(json.dumps(action) + "\n" for action in lines))
    log.with_suffix(".crc").unlink()
    before = bad_input.listing(table)
    for arguments in (["ingest", source, table], ["history", table]):
        done = run(monkeypatch, capfd, *arguments)
        assert done.code == 1
        assert "timeMachine" in done.err
        assert "Traceback" not in done.err
    assert bad_input.listing(table) == before


def test_bad_documents_are_counted_and_a_load_is_made_once(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    source, table = tmp_path / "a.json", tmp_path / "table"
    source.write_text('[{"a": 3}, {"a": 01}, {"a": 1}]')
    options = ["--format", "array", "--mode", "quarantine", "--load-id", "x"]
    done = run(monkeypatch, capfd, "ingest", *options, "--order-by", "$.a", source, table)
    assert (done.code, done.err) == (0, "")
    assert f"1, in {table / '_quarantine'}" in done.out
    assert run(monkeypatch, capfd, "cat", table).out.splitlines() == ['{"a":1}', '{"a":3}']
    done = run(monkeypatch, capfd, "ingest", *options, source, table)
    assert done.code == 0
    assert "already loaded" in done.out
    assert "at version 0" in done.out
    done = run(monkeypatch, capfd, "ingest", *options, "--json", source, table)
    assert json.loads(done.out)["already_loaded"] is True
    options = ["--format", "array", "--mode", "null", "--json"]
    done = run(monkeypatch, capfd, "ingest", *options, source, table)
    result = json.loads(done.out)
    assert (result["version"], result["rows_written"], result["rows_bad"]) == (1, 3, 1)
    done = run(monkeypatch, capfd, "ingest", "--order-by", "$.nope", source, table)
    assert done.code == 1
    assert "cannot sort by '$.nope'" in done.err


@pytest.mark.parametrize(
    "arguments", [["ingest"], ["ingest", "a"], ["ingest", "--max-rows-per-file", "0", "a", "b"]]
)
def test_wrong_usage_exits_with_2(arguments: list[str], monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, *arguments)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_the_version_is_printed(monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, "--version")
    assert done.code == 0
    assert done.out.strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_its_like_leave_nothing(tmp_path: Path, number: signal.Signals) -> None:
    source = tmp_path / "events.ndjson"
    source.write_text('{"a": 1, "b": "%s"}\n' % ("x" * 1000) * 200_000)
    table = tmp_path / "table"
    command = [
        sys.executable,
        "-m",
        "variantlake.cli.main",
        "ingest",
        "--max-rows-per-file",
        "1000",
        str(source),
        str(table),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(bad_input.listing(table)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert (out, err.strip()) == ("", "Interrupted.")
    assert bad_input.listing(table) == []


def test_files_are_of_the_form_of_their_names(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    (tmp_path / "p.tsv").write_text("id\tprice\n007\t1.10\n")
    run(monkeypatch, capfd, "ingest", str(tmp_path / "p.tsv"), str(tmp_path / "t"))
    run(
        monkeypatch,
        capfd,
        "stage",
        str(tmp_path / "t"),
        "more",
        "--load",
        str(tmp_path / "p.tsv"),
        "--publish",
    )
    run(monkeypatch, capfd, "autoload", str(tmp_path / "*.tsv"), str(tmp_path / "t"))
    assert Table.open(tmp_path / "t").count() == 3
