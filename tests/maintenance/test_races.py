"""Writers, compactions and a delete at once, as processes: no row is lost or doubled."""

from __future__ import annotations

import subprocess
import sys


def test_no_row_is_lost_or_doubled() -> None:
    """The small form of `make test-concurrency`."""
    command = [sys.executable, "-m", "tests.maintenance.races", "--appends", "3", "--disk-only"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("0 rows lost or doubled") == 2
