"""Writers, compactions and a delete change one table at once, each in a process of its own.

`python -m tests.maintenance.races` does so on a local disk and on an S3 server and prints what it
counted. Rows are numbered: none may be lost, doubled or come back after its delete.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import variantlake as vl
from tests import s3_server
from tests.delta.writers import in_processes
from variantlake.errors import CommitConflict

WRITERS, COMPACTIONS = 4, 2
ROWS = 20
"""Rows of one append."""

DELETED = "event:a::bigint >= 0 AND event:a::bigint IN ({})"
VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
KINDS = {"with deletion vectors and row tracking": VECTORS, "rewriting files": {}}


@dataclass(frozen=True, slots=True)
class Counts:
    """What the processes share: writers that are not done, and rows that were deleted."""

    writing: Any
    deleted: Any

    @classmethod
    def of_writers(cls) -> Counts:
        context = multiprocessing.get_context("fork")
        return cls(context.Value("i", WRITERS), context.Value("i", 0))


def create(properties: dict[str, str], location: str, _number: int, _count: int) -> None:
    vl.Table.create(location, "event VARIANT, n BIGINT", properties=properties)
    append(Counts.of_writers(), location, WRITERS, 1)  # its schema is that of the table


def numbers_of(writer: int, appends: int) -> range:
    return range(writer * 100_000, writer * 100_000 + appends * ROWS)


def append(counts: Counts, location: str, writer: int, appends: int) -> None:
    table = vl.Table.open(location)
    numbers = numbers_of(writer, appends)
    for number in range(appends):
        some = list(numbers[number * ROWS : (number + 1) * ROWS])
        rows = {"event": [f'{{"a": {n}, "s": "x{n % 7}"}}' for n in some], "n": some}
        table.append(pa.table(rows), json_columns=["event"])
    with counts.writing.get_lock():
        counts.writing.value -= 1


def while_others_write(counts: Counts) -> Iterator[None]:
    """Turns until the writers are done, and one more."""
    while counts.writing.value > 0:
        yield
        time.sleep(random.random() / 20)
    yield


def compact(counts: Counts, location: str, number: int, _count: int) -> None:
    """One process joins files, the other gives them another layout as well."""
    for _ in while_others_write(counts):
        table = vl.Table.open(location)
        with contextlib.suppress(CommitConflict):  # ten attempts were not enough
            table.optimize()
            if number == 1:
                table.refresh().reshred("a BIGINT" if random.random() < 0.5 else "s STRING")


def delete(counts: Counts, location: str, _number: int, _count: int) -> None:
    """Delete every fifth row of those that are there, a few at a time."""
    for _ in while_others_write(counts):
        table = vl.Table.open(location)
        found = [n for n in read_numbers(table) if n % 5 == 0]
        for some in (found[i : i + 15] for i in range(0, len(found), 15)):
            with contextlib.suppress(CommitConflict):
                done = table.delete(DELETED.format(", ".join(map(str, some))))
                with counts.deleted.get_lock():
                    counts.deleted.value += done.rows_deleted


def read_numbers(table: vl.Table) -> list[int]:
    numbers: list[Any] = table.refresh().scan("n").to_arrow()["n"].to_pylist()
    return numbers


def check(counts: Counts, location: str, _number: int, appends: int) -> None:
    """Each row is there once, by column and by Variant; each compaction kept what it read."""
    delete(counts, location, 0, 0)  # what came after the last turn
    table = vl.Table.open(location)
    written = [n for writer in range(WRITERS) for n in numbers_of(writer, appends)]
    written += numbers_of(WRITERS, 1)
    kept = [n for n in written if n % 5]
    rows = table.scan(["n", "event:a::bigint AS a", "event:s::string AS s"]).to_arrow().to_pylist()
    assert Counter(row["n"] for row in rows) == Counter(kept)
    assert all(row["a"] == row["n"] and row["s"] == f"x{row['n'] % 7}" for row in rows)
    # A row that came back would have been deleted twice.
    assert counts.deleted.value == len(written) - len(kept)
    history = table.history()
    rewrites = [each.version for each in history if each.operation in ("OPTIMIZE", "REORG")]
    for version in random.sample(rewrites, min(len(rewrites), 12)):
        compared = table.check_rewrite(version - 1, version)
        assert compared.equal, f"version {version}: {compared.differences}"
    assert rewrites


def run(location: str, properties: dict[str, str], appends: int) -> str:
    """All of them at once, then the check; what was counted."""
    counts = Counts.of_writers()
    in_processes([(functools.partial(create, properties), 0, 0)], location)
    started = time.perf_counter()
    in_processes(
        [(functools.partial(append, counts), writer, appends) for writer in range(WRITERS)]
        + [(functools.partial(compact, counts), number, 0) for number in range(COMPACTIONS)]
        + [(functools.partial(delete, counts), 0, 0)],
        location,
    )
    seconds = time.perf_counter() - started
    in_processes([(functools.partial(check, counts), 0, appends)], location)
    return (
        f"{WRITERS} writers × {appends} appends, {COMPACTIONS} compactions, 1 delete at once: "
        f"0 rows lost or doubled, {counts.deleted.value} deleted once, {seconds:.1f} s"
    )


def main() -> None:
    """Run all kinds of tables on a local disk and on an S3 server; print the counts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--appends", type=int, default=25, help="of each writer")
    parser.add_argument("--disk-only", action="store_true", help="leave out the S3 server")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        places = {"a local disk": folder}
        if not given.disk_only:
            stack.enter_context(s3_server.running())
            places["an S3 server"] = f"s3://{s3_server.BUCKET}"
        # Kernels that are loaded before the fork need not be loaded by each process.
        create({}, f"{folder}/first", 0, 0)
        for where, root in places.items():
            for number, (kind, properties) in enumerate(KINDS.items()):
                counted = run(f"{root}/t{number}", properties, given.appends)
                sys.stdout.write(f"{where}, {kind}: {counted}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
