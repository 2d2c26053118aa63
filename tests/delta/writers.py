"""Many processes write one table at once: appends, overwrites, checkpoints, cleanups.

`python -m tests.delta.writers` runs 8 × 50 appends on a local disk and on an S3 server, and prints
what it counted. The writers are forked before anything here has begun a thread.
"""

from __future__ import annotations

import argparse
import functools
import io
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import variantlake as vl
from tests import s3_server
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.delta.log.log_segment import all_commits
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import CommitConflict
from variantlake.storage.opening import open_store

OVERWRITTEN = 99
"""The partition that is overwritten; appends go to others."""

OVERWRITERS = 2
PROPERTIES = {"delta.checkpointInterval": "7", "variantlake.shredding.event": "a BIGINT"}


def rows(part: int, numbers: Sequence[int]) -> pa.Table:
    return pa.table(
        {
            "event": [f'{{"a": {n}}}' for n in numbers],
            "n": pa.array(numbers, pa.int64()),
            "part": pa.array([part] * len(numbers), pa.int32()),
        }
    )


def append(location: str, writer: int, count: int) -> None:
    """What one appending process does: `count` appends of one row, each of another number."""
    table = vl.Table.open(location)
    for number in range(count):
        table.append(rows(writer, [1000 * writer + number]), json_columns=["event"])


def overwrite(location: str, writer: int, count: int) -> None:
    """What one overwriting process does; a conflict is answered by trying again."""
    table = vl.Table.open(location)
    for number in range(count):
        data = rows(OVERWRITTEN, [-1000 * writer - number, -1000 * writer - number])
        while True:
            try:
                table.overwrite(data, where={"part": OVERWRITTEN}, json_columns=["event"])
            except CommitConflict:
                time.sleep(random.random() / 20)
            else:
                break


def maintain(location: str, _writer: int, count: int) -> None:
    """What one more process does: checkpoints and cleanups all the time."""
    store = open_store(location)
    for _ in range(count):
        write_checkpoint(store)
        clean_log(store, {})
        time.sleep(0.05)


def create(location: str, _writer: int, _count: int) -> None:
    ddl = "event VARIANT, n BIGINT, part INT"
    vl.Table.create(location, ddl, partition_by=["part"], properties=PROPERTIES)


def in_processes(work: Sequence[tuple[Callable[[str, int, int], None], int, int]], at: str) -> None:
    """Run all of it at once, each in a process of its own."""
    context = multiprocessing.get_context("fork")
    running = [
        context.Process(target=task, args=(at, writer, count)) for task, writer, count in work
    ]
    for process in running:
        process.start()
    for process in running:
        process.join()
    assert [process.exitcode for process in running] == [0] * len(running)


def run(location: str, processes: int, appends: int, overwrites: int) -> str:
    """Run all the writers at once, check what they left, and say what was counted."""
    in_processes([(create, 0, 0)], location)
    started = time.perf_counter()
    in_processes(
        [(append, writer, appends) for writer in range(processes)]
        + [(overwrite, writer, overwrites) for writer in range(1, OVERWRITERS + 1)]
        + [(maintain, 0, overwrites)],
        location,
    )
    seconds = time.perf_counter() - started
    in_processes([(functools.partial(check, processes, overwrites), 0, appends)], location)
    return (
        f"{processes} processes × {appends} appends, {OVERWRITERS} × {overwrites} overwrites: "
        f"no row lost or doubled, versions without a hole, {seconds:.1f} s"
    )


def check(processes: int, overwrites: int, location: str, _writer: int, appends: int) -> None:
    """No row lost or doubled, no version skipped, and the checkpoints say the same as the log."""
    snapshot = Snapshot.read(location)
    store = snapshot.store
    commits = all_commits(store)
    versions = list(commits)
    expected = processes * appends + OVERWRITERS * overwrites + 1
    assert versions == list(range(expected)), f"{len(versions)} of {expected} versions"
    found: Counter[int] = Counter()
    for add in snapshot.add_files():
        data = io.BytesIO(store.read(add.path))
        numbers: list[Any] = pq.ParquetFile(data).read(columns=["n"])["n"].to_pylist()
        found.update(numbers)
    appended = {n: 1 for w in range(processes) for n in range(1000 * w, 1000 * w + appends)}
    assert {n: count for n, count in found.items() if n >= 0} == appended
    left = {n: count for n, count in found.items() if n < 0}
    assert list(left.values()) == [2], f"of all overwrites one is left: {left}"
    names = [entry.path.rpartition("/")[2] for entry in store.list_from("_delta_log")]
    newest = max(int(name[:20]) for name in names if ".checkpoint." in name)
    # Nothing half-written is left, and without the commits that the newest checkpoint covers the
    # table is the same.
    assert not [name for name in names if name.startswith(".")]
    for entry in list(commits.values())[:newest]:
        store.delete(entry.path)
    again = Snapshot.read(location)
    assert again.files.whole().sort_by("path") == snapshot.files.whole().sort_by("path")


def main() -> None:
    """Write one table from many processes on a local disk and on an S3 server; print the counts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=50, help="of each process")
    parser.add_argument("--overwrites", type=int, default=10, help="of each overwriting process")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, s3_server.running():
        # Kernels that are loaded before the fork need not be loaded by each process.
        create(f"{folder}/first", 0, 0)
        append(f"{folder}/first", 0, 1)
        for where, location in [
            ("a local disk", f"{folder}/t"),
            ("an S3 server", f"s3://{s3_server.BUCKET}/t"),
        ]:
            counted = run(location, given.processes, given.appends, given.overwrites)
            sys.stdout.write(f"{where}: {counted}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
