"""Memory follows the batch, not the rows of a row group."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.corpora import REPOSITORY
from variantlake.encoding.variant import Variant
from variantlake.kernels.shredder import Shredder
from variantlake.kernels.variant_reader import VariantReader
from variantlake.parquet.annotate import annotate
from variantlake.parquet.read import BATCH_BYTES, iter_batches
from variantlake.parquet.variant_arrays import variant_array
from variantlake.parquet.write import FileWriter, WriteOptions
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE, arrow_type

MEASURE = """
import resource, sys
import variantlake as vl
vl.parquet.check_file, vl.parquet.iter_batches, vl.parquet.iter_paths
file = sys.argv[1]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
assert sum(batch.num_rows for batch in vl.parquet.iter_batches(file)) == 192
assert sum(batch.num_rows for batch in vl.parquet.iter_paths(file, {"a": "v:a"})) == 192
assert list(vl.parquet.check_file(file)) == []
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has another unit")
def test_memory_follows_the_batch(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    write(file)
    done = subprocess.run(
        # A process begins with the peak of the one that it is made of: a small shell, not pytest.
        ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", MEASURE, str(file)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert BATCH_BYTES / 4 < int(done.stdout) < 6 * BATCH_BYTES


def write(path: Path) -> None:
    """One row group of 768 MB, of rows that take 4 MB each."""
    schema = parse_ddl("a STRING")
    values = [Variant.of({"a": "x" * 3_000_000, "b": "y" * 1_000_000, "i": i}) for i in range(8)]
    shredded = Shredder(schema).shred(VariantReader().read(variant_array(values)))
    kind = pa.schema([("v", arrow_type(schema))])
    batch = pa.record_batch([shredded], schema=kind)
    options = WriteOptions(row_group_bytes=1 << 30)
    with FileWriter(path, kind, variant_columns=[("v",)], options=options) as writer:
        for _ in range(24):
            writer.write(batch)
    assert pq.read_metadata(path).num_row_groups == 1


def test_a_dictionary_of_large_values_counts_as_often_as_they_are_used(tmp_path: Path) -> None:
    row = {"metadata": b"\x01\x00\x00", "value": b"\x40" + (1 << 20).to_bytes(4, "little")}
    row["value"] += b"x" * (1 << 20)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"v": pa.array([row] * 200, VARIANT_TYPE)}), path)
    annotate(path, [("v",)])
    assert path.stat().st_size < 1 << 20
    assert max(batch.nbytes for batch in iter_batches(path)) <= BATCH_BYTES
    assert sum(batch.num_rows for batch in iter_batches(path)) == 200
