"""`variantlake delete`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.dml.changed import ids, new_table


def test_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = new_table(tmp_path / "t", rows=20)
    where = ("delete", table.uri, "--where", "event:n::bigint between 4 and 12")
    shown = run(monkeypatch, capfd, *where, "--dry-run")
    assert (shown.code, shown.out.split(":")[0]) == (0, "9 rows would be deleted from 2 files")
    assert len(ids(table)) == 20
    done = run(monkeypatch, capfd, *where, "--json", "--engine", "local")
    found = json.loads(done.out)
    assert (found["rows_deleted"], found["files_marked"], found["version"]) == (9, 2, 2)
    assert ids(table) == [*range(4), *range(13, 20)]
    refused = run(
        monkeypatch, capfd, "delete", table.uri, "--where", "day RLIKE '(?i)x'", "--engine", "local"
    )
    assert refused.code == 1
    assert "--engine spark" in refused.err
