"""Three queries, side by side with Delta Spark in one run; writes the table.

`make bench` runs it after `benchmarks.ingest`. Both sides run in one Spark session, in turns, on
tables of the same documents, each written by its own side with its best settings (see `engines`).

    python -m benchmarks.against_delta_spark [--events 500000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import variantlake as vl
from benchmarks import documents
from benchmarks.engines import delta_append, spark_session
from benchmarks.events import FIRST_TIME_US
from benchmarks.report import in_turns, replace_section, table, timed

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

OURS, DELTA = "Variantlake", "Delta Spark 4.4.0"


def run(count: int, rounds: int, folder: Path) -> list[list[str]]:
    """Rows of the table: work, ours, Delta Spark."""
    source, ours, theirs = folder / "events.ndjson", folder / "ours", folder / "theirs"
    documents.write("events", source, count)
    spark = spark_session()
    lake = vl.spark.connect(spark)
    lake.ingest(str(source), str(ours))
    delta_append(spark.read.text(str(source)).selectExpr("parse_json(value) AS event"), theirs)
    low = FIRST_TIME_US + count * 5_000
    window = {"low": low, "high": low + 10_000_000}
    rows = []
    for name, query in QUERIES.items():
        my_text = query.format(table=ours, **window)
        their_text = query.format(table=theirs, **window)
        if lake.sql(my_text).collect() != spark.sql(their_text).collect():
            raise SystemExit(f"the answers to {name} differ")
        times = in_turns(
            rounds,
            {
                OURS: lambda text=my_text: timed(lambda: lake.sql(text).collect()),  # type: ignore[misc]
                DELTA: lambda text=their_text: timed(lambda: spark.sql(text).collect()),  # type: ignore[misc]
            },
        )
        rows.append([f"query: {name}", times[OURS].text(), times[DELTA].text(times[OURS])])
        print(*rows[-1], sep=" | ", flush=True)
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
    replace_section("queries", table([f"{options.events:,} events", OURS, DELTA], rows))


if __name__ == "__main__":
    main()
