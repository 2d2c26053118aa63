"""Autoload beside Spark's file source into Delta, and the state of a million names.

`python -m benchmarks.autoload` writes FILES (20,000) small files and loads them three ways, each in
an empty table: by `vl.autoload`, by Spark's file source with Delta Spark's sink, and by ours again
with nothing new. `--names 1000000` measures the state alone, on names without files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import variantlake as vl
from benchmarks import report
from benchmarks.report import peak_mb
from variantlake.autoloading.runs import RUN, RunReader
from variantlake.autoloading.state import FileState, LoadState
from variantlake.storage.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS = 5
"""Documents of one small file."""


def write_files(folder: Path, start: int, count: int) -> None:
    """Small files as services write them: their names have the time and a random part."""
    folder.mkdir(exist_ok=True)
    for number in range(start, start + count):
        lines = []
        for row in range(DOCUMENTS):
            key = number * DOCUMENTS + row
            event = {
                "id": key,
                "kind": "like" if key % 3 else "post",
                "at": 1732206349000000 + key,
                "user": {"name": f"user{key % 997}", "tags": ["a", "b"]},
                "text": "hello world " * (key % 7),
            }
            lines.append(json.dumps(event))
        name = f"events-2026-01-31-{number:07d}-{number * 2654435761 % (1 << 32):08x}.json"
        (folder / name).write_text("\n".join(lines) + "\n")


def timed(label: str, work: Callable[[], object]) -> float:
    """Seconds of some work, printed."""
    seconds = report.timed(work)
    sys.stdout.write(f"{label}: {seconds:.2f} s\n")
    sys.stdout.flush()
    return seconds


def stream(spark: SparkSession, source: Path, table: Path, files_per_trigger: int | None) -> None:
    """Spark's file source into Delta: whole lines to Variants, all that is there, then stop."""
    reader = spark.readStream.format("text")
    if files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", str(files_per_trigger))
    rows = reader.load(str(source)).selectExpr("parse_json(value) AS event")
    writer = rows.writeStream.format("delta").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{table}-checkpoint")
    writer.start(str(table)).awaitTermination()


def files(count: int, *, spark_too: bool) -> None:
    """Load `count` small files, and a hundred more."""
    with tempfile.TemporaryDirectory() as scratch:
        source, table = Path(scratch, "in"), Path(scratch, "ours")
        write_files(source, 0, count)
        first = timed(f"autoload of {count:,} files", lambda: vl.autoload(table, source, settle=0))
        timed("autoload with nothing new", lambda: vl.autoload(table, source, settle=0))
        write_files(source, count, 100)
        timed("autoload of 100 more", lambda: vl.autoload(table, source, settle=0))
        rows = vl.Table.open(table).scan("event:id::int AS id").to_arrow().num_rows
        sys.stdout.write(f"  {rows:,} rows of {DOCUMENTS * (count + 100):,} documents\n")
        if not spark_too:
            return
        from tests.sessions import delta_session

        spark = delta_session(Path(scratch, "spark"))
        warm = Path(scratch, "warm")
        write_files(warm, 0, 50)
        stream(spark, warm, Path(scratch, "warm-table"), None)
        for per_trigger in (None, 10_000):
            name = "in one batch" if per_trigger is None else f"{per_trigger:,} files a batch"
            theirs = Path(scratch, f"theirs-{per_trigger}")
            work = lambda: stream(spark, source, theirs, per_trigger)  # noqa: B023
            seconds = timed(f"Spark's file source into Delta, {name}", work)
            sys.stdout.write(f"  {seconds / first:.1f} times as long as autoload\n")
            shutil.rmtree(theirs)
        spark.stop()


def names(count: int, batch: int) -> None:
    """The state of an autoload of `count` files, in batches of `batch`, without the files."""
    with tempfile.TemporaryDirectory() as scratch:
        store = open_store(scratch)
        reader = RunReader(store)
        state = LoadState("events", "/in")
        written, slowest = 0, 0.0
        started = time.perf_counter()
        for start in range(0, count, batch):
            rows = pa.Table.from_pylist(
                [_row(number) for number in range(start, min(start + batch, count))], schema=RUN
            )
            begun = time.perf_counter()
            state = state.next(
                store, reader, rows, after=None, listed=0, ordered=True, version=start // batch
            )
            slowest = max(slowest, time.perf_counter() - begun)
            written += state.runs[-1].size
        total = time.perf_counter() - started
        size = sum(run.size for run in state.runs)
        sys.stdout.write(
            f"{count:,} names in {-(-count // batch)} batches: {total:.1f} s, the slowest "
            f"{slowest:.2f} s; {len(state.runs)} runs of {size / 1e6:.1f} MB together, "
            f"{written / 1e6:.1f} MB written in all\n"
        )
        before = peak_mb()
        seconds = timed("read all names", lambda: _read(state, RunReader(store)))
        sys.stdout.write(
            f"  {count / seconds / 1e6:.1f} M names a second; peak memory {before:.0f} MB "
            f"before, {peak_mb():.0f} MB after\n"
        )


def _read(state: LoadState, reader: RunReader) -> None:
    for _ in state.sorted_pieces(reader):
        pass


def _row(number: int) -> dict[str, object]:
    name = (
        f"2026/01/{number // 40_000:02d}/events-{number:09d}-{number * 2654435761 % (1 << 32):08x}"
    )
    return {
        "name": f"{name}.json.gz".encode(),
        "size": 4096 + number * 7919 % 1000,
        "tag": number * 11400714819323198485 % (1 << 64),
        "state": int(FileState.LOADED),
        "rows": 20 + number % 7,
        "bad_rows": 0,
        "batch": number // 10_000 + 1,
        "version": number // 10_000,
        "time": 1_795_000_000_000 + number // 10_000,
        "error": None,
    }


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--names", type=int, default=0)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--no-spark", action="store_true")
    given = parser.parse_args()
    if given.names:
        names(given.names, given.batch)
    else:
        files(given.files, spark_too=not given.no_spark)


if __name__ == "__main__":
    main()
