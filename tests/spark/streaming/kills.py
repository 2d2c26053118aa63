"""A stream whose driver is killed at random: each document is in the table exactly once.

`python -m tests.spark.streaming.kills --kills 6 --seed 1`: a driver reads files of a folder, one a
batch, into a table, by `format("variantlake")` or by `lake.write_batch`. By turns it is killed with
its JVM and its workers, told to end (SIGTERM), and killed alone, which leaves its JVM to itself. It
is started again at once with its checkpoint. At the end all documents are counted.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import variantlake as vl

FILES = 40
DOCUMENTS = 25
STARTS = 300.0
"""Seconds in which a driver must have begun to write; else something else is wrong."""

DRIVER = """
import signal
import sys
import threading
from pyspark.sql import SparkSession
import variantlake as vl

source, table, checkpoint, way = sys.argv[1:]
told = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: told.set())
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.pyspark.python", sys.executable).getOrCreate()
)
lake = vl.spark.connect(spark)
vl.spark.register(spark)
frame = spark.readStream.option("maxFilesPerTrigger", 1).text(source).selectExpr("value AS event")
if way == "sink":
    writer = frame.writeStream.format("variantlake")
    writer = writer.option("jsonColumns", "event").option("path", table)
else:
    def take(batch, number):
        lake.write_batch(batch, number, table, json_columns=["event"])
    writer = frame.writeStream.foreachBatch(take)
writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
query = writer.start()
while not told.is_set() and not query.awaitTermination(1):
    pass
query.stop()
"""


def start(folder: Path, way: str) -> subprocess.Popen[bytes]:
    """A driver, in a process group of its own."""
    paths = [str(folder / name) for name in ("in", "t", "c")]
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *paths, way],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "stderr").open("ab"),
        start_new_session=True,
    )


def kill_all(driver: subprocess.Popen[bytes]) -> None:
    """Kill a driver, its JVM and its workers, as far as they are there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)


def check_ended(folder: Path, driver: subprocess.Popen[bytes]) -> None:
    """A driver that was told to end ends in peace."""
    code = driver.wait(timeout=60)
    if code:
        kill_all(driver)
        sys.exit(f"SIGTERM: exit code {code}\n{(folder / 'stderr').read_text()[-3000:]}")


def batches(folder: Path) -> int:
    """How many commits the table has."""
    return len(list((folder / "t/_delta_log").glob("*.json")))


def run(folder: Path, way: str, kills: int, chance: random.Random) -> int:
    """Load all files while the driver is killed; the kills that hit it at work."""
    for number in range(FILES):
        (folder / "in").mkdir(exist_ok=True)
        documents = range(number * DOCUMENTS, (number + 1) * DOCUMENTS)
        text = "".join(json.dumps({"id": each}) + "\n" for each in documents)
        (folder / "in" / f"{number:03}").write_text(text)
    hits = 0
    drivers = []
    for number in range(kills):
        driver = start(folder, way)
        drivers.append(driver)
        before, until = batches(folder), time.monotonic() + STARTS
        while driver.poll() is None and batches(folder) == before and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 1.5))
        hits += driver.poll() is None
        if number % 3 == 0:
            kill_all(driver)
        elif number % 3 == 1:
            driver.terminate()
            check_ended(folder, driver)
        else:
            driver.kill()
        driver.wait()
    for driver in drivers:
        kill_all(driver)
    if start(folder, way).wait(timeout=600):
        sys.exit((folder / "stderr").read_text()[-3000:])
    return hits


def main() -> None:
    """Run both ways; print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    for way in ("sink", "foreachBatch"):
        with tempfile.TemporaryDirectory() as scratch:
            hits = run(Path(scratch), way, given.kills, random.Random(given.seed))
            rows = vl.Table.open(Path(scratch, "t")).scan(select="event:id::int AS id").to_arrow()
            counts = collections.Counter(rows["id"].to_pylist())
            once = sum(count == 1 for count in counts.values())
            sys.stdout.write(
                f"{way}: {hits} kills of a driver at work (seed {given.seed}): {once} of "
                f"{FILES * DOCUMENTS} documents are there once, {rows.num_rows} rows\n"
            )
            if not once == rows.num_rows == FILES * DOCUMENTS:
                sys.exit(1)


if __name__ == "__main__":
    main()
