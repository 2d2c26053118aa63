"""Time and memory of the commands on one large file.

`python -m benchmarks.large_files make FILE --gigabytes 1` writes it, `python -m
benchmarks.large_files run FILE` reads, checks and prints it, each in a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pyarrow as pa

import variantlake as vl
from benchmarks.events import events
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.parquet.write.file_writer import FileWriter
from variantlake.shredding.arrays import struct_of
from variantlake.shredding.inference.infer import infer
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema

BLOCK = 20_000
"""Events that are made; the file has them again and again, in other orders."""


def make(path: Path, size: int, *, shredded: bool) -> None:
    """Write a file of at least `size` bytes."""
    texts = [vl.parse_json(orjson.dumps(event)) for event in events(BLOCK)]
    column = vl.parquet.variant_array(texts)
    tape = VariantReader().read(column)
    schema = infer(profile(tape)).schema if shredded else ShreddingSchema()
    block = Shredder(schema).shred(tape)
    kind = pa.schema([("id", pa.int64()), ("event", arrow_type(schema))])
    with FileWriter(path, kind, variant_columns=[("event",)]) as writer:
        start = 0
        while path.stat().st_size < size:
            order = pa.array([(i * 7919 + start) % BLOCK for i in range(BLOCK)])
            ids = pa.array(range(start, start + BLOCK), pa.int64())
            rows = struct_of(block).take(order)
            writer.write(pa.record_batch([ids, rows], schema=kind))
            start += BLOCK


def read(path: Path) -> None:
    """Rebuild every row."""
    rows = sum(batch.num_rows for batch in vl.parquet.iter_batches(path))
    print(f"{rows:,} rows", file=sys.stderr)


def check(path: Path) -> None:
    """Hold every row against the specification."""
    print(len(list(vl.parquet.check_file(path))), "findings", file=sys.stderr)


def cat(path: Path) -> None:
    """Print every row as JSON."""
    command = [sys.executable, "-m", "variantlake.cli.main", "cat", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


WORK = {"read": read, "check": check, "cat": cat}


def run(path: Path) -> None:
    """Print seconds, of the clock and of the processor, and peak memory of each work."""
    size = path.stat().st_size
    for name in WORK:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks.large_files", name, str(path)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"{name}: {seconds:.1f} s, {busy:.1f} s of the processor,"
            f" {size / busy / 1e6:.0f} MB/s of the file,"
            f" peak of all so far {after.ru_maxrss * 1024 / 1e6:.0f} MB"
        )


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["make", "run", *WORK])
    parser.add_argument("file", type=Path)
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--unshredded", action="store_true")
    given = parser.parse_args()
    if given.work == "make":
        make(given.file, int(given.gigabytes * 1e9), shredded=not given.unshredded)
    elif given.work == "run":
        run(given.file)
    else:
        WORK[given.work](given.file)


if __name__ == "__main__":
    main()
