"""What a large shared key dictionary costs a reader: Spark's `variant_get` on unshredded rows.

    python -m benchmarks.dictionaries [--rows 300000] [--rounds 5]

All rows of a file hold the same ten small fields; only the dictionary that they share grows. It
says where the bound of `kernels/tape/dictionary.py` should lie.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.engines import spark_session
from benchmarks.report import in_turns, table, timed
from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.scalar import integer
from variantlake.encoding.tree import encode_value
from variantlake.parquet.metadata.annotate import annotate

FIELDS = 10
KEY = "some_key_{:05d}"
SIZES = (0, 1, 2, 4, 8, 16, 64)
"""Kilobytes of the dictionary; zero is the rows' own ten keys."""


def metadata_of(kilobytes: int) -> bytes:
    """A sorted dictionary of about that size which begins with the rows' keys."""
    keys = [KEY.format(number) for number in range(FIELDS)]
    while len(encode_metadata(keys)) < kilobytes * 1024:
        keys.extend(KEY.format(len(keys) + more) for more in range(FIELDS))
    return encode_metadata(keys)


def write(file: Path, rows: int, metadata: bytes) -> None:
    """An unshredded column `event`; every page holds the metadata once, as its dictionary."""
    ids = {KEY.format(number): number for number in range(FIELDS)}
    values = [
        encode_value({key: integer(row * number) for key, number in ids.items()}, ids)
        for row in range(1000)
    ]
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([metadata]))
    column = pa.StructArray.from_arrays(
        [shared, pa.array(values * (rows // 1000), pa.binary())],
        fields=[
            pa.field("metadata", shared.type, nullable=False),
            pa.field("value", pa.binary(), nullable=False),
        ],
    )
    pq.write_table(pa.table({"event": column}), file, store_schema=False)
    annotate(file, [("event",)])


def by_spark(spark: SparkSession, query: str) -> None:
    """Run a query to its end."""
    spark.sql(query).collect()


def measure(spark: SparkSession, rows: int, rounds: int, folder: Path) -> list[list[str]]:
    """Rows of the table: the dictionary's size, Spark's seconds, DuckDB's."""
    requested = f"$.{KEY.format(5)}"
    lines = []
    for kilobytes in SIZES:
        metadata = metadata_of(kilobytes)
        file = folder / f"{kilobytes}.parquet"
        write(file, rows, metadata)
        # Made anew each time: a frame that was collected keeps what its aggregate shuffled.
        judge = f"SELECT sum(variant_get(event, '{requested}', 'bigint')) FROM parquet.`{file}`"
        peer = f"SELECT sum(event.{KEY.format(5)}::BIGINT) FROM '{file}'"
        ways: dict[str, Callable[[], float]] = {
            "spark": partial(timed, partial(by_spark, spark, judge)),
            "duckdb": partial(timed, partial(duckdb.execute, peer)),
        }
        times = in_turns(rounds, ways)
        cells = [time.text() for time in times.values()]
        lines.append([f"{len(metadata):,} bytes", *cells])
        print(*lines[-1], sep=" | ", flush=True)
    return lines


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=300_000, help="a multiple of 1,000")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = measure(spark_session(), options.rows, options.rounds, Path(folder))
    head = ["dictionary", "Spark 4.2: variant_get", "DuckDB 2.0.0: a field"]
    print(table(head, lines))


if __name__ == "__main__":
    main()
