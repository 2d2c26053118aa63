"""Each document is in the table once wherever an autoload is interrupted."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests import corpora

if importlib.util.find_spec("deltalake") is None:
    corpora.missing("deltalake")

from tests.autoloading.crashes import MODES, Rehearsal

KILL_EVERY = 400
"""`make test-kill` kills at every moment; here a few show that it works."""
FAIL_EVERY = 101


@pytest.mark.parametrize("mode", MODES)
def test_a_store_that_fails_leaves_each_document_once(tmp_path: Path, mode: str) -> None:
    rehearsal = Rehearsal.of(mode, tmp_path)
    for number in range(0, len(rehearsal.names), FAIL_EVERY):
        rehearsal.fail_at(number, lasting=number % 2 == 0)


def test_a_killed_autoload_leaves_each_document_once() -> None:
    command = [sys.executable, "-m", "tests.autoloading.crashes", "--every", str(KILL_EVERY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "each document in the table once" in done.stdout
