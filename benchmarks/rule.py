"""Time what the rule of `vl.spark.accelerate` adds to the planning of a query.

    python -m benchmarks.rule [--rounds 60]

Nothing is read but logs: a query is analysed and optimized, and not run. The best of the rounds is
what planning costs; the median shows how busy the machine was. What Delta Spark's own planning
would take, which then has less to do, is not subtracted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import variantlake as vl
from benchmarks.engines import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 16, 200
WARM = 20
"""Rounds before those that are timed."""


def _table(folder: Path) -> str:
    table = vl.Table.create(folder, "id BIGINT, event VARIANT")
    for file in range(FILES):
        ids = list(range(file * ROWS, (file + 1) * ROWS))
        events = [f'{{"kind": "k{file}", "n": {n}, "o": {{"a": {n % 7}}}}}' for n in ids]
        table.refresh().append(pa.table({"id": ids, "event": events}), json_columns=["event"])
    return str(folder)


def queries(spark: SparkSession, table: str) -> dict[str, Callable[[], DataFrame]]:
    """A query of our table, by text and by a DataFrame, and others that are none of ours."""
    text = f"SELECT id, event:o.a::int FROM delta.`{table}` WHERE event:kind::string = 'k3'"
    grouped = f"SELECT event:kind::string k, count(*) FROM delta.`{table}` GROUP BY ALL"
    frame = vl.spark.connect(spark).table(table)
    return {
        "paths of a Delta table": lambda: spark.sql(text),
        "groups of a Delta table": lambda: spark.sql(grouped),
        "paths of lake.table": lambda: frame.where("event:n::int < 9").selectExpr("event:o.a::int"),
        "no Variant of a Delta table": lambda: spark.sql(f"SELECT id FROM delta.`{table}`"),
        "no table": lambda: spark.range(9).where("id > 3").groupBy("id").count(),
    }


def planned(frame: DataFrame) -> float:
    """Milliseconds that the rule takes for a query, by Spark's own account of its rules."""
    java: Any = frame
    execution = java._jdf.queryExecution()  # noqa: SLF001 - PySpark has no other way
    execution.optimizedPlan()
    rules = execution.tracker().rules().iterator()
    while rules.hasNext():
        rule = rules.next()
        if "AcceleratedReads" in rule.productElement(0):
            return float(rule.productElement(1).totalTimeNs()) / 1e6
    return 0.0


def main() -> None:
    """Print milliseconds for each query."""
    parser = argparse.ArgumentParser(prog="benchmarks.rule")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        spark = spark_session()
        spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")  # Delta Spark's own jobs
        vl.spark.accelerate(spark)
        for name, make in queries(spark, _table(Path(scratch) / "t")).items():
            for _ in range(WARM):  # the JVM compiles what is called often
                planned(make())
            times = [planned(make()) for _ in range(options.rounds)]
            middle = statistics.median(times)
            print(f"{name:30} best {min(times):6.2f} ms, median {middle:6.2f} ms", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
