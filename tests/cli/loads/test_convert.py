"""`variantlake convert`: what it says, its JSON, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.cli.command import run
from tests.shredding.legacy_columns import column, leaf, untyped

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = vl.parquet.variant_array([{"kind": "a", "n": 1}, None])
    path = tmp_path / "old.parquet"
    vl.parquet.write_table(
        pa.table({"event": rows}), path, shredding="kind STRING", layout="legacy"
    )
    return path


def test_convert_says_what_it_would_do_and_did(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "table"
    planned = run(monkeypatch, capfd, "convert", source, table, "--dry-run")
    assert (planned.code, planned.err) == (0, "")
    assert "rewrite" in planned.out
    assert "older layout" in planned.out
    assert not table.exists()
    done = run(monkeypatch, capfd, "convert", source, table)
    assert (done.code, done.err) == (0, "")
    assert "1 to rewrite" in done.out
    assert "event: kind STRING" in done.out
    shown = run(monkeypatch, capfd, "cat", source, "--json")
    assert json.loads(shown.out.splitlines()[0]) == {"event": {"kind": "a", "n": 1}}


def test_convert_gives_json(
    tmp_path: Path, source: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = tmp_path / "table"
    options = ["--shredding", "n BIGINT", "--json"]
    done = run(monkeypatch, capfd, "convert", source, table, *options)
    result = json.loads(done.out)
    assert (result["version"], result["rows_written"], result["files_written"]) == (0, 2, 1)
    assert result["shredding"] == {"event": "n BIGINT"}
    assert [step["action"] for step in result["steps"]] == ["rewrite"]


def test_a_bad_row_fails_with_one_sentence(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    bad = tmp_path / "bad.parquet"
    data = [{"typed_value": 1, "untyped_value": untyped(2)}]
    pq.write_table(pa.table({"v": column(leaf(pa.int64()), data)}), bad)
    done = run(monkeypatch, capfd, "convert", bad, tmp_path / "table")
    assert done.code == 1
    assert "bad.parquet" in done.err
    assert "row 0" in done.err
    assert not (tmp_path / "table").exists()
    checked = run(monkeypatch, capfd, "check", bad)
    assert checked.code == 4
    assert "untyped_value" in checked.out
