"""Time planning on a table of many files: a log alone, with adds as our own ingest writes them.

    python -m benchmarks.planning --files 100000
    python -m benchmarks.planning --files 1000000 --checkpoint
    python -m benchmarks.planning --checkpoint --parsed            # statistics as columns alone
    python -m benchmarks.planning --narrow --write-checkpoint      # from commits, then from it
    python -m benchmarks.planning --files 10000000 --narrow --sidecars   # and by Spark's tasks
    python -m benchmarks.planning --files 100000 --delta-spark     # Delta Spark on the same log
    python -m benchmarks.planning --files 1000 --queries           # the whole of `lake.sql`

The data files do not exist: planning never looks at them.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import multiprocessing
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

import variantlake as vl
from benchmarks import report
from benchmarks.events import FIRST_TIME_US
from variantlake.delta.actions.actions import (
    Action,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    Sidecar,
    serialise,
)
from variantlake.delta.checkpoint.checkpoint_schema import CheckpointRows
from variantlake.delta.checkpoint.checkpoint_writer import SIDECAR_FILES, write_checkpoint
from variantlake.delta.log.files.logical_files import files_of
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.protocol.new_table import new_table
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.transaction.new_actions import new_add
from variantlake.expressions.tree import And, Compare, Literal, Predicate, Ref
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.planning.log_files import LogFiles
from variantlake.planning.plan import plan_scan
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.schema import Leaf, ShreddingSchema
from variantlake.storage.store import LocalStore
from variantlake.types import Kind

SCHEMA = parse_table_ddl("event VARIANT, day DATE, n BIGINT")
LAYOUT = parse_ddl(
    "did STRING, time_us BIGINT, kind STRING, commit STRUCT<rev: STRING, operation: STRING, "
    "collection: STRING, rkey: STRING, cid: STRING, record: STRUCT<`$type`: STRING, "
    "createdAt: STRING, text: STRING, subject: STRUCT<cid: STRING, uri: STRING>, "
    "reply: STRUCT<parent: STRUCT<cid: STRING, uri: STRING>, root: STRUCT<cid: STRING, "
    "uri: STRING>>>>, identity: STRUCT<did: STRING, handle: STRING, seq: BIGINT, time: STRING>"
)
NARROW = parse_ddl("time_us BIGINT, kind STRING")
ROWS = 50_000
ADDS_A_COMMIT = 10_000
ADDS_A_ROW_GROUP = 100_000
WARM = 40
"""Queries before those that are timed, and those."""

TEMPLATES = 500
"""Different adds; the files of a table take them in turns."""

T = TypeVar("T")


def templates(layout: ShreddingSchema = LAYOUT) -> list[AddFile]:
    """Adds of files clustered by time."""
    return [
        new_add("x.parquet", _facts(number, layout), schema=SCHEMA, properties={})
        for number in range(TEMPLATES)
    ]


def _facts(number: int, layout: ShreddingSchema) -> FileFacts:
    paths = []
    for at, node in layout.nodes():
        facts = PathFacts(at, node, typed=ROWS - number % 7, nulls=0, residuals=0)
        if isinstance(node, Leaf) and node.type.kind is Kind.INT64:
            low = FIRST_TIME_US + number * 500_000_000
            high = low + 499_999_999
            facts = replace(facts, bounds=Bounds(low, high, minimum_exact=True))
        elif isinstance(node, Leaf):
            low_text = f"{at.steps[-1]}-{number:06d}-aaaaaaaaaaaaaaaaaaaaaaaa"
            facts = replace(facts, bounds=Bounds(low_text, low_text + "zz"))
        paths.append(facts)
    variant = VariantFacts(("event",), layout, 0, tuple(paths))
    columns = (ColumnFacts(("n",), pa.int64(), 0, Bounds(number, number + 9)),)
    return FileFacts(14_000_000 + number, ROWS, 1, (variant,), columns)


def adds(count: int, layout: ShreddingSchema = LAYOUT) -> Iterator[AddFile]:
    """`count` adds of different files."""
    known = templates(layout)
    for number in range(count):
        yield replace(
            known[number % TEMPLATES],
            path=f"part-{number:08d}-e3b0c442-98fc-4c14-9afb-f4c8996fb924.c000.zstd.parquet",
            partition_values={"day": f"2024-11-{1 + number % 30:02d}"},
        )


def write_table(root: FilePath, files: int, layout: ShreddingSchema = LAYOUT) -> int:
    """Write the log; returns its bytes."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    protocol, metadata = new_table(SCHEMA, ["day"], {})
    remaining, version, size = adds(files, layout), 0, 0
    actions: list[Action] = [protocol, metadata]
    while True:
        actions.insert(0, CommitInfo({"timestamp": version, "operation": "WRITE"}))
        actions += [add for _, add in zip(range(ADDS_A_COMMIT), remaining, strict=False)]
        if version and len(actions) == 1:
            return size
        text = serialise(actions)
        (root / commit_path(version)).write_bytes(text)
        size += len(text)
        actions, version = [], version + 1


def write_checkpoint_alone(root: FilePath, files: int, *, parsed: bool = False) -> int:
    """Write a table that is a classic checkpoint and no commits; returns its bytes.

    Statistics are texts, or if `parsed` columns.
    """
    properties = {
        "delta.checkpoint.writeStatsAsStruct": str(parsed).lower(),
        "delta.checkpoint.writeStatsAsJson": str(not parsed).lower(),
    }
    protocol, metadata = new_table(SCHEMA, ["day"], properties)
    path = root / f"_delta_log/{0:020d}.checkpoint.parquet"
    path.parent.mkdir(parents=True)
    actions: list[Action] = [protocol, metadata]
    known = files_of(list(adds(TEMPLATES)))
    rows = CheckpointRows(("protocol", "metaData"), actions, known, protocol, metadata)
    _write_tables(path, _repeated(rows, files))
    return path.stat().st_size


def write_sidecars(root: FilePath, files: int, layout: ShreddingSchema = LAYOUT) -> int:
    """Write a table that is a checkpoint with sidecars and no commits; returns its bytes."""
    protocol, metadata = new_table(SCHEMA, ["day"], {"delta.checkpointPolicy": "v2"})
    log = root / "_delta_log"
    (log / "_sidecars").mkdir(parents=True)
    actions: list[Action] = [CheckpointMetadata(0), protocol, metadata]
    known = files_of(list(adds(TEMPLATES, layout)))
    described = CheckpointRows((), [], known, protocol, metadata)
    for first in range(0, files, SIDECAR_FILES):
        count = min(SIDECAR_FILES, files - first)
        path = log / "_sidecars" / f"{uuid.uuid4()}.parquet"
        _write_tables(path, _repeated(described, count, first))
        actions.append(Sidecar(path.name, path.stat().st_size, 0))
    keys = ("checkpointMetadata", "protocol", "metaData", "sidecar")
    rows = CheckpointRows(keys, actions, files_of([]), protocol, metadata)
    _write_tables(log / f"{0:020d}.checkpoint.{uuid.uuid4()}.parquet", rows.tables())
    return sum(path.stat().st_size for path in log.rglob("*.parquet"))


def _repeated(rows: CheckpointRows, files: int, start: int = 0) -> Iterator[pa.Table]:
    """The rows of a file of a checkpoint: its files again and again, by other paths."""
    # Statistics are taken apart once.
    (table,) = rows.tables()
    actions = rows.actions
    yield table.slice(0, len(actions))
    for first in range(0, files, ADDS_A_ROW_GROUP):
        count = min(ADDS_A_ROW_GROUP, files - first)
        places = [len(actions) + number % TEMPLATES for number in range(count)]
        taken = table.take(pa.array(places))
        add: Any = taken["add"].combine_chunks()
        names = range(start + first, start + first + count)
        paths = pa.array([f"part-{name:08d}.zstd.parquet" for name in names])
        add = pa.StructArray.from_arrays([paths, *add.flatten()[1:]], fields=list(add.type))
        yield taken.set_column(taken.column_names.index("add"), "add", add)


def _write_tables(path: FilePath, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for table in itertools.chain([first], tables):
            if table.num_rows:
                writer.write_table(table)


def timed(what: str, work: Callable[[], T]) -> T:
    """Run and print the seconds, by the clock and of the processor."""
    start, used = time.perf_counter(), time.process_time()
    result = work()
    clock, cpu = time.perf_counter() - start, time.process_time() - used
    print(
        f"  {what:<36} {clock:8.3f} s   cpu {cpu:7.3f} s   peak {report.peak_mb():6,.0f} MB",
        flush=True,
    )
    return result


TIME = Ref(("event",), Path.of("time_us"), "bigint")
KIND = Ref(("event",), Path.of("kind"), "string")
COLLECTION = Ref(("event",), Path.of("commit", "collection"), "string")


def time_range(first: int, files: int = 3) -> Predicate:
    """Events of about `files` of the templates."""
    low = FIRST_TIME_US + first * 500_000_000
    return And(
        (
            Compare(">=", TIME, Literal(low, "bigint")),
            Compare("<", TIME, Literal(low + files * 500_000_000, "bigint")),
        )
    )


def ours(root: FilePath) -> None:
    """Time a first plan, later ones, and one after a commit."""
    timed(
        "load the kernels",
        lambda: importlib.import_module("variantlake.delta.stats.columns.log_facts"),
    )
    snapshot = timed("read the log", lambda: Snapshot.read(root))
    files = timed("  and make it columns", lambda: LogFiles(snapshot))
    plan = timed("first plan, a range on one path", lambda: plan_scan(files, [TIME], time_range(5)))
    print(f"    {plan.read_files:,} of {plan.total_files:,} files are read")
    timed("the same path, another range", lambda: plan_scan(files, [TIME], time_range(77)))
    kind = And((Compare("=", KIND, Literal("commit", "string")), time_range(9)))
    timed("another path beside it", lambda: plan_scan(files, [TIME, COLLECTION], kind))
    timed("  the same again", lambda: plan_scan(files, [TIME, COLLECTION], kind))
    day = Compare("=", Ref(("day",), None, "date"), Literal(20_030, "date"))
    timed(
        "a partition column",
        lambda: plan_scan(files, [TIME], day, partition_types={"day": "date"}),
    )
    timed("everything, as files", lambda: list(plan_scan(files, [TIME]).files))
    last = next(adds(1))
    text = serialise([replace(last, path="one-more.parquet")])
    (root / commit_path(snapshot.version + 1)).write_bytes(text)
    newer = timed("refresh after a commit", snapshot.refresh)
    later = timed("  and make it columns", lambda: LogFiles(newer, files))
    timed("  plan", lambda: plan_scan(later, [TIME, COLLECTION], kind))


def checkpoint(root: FilePath) -> None:
    """Time a checkpoint of the log as it is."""
    timed("write a checkpoint", lambda: write_checkpoint(LocalStore(root)))


def from_checkpoint(root: FilePath) -> None:
    """Time the first plan after a checkpoint."""
    snapshot = timed("read the checkpoint", lambda: Snapshot.read(root))
    files = LogFiles(snapshot)
    timed("first plan, a range on one path", lambda: plan_scan(files, [TIME], time_range(5)))


def by_parts(root: FilePath) -> None:
    """Time the first plan of a query of a table whose files stay in its checkpoint."""
    condition = f"event:time_us::bigint BETWEEN {FIRST_TIME_US} AND {FIRST_TIME_US + 10}"
    table = timed("open the table", lambda: vl.Table.open(root))
    for what in ("a range on one path", "  the same again"):
        choice = timed(what, lambda: table.scan("n", where=condition).choice)
    print(f"    {choice.read_files:,} of {choice.total_files:,} files are read")
    day = timed("one partition", lambda: table.scan("n", where="day = '2024-11-01'").choice)
    print(f"    {day.read_files:,} of {day.total_files:,} files are read")


def by_spark(root: FilePath) -> None:
    """Time the same in Spark's tasks; the memory is that of this process."""
    from benchmarks.engines import spark_session  # which takes memory that planning needs not
    from variantlake.planning.kept_files import without_skipped
    from variantlake.spark.session.jobs import planning_job

    spark = spark_session()
    spark.range(10).count()  # what Spark needs to wake up is not counted
    snapshot = timed("read the log", lambda: Snapshot.read(root, applies=SCAN_FEATURES))
    run = planning_job(spark)
    for what in ("a range on one path, by a job", "  the same again"):
        kept = timed(what, lambda: without_skipped(LogFiles(snapshot), time_range(0, 1), None, run))
    print(f"    {kept.rows:,} of {kept.rows + kept.left_out.files:,} files are kept")
    spark.stop()


def delta_spark(root: FilePath) -> None:
    """Time Delta Spark on the same log: a query's plan, first and again. It knows no paths."""
    from benchmarks.engines import spark_session  # which takes memory that planning needs not

    spark = spark_session()
    spark.range(10).count()  # what Spark needs to wake up is not counted

    def plan(first: int) -> Any:
        query = f"SELECT count(event) FROM delta.`{root}` WHERE n BETWEEN {first} AND {first + 2}"
        frame = spark.sql(query)
        return len(frame.inputFiles())

    for first in (5, 77, 9):
        timed("Delta Spark, a range on a column", lambda first=first: plan(first))  # type: ignore[misc]
    spark.stop()


def queries(root: FilePath) -> None:
    """Time all that comes before a query of ours runs: log, plan, and Spark's analyses.

    Beside it what Spark alone needs to analyse the same text, over an empty view.
    """
    from benchmarks.engines import spark_session  # which takes memory that planning needs not

    spark = spark_session()
    lake = vl.spark.connect(spark)
    spark.sql("SELECT parse_json('{}') AS event WHERE false").createOrReplaceTempView("nothing")
    first = itertools.count()
    paths = ("event:kind::string", "event:did::string")

    def text(name: str, path: str) -> str:
        low = FIRST_TIME_US + next(first) % TEMPLATES * 500_000_000
        condition = f"event:time_us::bigint BETWEEN {low} AND {low + 1_000_000_000}"
        return f"SELECT {path} AS k, count(*) AS n FROM {name} WHERE {condition} GROUP BY 1"

    table = f"delta.`{root}`"
    timed("lake.sql, the first of all", lambda: lake.sql(text(table, paths[0])))
    timed("  another path", lambda: lake.sql(text(table, paths[1])))
    for _ in range(WARM):  # the JVM compiles what is called often
        lake.sql(text(table, paths[0]))
        spark.sql(text("nothing", paths[0]))
    for what, name, sql in (
        ("lake.sql, middle of many", table, lake.sql),
        ("Spark alone, over an empty view", "nothing", spark.sql),
    ):
        seconds = statistics.median(
            report.timed(lambda sql=sql, name=name: sql(text(name, paths[0])))  # type: ignore[misc]
            for _ in range(WARM)
        )
        print(f"  {what:<36} {seconds:8.3f} s", flush=True)
    spark.stop()


def main() -> None:
    """Make a table, time planning on it, take it away."""
    parser = argparse.ArgumentParser(prog="benchmarks.planning")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--checkpoint", action="store_true", help="read a checkpoint, not commits")
    parser.add_argument("--parsed", action="store_true", help="its statistics as columns alone")
    parser.add_argument("--narrow", action="store_true", help="bounds of two paths, not of 21")
    parser.add_argument("--write-checkpoint", action="store_true", help="write one, and read it")
    parser.add_argument("--sidecars", action="store_true", help="a checkpoint of many sidecars")
    parser.add_argument("--delta-spark", action="store_true", help="Delta Spark on the same log")
    parser.add_argument("--queries", action="store_true", help="the whole of lake.sql in Spark")
    parser.add_argument("--keep", type=FilePath, help="make the table there, or use it")
    options = parser.parse_args()
    folder = options.keep or FilePath(tempfile.mkdtemp(prefix="variantlake-planning-"))
    try:
        if not (folder / "_delta_log").exists():
            layout = NARROW if options.narrow else LAYOUT
            if options.sidecars:
                size = timed("write", lambda: write_sidecars(folder, options.files, layout))
            elif options.checkpoint:
                size = write_checkpoint_alone(folder, options.files, parsed=options.parsed)
            else:
                size = write_table(folder, options.files, layout)
            print(f"a log of {size / 1e6:,.0f} MB, {options.files:,} files")
        # In processes of their own: memory is what each of them needs.
        written = options.write_checkpoint
        requested = {
            "checkpoint": written,
            "from_checkpoint": written,
            "delta_spark": options.delta_spark,
            "queries": options.queries,
            "by_parts": options.sidecars,
            "by_spark": options.sidecars,
        }
        modes = ["ours"] if not options.sidecars else []
        modes += [*(mode for mode, wanted in requested.items() if wanted)]
        for mode in modes:
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=MODES[mode], args=(folder,))
            process.start()
            process.join()
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


MODES = {
    "ours": ours,
    "checkpoint": checkpoint,
    "from_checkpoint": from_checkpoint,
    "delta_spark": delta_spark,
    "queries": queries,
    "by_parts": by_parts,
    "by_spark": by_spark,
}

if __name__ == "__main__":
    main()
