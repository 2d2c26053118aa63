"""Clustering: beside Delta Spark's ZORDER, what queries read of it, and what appends cost.

`python -m benchmarks.cluster --rows 400000` prints one JSON object. Delta Spark cannot order by a
path of a Variant, so its table has the path as an ordinary column beside the same Variant, and
`OPTIMIZE ... ZORDER BY` of that column stands against `Table.cluster` by the path.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import orjson

import variantlake as vl
from benchmarks.events import FIRST_TIME_US, events
from benchmarks.report import timed

PATH = "event:time_us::bigint"
LOADS = 32


def make_loads(folder: Path, rows: int, loads: int) -> list[Path]:
    """Files of events, each with times from all over: what many producers send."""
    lines = [orjson.dumps(event) for event in events(rows)]
    random.Random(7).shuffle(lines)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(loads):
        path = folder / f"{number}.ndjson"
        path.write_bytes(b"\n".join(lines[number::loads]) + b"\n")
        paths.append(path)
    return paths


def make_table(location: Path, loads: list[Path]) -> vl.Table:
    """The loads as a table of ours, a commit each."""
    table = vl.Table.create(location, "event VARIANT")
    for path in loads:
        table.append(vl.ndjson(str(path)))
    table.refresh().set_clustering(PATH)
    return table.refresh()


def size_of(table: vl.Table) -> int:
    """Bytes of the table's files."""
    return sum(add.size for add in table.snapshot.add_files())


def bytes_read(table: vl.Table) -> float:
    """Bytes of the files that a query for ten seconds reads, the median of some."""
    last = table.scan(f"{PATH} AS t").to_arrow()["t"].to_numpy().max()
    step = (int(last) - FIRST_TIME_US) // 21
    found = []
    for number in range(1, 21):
        start = FIRST_TIME_US + number * step
        condition = f"{PATH} BETWEEN {start} AND {start + 10_000}"
        found.append(table.scan("event", condition).explain().read_bytes)
    return statistics.median(found)


def side_by_side(folder: Path, rows: int) -> dict[str, Any]:
    """`cluster` and ZORDER over the same rows, to files of the same size."""
    loads = make_loads(folder / "loads", rows, LOADS)
    table = make_table(folder / "ours", loads)
    target = max(1, size_of(table) // 64)
    result: dict[str, Any] = {"rows": rows, "bytes": size_of(table), "files": len(table.files())}
    result["bytes_read_before"] = bytes_read(table)
    done = table.cluster(target_file_size=target)
    result["ours_seconds"] = done.seconds
    result["ours_files"] = done.files_written
    result["bytes_read_after"] = bytes_read(table.refresh())
    result["seconds_of_a_second_run"] = table.cluster(target_file_size=target).seconds
    result |= _delta_spark(folder, table, target)
    result["times_faster"] = result["delta_seconds"] / result["ours_seconds"]
    result["times_fewer_bytes"] = result["bytes_read_before"] / result["bytes_read_after"]
    return result


def _delta_spark(folder: Path, table: vl.Table, target: int) -> dict[str, Any]:
    from benchmarks.engines import spark_session

    spark = spark_session()
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(target))
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(target))
    location = folder / "delta"
    source = vl.spark.connect(spark).read(str(table.uri)).selectExpr(f"{PATH} AS t", "event")
    source.repartition(LOADS).write.format("delta").save(str(location))
    seconds = timed(lambda: spark.sql(f"OPTIMIZE delta.`{location}` ZORDER BY (t)"))
    files = spark.sql(f"DESCRIBE DETAIL delta.`{location}`").collect()[0].numFiles
    spark.stop()
    return {"delta_seconds": seconds, "delta_files": files}


def amplification(folder: Path, rows: int, appends: int = 20) -> dict[str, Any]:
    """Bytes that runs write by bytes that are loaded: a table, then appends with a run each."""
    loads = make_loads(folder / "more", rows, 2 * appends)
    table = make_table(folder / "appended", loads[:appends])
    target = max(1, size_of(table) // 64)
    table.cluster(target_file_size=target)
    loaded = written = 0
    shares = []
    for path in loads[appends:]:
        table = table.refresh()
        before = size_of(table)
        table.append(vl.ndjson(str(path)))
        loaded += size_of(table.refresh()) - before
        done = table.cluster(target_file_size=target)
        written += done.bytes_written
        shares.append(done.read_share_after)
    return {
        "appends": appends,
        "loaded_bytes": loaded,
        "written_bytes": written,
        "amplification": written / loaded,
        "read_share_first": shares[0],
        "read_share_last": shares[-1],
    }


def one_in_forty(folder: Path, rows: int) -> dict[str, Any]:
    """What appending a fortieth of an ordered table rewrites: the model of 1 GB beside 40 GB."""
    loads = make_loads(folder / "forty", rows, 41)
    table = make_table(folder / "grown", loads[:40])
    target = max(1, size_of(table) // 64)
    table.cluster(target_file_size=target)
    table = table.refresh()
    before = size_of(table)
    table.append(vl.ndjson(str(loads[40])))
    loaded = size_of(table.refresh()) - before
    done = table.cluster(target_file_size=target)
    return {
        "table_bytes": before,
        "loaded_bytes": loaded,
        "written_bytes": done.bytes_written,
        "times_the_load": done.bytes_written / loaded,
        "read_share_after": done.read_share_after,
    }


def main() -> None:
    """Run both, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--only", choices=["compare", "appends"])
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="variantlake-bench-"))
    try:
        found: dict[str, Any] = {}
        if given.only != "appends":
            found["compare"] = side_by_side(folder, given.rows)
        if given.only != "compare":
            found["appends"] = amplification(folder, given.rows // 4)
            found["one_in_forty"] = one_in_forty(folder, given.rows // 4)
        print(json.dumps(found, indent=2))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
