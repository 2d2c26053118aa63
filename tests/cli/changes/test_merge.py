"""`variantlake merge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import variantlake as vl
from tests.cli.command import run


def test_a_merge_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table, source = (vl.Table.create(tmp_path / name, "id INT, event VARIANT") for name in "ts")
    table.append([{"id": 1, "event": {"k": "old"}}, {"id": 2, "event": {"k": "stays"}}])
    source.append([{"id": 1, "event": {"k": "new"}}, {"id": 3, "event": {"k": "more"}}])
    asked = ("merge", table.uri, source.uri, "--on", "t.id = s.id", "--engine", "local")
    done = run(monkeypatch, capfd, *asked, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["rows_updated"], found["rows_inserted"], found["rows_deleted"]) == (1, 1, 0)
    rows = table.refresh().scan("id, event:k::string AS k").to_pylist()
    assert sorted((row["id"], row["k"]) for row in rows) == [(1, "new"), (2, "stays"), (3, "more")]
    gone = run(monkeypatch, capfd, *asked, "--when", "MATCHED THEN DELETE")
    assert (gone.code, gone.out[:39]) == (0, "0 rows updated, 0 inserted, 2 deleted: ")
