"""Compaction of many files of events, beside Delta Spark's OPTIMIZE and DuckDB's COPY.

    python -m benchmarks.optimize [--files 640] [--events 500] [--rounds 3] [--json FILE]

One table of small files is made, and copied for each run. Ours runs in this process, with digests
and without; Delta Spark compacts the same files, and DuckDB copies their rows to one file. Runs
take turns; medians are printed, with the factor against ours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import orjson

import variantlake as vl
from benchmarks.engines import spark_session
from benchmarks.events import events
from benchmarks.report import in_turns, table, timed

OURS = "ours"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=640)
    parser.add_argument("--events", type=int, default=500, help="events of each file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-spark", action="store_true")
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="optimize-") as folder:
        root = Path(folder)
        source = make_table(root, requested.files, requested.events)
        files = vl.Table.open(source).files()
        size = int(files["size"].to_numpy().sum())
        print(f"{files.num_rows} files, {size / 1e6:.1f} MB", flush=True)
        ways = _ways(root, source, with_spark=not requested.no_spark)
        times = in_turns(requested.rounds, ways)
    ours = times[OURS]
    print(table(["way", "time"], [[name, found.text(ours)] for name, found in times.items()]))
    if requested.json:
        found = {name: each.seconds or each.failure for name, each in times.items()}
        requested.json.write_text(json.dumps({"files": requested.files, "bytes": size} | found))


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


def _ways(root: Path, source: Path, *, with_spark: bool) -> dict[str, Callable[[], float]]:
    work = root / "work"

    def fresh() -> Path:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(source, work)
        return work

    def ours(*, digest: bool) -> float:
        opened = vl.Table.open(fresh())
        return timed(lambda: opened.optimize(digest=digest))

    def duck() -> float:
        sources, target = str(fresh() / "*.parquet"), work / "joined"
        query = f"COPY (FROM read_parquet('{sources}')) TO '{target}' (FORMAT parquet, CODEC zstd)"
        with duckdb.connect(config={"threads": 2}) as connection:
            return timed(lambda: connection.execute(query))

    ways: dict[str, Callable[[], float]] = {
        OURS: lambda: ours(digest=True),
        "ours without digests": lambda: ours(digest=False),
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
