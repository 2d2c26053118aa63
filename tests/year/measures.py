"""What a day is measured by, and whether a measure grows without bound."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from tests.simulation.log_files import TABLE
from tests.year.job import Job
from tests.year.metered import (
    DOLLARS_OF_CPU_HOUR,
    DOLLARS_OF_GB_MONTH,
    Meter,
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of each day. `limit` is by which share it may grow in half a year.

    `by_rows` says that it is held against the rows that the table has, `is_cpu` that it is held
    against the CPU time of work that is the same each day: a busy machine is no growth.
    """

    name: str
    title: str
    unit: str
    limit: float
    by_rows: bool = False
    is_cpu: bool = False


MEASURES = (
    Measure("rows", "Rows of the table", "rows", 0.15),
    Measure("table_bytes", "Bytes of the newest version", "bytes", 0.10, by_rows=True),
    Measure("stored_bytes", "Bytes stored", "bytes", 0.10, by_rows=True),
    Measure("files", "Files of the newest version", "files", 0.15),
    Measure("objects", "Objects stored, without the log", "objects", 0.10),
    Measure("log_objects", "Objects of the log", "objects", 0.10),
    Measure("log_bytes", "Bytes of the log", "bytes", 0.10),
    Measure("open_requests", "Requests to open the table", "requests", 0.15),
    Measure("query_requests", "Requests of a query of one day", "requests", 0.15),
    Measure("query_bytes", "Bytes read by that query", "bytes", 0.15),
    Measure("query_ms", "CPU time of that query, cold", "ms", 0.30, is_cpu=True),
    Measure("scan_ms", "CPU time to count by kind, cold", "ms", 0.30, by_rows=True, is_cpu=True),
    Measure("load_requests", "Requests of an hourly load and upkeep", "requests", 0.10),
    Measure("cpu_seconds", "CPU time of a day's job", "s", 0.30, is_cpu=True),
    Measure("dollars", "Cost of a day", "$", 0.25),
)

Day = dict[str, float]


def measured(job: Job, work: Callable[[], None]) -> Day:
    """Do the work of a day, and measure the table after it."""
    job.bucket.meter = meter = Meter()
    began = time.process_time()
    work()
    seconds = time.process_time() - began
    day: Day = {"rows": len(job.rows), "cpu_seconds": seconds, "reference_ms": _reference()}
    day["load_requests"] = meter.count / (job.calendar.loads + 1)
    sizes = job.bucket.sizes(TABLE)
    log = [size for path, size in sizes.items() if "/_delta_log/" in path]
    day["stored_bytes"], day["objects"] = sum(sizes.values()), len(sizes) - len(log)
    day["log_objects"], day["log_bytes"] = len(log), sum(log)
    files = job.restart().files()
    day["files"], day["table_bytes"] = files.num_rows, pc.sum(files["size"]).as_py() or 0
    day |= _asked(job)
    stored = day["stored_bytes"] / 1e9 / 30 * DOLLARS_OF_GB_MONTH
    day["dollars"] = meter.dollars + stored + seconds / 3600 * DOLLARS_OF_CPU_HOUR
    return day


def _reference() -> float:
    """Milliseconds of CPU time that fixed work takes at present, the least of several times."""
    times = []
    for _ in range(5):
        began = time.process_time()
        for number in range(300):
            json.loads(json.dumps({"a": [str(each) for each in range(number % 50)]}))
        times.append(time.process_time() - began)
    return 1000 * min(times)


def _asked(job: Job) -> Day:
    """What a reader pays who opens the table in a new process, and asks for a day or for all."""
    last = max((row["at"] for row, _ in job.rows.values()), default=0)
    where = f"event:at::bigint >= {last - 86_400_000}"
    found: Day = {}
    for name, select, condition in (
        ("query", ["event:id::bigint AS id", "event:v::string AS v"], where),
        ("scan", ["event:kind::string AS kind"], None),
    ):
        times = []
        for _ in range(3):
            job.bucket.meter = meter = Meter()
            began = time.process_time()
            table = job.restart()
            found["open_requests"] = meter.count
            table.scan(select, condition).to_arrow()
            times.append(1000 * (time.process_time() - began))
        found[f"{name}_ms"] = min(times)
        found[f"{name}_requests"], found[f"{name}_bytes"] = meter.count, meter.bytes_read
    return found


def growth(days: Sequence[Day], measure: Measure) -> float:
    """By which share a measure grew in the second half, by the median slope of its weeks.

    What it is held against divides it first. 0 for fewer than four weeks.
    """
    half = days[len(days) // 2 :]
    values = [day[measure.name] / _against(day, measure) for day in half]
    weeks = [statistics.median(values[at : at + 7]) for at in range(0, len(values) - 6, 7)]
    if len(weeks) < 4:
        return 0.0
    pairs = itertools.combinations(enumerate(weeks), 2)
    slope = statistics.median((b - a) / (j - i) for (i, a), (j, b) in pairs)
    return slope * (len(weeks) - 1) / (abs(statistics.median(weeks)) or 1.0)


def _against(day: Day, measure: Measure) -> float:
    rows = max(day["rows"], 1) if measure.by_rows else 1
    return rows * (day.get("reference_ms", 1.0) if measure.is_cpu else 1.0)


def growing(days: Sequence[Day]) -> list[tuple[Measure, float]]:
    """The measures that grew more than they may, and by how much."""
    grown = [(measure, growth(days, measure)) for measure in MEASURES]
    return [(measure, by) for measure, by in grown if by > measure.limit]
