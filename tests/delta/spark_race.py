"""Delta Spark and we commit the same version at the same instant, again and again, on a local disk.

Delta Spark's local log store looks whether a version exists, writes a temporary file and renames
it. A plain rename overwrites what another writer committed in between; with Hive's packages on its
class path, as PySpark has them, the rename looks once more. Here our commit comes just then: it is
held until Delta Spark's temporary file is there. `python -m tests.delta.spark_race` runs many
rounds and prints what became of our commits: none may be lost without a word.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.engines import spark_session

import variantlake as vl
from variantlake.delta.log.log_segment import all_commits
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import CommitLost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(slots=True)
class Outcome:
    """Numbers of rows by what became of the commit that wrote them."""

    ours: set[int] = field(default_factory=set)
    theirs: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    found: set[int] = field(default_factory=set)
    together: int = 0
    """Commits of ours that came while Delta Spark was writing the same version."""

    def __str__(self) -> str:
        return (
            f"of {len(self.ours) + len(self.lost)} commits of ours, {self.together} of them while "
            f"Delta Spark was writing the same version, {len(self.ours)} stand and "
            f"{len(self.lost)} were overwritten and raised CommitLost; of Delta Spark "
            f"{len(self.theirs)} stand; {len((self.ours | self.theirs) - self.found)} were lost "
            f"without a word, {len(self.lost & self.found)} were there after all"
        )


def race(spark: SparkSession, root: Path, rounds: int, *, hold: bool) -> Outcome:
    """Append a row each, at once, `rounds` times; `hold` our commits until theirs are under way."""
    properties = {"delta.checkpointInterval": "5"}
    vl.Table.create(
        root, "event VARIANT, n BIGINT", properties=properties, shredding={"event": "a BIGINT"}
    )
    outcome = Outcome()
    if hold:
        # Their commit takes a while to be written.
        spark.conf.set(USER_METADATA, "x" * (4 << 20))

    def theirs(number: int) -> None:
        values = f"SELECT parse_json('1'), {-number}L"
        spark.sql(f"INSERT INTO delta.`{root}` {values}")
        outcome.theirs.add(-number)

    for number in range(1, rounds + 1):
        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(theirs, number)
            try:
                with held(outcome) if hold else contextlib.nullcontext():
                    rows = pa.table({"event": ["1"], "n": pa.array([number], pa.int64())})
                    vl.Table.open(root).append(rows, json_columns=["event"])
                outcome.ours.add(number)
            except CommitLost:
                outcome.lost.add(number)
            beside.result()
        try:
            vl.Table.open(root)
        except CommitLost:  # overwritten after it was read back
            outcome.ours.remove(number)
            outcome.lost.add(number)
    spark.conf.unset(USER_METADATA)
    snapshot = Snapshot.read(root)
    versions = list(all_commits(snapshot.store))
    assert versions == list(range(len(versions))), "versions without a hole"
    for add in snapshot.add_files():
        found: list[Any] = pq.read_table(root / add.path, columns=["n"])["n"].to_pylist()
        outcome.found.update(found)
    return outcome


@contextlib.contextmanager
def held(outcome: Outcome) -> Iterator[None]:
    """Within it the first commit of this thread comes when Delta Spark is writing the same one."""
    link, ours, held = os.link, threading.get_ident(), threading.Event()

    def late(source: Path, target: Path) -> None:
        if threading.get_ident() == ours and target.suffix == ".json" and not held.is_set():
            held.set()
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not _is_coming(target):
                time.sleep(0.0002)
            outcome.together += not target.exists()
        link(source, target)

    with patch.object(os, "link", late):
        yield


def _is_coming(target: Path) -> bool:
    prefix = f".{target.name}."
    names = [path.name for path in target.parent.iterdir()]
    return target.name in names or any(name.startswith(prefix) and "-" in name for name in names)


def main() -> None:
    """Race Delta Spark and print the counts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    spark = spark_session(memory="1g")
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")
    spark.sparkContext.setLogLevel("ERROR")
    for hold, how in ((True, "at the same instant"), (False, "whenever it comes")):
        with tempfile.TemporaryDirectory() as folder:
            outcome = race(spark, Path(folder) / "t", rounds, hold=hold)
        sys.stdout.write(f"{how}: {outcome}\n")
        assert outcome.ours | outcome.theirs == outcome.found
    spark.stop()


if __name__ == "__main__":
    main()
