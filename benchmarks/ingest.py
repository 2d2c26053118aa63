"""Loading JSON, and getting it back, side by side with other engines in one run.

`make bench-ingest` runs it and writes the table of docs/performance.md. Every engine gets its best
settings, the same input and the same two cores; all take turns, and medians are compared.

    python -m benchmarks.ingest [--events 500000] [--rounds 3] [--only SET] [--sail PYTHON]

With --hard it times our loads of bad documents and of many distinct keys instead, without Spark,
and writes their table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import variantlake as vl
from benchmarks import documents
from benchmarks.engines import DuckDb, Sail, delta_append, spark_session
from benchmarks.report import Times, in_turns, replace_section, table, timed
from variantlake.ingest.local_run import ingest_here

CORES = 2
_DUCKDB_FILE = "duckdb.parquet"
OURS, DELTA, DUCKDB, SAIL, SPARK = "Variantlake", "Delta Spark", "DuckDB", "Sail", "Spark"
HEAD = ["work", OURS, "Spark 4.2, Delta Spark 4.4.0", f"DuckDB {duckdb.__version__}", "Sail 0.7.2"]

HARD_HEAD = ["load in quarantine mode", "elapsed", "CPU", "for each second of CPU"]


class Bench:
    """The engines, and one folder that all write to."""

    def __init__(self, folder: Path, rounds: int, sail: str | None) -> None:
        self.folder = folder
        self.rounds = rounds
        self.spark: SparkSession = spark_session(CORES)
        self.lake = vl.spark.connect(self.spark)
        self.duckdb = DuckDb(CORES)
        self._sail_python = sail
        self._sail: Sail | None = None

    def close(self) -> None:
        """Stop the engines."""
        if self._sail is not None:
            self._sail.close()
        self.spark.stop()

    def run(self, name: str, scale: int) -> Iterator[list[str]]:
        """The rows of one set."""
        source = self.folder / "source.ndjson"
        count, size = documents.write(name, source, scale)
        what = f"{name}: {count:,} documents, {size / 1e6:.0f} MB of NDJSON"
        yield row(f"**{what}** into a table", self.load_text(source), [OURS, DELTA, DUCKDB, SAIL])
        yield self.sizes()
        for form, what in (("text", "JSON text"), ("variant", "VARIANT")):
            yield row(f"from a DataFrame of {what}", self.load_frame(form, source), [OURS, DELTA])
        yield row("every Variant rebuilt", self.rebuild(), [OURS, SPARK, DUCKDB])
        yield row("every Variant as JSON text", self.json_text(), [OURS, SPARK, DUCKDB])

    # --- Writing ----------------------------------------------------------------------------------

    def load_text(self, source: Path) -> dict[str, Times]:
        """NDJSON to a table; DuckDB writes one Parquet file and no log."""

        def ours(table: Path) -> None:
            self.lake.ingest(str(table), str(source))

        def delta(table: Path) -> None:
            frame = self.spark.read.text(str(source)).selectExpr("parse_json(value) AS event")
            delta_append(frame, table)

        return in_turns(
            self.rounds,
            {
                OURS: lambda: self._into(OURS, ours),
                DELTA: lambda: self._into(DELTA, delta),
                DUCKDB: lambda: self._into(
                    _DUCKDB_FILE, lambda file: self.duckdb.to_parquet(source, file)
                ),
                SAIL: lambda: self.sail().to_table(source, self.folder / SAIL),
            },
        )

    def _into(self, name: str, work: Callable[[Path], None]) -> float:
        """Seconds of work that writes to a place of its own, if nothing is.

        What it wrote before is deleted first, on the disk too: a disk that is told of freed blocks
        has the next one wait who flushes its files.
        """
        path = self.folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        os.sync()
        return timed(lambda: work(path))

    def sail(self) -> Sail:
        """The server; raises where Sail cannot be had."""
        if self._sail is None:
            self._sail = Sail(self._sail_python, CORES)
        return self._sail

    def load_frame(self, form: str, source: Path) -> dict[str, Times]:
        """The same documents from a Parquet file, as one column of JSON text or of VARIANT."""
        frames = self.folder / "frames"
        parse = "value AS event" if form == "text" else "parse_json(value) AS event"
        self.spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
        self.spark.read.text(str(source)).selectExpr(parse).write.mode("overwrite").parquet(
            str(frames)
        )
        self.spark.conf.set("spark.sql.variant.writeShredding.enabled", "true")

        def read() -> DataFrame:
            return self.spark.read.parquet(str(frames))

        def ours(table: Path) -> None:
            vl.Table.create(table, "event VARIANT")
            json_columns = ["event"] if form == "text" else []
            self.lake.append(str(table), read(), json_columns=json_columns)

        def delta(table: Path) -> None:
            frame = read()
            if form == "text":
                frame = frame.selectExpr("parse_json(event) AS event")
            delta_append(frame, table)

        return in_turns(
            self.rounds,
            {
                OURS: lambda: self._into("frame-ours", ours),
                DELTA: lambda: self._into("frame-delta", delta),
            },
        )

    # --- What was written -------------------------------------------------------------------------

    def sizes(self) -> list[str]:
        """MB of the Parquet files of every engine."""
        ours = self._megabytes(OURS)
        cells = [f"{ours:.1f} MB"]
        for name in (DELTA, _DUCKDB_FILE, SAIL):
            size = self._megabytes(name)
            cells.append(f"{size:.1f} MB, {size / ours:.2f}×" if size else "–")
        return ["size of the files", *cells]

    def _megabytes(self, name: str) -> float:
        path = self.folder / name
        files = [path] if path.is_file() else path.rglob("*.parquet")
        return sum(file.stat().st_size for file in files if file.is_file()) / 1e6

    def rebuild(self) -> dict[str, Times]:
        """All documents of our table, by each engine: binary Variants, each its own way."""

        def ours() -> None:
            self._each_file(vl.parquet.read_table)

        def spark() -> None:
            frame = self.spark.read.parquet(str(self.folder / OURS))
            frame.write.format("noop").mode("overwrite").save()

        return in_turns(
            self.rounds,
            {
                OURS: lambda: timed(ours),
                SPARK: lambda: timed(spark),
                DUCKDB: lambda: timed(lambda: self.duckdb.rebuild(self.folder / OURS)),
            },
        )

    def json_text(self) -> dict[str, Times]:
        """The same as JSON text, of which each engine counts the bytes."""

        def texts(file: Path) -> None:
            for batch in vl.parquet.iter_batches(file):
                vl.parquet.to_json(batch.column("event"))

        def spark() -> None:
            frame = self.spark.read.parquet(str(self.folder / OURS))
            frame.selectExpr("sum(length(to_json(event)))").collect()

        return in_turns(
            self.rounds,
            {
                OURS: lambda: timed(lambda: self._each_file(texts)),
                SPARK: lambda: timed(spark),
                DUCKDB: lambda: timed(lambda: self.duckdb.json_text(self.folder / OURS)),
            },
        )

    def _each_file(self, work: Callable[[Path], object]) -> None:
        files = sorted((self.folder / OURS).glob("*.parquet"))
        with ThreadPoolExecutor(CORES) as pool:
            for _ in pool.map(work, files):
                pass


def hard(folder: Path, scale: int, rounds: int) -> Iterator[list[str]]:
    """For each set of documents.HARD our load in quarantine mode, and bad rows of a table."""
    source, target = folder / "source.ndjson", folder / "table"

    def load() -> None:
        shutil.rmtree(target, ignore_errors=True)
        ingest_here(source, target, mode="quarantine")

    for name in documents.HARD:
        _, size = documents.write(name, source, scale)
        yield [f"{name}: {size / 1e6:.1f} MB of NDJSON", *rates(load, rounds, size)]
    documents.write("short bad lines", source, scale)
    lines = source.read_text().splitlines()
    rows, size = pa.table({"event": lines}), source.stat().st_size

    def append() -> None:
        shutil.rmtree(target, ignore_errors=True)
        table = vl.Table.create(target, "event VARIANT")
        table.append(rows, json_columns=["event"], mode="quarantine")

    what = f"short bad lines, as {size / 1e6:.1f} MB of text in a table of Arrow"
    yield [what, *rates(append, rounds, size)]


def rates(work: Callable[[], None], rounds: int, size: int) -> list[str]:
    """The least elapsed and CPU seconds of work on so many bytes, and MB for each of the latter."""
    elapsed, used = [], []
    for _ in range(rounds):
        os.sync()
        start, start_used = time.perf_counter(), time.process_time()
        work()
        elapsed.append(time.perf_counter() - start)
        used.append(time.process_time() - start_used)
    return [f"{min(elapsed):.2f} s", f"{min(used):.2f} s", f"{size / min(used) / 1e6:.0f} MB/s"]


def row(what: str, times: dict[str, Times], columns: list[str]) -> list[str]:
    """A line of the table: each engine's time, and how many times ours it is."""
    cells = [times[name].text(times[OURS]) for name in columns if name in times]
    return [what, *cells, *["–"] * (len(HEAD) - 1 - len(cells))]


def main() -> None:
    """Run, print, and put the table into docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=500_000, help="sizes all sets")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(documents.SETS), help="one set, without the page")
    parser.add_argument("--hard", action="store_true", help="bad documents and distinct keys alone")
    parser.add_argument("--sail", metavar="PYTHON", help="an interpreter that has pysail")
    options = parser.parse_args()
    names = [options.only] if options.only else list(documents.SETS)
    lines: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        if options.hard:
            for line in hard(Path(folder), options.events, options.rounds):
                lines.append(line)
                print(*line, sep=" | ", flush=True)
            replace_section("hard", table(HARD_HEAD, lines))
            return
        bench = Bench(Path(folder), options.rounds, options.sail)
        try:
            for name in names:
                for line in bench.run(name, options.events):
                    lines.append(line)
                    print(*line, sep=" | ", flush=True)
        finally:
            bench.close()
    if not options.only:
        replace_section("ingest", table(HEAD, lines))


if __name__ == "__main__":
    main()
