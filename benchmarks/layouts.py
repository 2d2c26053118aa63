"""Measure reads and conversions of columns in the older layout, compared with the final one.

    python -m benchmarks.layouts [EVENTS]

MB of JSON text a second on one core, best of several runs; the files are on a local disk and warm.
`wide` is events shredded into all that they hold, `narrow` into one path: the rest is in residuals.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa

import variantlake as vl
from benchmarks.documents import event_documents
from benchmarks.kernels import EVENTS
from benchmarks.report import best
from variantlake.parquet.read.reader import iter_batches
from variantlake.parquet.write.table_writer import write_table
from variantlake.shredding.ddl import parse_ddl

RUNS = 5
SCHEMAS = {"wide": EVENTS, "narrow": parse_ddl("kind STRING")}
LAYOUTS: tuple[Literal["final", "legacy"], ...] = ("final", "legacy")


def rebuild(file: Path) -> None:
    """Read all rows, as Variants."""
    for _ in iter_batches(file):
        pass


def convert(file: Path) -> None:
    """Convert it to a new table."""
    vl.convert(tempfile.mkdtemp(dir=file.parent), file, rewrite=True)


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

            jobs: dict[str, Callable[[Path], object]] = {
                "rebuild": rebuild,
                "convert to a table": convert,
            }
            for job, run in jobs.items():
                found = []
                for file in files.values():
                    run(file)  # the first is not counted
                    found.append(size / 1e6 / best(partial(run, file), RUNS))
                cells = "".join(f"{speed:10.0f}" for speed in found)
                sys.stdout.write(f"{name + ': ' + job:30}{cells}\n")


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
