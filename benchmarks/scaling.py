"""How the cost and memory of a load grow with the data, on one core and on two.

    python -m benchmarks.scaling [--events 250000] [--rounds 3]

Each load runs in a process of its own, without Spark, after a small one that loads the kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import documents
from benchmarks.report import peak_mb, replace_section, table, timed

FACTORS = (1, 2, 4, 8)


def load(small: Path, source: Path, folder: Path, cores: int) -> dict[str, float]:
    """Seconds of a load on the first `cores` cores, and the process's peak memory in MB."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--one"]
    command += [str(small), str(source), str(folder), str(cores)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def one(small: Path, source: Path, folder: Path, cores: int) -> None:
    """What the process does: print what `load` gives back."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from variantlake.ingest.local_run import ingest_here  # after that: pyarrow counts cores once

    ingest_here(str(small), folder / "small")
    seconds = timed(lambda: ingest_here(str(source), folder / "table"))
    print(json.dumps({"seconds": seconds, "peak": peak_mb()}))


def run(count: int, rounds: int, folder: Path) -> list[list[str]]:
    """Rows of the table: the load's size, one core, two cores, their ratio, memory."""
    small = folder / "small.ndjson"
    documents.write("events", small, 2000)
    rows = []
    for factor in FACTORS:
        source = folder / "source.ndjson"
        _, size = documents.write("events", source, count * factor)
        runs: list[list[dict[str, float]]] = []
        for cores in (1, 2):
            with tempfile.TemporaryDirectory(dir=folder) as lake:
                tables = [Path(lake) / str(turn) for turn in range(rounds)]
                runs.append([load(small, source, table, cores) for table in tables])
        alone, both = (median(found["seconds"] for found in found_runs) for found_runs in runs)
        peaks = [max(found["peak"] for found in found_runs) for found_runs in runs]
        rows.append(
            [
                f"{size / 1e6:,.0f} MB",
                f"{alone:.2f} s, {size / 1e6 / alone:.0f} MB/s",
                f"{both:.2f} s, {size / 1e6 / both:.0f} MB/s",
                f"{alone / both:.2f}×",
                f"{peaks[0]:.0f} MB, {peaks[1]:.0f} MB",
            ]
        )
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def main() -> None:
    """Run, print, and put the table into docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=250_000, help="of the smallest load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        small, source, folder, cores = options.one
        one(Path(small), Path(source), Path(folder), int(cores))
        return
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        rows = run(options.events, options.rounds, Path(folder))
    head = ["NDJSON", "one core", "two cores", "ratio", "peak memory of the process"]
    replace_section("scaling", table(head, rows))


if __name__ == "__main__":
    main()
