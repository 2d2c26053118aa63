"""Measure how our work without Spark scales: on one core, on two, and on all.

    python -m benchmarks.cores [--events 2000000] [--cores 1 2 4] [--rounds 5]

JSONBench's queries, scans, a load, a compaction and a checkpoint. Each number of cores has a
process of its own, which may use no others; pyarrow and our threads count them. It does each work
once unmeasured, and prints the median of its rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import documents
from benchmarks.queries import QUERIES
from benchmarks.report import timed

if TYPE_CHECKING:  # pyarrow, which it imports, counts the cores
    import variantlake as vl

_WARM_SECONDS = 5.0

TYPED = [f"event:{path}::string" for path in ("kind", "commit.operation", "commit.collection")]
TYPED += ["event:did::string", "event:time_us::bigint"]


_SORT = "SELECT event FROM t ORDER BY event:did::string, event:time_us::bigint"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        place, cores = asked.one
        print(json.dumps(measured(Path(place), int(cores), asked.rounds)))
        return
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        prepare(Path(folder), asked.events)
        runs = [_process(folder, cores, asked.rounds) for cores in asked.cores]
    print(f"{'':24}" + "".join(f"{cores:>9} cores" for cores in asked.cores))
    for name, alone in runs[0].items():
        cells = [f"{1000 * run[name]:8.1f} {alone / run[name]:4.2f}×" for run in runs]
        print(f"{name:24}" + " ".join(cells))


def prepare(folder: Path, events: int) -> None:
    """Tables in one large file each, in small files, and a log of many adds."""
    import variantlake as vl
    from benchmarks.planning import NARROW, write_table

    source = folder / "events.ndjson"
    documents.write("events", source, events)
    vl.Table.create(folder / "t", "event VARIANT").append(vl.ndjson(source))
    with source.open("rb") as lines, (folder / "part.ndjson").open("wb") as part:
        part.writelines(line for _, line in zip(range(events // 8), lines, strict=False))
    small = vl.Table.create(folder / "small", "event VARIANT")
    small.append(vl.ndjson(folder / "part.ndjson"), max_rows_per_file=max(1, events // 512))
    write_table(folder / "log", max(events // 20, 100), NARROW)


def works(folder: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Names of workloads with their functions, which get an empty folder."""
    import variantlake as vl
    from variantlake.ingest.local_run import ingest_here

    table = vl.Table.open(folder / "t")
    for name, query in QUERIES.items():
        if name.startswith("JSONBench"):
            yield name, partial(_query, table, query.text.format(t="t"))
    yield "scan of five paths", lambda _: table.scan(TYPED).to_arrow()
    yield "scan of whole Variants", lambda _: table.scan(["event"]).to_arrow()
    yield "load", lambda empty: ingest_here(str(folder / "part.ndjson"), empty / "t")
    # Each core writes its own files.
    compact = lambda empty: vl.Table.open(empty / "small").optimize(target_file_size="4MB")
    yield "compaction", compact
    yield "sort of whole Variants", partial(_query, table, _SORT)
    yield "checkpoint", lambda empty: vl.Table.open(empty / "log").checkpoint()


def _query(table: vl.Table, text: str, _empty: Path) -> object:
    return table.sql(text).to_arrow()


def measured(folder: Path, cores: int, rounds: int) -> dict[str, float]:
    """Median seconds of each workload."""
    # Neighbouring CPUs are often two threads of one core.
    there = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, there[:: len(there) // cores][:cores])
    copied = {"compaction": "small", "checkpoint": "log"}
    figures = {}
    every = dict(works(folder))
    started = time.monotonic()
    while time.monotonic() < started + _WARM_SECONDS:  # worker processes start after a while
        every["JSONBench 4"](folder)
    for name, work in every.items():
        seconds = []
        for _ in range(1 + rounds):
            with tempfile.TemporaryDirectory(dir=folder) as empty:
                if name in copied:
                    shutil.copytree(folder / copied[name], Path(empty) / copied[name])
                os.sync()
                seconds.append(timed(lambda: work(Path(empty))))  # noqa: B023 - called here
        figures[name] = statistics.median(seconds[1:])
    return figures


def _process(folder: str, cores: int, rounds: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.cores", "--one", folder, str(cores)]
    command += ["--rounds", str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
