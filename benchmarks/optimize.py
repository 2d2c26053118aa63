"""Compaction of many files of events, beside Delta Spark's OPTIMIZE and DuckDB's COPY.

    python -m benchmarks.optimize [--files 640] [--events 200] [--rounds 3] [--json FILE]

A table of files of so many events, and one of files of ten times as many, is made and copied for
each run: tiny files of 50 KB, and files of 280 KB as a stream of some minutes leaves them. Ours
runs in this process, with digests and without; Delta Spark compacts the same files, and DuckDB
copies their rows to one file. Runs take turns.
"""

from __future__ import annotations

import itertools
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
from benchmarks.report import Runs, Section, finish, in_turns, parser, timed

OURS, WITHOUT = "Variantlake", "Variantlake, without digests"
DUCKDB, DELTA = "DuckDB COPY", "Delta Spark"


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, events=200, rounds=3)
    options.add_argument("--files", type=int, default=640)
    options.add_argument("--no-spark", action="store_true")
    asked = options.parse_args()
    section = Section((OURS, WITHOUT, DELTA, DUCKDB))
    for count in (asked.events, 10 * asked.events):
        with tempfile.TemporaryDirectory(prefix="optimize-") as folder:
            root = Path(folder)
            source = make_table(root, asked.files, count)
            size = sum(add.size for add in vl.Table.open(source).snapshot.add_files())
            name = f"{asked.files} files of {count} events"
            section.inputs.append(f"{name}: {size / 1e6:.1f} MB")
            costs: dict[str, list[float]] = {}
            ways = _ways(root, source, costs, with_spark=not asked.no_spark)
            section.add(f"compact {name}", in_turns(asked.rounds, ways))
            processor = {each: Runs(seconds) for each, seconds in costs.items()}
            section.add(f"compact {name}: CPU", processor)
    finish(section, asked)


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
        DUCKDB: duck,
    }
    if with_spark:
        spark = spark_session()

        def delta() -> float:
            path = fresh()
            return timed(lambda: spark.sql(f"OPTIMIZE delta.`{path}`").collect())

        ways[DELTA] = delta
    return ways


if __name__ == "__main__":
    main()
