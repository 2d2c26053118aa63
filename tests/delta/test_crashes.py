"""A table is the old or the new version wherever a write is interrupted: every moment is tried."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests import corpora

if importlib.util.find_spec("deltalake") is None:
    corpora.missing("deltalake")

from tests.delta.crashes import OPERATIONS, Rehearsal

KILL_EVERY = 40
"""`make test-kill` kills at every moment; here a few show that it works."""

READS = ("read", "read_range", "open", "entry", "stream", "list_from")
AFTER_READS = {f"after {name}" for name in READS}
"""A call that fails after it has read leaves what it leaves when it fails before."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_store_that_fails_at_any_moment_leaves_a_whole_table(tmp_path: Path, name: str) -> None:
    rehearsal = Rehearsal.of(OPERATIONS[name], tmp_path)
    states = set()
    for number, moment in enumerate(rehearsal.names):
        if moment not in AFTER_READS:
            states.add(rehearsal.fail_at(number, tmp_path / "once", lasting=False))
        if number % 8 == 0:
            states.add(rehearsal.fail_at(number, tmp_path / "lasting", lasting=True))
    # The interruptions were on both sides of the commit.
    assert states == {rehearsal.before, rehearsal.after}


def test_a_killed_process_leaves_a_whole_table() -> None:
    command = [sys.executable, "-m", "tests.delta.crashes", "--every", str(KILL_EVERY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "every table whole, every repeat fine" in done.stdout
