"""Compaction of many files of events, beside Delta Spark's OPTIMIZE and DuckDB's COPY.

    python -m benchmarks.optimize [--files 640] [--events 200 2000] [--rounds 3] [--json FILE]

One table of small files is made for each number of events, and copied for each run: tiny files of
50 KB, and files of 280 KB as a stream of some minutes leaves them. Ours runs in this process, with
digests and without; Delta Spark compacts the same files, and DuckDB copies their rows to one file.
Runs take turns; medians are printed, with the factor against ours, and what digests cost in
processor time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import orjson

import variantlake as vl
from benchmarks.engines import spark_session
from benchmarks.events import events
from benchmarks.report import in_turns, table, timed

OURS = "ours"
WITHOUT = "ours without digests"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=640)
    parser.add_argument(
        "--events", type=int, nargs="+", default=[200, 2000], help="events of each file"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-spark", action="store_true")
    requested = parser.parse_args()
    results = []
    for count in requested.events:
        with tempfile.TemporaryDirectory(prefix="optimize-") as folder:
            root = Path(folder)
            source = make_table(root, requested.files, count)
            files = vl.Table.open(source).files()
            size = int(files["size"].to_numpy().sum())
            print(f"{files.num_rows} files of {count} events, {size / 1e6:.1f} MB", flush=True)
            costs: dict[str, list[float]] = {}
            ways = _ways(root, source, costs, with_spark=not requested.no_spark)
            times = in_turns(requested.rounds, ways)
        ours = times[OURS]
        print(table(["way", "time"], [[name, each.text(ours)] for name, each in times.items()]))
        with_digests, without = (min(costs[name]) for name in (OURS, WITHOUT))
        print(
            f"digests: {100 * (with_digests / without - 1):.0f} % more processor time", flush=True
        )
        found = {name: each.seconds or each.failure for name, each in times.items()}
        results.append({"files": requested.files, "events": count, "bytes": size} | found)
    if requested.json:
        requested.json.write_text(json.dumps(results))


def make_table(root: Path, files: int, count: int) -> Path:
    """A table of so many files of so many events, loaded at once."""
    source, path = root / "events.ndjson", root / "table"
    with source.open("wb") as sink:
        made = [orjson.dumps(event) + b"\n" for event in events(min(files * count, 60_000))]
        for line in itertools.islice(itertools.cycle(made), files * count):
            sink.write(line)
    made_table = vl.Table.create(
        path, "event VARIANT", properties={"delta.enableVariantShredding": "true"}
    )
    made_table.append(vl.ndjson(source), max_rows_per_file=count)
    source.unlink()
    return path


def _ways(
    root: Path, source: Path, costs: dict[str, list[float]], *, with_spark: bool
) -> dict[str, Callable[[], float]]:
    """The ways by name; `costs` gets the processor seconds of ours."""
    work = root / "work"

    def fresh() -> Path:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(source, work)
        return work

    def ours(*, digest: bool) -> float:
        opened = vl.Table.open(fresh())
        before = time.process_time()
        seconds = timed(lambda: opened.optimize(digest=digest))
        own = costs.setdefault(OURS if digest else WITHOUT, [])
        own.append(time.process_time() - before)
        return seconds

    def duck() -> float:
        sources, target = str(fresh() / "*.parquet"), work / "joined"
        query = f"COPY (FROM read_parquet('{sources}')) TO '{target}' (FORMAT parquet, CODEC zstd)"
        with duckdb.connect(config={"threads": 2}) as connection:
            return timed(lambda: connection.execute(query))

    ways: dict[str, Callable[[], float]] = {
        OURS: lambda: ours(digest=True),
        WITHOUT: lambda: ours(digest=False),
        "DuckDB COPY": duck,
    }
    if with_spark:
        spark = spark_session()

        def delta() -> float:
            path = fresh()
            return timed(lambda: spark.sql(f"OPTIMIZE delta.`{path}`").collect())

        ways["Delta Spark OPTIMIZE"] = delta
    return ways


if __name__ == "__main__":
    main()
