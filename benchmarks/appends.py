"""Small appends, one after another: what each costs while the log grows.

    python -m benchmarks.appends [--commits 2000] [--rows 20] [--way handle|fresh]
    python -m benchmarks.appends --at 100 10000 [--commits 40]

One process appends a few rows at a time, by one `Table` that it keeps (`handle`) or by one that it
opens for each (`fresh`). For each hundred commits the medians are printed: by the clock, in which
the waiting for the disk is, and the processor's time, which other work on the machine changes
little. The mean of that has the checkpoints of every tenth commit in it.

With `--at` the tables have logs of so many commits of one file each, whose commits and checkpoint
are written without their data; they get their appends in turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import mean, median

import pyarrow as pa

import variantlake as vl
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.log_segment import commit_path
from variantlake.storage.store import LocalStore

STEP = 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--commits", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--way", choices=("handle", "fresh"), default="handle")
    parser.add_argument("--at", type=int, nargs="+", help="versions of tables to compare")
    requested = parser.parse_args()
    if requested.at:
        compare(requested.at, requested.commits, requested.rows)
        return
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


def compare(versions: list[int], commits: int, rows: int) -> None:
    """The processor's time of an append to tables at these versions, in both ways."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {each: _table_at(Path(folder) / str(each), each) for each in versions}
        print(f"{'way':>7} {'version':>8} {'median ms':>10} {'mean':>7}")
        for way in ("handle", "fresh"):
            spent: dict[int, list[float]] = {each: [] for each in versions}
            for number in range(commits):
                for version, table in tables.items():
                    made, began = _rows(number, rows), time.process_time()
                    writer = table if way == "handle" else vl.Table.open(table.uri)
                    writer.append(made, json_columns=["event"])
                    spent[version].append(1000 * (time.process_time() - began))
            for version, each in spent.items():
                print(f"{way:>7} {version:>8} {median(each):>10.1f} {mean(each):>7.1f}", flush=True)


def _table_at(root: Path, version: int) -> vl.Table:
    """A table at a version, by commits that repeat its first load under other names."""
    table = vl.Table.create(root, "event VARIANT, n INT")
    table.append(_rows(0, 20), json_columns=["event"])
    text = (root / commit_path(table.version)).read_text()
    actions = [json.loads(line) for line in text.splitlines()]
    (path,) = (action["add"]["path"] for action in actions if "add" in action)
    for number in range(table.version + 1, version + 1):
        (root / commit_path(number)).write_text(text.replace(path, f"{number}-{path}"))
    write_checkpoint(LocalStore(root))
    return vl.Table.open(root)


def _rows(number: int, count: int) -> pa.Table:
    events = [f'{{"a":{number + i},"s":"x{i}","t":{{"u":{i}}}}}' for i in range(count)]
    return pa.table({"event": events, "n": pa.array(range(count), pa.int32())})


if __name__ == "__main__":
    main()
