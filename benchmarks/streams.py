"""The sink beside Delta Spark's on the same stream: rows a second, and seconds of a small batch.

`python -m benchmarks.streams` writes FILES files of EVENTS events. Each way of loading reads them
as lines with Spark's file source, one file a batch, into an empty table: Delta Spark's sink with
`parse_json` (shredded and not), ours by `format("variantlake")` with JSON text and with Variants
that Spark parsed, and ours by `lake.write_batch`. Small batches have 1,000 events. The first batch
of each query is left out: it makes the table. Figures are those of Spark's own progress.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import variantlake as vl
from benchmarks.engines import delta_table
from benchmarks.events import events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS = 2
SMALL = 1000
"""Events of a small batch."""

VARIANT = "parse_json(value) AS event"
TEXT = "value AS event"

Start = Callable[["DataFrame", Path, Path], Any]
"""Begins a stream of lines into a table with a checkpoint."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of loading: what each line becomes, and who takes it."""

    name: str
    expression: str
    start: Start


def ways(spark: SparkSession) -> list[Way]:
    """All that are compared."""
    lake = vl.spark.connect(spark)
    vl.spark.register(spark)

    def sink(source: str, **options: str) -> Start:
        def start(frame: DataFrame, table: Path, checkpoint: Path) -> Any:
            writer = frame.writeStream.format(source).options(**options)
            writer = writer.option("checkpointLocation", str(checkpoint))
            return writer.trigger(availableNow=True).start(str(table))

        return start

    def foreach(frame: DataFrame, table: Path, checkpoint: Path) -> Any:
        def take(batch: DataFrame, number: int) -> None:
            lake.write_batch(str(table), batch, number, json_columns=["event"])

        writer = frame.writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(checkpoint))
        return writer.trigger(availableNow=True).start()

    return [
        Way("Delta Spark", VARIANT, sink("delta")),
        Way("Delta Spark, shredding", VARIANT, _shredding(spark, sink("delta"))),
        Way("variantlake, JSON text", TEXT, sink("variantlake", jsonColumns="event")),
        Way("variantlake, Variants of Spark", VARIANT, sink("variantlake")),
        Way("lake.write_batch, JSON text", TEXT, foreach),
    ]


def _shredding(spark: SparkSession, start: Start) -> Start:
    def shredding(frame: DataFrame, table: Path, checkpoint: Path) -> Any:
        delta_table(spark, table)
        return start(frame, table, checkpoint)

    return shredding


def write_files(folder: Path, files: int, count: int) -> int:
    """Files of events, and the bytes of one."""
    folder.mkdir()
    size = 0
    for number in range(files):
        path = folder / f"{number:05d}.json"
        path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in events(count, number)))
        size = path.stat().st_size
    return size


def batch_seconds(spark: SparkSession, way: Way, source: Path, scratch: Path) -> list[float]:
    """Seconds of each batch after the first, as Spark's progress tells them."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
        frame = lines.selectExpr(way.expression)
        query = way.start(frame, Path(folder, "t"), Path(folder, "c"))
        query.awaitTermination()
        done = [json.loads(each.json) for each in query.recentProgress]
    loaded = [each for each in done if each["numInputRows"]]
    return [each["durationMs"]["triggerExecution"] / 1000 for each in loaded[1:]]


def compare(spark: SparkSession, files: int, count: int, scratch: Path) -> dict[str, Any]:
    """Median seconds of a batch of `count` events by each way, the ways in turn."""
    source = scratch / f"in-{count}"
    size = write_files(source, files, count)
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for way in ways(spark):
            found.setdefault(way.name, []).extend(batch_seconds(spark, way, source, scratch))
    first = statistics.median(next(iter(found.values())))
    sys.stdout.write(f"batches of {count:,} events, {size / 1e6:.1f} MB of JSON\n")
    result = {}
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        result[name] = {"seconds": middle, "rows_per_second": count / middle}
        sys.stdout.write(
            f"  {name:32} {middle:7.2f} s  {count / middle:9,.0f} rows/s  {first / middle:4.1f}x\n"
        )
    sys.stdout.flush()
    return result


def main() -> None:
    """Print the table, and write it as JSON where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    from tests.sessions import delta_session

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        spark = delta_session(scratch / "spark")
        result = {
            str(count): compare(spark, given.files, count, scratch)
            for count in (SMALL, given.events)
        }
        spark.stop()
    if given.json:
        given.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
