"""Loading JSON, and getting it back, side by side with other engines in one run.

Every engine gets its best
settings, the same input and the same two cores; all take turns, and medians are compared.

    python -m benchmarks.ingest [--events 500000] [--rounds 3] [--only SET]

With --hard it times our loads of bad documents and of many distinct keys instead, without Spark.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import variantlake as vl
from benchmarks import documents
from benchmarks.engines import DuckDb, Sail, delta_append, spark_session
from benchmarks.report import Runs, Section, finish, in_turns, parser, timed
from variantlake.ingest.local_run import ingest_here

CORES = 2
_DUCKDB_FILE = "duckdb.parquet"
OURS, DELTA, SAIL = "Variantlake", "Delta Spark", "Sail"
DUCKDB = f"DuckDB {duckdb.__version__}"
"""Spark alone, which reads the files back, has Delta Spark's column."""


class Bench:
    """The engines, and one folder that all write to."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self.spark: SparkSession = spark_session(CORES)
        self.lake = vl.spark.connect(self.spark)
        self.duckdb = DuckDb(CORES)
        self._sail: Sail | None = None

    def close(self) -> None:
        """Stop the engines."""
        if self._sail is not None:
            self._sail.close()
        self.spark.stop()

    def run(self, name: str, scale: int, section: Section) -> None:
        """The rows of one set."""
        source = self.folder / "source.ndjson"
        count, size = documents.write(name, source, scale)
        section.inputs.append(f"{name}: {count:,} documents, {size / 1e6:.0f} MB of NDJSON")
        section.add(f"{name}: load NDJSON", self.load_text(source))
        section.add(f"{name}: size of the files", self.sizes())
        section.add(f"{name}: load a DataFrame of JSON text", self.load_frame("text", source))
        section.add(f"{name}: load a DataFrame of VARIANT", self.load_frame("variant", source))
        section.add(f"{name}: rebuild every Variant", self.rebuild())
        section.add(f"{name}: every Variant as JSON text", self.json_text())

    # --- Writing ----------------------------------------------------------------------------------

    def load_text(self, source: Path) -> dict[str, Runs]:
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
            self._sail = Sail(CORES)
        return self._sail

    def load_frame(self, form: str, source: Path) -> dict[str, Runs]:
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

    def sizes(self) -> dict[str, Runs]:
        """MB of the Parquet files of every engine."""
        places = {OURS: OURS, DELTA: DELTA, DUCKDB: _DUCKDB_FILE, SAIL: SAIL}
        sizes = {engine: self._megabytes(name) for engine, name in places.items()}
        return {engine: Runs([size], "MB") for engine, size in sizes.items() if size}

    def _megabytes(self, name: str) -> float:
        path = self.folder / name
        files = [path] if path.is_file() else path.rglob("*.parquet")
        return sum(file.stat().st_size for file in files if file.is_file()) / 1e6

    def rebuild(self) -> dict[str, Runs]:
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
                DELTA: lambda: timed(spark),
                DUCKDB: lambda: timed(lambda: self.duckdb.rebuild(self.folder / OURS)),
            },
        )

    def json_text(self) -> dict[str, Runs]:
        """The same as JSON text, of which each engine counts the bytes."""

        def texts(file: Path) -> None:
            for batch in vl.parquet.iter_batches(file):
                vl.to_json(batch.column("event"))

        def spark() -> None:
            frame = self.spark.read.parquet(str(self.folder / OURS))
            frame.selectExpr("sum(length(to_json(event)))").collect()

        return in_turns(
            self.rounds,
            {
                OURS: lambda: timed(lambda: self._each_file(texts)),
                DELTA: lambda: timed(spark),
                DUCKDB: lambda: timed(lambda: self.duckdb.json_text(self.folder / OURS)),
            },
        )

    def _each_file(self, work: Callable[[Path], object]) -> None:
        files = sorted((self.folder / OURS).glob("*.parquet"))
        with ThreadPoolExecutor(CORES) as pool:
            for _ in pool.map(work, files):
                pass


def hard(folder: Path, scale: int, rounds: int, section: Section) -> None:
    """For each set of documents.HARD our load in quarantine mode, and bad rows of a table."""
    source, target = folder / "source.ndjson", folder / "table"

    def load() -> None:
        shutil.rmtree(target, ignore_errors=True)
        ingest_here(source, target, mode="quarantine")

    for name in documents.HARD:
        _, size = documents.write(name, source, scale)
        section.add(f"{name}: {size / 1e6:.1f} MB of NDJSON", rates(load, rounds, size))
    documents.write("short bad lines", source, scale)
    lines = source.read_text().splitlines()
    rows, size = pa.table({"event": lines}), source.stat().st_size

    def append() -> None:
        shutil.rmtree(target, ignore_errors=True)
        table = vl.Table.create(target, "event VARIANT")
        table.append(rows, json_columns=["event"], mode="quarantine")

    what = f"short bad lines, as {size / 1e6:.1f} MB of text in a table of Arrow"
    section.add(what, rates(append, rounds, size))


HARD_COLUMNS = ("elapsed", "CPU", "for each second of CPU")


def rates(work: Callable[[], None], rounds: int, size: int) -> dict[str, Runs]:
    """Elapsed and CPU seconds of work on so many bytes, and MB for each of the latter."""
    elapsed, processor = [], []
    for _ in range(rounds):
        os.sync()
        start, start_processor = time.perf_counter(), time.process_time()
        work()
        elapsed.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_processor)
    speeds = Runs([size / each / 1e6 for each in processor], "MB/s")
    return dict(zip(HARD_COLUMNS, (Runs(elapsed), Runs(processor), speeds), strict=True))


def main() -> None:
    """Run and print."""
    options = parser(__doc__, events=500_000, rounds=3)
    options.add_argument("--only", choices=list(documents.SETS), help="one set")
    options.add_argument(
        "--hard", action="store_true", help="bad documents and distinct keys alone"
    )
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        if asked.hard:
            section = Section(HARD_COLUMNS, "ways")
            hard(Path(folder), asked.events, asked.rounds, section)
        else:
            section = Section((OURS, DELTA, DUCKDB, SAIL))
            bench = Bench(Path(folder), asked.rounds)
            try:
                for name in [asked.only] if asked.only else documents.SETS:
                    bench.run(name, asked.events, section)
            finally:
                bench.close()
    finish(section, asked)


if __name__ == "__main__":
    main()
