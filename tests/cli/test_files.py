"""`variantlake cat`, `inspect` and `check`, of tables and of single files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import variantlake as vl
from tests import corpora
from tests.arrow import bad_input
from tests.arrow.test_load import EARTHQUAKES
from tests.cli.command import run
from variantlake.arrow.local import ingest_here

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake") / "earthquakes"
    ingest_here(EARTHQUAKES, path, max_rows_per_file=600)
    return path


@pytest.fixture(scope="module")
def file(table: Path) -> Path:
    return min(table.glob("*.parquet"))


@pytest.fixture(scope="module")
def lines() -> list[str]:
    with gzip.open(EARTHQUAKES, "rt", encoding="utf-8") as text:
        return [vl.parse_json(line).to_json() for line in text]


def test_cat_gives_the_documents_back(
    table: Path, lines: list[str], monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "cat", table)
    assert done.code == 0
    assert done.out.splitlines() == lines


def test_cat_of_a_file_stops_at_the_limit(
    file: Path, lines: list[str], monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "cat", "--limit", "3", "--json", file)
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"event": json.loads(line)} for line in lines[:3]
    ]
    done = run(monkeypatch, capfd, "cat", "--limit", "1", "--column", "event", file)
    assert done.out == lines[0] + "\n"


def test_cat_names_the_columns_when_one_is_unknown(
    table: Path, file: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    for source in (table, file):
        done = run(monkeypatch, capfd, "cat", "--column", "nope", source)
        assert done.code == 1
        assert "nope" in done.err
        assert "event" in done.err


def test_inspect_shows_paths_types_and_shares(
    table: Path, file: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    for source in (table, file):
        done = run(monkeypatch, capfd, "inspect", source)
        assert done.code == 0
        assert "$['properties']['mag']" in done.out
        assert "DECIMAL" in done.out


def test_inspect_gives_json(table: Path, file: Path, monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, "inspect", "--json", table)
    known = json.loads(done.out)
    assert (known["version"], known["files"], known["rows"]) == (0, 3, 1707)
    paths = {each["path"]: each for each in known["columns"]["event"]}
    assert paths["$['properties']['time']"]["typed_rows"] == 1707
    assert paths["$['properties']['time']"]["clean_files"] == 3
    done = run(monkeypatch, capfd, "inspect", "--json", file)
    (variant,) = json.loads(done.out)["variants"]
    assert variant["annotated"]
    nodes = {node["path"]: node for node in variant["nodes"]}
    assert nodes["$['properties']['time']"]["share"] == 1


def test_inspect_says_why(file: Path, table: Path, monkeypatch: Patch, capfd: Capture) -> None:
    done = run(monkeypatch, capfd, "inspect", "--why", "event", file)
    assert done.code == 0
    assert "$['geometry']['coordinates']" in done.out
    done = run(monkeypatch, capfd, "inspect", "--why", "event", "--json", file)
    assert any(not reason["taken"] for reason in json.loads(done.out))
    assert run(monkeypatch, capfd, "inspect", "--why", "event", table).code == 2


def test_check_finds_nothing_in_our_files(
    table: Path, file: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, "check", table)
    assert (done.code, done.out) == (0, "3 files, nothing found\n")
    assert run(monkeypatch, capfd, "check", "--json", file).out == ""


def test_check_names_row_and_rule_of_a_bad_file(
    monkeypatch: Patch, capfd: Capture, tmp_path: Path
) -> None:
    folder = corpora.require(corpora.SHARED / "conformance" / "parquet-shredded-variant")
    bad = folder / "case-043-INVALID.parquet"
    if not bad.exists():
        bad = min(folder.glob("*INVALID*.parquet"))
    done = run(monkeypatch, capfd, "check", bad)
    assert done.code == 1
    assert "rule: " in done.out
    done = run(monkeypatch, capfd, "check", "--json", bad)
    assert json.loads(done.out.splitlines()[0])["rule"]
    (tmp_path / "text.parquet").write_text("no Parquet")
    done = run(monkeypatch, capfd, "check", tmp_path / "text.parquet")
    assert done.code == 1
    assert "Traceback" not in done.err


def test_partition_values_and_later_columns_are_shown(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    shown = bad_input.listing(tmp_path)
    assert shown == []
    vl.Table.create(tmp_path / "t", "event VARIANT, note STRING")
    (tmp_path / "a").write_text('{"a": 1}\n')
    vl.Table.open(tmp_path / "t").append(vl.ndjson(tmp_path / "a"))
    done = run(monkeypatch, capfd, "cat", tmp_path / "t")
    assert json.loads(done.out) == {"event": {"a": 1}, "note": None}


@pytest.mark.parametrize("command", ["cat", "inspect", "check"])
def test_a_missing_file_is_a_sentence(
    command: str, tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    done = run(monkeypatch, capfd, command, tmp_path / "nowhere.parquet")
    assert done.code == 1
    assert str(tmp_path / "nowhere.parquet") in done.err
    assert "Traceback" not in done.err
