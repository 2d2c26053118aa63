"""Queries, side by side with Delta Spark and DuckDB in one run, each on files of its own.

Our queries and Delta Spark's run in one Spark session, in turns; every table is written by its own
side with its best settings (see `engines`). Before they are timed, answers are compared.

    python -m benchmarks.queries [--events 500000] [--rounds 5] [--only NAME] [--json FILE]
                                 [--no-duckdb] [--rule]

With `--rule` the session has the rule of `vl.spark.accelerate`. Queries that are DataFrames too are
run by `lake.sql`, by `spark.sql` and as DataFrames with the rule, and on Delta Spark's table with
the rule off: about seven minutes for 500,000 events and three rounds. Without DuckDB, which holds
all events in memory, 10 million fit too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

import variantlake as vl
from benchmarks import documents
from benchmarks.engines import delta_append, spark_session
from benchmarks.report import Runs, Section, finish, in_turns, parser, timed

CORES = 2
FILES = 64
OURS, DELTA, DUCKDB = "Variantlake", "Delta Spark", f"DuckDB {duckdb.__version__}"
RULE, FRAMES = f"{OURS}, spark.sql", f"{OURS}, DataFrames"
SWITCH = "spark.variantlake.enabled"

CREATED = "event:kind::string = 'commit' AND event:commit.operation::string = 'create'"
POSTED = f"{CREATED} AND event:commit.collection::string = 'app.bsky.feed.post'"

LIKED = (
    f"{CREATED} AND event:commit.collection::string IN "
    "('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')"
)

LAST = "event:time_us::bigint AS t, event:did::string AS d FROM {t} ORDER BY 1 DESC, 2"


@dataclass(frozen=True)
class Query:
    """`text` is Spark's and, but for the writing of paths, DuckDB's; `{t}` is the table.

    `clustered` asks it of the table of 64 files, which are clustered by time. Where the `rows` are
    Variants, they are counted and thrown away and not collected.
    """

    text: str
    clustered: bool = False
    rows: bool = False


QUERIES = {
    "JSONBench 1": Query(
        "SELECT event:commit.collection::string AS c, count(*) AS n FROM {t} GROUP BY 1"
    ),
    "JSONBench 2": Query(
        "SELECT event:commit.collection::string AS c, count(*) AS n, "
        f"count(DISTINCT event:did::string) AS users FROM {{t}} WHERE {CREATED} GROUP BY 1"
    ),
    "JSONBench 3": Query(
        "SELECT event:commit.collection::string AS c, "
        "hour(timestamp_micros(event:time_us::bigint)) AS h, count(*) AS n "
        f"FROM {{t}} WHERE {LIKED} GROUP BY 1, 2"
    ),
    "JSONBench 4": Query(
        "SELECT event:did::string AS who, min(event:time_us::bigint) AS first "
        f"FROM {{t}} WHERE {POSTED} GROUP BY 1 ORDER BY 2, 1 LIMIT 3"
    ),
    "JSONBench 5": Query(
        "SELECT event:did::string AS who, "
        "max(event:time_us::bigint) - min(event:time_us::bigint) AS span "
        f"FROM {{t}} WHERE {POSTED} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3"
    ),
    "log alone": Query(
        "SELECT count(*) AS n, count(event:did::string) AS dids, "
        "min(event:time_us::bigint) AS first, max(event:time_us::bigint) AS last FROM {t}"
    ),
    "aggregate": Query(
        "SELECT event:commit.collection::string AS c, count(*) AS n, "
        "max(event:time_us::bigint) AS last FROM {t} GROUP BY 1"
    ),
    "range": Query(
        "SELECT count(*) AS n, max(event:did::string) AS d FROM {t} "
        "WHERE event:time_us::bigint BETWEEN {low} AND {high}"
    ),
    "distinct": Query(
        "SELECT count(DISTINCT event:did::string) AS n FROM {t} "
        "WHERE event:commit.collection::string = 'app.bsky.feed.like'"
    ),
    "range of 64 files": Query(
        "SELECT count(*) AS n, max(event:did::string) AS d FROM {t} "
        "WHERE event:time_us::bigint BETWEEN {low} AND {high}",
        clustered=True,
    ),
    "point of 64 files": Query(
        "SELECT event:did::string AS d, event:kind::string AS k FROM {t} "
        "WHERE event:time_us::bigint = {point}",
        clustered=True,
    ),
    "first rows": Query(f"SELECT {LAST} LIMIT 10"),
    "first rows of 64 files": Query(f"SELECT {LAST} LIMIT 10", clustered=True),
    "first Variants of 64 files": Query(
        "SELECT event FROM {t} ORDER BY event:time_us::bigint DESC, event:did::string LIMIT 100",
        clustered=True,
        rows=True,
    ),
    "first rows of 64 unsorted files": Query(
        "SELECT event:did::string AS d, event:time_us::bigint AS t FROM {t} "
        "ORDER BY 1 NULLS LAST, 2 LIMIT 10",
        clustered=True,
    ),
    "whole Variants": Query("SELECT event FROM {t}", rows=True),
    "whole Variants of few rows": Query(
        "SELECT event FROM {t} WHERE event:kind::string = 'account'", rows=True
    ),
    "whole Variants of most rows": Query(
        "SELECT event FROM {t} WHERE event:kind::string = 'commit'", rows=True
    ),
}


def _path(path: str, type_: str, name: str) -> Column:
    return sf.expr(f"event:{path}::{type_}").alias(name)


def _collection() -> Column:
    return _path("commit.collection", "string", "c")


def _did() -> Column:
    return _path("did", "string", "d")


def _last(table: DataFrame, *order: Column) -> DataFrame:
    return table.select(_path("time_us", "bigint", "t"), _did()).orderBy(*order)


def _spans(table: DataFrame, value: Column, *order: Column) -> DataFrame:
    """Users and something of the times of their posts, the first three in some order."""
    posts = table.where(POSTED).select(
        _path("did", "string", "who"), _path("time_us", "bigint", "t")
    )
    return posts.groupBy("who").agg(value.alias("v")).orderBy(*order).limit(3)


_RANGE = "event:time_us::bigint BETWEEN {low} AND {high}"

FRAMES_OF: dict[str, Callable[[DataFrame, Mapping[str, int]], DataFrame]] = {
    "JSONBench 1": lambda t, _: t.groupBy(_collection()).count(),
    "JSONBench 2": lambda t, _: (
        t.where(CREATED)
        .groupBy(_collection())
        .agg(sf.count("*").alias("n"), sf.countDistinct(_did()).alias("users"))
    ),
    "JSONBench 3": lambda t, _: (
        t.where(LIKED)
        .groupBy(_collection(), sf.expr("hour(timestamp_micros(event:time_us::bigint))").alias("h"))
        .count()
    ),
    "JSONBench 4": lambda t, _: _spans(t, sf.min("t"), sf.col("v"), sf.col("who")),
    "JSONBench 5": lambda t, _: _spans(
        t, sf.max("t") - sf.min("t"), sf.col("v").desc(), sf.col("who")
    ),
    "aggregate": lambda t, _: t.groupBy(_collection()).agg(
        sf.count("*").alias("n"), sf.max(_path("time_us", "bigint", "t")).alias("last")
    ),
    "distinct": lambda t, _: t.where("event:commit.collection::string = 'app.bsky.feed.like'").agg(
        sf.countDistinct(_did()).alias("n")
    ),
    "range of 64 files": lambda t, at: t.where(_RANGE.format(**at)).agg(
        sf.count("*").alias("n"), sf.max(_did()).alias("d")
    ),
    "point of 64 files": lambda t, at: t.where(f"event:time_us::bigint = {at['point']}").select(
        _did(), _path("kind", "string", "k")
    ),
    "first rows of 64 files": lambda t, _: _last(t, sf.col("t").desc(), sf.col("d")).limit(10),
}
"""Queries as DataFrames of a table: what `--rule` times."""


class Bench:
    """The engines and their tables of the same events, below one folder."""

    def __init__(
        self,
        folder: Path,
        count: int,
        rounds: int,
        *,
        clustered: Collection[bool],
        with_duckdb: bool,
        rule: bool = False,
    ) -> None:
        self.folder = folder
        self.rounds = rounds
        self.with_duckdb = with_duckdb
        self.spark: SparkSession = spark_session(CORES)
        self.lake = vl.spark.connect(self.spark, accelerate=rule)
        self.duckdb = duckdb.connect(config={"threads": CORES})
        self.duckdb.execute("CREATE MACRO timestamp_micros(x) AS make_timestamp(x)")
        self.count = count
        source = folder / "events.ndjson"
        documents.write("events", source, count)
        # In the middle of a file of 64: ten seconds there are within it from 70,000 events on.
        self.middle = _time_of(source, count // 2 + count // (2 * FILES))
        sizes = {
            "clustered" if wanted else "one": FILES if wanted else None for wanted in clustered
        }
        self._load(source, sizes)

    def _load(self, source: Path, tables: Mapping[str, int | None]) -> None:
        """Write the tables, of one file or of so many, by each engine."""
        if self.with_duckdb:
            self.duckdb.execute(
                "CREATE TEMP TABLE events AS "
                f"SELECT json::VARIANT AS event FROM read_ndjson_objects('{source}')"
            )
        for name, files in tables.items():
            rows = None if files is None else -(-self.count // files)
            self.lake.ingest(str(self.folder / f"{name}-ours"), str(source), max_rows_per_file=rows)
            frame = self.spark.read.text(str(source)).selectExpr("parse_json(value) AS event")
            if files is not None:
                frame = frame.repartitionByRange(files, sf.expr("event:time_us::bigint"))
            delta_append(frame, self.folder / f"{name}-delta")
            if self.with_duckdb:
                self._write_duckdb(self.folder / f"{name}-duckdb", rows or self.count)
        self.duckdb.execute("DROP TABLE IF EXISTS events")

    def _write_duckdb(self, folder: Path, rows: int) -> None:
        """One Parquet file for so many rows in their order, which DuckDB shreds by itself."""
        folder.mkdir()
        for number, start in enumerate(range(0, self.count, rows)):
            self.duckdb.execute(
                f"COPY (SELECT event FROM events WHERE rowid BETWEEN {start} AND {start + rows - 1}"
                f") TO '{folder}/{number:03}.parquet' (FORMAT parquet, COMPRESSION zstd)"
            )

    def run(self, query: Query) -> tuple[dict[str, Runs], dict[str, Runs]]:
        """The times of each engine, and the MB that the Spark ones read of files."""
        texts = self._texts(query)
        frames = {
            OURS: self._text(self.lake.sql, texts[OURS]),
            DELTA: self._text(self.spark.sql, texts[DELTA]),
        }
        runs = {e: self._timed(frame, rows=query.rows) for e, frame in frames.items()}
        self._compare(frames, query)
        read = {e: Runs([bytes_read(self.spark, run) / 1e6], "MB") for e, run in runs.items()}
        if self.with_duckdb:
            runs[DUCKDB] = lambda: timed(lambda: self.duckdb.sql(texts[DUCKDB]).to_arrow_table())
        return in_turns(self.rounds, runs), read

    def run_with_rule(
        self, query: Query, make: Callable[[DataFrame, Mapping[str, int]], DataFrame]
    ) -> dict[str, Runs]:
        """The times of a query by text and as a DataFrame, and Delta Spark's without the rule."""
        texts = self._texts(query)
        table = self.spark.read.format("delta").load(str(self._folder(query, "ours")))
        frames = {
            OURS: self._switched(self._text(self.lake.sql, texts[OURS]), enabled=True),
            DELTA: self._switched(self._text(self.spark.sql, texts[DELTA]), enabled=False),
            RULE: self._switched(self._text(self.spark.sql, texts[OURS]), enabled=True),
            FRAMES: self._switched(lambda: make(table, self._window), enabled=True),
        }
        self._compare(frames, query)
        return in_turns(
            self.rounds, {e: self._timed(each, rows=False) for e, each in frames.items()}
        )

    def _folder(self, query: Query, side: str) -> Path:
        return self.folder / f"{'clustered' if query.clustered else 'one'}-{side}"

    def _texts(self, query: Query) -> dict[str, str]:
        """The query's text for each engine, on its own table."""

        def of(table: str) -> str:
            return query.text.format(t=table, **self._window)

        files = f"read_parquet('{self._folder(query, 'duckdb')}/*.parquet')"
        return {
            OURS: of(f"delta.`{self._folder(query, 'ours')}`"),
            DELTA: of(f"delta.`{self._folder(query, 'delta')}`"),
            DUCKDB: _duckdb_paths(of(files)),
        }

    @staticmethod
    def _text(sql: Callable[[str], DataFrame], text: str) -> Callable[[], DataFrame]:
        return lambda: sql(text)

    @staticmethod
    def _compare(frames: Mapping[str, Callable[[], DataFrame]], query: Query) -> None:
        answers = []
        for make in frames.values():
            frame = make()
            if query.rows:
                frame = frame.selectExpr("count(event)", "sum(hash(event:time_us::bigint))")
            answers.append(sorted(map(tuple, frame.collect()), key=repr))
        if any(answer != answers[0] for answer in answers):
            raise SystemExit(f"the answers differ: {query.text}")

    def _switched(self, make: Callable[[], DataFrame], *, enabled: bool) -> Callable[[], DataFrame]:
        """The same function; its queries, if they run at once, have the rule or do not."""

        def switched() -> DataFrame:
            self.spark.conf.set(SWITCH, str(enabled).lower())
            return make()

        return switched

    @property
    def _window(self) -> dict[str, int]:
        return {
            "low": self.middle - 5_000_000,
            "high": self.middle + 5_000_000,
            "point": self.middle,
        }

    @staticmethod
    def _timed(make: Callable[[], DataFrame], *, rows: bool) -> Callable[[], float]:
        def run() -> None:
            if rows:
                make().write.format("noop").mode("overwrite").save()
            else:
                make().collect()

        return lambda: timed(run)


def _time_of(source: Path, number: int) -> int:
    with source.open("rb") as file:
        for place, line in enumerate(file):
            if place == number:
                return int(json.loads(line)["time_us"])
    raise ValueError(number)


def _duckdb_paths(text: str) -> str:
    """`event:a.b::string` as DuckDB writes it."""
    text = re.sub(r"event:([\w.]+)", r"event.\1", text)
    return text.replace("::string", "::VARCHAR")


VECTORED = "parquet.hadoop.vectored.io.enabled"


def bytes_read(spark: SparkSession, run: Callable[[], object]) -> int:
    """Bytes of files that a run reads, their footers included.

    Of Spark's own readers Spark counts them (`inputMetrics`); where kernels read for it, the system
    does (Linux), for its Python workers and for this process, which reads what the log has new as
    well. The lesser of two runs: a new worker reads its libraries.
    Without vectored reads, which Spark does not count on a local disk.
    """
    java: Any = spark
    settings = java._jsc.hadoopConfiguration()  # noqa: SLF001 # what every scan starts from
    settings.set(VECTORED, "false")
    found = []
    try:
        for _ in range(2):
            before = _counted(spark)
            run()
            after = _counted(spark)
            # A worker that has ended since takes its count along: only those that are left count.
            found.append(sum(count - before.get(reader, 0) for reader, count in after.items()))
    finally:
        settings.unset(VECTORED)
    return min(found)


def _counted(spark: SparkSession) -> dict[int, int]:
    """What Spark's executors (under 0), their Python workers and this process have read so far."""
    java: Any = spark
    context = java._jsc.sc()  # noqa: SLF001 # no public way to the metrics
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(False)
    by_spark = sum(int(executors.apply(at).totalInputBytes()) for at in range(executors.size()))
    jvm = int(java._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001 # the same
    readers = [os.getpid(), *_processes_below(jvm)]
    return {0: by_spark, **{reader: _read_by(reader) for reader in readers}}


def _processes_below(process: int) -> Iterator[int]:
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int(_after_name(folder / "stat")[1])
    found = [process]
    for above in found:
        below = [child for child, parent in parents.items() if parent == above]
        found += below
        yield from below


def _after_name(stat: Path) -> list[str]:
    """The fields behind a process's name, which may hold blanks: state, parent and so on."""
    return stat.read_text().rpartition(")")[2].split()


def _read_by(process: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{process}/io").read_text().split()[1])  # rchar: without sockets
    return 0


def main() -> None:
    """Run and print."""
    options = parser(__doc__, events=500_000, rounds=5)
    options.add_argument("--only", help="queries whose names begin so")
    options.add_argument("--duckdb", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument(
        "--rule", action="store_true", help="spark.sql and DataFrames with the rule"
    )
    asked = options.parse_args()
    chosen = {name: q for name, q in QUERIES.items() if name.startswith(asked.only or "")}
    if asked.rule:
        chosen = {name: q for name, q in chosen.items() if name in FRAMES_OF}
    columns = (OURS, DELTA, RULE, FRAMES) if asked.rule else (OURS, DELTA, DUCKDB)
    section = Section(columns, inputs=[f"{asked.events:,} events"])
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        bench = Bench(
            Path(folder),
            asked.events,
            asked.rounds,
            clustered={query.clustered for query in chosen.values()},
            with_duckdb=asked.duckdb and not asked.rule,
            rule=asked.rule,
        )
        try:
            for name, query in chosen.items():
                if asked.rule:
                    section.add(name, bench.run_with_rule(query, FRAMES_OF[name]))
                else:
                    times, read = bench.run(query)
                    section.add(name, times)
                    section.add(f"{name}: read", read)
        finally:
            bench.spark.stop()
    finish(section, asked)


if __name__ == "__main__":
    main()
