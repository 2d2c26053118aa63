"""What nothing brings back is asked first."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.dml.changed import ids, new_table

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_what_nothing_brings_back_is_asked_first(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    table = new_table(tmp_path / "t", rows=4)
    variantlake = partial(run, monkeypatch, capfd)
    for command in (["vacuum"], ["erase", "--where", "id = 1"]):
        refused = variantlake(command[0], table.uri, *command[1:])
        assert (refused.code, "--yes" in refused.err) == (2, True)
        assert variantlake(command[0], table.uri, *command[1:], "--dry-run").code == 0
    assert ids(table) == [0, 1, 2, 3]
    terminal, its_end = pty.openpty()
    code = [sys.executable, "-m", "variantlake.cli.main", "erase", table.uri, "--where", "id = 1"]
    for answer, left in ((b"n\n", [0, 1, 2, 3]), (b"y\n", [0, 2, 3])):
        os.write(terminal, answer)
        subprocess.run(code, stdin=its_end, stderr=its_end, stdout=subprocess.DEVNULL, check=False)
        assert ids(table.refresh()) == left
    os.close(its_end)
    os.close(terminal)
