"""Each document of a stream is in the table once wherever a batch is killed."""

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
from tests.spark.streaming.crashes import OPERATIONS

KILL_EVERY = 120
"""`make test-kill` kills at every moment; here a few show that it works."""
FAIL_EVERY = 29


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_store_that_fails_leaves_each_document_once(tmp_path: Path, name: str) -> None:
    rehearsal = Rehearsal.of(OPERATIONS[name], tmp_path)
    for number in range(0, len(rehearsal.names), FAIL_EVERY):
        rehearsal.fail_at(number, tmp_path / str(number), lasting=number % 2 == 0)


def test_a_killed_batch_leaves_each_document_once() -> None:
    command = [sys.executable, "-m", "tests.spark.streaming.crashes", "--every", str(KILL_EVERY)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "every table whole, every repeat fine" in done.stdout
