"""Small appends, one after another: what each costs while the log grows.

    python -m benchmarks.appends [--commits 2000] [--rows 20] [--way handle|fresh]

One process appends a few rows at a time, by one `Table` that it keeps (`handle`) or by one that it
opens for each (`fresh`). For each hundred commits the medians are printed: by the clock, in which
the waiting for the disk is, and the processor's time, which other work on the machine changes
little. The mean of that has the checkpoints of every tenth commit in it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import mean, median

import pyarrow as pa

import variantlake as vl

STEP = 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--commits", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--way", choices=("handle", "fresh"), default="handle")
    requested = parser.parse_args()
    print(f"{'commits':>11} {'median ms':>10} {'processor':>10} {'mean':>7}")
    with tempfile.TemporaryDirectory() as folder:
        table = vl.Table.create(Path(folder) / "t", "event VARIANT, n INT")
        table.append(_rows(0, requested.rows), json_columns=["event"])  # loads the kernels
        for start in range(0, requested.commits, STEP):
            clock, processor = [], []
            for number in range(start, min(start + STEP, requested.commits)):
                rows = _rows(number, requested.rows)
                began = time.perf_counter(), time.process_time()
                writer = table if requested.way == "handle" else vl.Table.open(table.uri)
                writer.append(rows, json_columns=["event"])
                clock.append(time.perf_counter() - began[0])
                processor.append(time.process_time() - began[1])
            print(
                f"{start:>5}–{start + len(clock):<5} {1000 * median(clock):>10.1f} "
                f"{1000 * median(processor):>10.1f} {1000 * mean(processor):>7.1f}",
                flush=True,
            )


def _rows(number: int, count: int) -> pa.Table:
    events = [f'{{"a":{number + i},"s":"x{i}","t":{{"u":{i}}}}}' for i in range(count)]
    return pa.table({"event": events, "n": pa.array(range(count), pa.int32())})


if __name__ == "__main__":
    main()
