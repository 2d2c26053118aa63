"""Changing rows beside Delta Spark: one user deleted, rows merged, one path updated.

    python -m benchmarks.changes [--events 2000000] [--files 64]

Both sides start from the same table each time: events in `--files` files, written by us, with
deletion vectors; a copy of the folder for each run. For Delta Spark the statement is the same SQL.
Printed are the seconds, and the bytes that the folder grew by.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import variantlake as vl
from benchmarks import documents
from benchmarks.engines import spark_session
from benchmarks.events import events
from benchmarks.report import timed

SHREDDING = (
    "did STRING, kind STRING, time_us BIGINT, commit STRUCT<operation: STRING, collection: STRING, "
    "rkey STRING, cid STRING>"
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=64)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder), asked.events, asked.files)


def _run(folder: Path, count: int, files: int) -> None:
    base = folder / "base"
    documents.write("events", folder / "events.ndjson", count)
    table = vl.Table.create(
        base,
        "event VARIANT",
        properties={"delta.enableDeletionVectors": "true"},
        shredding={"event": SHREDDING},
    )
    table.append(vl.ndjson(folder / "events.ndjson"), max_rows_per_file=-(-count // files))
    (folder / "events.ndjson").unlink()
    user = next(events(count))["did"]
    spark = spark_session()
    lake = vl.spark.connect(spark)
    changed = min(10_000, count // 50)
    source = folder / "changed"
    lake.sql(
        f"SELECT event:time_us::bigint AS k, event FROM delta.`{base}` LIMIT {changed}"
    ).write.parquet(str(source))
    spark.read.parquet(str(source)).createOrReplaceTempView("changed")
    first = next(events(count))["time_us"]
    statements = {
        "delete one user": f"DELETE FROM {{}} AS t WHERE t.event:did::string = '{user}'",
        f"merge {changed:,} rows": "MERGE INTO {} AS t USING changed AS s "
        "ON t.event:time_us::bigint = s.k WHEN MATCHED THEN UPDATE SET event = s.event",
        "update 1 % of rows": "UPDATE {} AS t SET event = parse_json('{{\"seen\":true}}') "
        f"WHERE t.event:time_us::bigint % 100 = {first % 100}",
    }
    print(f"{'':<24}{'ours s':>9}{'Delta s':>9}{'times':>7}{'ours bytes':>14}{'Delta bytes':>14}")
    for name, statement in statements.items():
        ours = _timed(base, folder / "ours", _change(lake.sql, statement))
        theirs = _timed(base, folder / "delta", _change(spark.sql, statement))
        print(
            f"{name:<24}{ours[0]:>9.2f}{theirs[0]:>9.2f}{theirs[0] / ours[0]:>7.1f}"
            f"{ours[1]:>14,}{theirs[1]:>14,}",
            flush=True,
        )
    spark.stop()


def _change(sql: Callable[[str], object], statement: str) -> Callable[[str], object]:
    return lambda table: sql(statement.format(table))


def _timed(base: Path, copy: Path, change: Callable[[str], object]) -> tuple[float, int]:
    """Seconds, and bytes that the folder grew by; the better of two runs."""
    best = (float("inf"), 0)
    for _ in range(2):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        before = _bytes(copy)
        seconds = timed(lambda: change(f"delta.`{copy}`"))
        best = min(best, (seconds, _bytes(copy) - before))
    shutil.rmtree(copy)
    return best


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
