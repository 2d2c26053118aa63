"""The mistakes of a new user: each error says what to do next, in the words of the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command import run
from variantlake.cli.registry import COMMANDS, SYNONYMS
from variantlake.errors import MissingDependency
from variantlake.ingest.local_run import ingest_here

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: Patch) -> None:
    """As where PySpark is not installed."""

    def refuse(*_: object) -> None:
        raise MissingDependency("there is no Spark", hint="install PySpark")

    monkeypatch.setattr("variantlake.spark.local_session", refuse)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table `t`, one that a later version wrote, documents, and what is none of these."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / "a.ndjson").write_text('{"kind": "a"}\n{"kind": "b"}\n')
    (folder / "bad.ndjson").write_text("hello\n")
    (folder / "long.json").write_text('{\n  "kind": "a"\n}\n')
    (folder / "empty").mkdir()
    ingest_here(folder / "a.ndjson", folder / "t")
    shutil.copytree(folder / "t", folder / "later")
    first = folder / "later" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"]["readerFeatures"].append("fromLater")
            action["protocol"]["writerFeatures"].append("fromLater")
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    first.with_suffix(".crc").unlink()
    return folder


KIND = "SELECT event:kind::string FROM t"


@pytest.mark.parametrize(
    "mistake",
    [
        ("query none|" + KIND, "not a Delta table", "check the location"),
        ("query a.ndjson|" + KIND, "a file, not a Delta table", "`variantlake ingest` loads JSON"),
        ("query later|" + KIND, "fromLater", "a newer version of this package"),
        ("query t|SELECT name FROM t", "no column 'name'", "is written event:name"),
        ("query t|SELECT event.kind FROM t", "event is a VARIANT", "a colon: event:kind"),
        ("query t|SELECT t.event.a.b FROM t", "event is a VARIANT", "a colon: event:a.b"),
        ("query t|SELECT event:kind::strin FROM t", "does not parse", "event:a.b[0]"),
        (
            "query t|SELECT rank() OVER (ORDER BY 1) FROM t",
            "RANK() OVER",
            "Spark may run it: install",
        ),
        ("delete t|--where|event:kind::strin = 'a'", "does not parse", "event:a.b[0]"),
        (
            "delete t|--where|xxhash64(event:kind) = 1",
            "function xxhash64",
            "Spark may run it: install",
        ),
        ("delete t|--where|event:kind = 'a'", "is a Variant", "a type: event:kind::string"),
        ("query t|SELECT event:kind, count(*) FROM t GROUP BY 1", "is a Variant", "kind::string"),
        ("query t|SELECT event->>'kind' FROM t", "by an arrow", "event:a.b::string"),
        ("ingest --engine spark|a.ndjson|new", "there is no Spark", "--engine local runs without"),
        ("ingest|none.json|new", "does not exist", "check the spelling"),
        ("ingest|empty|new", "holds no newline-delimited JSON", "must end with .ndjson"),
        ("ingest|bad.ndjson|new", "line 1, column 1", "each document on one line"),
        ("ingest|long.json|new", "line 1, column 2", "--format json"),
        ("ingest|a.ndjson|t|--column|name", "no column 'name'", "--merge-schema"),
        ("ingest|a.ndjson|t|--partition-by|day", "no column", "load into a new table"),
        ("inspect a.ndjson", "does not end with PAR1", "`variantlake profile`"),
        ("restore t|--version|9", "version 9 does not exist", "`variantlake history`"),
        ("changes t|--from|9", "version 9 does not exist", "`variantlake history`"),
    ],
)
def test_an_error_says_what_to_do_next(
    mistake: tuple[str, str, str], lake: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    arguments, error, hint = mistake
    command, *others = arguments.split("|")
    monkeypatch.chdir(lake)
    done = run(monkeypatch, capfd, *command.split(), *others)
    assert (done.code, done.out) == (1, "")
    first, second = done.err.splitlines()
    assert first.startswith("Error: ")
    assert error in first
    assert second.startswith("Hint: ")
    assert hint in second
    assert not (lake / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["quer", "t", KIND], "Did you mean 'query'?"),
        (["ingest", "a.ndjson", "t", "--mod", "null"], "--mode"),
        (["query", "t"], "'SQL'"),
        (["query", KIND], "a table comes before the query"),
        (["sql", "t", KIND], "variantlake query TABLE 'SELECT"),
        (["export", "t"], "give the file once"),
        (["export", "t", "a.csv", "-o", "b.csv"], "give the file once"),
        (["export", "t", "SELECT 1 FROM t", "-o", "b.csv"], "a query is given by --sql"),
        (["autoload", "empty", "new", "--every", "soon"], "30s, 5m, 1h"),
    ],
)
def test_wrong_usage_names_what_is_right(
    arguments: list[str], error: str, lake: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    monkeypatch.chdir(lake)
    monkeypatch.setenv("COLUMNS", "200")
    done = run(monkeypatch, capfd, *arguments)
    assert (done.code, done.out) == (2, "")
    assert error in done.err


def test_short_options_that_other_programs_have(
    lake: Path, monkeypatch: Patch, capfd: Capture, tmp_path: Path
) -> None:
    assert run(monkeypatch, capfd, "cat", lake / "t", "-n", "1").out == '{"kind":"a"}\n'
    assert run(monkeypatch, capfd, "history", lake / "t", "-n", "1").out.count("WRITE") == 0
    assert run(monkeypatch, capfd, "export", lake / "t", "-o", tmp_path / "a.jsonl").code == 0
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 2


def test_a_profile_is_of_records_too(tmp_path: Path, monkeypatch: Patch, capfd: Capture) -> None:
    (tmp_path / "x.csv").write_text("id,name\n1,a\n2,b\n3\n")
    done = run(monkeypatch, capfd, "profile", tmp_path / "x.csv", "--json")
    found = json.loads(done.out)
    assert (found["rows"], found["bad_rows"]) == (2, 1)
    assert found["shredding"] == "id BIGINT, name STRING"


def test_a_profile_counts_bad_documents(lake: Path, monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, "profile", lake / "bad.ndjson")
    assert "bad documents   1" in done.out
    assert "`variantlake ingest` names the first one" in done.err
    done = run(monkeypatch, capfd, "profile", lake / "a.ndjson")
    assert "bad documents" not in done.out
    assert done.err == ""


def test_a_file_that_may_not_be_written_is_a_sentence_with_a_hint(
    lake: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    def fail(path: Path, *_args: object, **_kinds: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_text", fail)
    done = run(monkeypatch, capfd, "report", lake / "t", "-o", lake / "page.html")
    assert done.code == 1
    assert done.err.splitlines() == [
        f"Error: {lake / 'page.html'}: permission denied",
        "Hint: check the owner and the mode of the file and of the folders above it",
    ]


@pytest.mark.parametrize(("name", "meant"), sorted(SYNONYMS.items()))
def test_a_word_of_other_programs_names_ours(
    name: str, meant: str, monkeypatch: Patch, capfd: Capture
) -> None:
    assert meant.split(maxsplit=1)[0] in COMMANDS
    assert name not in COMMANDS
    if name in {"append", "z-order"}:
        shown = run(monkeypatch, capfd, name, "x", "y")
        assert (shown.code, f"Did you mean '{meant}'?" in shown.err) == (2, True)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELCT 1", "did you mean SELECT?"),
        (
            "SELECT avg(event:n::double) FROM t",
            "--engine duckdb runs it, by DuckDB's own rules; Spark may run it",
        ),
    ],
)
def test_what_does_not_run_here_says_what_to_write(
    query: str, said: str, lake: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    shown = run(monkeypatch, capfd, "query", lake / "t", query)
    assert (shown.code, said in " ".join(shown.err.split())) == (1, True)


def test_an_older_version_is_named_by_an_option(
    lake: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    text = "SELECT count(*) FROM t VERSION AS OF 0"
    shown = run(monkeypatch, capfd, "query", lake / "t", text, "--engine", "local")
    assert (shown.code, "--version 3 or --timestamp reads" in shown.err) == (1, True)
