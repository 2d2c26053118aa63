"""Measure the time that the rule of `vl.spark.accelerate` adds to the planning of a query.

    python -m benchmarks.rule [--rounds 60]

Nothing is read but logs: a query is analysed, optimized and planned, and not run. The best of the
rounds is what planning costs; the median shows how busy the machine was. The first two figures are
of the rule alone. The last two are those of the whole planning with the rule and without it, in
turns: Delta Spark, which looks for files itself, has nothing left to do for tables that we read.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import variantlake as vl
from benchmarks.engines import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 16, 200
SWITCH = "spark.variantlake.enabled"
WARM = 20
"""Rounds before the timed ones."""


def _table(folder: Path) -> str:
    table = vl.Table.create(folder, "id BIGINT, event VARIANT")
    for file in range(FILES):
        ids = list(range(file * ROWS, (file + 1) * ROWS))
        events = [f'{{"kind": "k{file}", "n": {n}, "o": {{"a": {n % 7}}}}}' for n in ids]
        table.refresh().append(pa.table({"id": ids, "event": events}), json_columns=["event"])
    return str(folder)


def queries(spark: SparkSession, table: str) -> dict[str, Callable[[], DataFrame]]:
    """Queries of our table, as text and as a DataFrame, and queries of other tables."""
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


def planned(frame: DataFrame) -> tuple[float, float]:
    """Milliseconds of the rule for a query by Spark's own measure, and of all its planning."""
    java: Any = frame
    execution = java._jdf.queryExecution()  # noqa: SLF001 - PySpark has no other way
    started = time.perf_counter()
    execution.executedPlan()
    whole = (time.perf_counter() - started) * 1e3
    rules = execution.tracker().rules().iterator()
    while rules.hasNext():
        rule = rules.next()
        if "AcceleratedReads" in rule.productElement(0):
            return float(rule.productElement(1).totalTimeNs()) / 1e6, whole
    return 0.0, whole


def main() -> None:
    """Print the milliseconds of each query."""
    parser = argparse.ArgumentParser(prog="benchmarks.rule")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        spark = spark_session()
        spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")  # Delta Spark's own jobs
        vl.spark.accelerate(spark)
        for name, make in queries(spark, _table(Path(scratch) / "t")).items():
            rule, on, off = [], [], []
            for at in range(WARM + options.rounds):  # the JVM compiles what is called often
                spark.conf.set(SWITCH, "true")
                own, with_it = planned(make())
                spark.conf.set(SWITCH, "false")
                _, without = planned(make())
                if at >= WARM:
                    rule.append(own)
                    on.append(with_it)
                    off.append(without)
            middle = statistics.median(rule)
            print(
                f"{name:30} rule: best {min(rule):6.2f} ms, median {middle:6.2f} ms; all planning: "
                f"best {min(on):6.2f} ms, {min(off):6.2f} ms without it",
                flush=True,
            )
        spark.stop()


if __name__ == "__main__":
    main()
