"""Compare refreshes of a typed mirror after 1 % new rows, deletes and a compaction to a rebuild.

`python -m benchmarks.mirror --rows 500000`. CPU time of this process, best of some rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import variantlake as vl
from variantlake.mirroring.mirror import MirrorResult

SELECT = (
    "event:id::bigint AS id, event:kind::string AS kind, event:user.name::string AS name, "
    "event:size::double AS size"
)


def rows(first: int, count: int) -> pa.Table:
    """Documents of about 150 bytes."""
    texts = [
        json.dumps(
            {
                "id": n,
                "kind": f"k{n % 40}",
                "user": {"name": f"user {n % 5000}", "langs": ["de", "en"]},
                "size": n / 7,
                "text": f"some words that nobody asks for, {n}",
            }
        )
        for n in range(first, first + count)
    ]
    return pa.table({"event": texts})


def cpu(work: Callable[[], MirrorResult]) -> tuple[float, MirrorResult]:
    """CPU seconds of a refresh, and its result."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    done = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def main() -> None:
    """Print a line for each kind of refresh."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        table = vl.Table.create(
            Path(scratch) / "t",
            "event VARIANT",
            properties={"delta.enableDeletionVectors": "true"},
        )
        step = max(options.rows // 20, 1)
        for first in range(0, options.rows, step):
            table.append(rows(first, step), json_columns=["event"])
        target = Path(scratch) / "m"
        vl.mirror(table, target, SELECT)
        whole = min(
            cpu(lambda: vl.mirror(table, target, SELECT, rebuild=True))[0]
            for _ in range(options.rounds)
        )
        print(f"rebuild of {options.rows:,} rows: {whole:.3f} s of CPU")
        first = options.rows
        times = []
        for _ in range(options.rounds):
            table.append(rows(first, options.rows // 100), json_columns=["event"])
            first += options.rows // 100
            times.append(cpu(lambda: vl.mirror(table, target))[0])
        print(f"1 % new rows: {min(times):.3f} s, {min(times) / whole:.1%} of a rebuild")
        table.delete("event:id::bigint = 17")
        taken, done = cpu(lambda: vl.mirror(table, target))
        print(
            f"one row deleted: {taken:.3f} s, {taken / whole:.1%}; {done.rows_written:,} rows read"
        )
        table.optimize()
        taken, done = cpu(lambda: vl.mirror(table, target))
        print(f"compaction: {taken:.3f} s, {taken / whole:.1%}; {done.rows_written:,} rows read")


if __name__ == "__main__":
    main()
