"""Ingest and three queries, side by side with Delta Spark in one run; writes the table.

`make bench` runs it. Delta Spark gets its best settings: shredding with an inferred schema,
per-path statistics, zstd. Both sides run in one Spark session, in turns, on the same input and the
same cores; the medians are compared as ratios.

    python benchmarks/against_delta_spark.py [--events 500000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import variantlake as vl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks import events

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
MARK = ("<!-- benchmark: against_delta_spark -->", "<!-- end of benchmark -->")

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.jars.packages": DELTA_PACKAGE,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "4g",
    "spark.sql.parquet.compression.codec": "zstd",
    # Delta Spark at its best: shredded files with statistics of the paths
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.inferShreddingSchema": "true",
    "spark.databricks.delta.variantShredding.collectVariantDataSkippingStats": "true",
    "spark.databricks.delta.variantShredding.parseFooterForStats": "true",
    "spark.databricks.delta.stats.limitPerVariant": "1000",
}

QUERIES = {
    "aggregate": """
        SELECT event:commit.collection::string AS c, count(*) AS n
        FROM delta.`{table}` GROUP BY 1 ORDER BY 2 DESC""",
    "range": """
        SELECT count(*) AS n, max(event:did::string) AS d FROM delta.`{table}`
        WHERE event:time_us::bigint BETWEEN {low} AND {high}""",
    "distinct": """
        SELECT event:commit.collection::string AS c, count(DISTINCT event:did::string) AS users
        FROM delta.`{table}` WHERE event:kind::string = 'commit' GROUP BY 1 ORDER BY 2 DESC""",
}


def session() -> SparkSession:
    """One session with Delta Spark in it, for both sides."""
    builder = SparkSession.builder.master("local[2]").appName("variantlake benchmark")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def delta_ingest(spark: SparkSession, source: Path, table: Path) -> None:
    """Delta Spark's own way from JSON text to a shredded table."""
    spark.sql(
        f"CREATE TABLE delta.`{table}` (event VARIANT) USING DELTA "
        "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    )
    frame = spark.read.text(str(source)).selectExpr("parse_json(value) AS event")
    frame.write.format("delta").mode("append").save(str(table))


def timed(action: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def turns(
    rounds: int, ours: Callable[[], object], theirs: Callable[[], object]
) -> tuple[list[float], list[float]]:
    """Both sides in turns, after one unmeasured call of each."""
    ours()
    theirs()
    pairs = [(timed(ours), timed(theirs)) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def size(table: Path) -> float:
    """MB of the table's Parquet files."""
    return sum(file.stat().st_size for file in table.glob("*.parquet")) / 1e6


def run(count: int, rounds: int, folder: Path) -> list[tuple[str, str, str, str]]:
    """Rows of the table: work, ours, Delta Spark, ratio."""
    source = folder / "events.ndjson"
    megabytes = events.write(source, count) / 1e6
    spark = session()
    lake = vl.spark.connect(spark)
    ours, theirs = folder / "ours", folder / "theirs"

    def ingest_ours() -> None:
        shutil.rmtree(ours, ignore_errors=True)
        lake.ingest(str(source), str(ours))

    def ingest_theirs() -> None:
        shutil.rmtree(theirs, ignore_errors=True)
        delta_ingest(spark, source, theirs)

    rows = []

    def add(name: str, mine: list[float], other: list[float], unit: str = "s") -> None:
        a, b = statistics.median(mine), statistics.median(other)
        spread = f"{min(mine):.2f}–{max(mine):.2f}", f"{min(other):.2f}–{max(other):.2f}"
        rows.append(
            (
                name,
                f"{a:.2f} {unit} ({spread[0]})",
                f"{b:.2f} {unit} ({spread[1]})",
                f"{b / a:.1f}×",
            )
        )
        print(*rows[-1], sep=" | ", flush=True)

    mine, other = turns(rounds, ingest_ours, ingest_theirs)
    add(f"ingest {megabytes:.0f} MB of NDJSON, {count:,} events", mine, other)
    rows.append(
        (
            "size of the files",
            f"{size(ours):.1f} MB",
            f"{size(theirs):.1f} MB",
            f"{size(theirs) / size(ours):.2f}×",
        )
    )
    low = events.FIRST_TIME_US + count * 5_000
    window = {"low": low, "high": low + 10_000_000}
    for name, query in QUERIES.items():
        my_text = query.format(table=ours, **window)
        their_text = query.format(table=theirs, **window)
        if lake.sql(my_text).collect() != spark.sql(their_text).collect():
            raise SystemExit(f"the answers to {name} differ")
        mine, other = turns(
            rounds,
            lambda text=my_text: lake.sql(text).collect(),  # type: ignore[misc]
            lambda text=their_text: spark.sql(text).collect(),  # type: ignore[misc]
        )
        add(f"query: {name}", mine, other)
    spark.stop()
    return rows


def main() -> None:
    """Run, print, and put the table into docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        rows = run(options.events, options.rounds, Path(folder))
    lines = [
        "| work | Variantlake | Delta Spark 4.4.0 | ratio |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    print("\n".join(lines))
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(MARK[0])
    _, _, tail = rest.partition(MARK[1])
    PAGE.write_text(f"{head}{MARK[0]}\n{chr(10).join(lines)}\n{MARK[1]}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
