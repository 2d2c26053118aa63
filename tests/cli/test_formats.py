"""Forms of results, files, versions, and queries from files."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.cli.command import run

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

DOCUMENTS = '{"k":"a","n":1}\n{"k":"b,\\"c\\n","n":2}\n{"k":"","n":null}\n'
QUERY = "SELECT event:k::string AS k, event:n::int AS n, event FROM events"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lake") / "events"
    source = place.with_suffix(".ndjson")
    source.write_text(DOCUMENTS)
    made = vl.Table.create(place, "event VARIANT")
    made.append(vl.ndjson(source))
    made.append(vl.ndjson(source))
    return place


def test_each_form_has_the_same_values(
    table: Path, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    query = partial(run, monkeypatch, capfd, "query", table, QUERY, "--version", "1")
    lines = [json.loads(line) for line in query("--output-format", "jsonl").out.splitlines()]
    assert [(row["k"], row["n"]) for row in lines] == [("a", 1), ('b,"c\n', 2), ("", None)]
    assert json.loads(query("--output-format", "json").out) == lines
    assert query("--json").out == query("--output-format", "jsonl").out
    names, *found = csv.reader(io.StringIO(query("--output-format", "csv").out))
    assert names == ["k", "n", "event"]
    assert [row[:2] for row in found] == [["a", "1"], ['b,"c\n', "2"], ["", ""]]
    assert '"",,' in query("--output-format", "csv").out  # an empty text, then NULL
    plain = query().out
    assert plain.splitlines()[0] == "k\tn\tevent"
    assert plain.splitlines()[2].startswith('b,"c\\n\t2\t')
    assert query("-o", tmp_path / "x.parquet").code == 0
    assert pq.ParquetFile(tmp_path / "x.parquet").metadata.num_rows == 3
    shown = run(monkeypatch, capfd, "cat", tmp_path / "x.parquet", "--output-format", "csv")
    assert shown.out == query("--output-format", "csv").out
    for name in ("x.csv", "x.jsonl"):
        done = query("-o", tmp_path / name)
        form = name.partition(".")[2]
        assert (done.code, done.out) == (0, "")
        assert (tmp_path / name).read_text() == query("--output-format", form).out
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.csv", "x.jsonl", "x.parquet"]


def test_forms_that_contradict_each_other_are_refused(
    table: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    for options in (["--output-format", "parquet"], ["--json", "--output-format", "csv"]):
        assert run(monkeypatch, capfd, "query", table, QUERY, *options).code == 2


def test_other_rows_have_forms_too(table: Path, monkeypatch: Patch, capfd: Capture) -> None:
    shown = run(monkeypatch, capfd, "history", table, "--output-format", "csv").out
    assert [row[0] for row in csv.reader(io.StringIO(shown))] == ["version", "2", "1", "0"]
    shown = run(monkeypatch, capfd, "cat", table, "--limit", "2", "--output-format", "json").out
    assert [row["event"]["k"] for row in json.loads(shown)] == ["a", 'b,"c\n']


def test_a_text_may_be_in_a_file(
    table: Path, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT count(*) AS n\nFROM events;\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 6 AS n FROM t LIMIT 1"))
    for source in ([f"@{file}"], ["-f", file], ["-"]):
        done = run(monkeypatch, capfd, "query", table, *source, "--json")
        assert json.loads(done.out) == {"n": 6}
    assert run(monkeypatch, capfd, "query", table, QUERY, "-f", file).code == 2


def test_older_versions_are_read(table: Path, monkeypatch: Patch, capfd: Capture) -> None:
    variantlake = partial(run, monkeypatch, capfd)
    count = ("query", table, "SELECT count(*) AS n FROM t", "--json")
    for version, rows in (("0", 0), ("1", 3), ("2", 6)):
        at = ("--version", version)
        assert json.loads(variantlake(*count, *at).out) == {"n": rows}
        assert len(variantlake("cat", table, *at).out.splitlines()) == rows
        assert json.loads(variantlake("inspect", table, "--json", *at).out)["rows"] == rows
        for command in ("check", "health", "drift"):
            assert variantlake(command, table, *at).code == 0
    time = vl.Table.open(table).history()[1].time
    assert json.loads(variantlake(*count, "--timestamp", time).out) == {"n": 3}
    window = "SELECT rank() OVER (ORDER BY 1) FROM t"
    refused = variantlake("query", table, window, "--version", "1")
    assert (refused.code, "RANK() OVER" in refused.err) == (1, True)


def test_duckdb_runs_what_it_is_asked_for(table: Path, monkeypatch: Patch, capfd: Capture) -> None:
    window = "SELECT rank() OVER (ORDER BY event:n::int) AS r FROM events LIMIT 1"
    variantlake = partial(run, monkeypatch, capfd, "query", table, window)
    refused = variantlake("--engine", "local")
    assert (refused.code, "--engine duckdb" in refused.err) == (1, True)
    done = variantlake("--engine", "duckdb", "--explain", "--output-format", "csv")
    assert (done.code, done.out) == (0, "r\n1\n")
    assert json.loads(done.err)["files"]["read"] == 2
