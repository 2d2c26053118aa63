"""Measure peak memory of loads of two sizes: it must depend on the row group, not on the input.

    python -m benchmarks.memory [--copies 50]

The input is 102 MB of nested events, and so many copies of them, one behind the other. Each load
runs in a session of processes of its own. Of a process of ours the peak is `ru_maxrss`; of Spark's
Python workers it is the largest `VmHWM` of any, looked at while the load runs: the JVM is not
counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from benchmarks import documents
from benchmarks.report import Runs, Section, finish, parser, peak_mb

EVENTS = 200_000
"""102 MB."""


def one_task(source: Path, folder: Path) -> float:
    """In this process, one task at a time."""
    from benchmarks.stages import load

    load(source, folder)
    return peak_mb()


def in_threads(source: Path, folder: Path) -> float:
    """In this process, a task on each core."""
    from variantlake.ingest.local_run import ingest_here

    ingest_here(str(source), folder)
    return peak_mb()


def sorted_files(source: Path, folder: Path) -> float:
    """In this process, a task on each core, each file sorted by a path."""
    from variantlake.ingest.local_run import ingest_here

    ingest_here(str(source), folder, order_by=["event:commit.collection::string"])
    return peak_mb()


def spark_text(source: Path, folder: Path) -> float:
    """Spark's tasks read the file."""
    import variantlake as vl
    from benchmarks.engines import spark_session

    lake = vl.spark.connect(spark_session(2))
    return _peak_of_workers(lambda: lake.ingest(str(folder), str(source)))


def spark_computed(source: Path, folder: Path) -> float:
    """Load a DataFrame of JSON text that Spark computes."""
    import variantlake as vl
    from benchmarks.engines import spark_session

    spark = spark_session(2)
    lake = vl.spark.connect(spark)
    vl.Table.create(folder, "event VARIANT")
    frame = spark.read.text(str(source)).selectExpr("concat(value, ' ') AS event")
    return _peak_of_workers(lambda: lake.append(str(folder), frame, json_columns=["event"]))


LOADS: dict[str, Callable[[Path, Path], float]] = {
    "in this process, one task": one_task,
    "in this process, two tasks at once": in_threads,
    "the same, with `order_by`": sorted_files,
    "a worker of Spark that reads the file": spark_text,
    "a worker of Spark that gets a computed DataFrame": spark_computed,
}


def _peak_of_workers(work: Callable[[], object]) -> float:
    """Peak MB of the largest worker; workers may end before the load does."""
    done = threading.Event()
    peaks = [0.0]

    def look() -> None:
        while not done.wait(0.2):
            peaks.append(max(map(_peak_of, Path("/proc").glob("[0-9]*")), default=0.0))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(peaks)


def _peak_of(process: Path) -> float:
    """MB of a Python worker of Spark, 0 for any other process."""
    try:
        is_ours = os.getsid(int(process.name)) == os.getsid(0)
        if not is_ours or b"pyspark.daemon" not in (process / "cmdline").read_bytes():
            return 0.0
        status = (process / "status").read_text()
    except OSError:  # it has ended
        return 0.0
    lines = [line.split() for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0][1]) / 1024 if lines else 0.0


def main() -> None:
    """Run and print."""
    options = parser(__doc__, events=EVENTS, rounds=1)
    options.add_argument("--copies", type=int, default=50)
    options.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.one:
        name, source, folder = asked.one
        print(f"{LOADS[name](Path(source), Path(folder)):.0f}")
        return
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        small, large = Path(folder) / "small.ndjson", Path(folder) / "large.ndjson"
        documents.write("events", small, asked.events)
        with large.open("wb") as target:
            for _ in range(asked.copies):
                with small.open("rb") as copied:
                    shutil.copyfileobj(copied, target, 1 << 20)
        sources = {f"{file.stat().st_size / 1e6:,.0f} MB": file for file in (small, large)}
        section = Section(tuple(sources), "ways")
        for name in LOADS:
            peaks = {
                size: Runs([_measured(name, file, Path(folder) / "table")], "MB")
                for size, file in sources.items()
            }
            section.add(name, peaks)
    finish(section, asked)


def _measured(name: str, source: Path, folder: Path) -> float:
    """Peak MB of a load in separate processes."""
    command = [sys.executable, "-m", "benchmarks.memory", "--one", name, str(source), str(folder)]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, start_new_session=True
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
