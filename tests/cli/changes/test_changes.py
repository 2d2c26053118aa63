from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.dml.changed import FEED, new_table


def test_changes_as_text_and_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = new_table(tmp_path / "t", rows=4, properties=FEED)
    table.delete("id = 2")
    shown = run(monkeypatch, capfd, "changes", table.uri, "--from", 2)
    assert (shown.code, "delete" in shown.out) == (0, True)
    found = run(
        monkeypatch, capfd, "changes", table.uri, "--from", "2000-01-01T00:00:00Z", "--to", 2,
        "--where", "event:n::int = 2",
        "--select", "id, event:user::string AS user, _change_type AS t",
        "--json",
    )  # fmt: skip
    assert [json.loads(line) for line in found.out.splitlines()] == [
        {"id": 2, "user": "u2", "t": "insert"}, {"id": 2, "user": "u2", "t": "delete"},
    ]  # fmt: skip
    bad = run(monkeypatch, capfd, "changes", table.uri, "--from", "soon")
    assert (bad.code, "neither a version" in bad.err) == (2, True)
