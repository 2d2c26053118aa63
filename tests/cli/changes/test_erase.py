from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.dml.changed import ids, new_table


def test_erase_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = new_table(tmp_path / "t", rows=4)
    dry = run(monkeypatch, capfd, "erase", table.uri, "--where", "id = 2", "--dry-run")
    assert (dry.code, "would be erased" in dry.out) == (0, True)
    done = run(monkeypatch, capfd, "erase", table.uri, "--where", "id = 2", "--yes")
    assert (done.code, "--quarantine` after" in done.err) == (0, True)
    shown = run(
        monkeypatch, capfd, "erase", table.uri, "--where", "id = 3", "--purge", "--json", "-y"
    )
    found = json.loads(shown.out)
    assert (found["rows_erased"], found["purged"], found["vacuum_after"]) == (1, True, None)
    assert ids(table) == [0, 1]
    assert run(monkeypatch, capfd, "erase", table.uri).code == 2
