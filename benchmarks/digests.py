"""What the digest of rows costs, beside the column-wise rewrite that it proves.

    python -m benchmarks.digests [--count 200000] [--rounds 3]

Events are loaded as shredded Parquet; then, in one process and one thread, in turns: read the
physical columns, write them as a new file, hash what was read, and read and hash the new file.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import variantlake as vl
from benchmarks import documents
from benchmarks.report import table
from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.digest import DigestFile, FileDigester, RowDigester
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.read.parquet_source import BATCH_ROWS, open_parquet
from variantlake.parquet.write.copy_row_groups import copy_row_groups, open_source
from variantlake.parquet.write.file_writer import FileWriter


def batches(file: str) -> Iterator[pa.RecordBatch]:
    """The physical columns of a file, as a column-wise rewrite reads them."""
    footer = read_footer(file)
    source = open_parquet(file, file, footer)
    leaves = list(range(len(footer.leaves)))
    for number in range(len(footer.row_groups)):
        yield from source.batches(number, leaves, BATCH_ROWS)


def rewrite(file: str, target: Path, hashed: Callable[[pa.RecordBatch], Any] | None) -> None:
    """Read a file's columns and write them anew."""
    writer = None
    for batch in batches(file):
        if hashed is not None:
            hashed(batch)
        if writer is None:
            schema = pa.schema(batch.schema.remove_metadata())
            writer = FileWriter(target, schema, variant_columns=[("event",)])
        writer.write(batch.replace_schema_metadata(None))
    if writer is not None:
        writer.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents.write("events", folder / "events.ndjson", options.count)
        vl.Table.create(folder / "table", "event VARIANT")
        vl.Table.open(folder / "table").append(vl.ndjson(folder / "events.ndjson"))
        snapshot = Snapshot.read(folder / "table")
        (add, *_) = snapshot.add_files()
        file = snapshot.location(add.path)
        digester = RowDigester(snapshot)
        columns = digester.columns_of(read_footer(file), by_id=False)
        target = folder / "new.parquet"

        def hashed(batch: pa.RecordBatch) -> object:
            return digester.hashes(columns, batch, {})

        def read() -> None:
            for _ in batches(file):
                pass

        def hash_all() -> None:
            for batch in kept:
                hashed(batch)

        def copy() -> None:
            target.unlink(missing_ok=True)
            copy_row_groups([open_source(file)], target)

        kept = list(batches(file))
        steps: dict[str, Callable[[], object]] = {
            "read the columns": read,
            "rewrite (read and write)": lambda: rewrite(file, target, None),
            "hash what was read": hash_all,
            "read and hash a file": lambda: FileDigester(snapshot).digest(
                DigestFile(file, None, {})
            ),
            "copy row groups as bytes, compared": copy,
        }
        best = dict.fromkeys(steps, float("inf"))
        for _ in range(options.rounds):
            for step, action in steps.items():
                start = time.process_time()
                action()
                best[step] = min(best[step], time.process_time() - start)
        whole = best["rewrite (read and write)"]
        print(f"{options.count:,} events, {add.size / 1e6:.0f} MB of Parquet, one thread")
        rows = [[k, f"{v:.3f} s", f"{100 * v / whole:.1f} %"] for k, v in best.items()]
        print(table(["step", "processor time", "of the rewrite"], rows))


if __name__ == "__main__":
    main()
