"""Changing rows beside Delta Spark: one user deleted, rows merged and upserted, one path updated.

    python -m benchmarks.changes [--events 2000000] [--files 64] [--only upsert]

Both sides start from the same table each time: events in `--files` files, written by us, with
deletion vectors; a copy of the folder for each run. For Delta Spark the statement is the same SQL.
Printed are the seconds, and the bytes that the folder grew by. The upsert is `Table.upsert`, here,
of rows from all files, half of which are new; beside it deltalake merges the same rows
into a table that has the paths as plain columns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

import variantlake as vl
from benchmarks import documents
from benchmarks.engines import spark_session
from benchmarks.events import events
from benchmarks.report import timed

SHREDDING = (
    "did STRING, kind STRING, time_us BIGINT, commit STRUCT<operation: STRING, collection: STRING, "
    "rkey STRING, cid STRING>"
)

VECTORS = {"delta.enableDeletionVectors": "true"}
COLUMNS = [
    "event:time_us::bigint AS k",
    "event:did::string AS did",
    "event:kind::string AS kind",
    "event:commit.operation::string AS operation",
    "event:commit.collection::string AS collection",
    "event:commit.rkey::string AS rkey",
    "event:commit.cid::string AS cid",
]
"""The paths of the table, as plain columns."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--only", default="", help="only changes with this in their names")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder), asked.events, asked.files, asked.only)


def _run(folder: Path, count: int, files: int, only: str) -> None:
    base = folder / "base"
    documents.write("events", folder / "events.ndjson", count)
    table = vl.Table.create(
        base,
        "event VARIANT",
        properties=VECTORS,
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
        if only not in name:
            continue
        ours = _timed(base, folder / "ours", _change(lake.sql, statement))
        theirs = _timed(base, folder / "delta", _change(spark.sql, statement))
        print(
            f"{name:<24}{ours[0]:>9.2f}{theirs[0]:>9.2f}{theirs[0] / ours[0]:>7.1f}"
            f"{ours[1]:>14,}{theirs[1]:>14,}",
            flush=True,
        )
    if only in f"upsert {changed:,} rows":
        _upsert(folder, spark, changed, count)
    spark.stop()


def _upsert(folder: Path, spark: Any, changed: int, count: int) -> None:
    """Rows by a key: ours in this process, Delta Spark's MERGE, deltalake's of plain columns."""
    base, rows = folder / "base", _some_of(count, changed)
    source, plain = folder / "upserted", folder / "plain"
    vl.Table.create(source, "k BIGINT, event VARIANT").append(rows, json_columns=["event"])
    spark.read.format("delta").load(str(source)).createOrReplaceTempView("upserted")
    columns = vl.Table.open(base).scan(COLUMNS)
    deltalake.write_deltalake(plain, columns, configuration=VECTORS)
    new = vl.Table.open(source).scan(COLUMNS).to_arrow()
    key = "event:time_us::bigint"
    statement = (
        f"MERGE INTO {{}} AS t USING upserted AS s ON t.{key} = s.k WHEN MATCHED THEN UPDATE SET "
        "event = s.event WHEN NOT MATCHED THEN INSERT (event) VALUES (s.event)"
    )

    def ours(table: str) -> object:
        return vl.Table.open(table).upsert(rows.drop("k"), key, json_columns=["event"])

    def theirs(table: str) -> object:
        merger = deltalake.DeltaTable(table).merge(new, "t.k = s.k", "s", "t")
        return merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def delta_spark(table: str) -> object:
        return spark.sql(statement.format(f"delta.`{table}`"))

    for name, start, change in (
        ("Table.upsert", base, ours),
        ("Delta Spark", base, delta_spark),
        ("deltalake, plain columns", plain, theirs),
    ):
        seconds, grown = _timed(start, folder / "copy", change)
        used = _cpu_of(start, folder / "copy", change)
        print(f"{name:<26}{seconds:>7.2f} s, CPU of this process {used:.2f} s, {grown:,} bytes")


def _some_of(count: int, changed: int) -> pa.Table:
    """Every so-manieth event, half of them with a key that is not there."""
    found = list(itertools.islice(events(count), 0, None, count // changed))[:changed]
    for event in found[::2]:
        event["time_us"] *= -1
    keys = [event["time_us"] for event in found]
    return pa.table({"k": keys, "event": [json.dumps(event) for event in found]})


def _cpu_of(base: Path, copy: Path, change: Callable[[str], object]) -> float:
    shutil.copytree(base, copy)
    before = time.process_time()
    change(str(copy))
    used = time.process_time() - before
    shutil.rmtree(copy)
    return used


def _change(sql: Callable[[str], object], statement: str) -> Callable[[str], object]:
    return lambda table: sql(statement.format(f"delta.`{table}`"))


def _timed(base: Path, copy: Path, change: Callable[[str], object]) -> tuple[float, int]:
    """Seconds, and bytes that the folder grew by; the better of two runs."""
    best = (float("inf"), 0)
    for _ in range(2):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        before = _bytes(copy)
        seconds = timed(lambda: change(str(copy)))
        best = min(best, (seconds, _bytes(copy) - before))
    shutil.rmtree(copy)
    return best


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
