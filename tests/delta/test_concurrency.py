"""Several processes write one table at once: nothing is lost or doubled, no version is skipped."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests import corpora


@pytest.mark.rule(26)
def test_nothing_is_lost_on_a_local_disk_and_on_an_s3_server() -> None:
    """The small form of `make test-concurrency`."""
    if importlib.util.find_spec("moto") is None:
        corpora.missing("moto")
    small = ["--processes", "4", "--appends", "8", "--overwrites", "3"]
    command = [sys.executable, "-m", "tests.delta.writers", *small]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("no row lost or doubled, versions without a hole") == 2
