"""Memory of checkpoints and plans: what a child process may have beside its libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.planning import NARROW, write_table

ROOT = Path(__file__).resolve().parents[3]
FILES = 100_000
"""Their log is 75 MB of JSON; as objects of Python they would be about 400 MB."""

_LIMITED = """
import resource
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from benchmarks import planning
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.snapshot import Snapshot
from variantlake.storage.store import LocalStore

root, more = Path(sys.argv[1]), int(sys.argv[3]) << 20
pa.array([1])  # which imports pandas if it is there
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))


def checkpoint():
    write_checkpoint(LocalStore(root))


def plan():
    snapshot = Snapshot.read(root)
    plan = planning.plan_scan(
        planning.LogFiles(snapshot), [planning.TIME], planning.time_range(5)
    )
    print(plan.read_files)


{"checkpoint": checkpoint, "plan": plan}[sys.argv[2]]()
"""


def _run(root: Path, work: str, megabytes: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _LIMITED, str(root), work, str(megabytes)]
    # Their own allocators reserve addresses that they may never use.
    plain = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **plain},
    )


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not limit a process's memory")
def test_checkpoints_and_plans_of_many_files_fit_into_little_memory(tmp_path: Path) -> None:
    write_table(tmp_path, FILES, NARROW)
    written = _run(tmp_path, "checkpoint", 320)
    assert written.returncode == 0, written.stderr
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    planned = _run(tmp_path, "plan", 150)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.strip() == "600"
    # It is a limit: with less memory the plan fails, and says why.
    assert "damaged" not in (small := _run(tmp_path, "plan", 40)).stderr
    assert small.returncode != 0
