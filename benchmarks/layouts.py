"""How fast columns of the older layout are rebuilt and converted, beside those of the final one.

    python -m benchmarks.layouts [EVENTS]

MB of JSON text a second on one core, best of several runs; the files are on a local disk and warm.
`wide` is events shredded into all that they hold, `narrow` into one path: the rest is in residuals.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa

import variantlake as vl
from benchmarks.documents import event_documents
from benchmarks.kernels import EVENTS
from variantlake.parquet.read.reader import iter_batches
from variantlake.parquet.write.table_writer import write_table
from variantlake.shredding.ddl import parse_ddl

RUNS = 5
SCHEMAS = {"wide": EVENTS, "narrow": parse_ddl("kind STRING")}
LAYOUTS: tuple[Literal["final", "legacy"], ...] = ("final", "legacy")


def best(run: Callable[[int], object]) -> float:
    """Seconds of the fastest run; each gets its number, the first is not counted."""
    seconds = []
    for number in range(RUNS + 1):
        start = time.perf_counter()
        run(number)
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def rebuild(file: Path) -> None:
    """Read all rows, as Variants."""
    for _ in iter_batches(file):
        pass


def measure(count: int) -> None:
    """Print the table."""
    documents = list(event_documents(count))
    size = sum(map(len, documents))
    table = pa.table({"v": vl.parquet.variant_array(map(vl.parse_json, documents))})
    sys.stdout.write(f"{'':30}{'final':>10}{'legacy':>10}\n")
    with tempfile.TemporaryDirectory() as folder:
        for name, schema in SCHEMAS.items():
            files = {layout: Path(folder) / f"{name}-{layout}.parquet" for layout in LAYOUTS}
            for layout, file in files.items():
                write_table(table, file, shredding=schema, layout=layout)

            def convert(file: Path, number: int) -> None:
                vl.convert(file, file.with_suffix(f".{number}"), rewrite=True)

            jobs: dict[str, Callable[[Path, int], object]] = {
                "rebuild": lambda file, _: rebuild(file),
                "convert to a table": convert,
            }
            for job, run in jobs.items():
                found = [size / 1e6 / best(partial(run, file)) for file in files.values()]
                cells = "".join(f"{speed:10.0f}" for speed in found)
                sys.stdout.write(f"{name + ': ' + job:30}{cells}\n")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
