"""Upkeep that is interrupted leaves a whole table, and a repeat does the rest."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests import corpora

if importlib.util.find_spec("deltalake") is None:
    corpora.missing("deltalake")

from tests.delta.crashes import Rehearsal
from tests.maintenance.crashes import OPERATIONS

KILLED = {"unshred": 60, "vacuum": 40}
"""Each how manieth moment; `make test-kill` kills at every one, and everything."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_store_that_fails_leaves_a_whole_table(tmp_path: Path, name: str) -> None:
    rehearsal = Rehearsal.of(OPERATIONS[name], tmp_path)
    count = len(rehearsal.names)
    # The last moments are those around commits and what is deleted.
    for turn, share in enumerate((0.6, 0.95)):
        rehearsal.fail_at(int(count * share), tmp_path / f"table-{turn}", lasting=turn % 2 == 0)


@pytest.mark.parametrize("name", KILLED)
def test_a_killed_process_leaves_a_whole_table(name: str) -> None:
    command = [sys.executable, "-m", "tests.maintenance.crashes", name]
    command += ["--every", str(KILLED[name])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "every table whole, every repeat fine" in done.stdout
