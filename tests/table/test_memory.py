"""Calls that need more memory than there is say what to do, in a child process with little."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import variantlake as vl

ROWS = 400_000

_LIMITED = """
import resource
import sys

import pyarrow as pa
import pyarrow.parquet

import variantlake as vl

root, work, more = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 20
table = vl.Table.open(root)
table.sql("SELECT s, n FROM t WHERE n < 0 ORDER BY s").to_arrow()  # loads what it needs
other = vl.Table.create(f"{root}-{work}", "event VARIANT")
other.append(pa.table({"event": ['{"a": 1}']}), json_columns=["event"])


def append():
    text = pa.array(['{"text": "' + "x" * (60 << 20) + '"}'])
    other.append(pa.table({"event": text}), json_columns=["event"])


def stream():
    print(sum(batch.num_rows for batch in table.scan("s, n").to_batches()))


with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))
try:
    {
        "append": append,
        "collect": lambda: table.to_arrow(),
        "stream": stream,
        "sort": lambda: table.sql("SELECT s FROM t ORDER BY s").to_arrow(),
        "group": lambda: table.sql("SELECT s, count(*) AS n FROM t GROUP BY s").to_arrow(),
    }[work]()
except vl.OutOfMemory as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400,000 rows with long texts, all different: 100 MB in memory, far less on disk."""
    root = tmp_path_factory.mktemp("memory") / "t"
    table = vl.Table.create(root, "s STRING, n BIGINT, event VARIANT")
    for start in range(0, ROWS, 100_000):
        numbers = np.arange(start, start + 100_000)
        texts = [f"{number:0240d}" for number in numbers.tolist()]
        table.append(pa.table({"s": texts, "n": numbers}))
    return root


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not limit a process's memory")
@pytest.mark.parametrize(
    ("work", "megabytes", "said"),
    [
        ("append", 200, "what `append` works on does not fit into memory\nHint: give rows in"),
        ("collect", 100, "the rows do not fit into memory\nHint: `to_batches` and `export` read"),
        ("sort", 110, "the rows or groups of this query do not fit into memory\nHint: ask for"),
        ("group", 110, "the rows or groups of this query do not fit into memory\nHint: ask for"),
        ("stream", 140, str(ROWS)),
    ],
)
def test_what_does_not_fit_says_what_to_do(
    root: Path, work: str, megabytes: int, said: str
) -> None:
    command = [sys.executable, "-c", _LIMITED, str(root), work, str(megabytes)]
    plain = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **plain}
    )
    assert said in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
