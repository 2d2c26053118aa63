"""Memory follows the batch, not the rows of a row group."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.children import run_measured
from variantlake.encoding.variant import Variant
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.parquet.metadata.annotate import annotate
from variantlake.parquet.read.parquet_source import BATCH_BYTES
from variantlake.parquet.read.reader import iter_batches
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write.file_writer import FileWriter, WriteOptions
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE, arrow_type

ROW_GROUP_BYTES = 24 * BATCH_BYTES

MEASURE = """
import resource, sys
import variantlake as vl
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def rows(batches):
    return sum(batch.num_rows for batch in batches)
def paths(file):
    return rows(vl.parquet.iter_paths(file, {"a": "v:a"}))
def findings(file):
    return len(list(vl.parquet.check_file(file)))
def whole(file):
    return rows(vl.parquet.iter_batches(file))
small, large = sys.argv[1:]
calls = [(paths, 384), (findings, 0), (whole, 384)]
for call, _ in calls:
    call(small)
before = peak()
for call, expected in calls:
    assert call(large) == expected
    print(call.__name__, peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has another unit")
def test_memory_follows_the_batch(tmp_path: Path) -> None:
    """A row group of 24 batches takes the memory of a few.

    At once there may be, with a batch's bytes each: what pyarrow reads, and what it gave before;
    the items under way (`ahead.AHEAD_BYTES`, one batch) as read, as the kernel's block and rebuilt;
    what the caller holds. That makes six. Pages and what the allocator gives back late come on top:
    pyarrow's mimalloc keeps freed memory for a while, more so with several threads. Kernels and
    modules are loaded before by a small file.
    """
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    write(small, 1, times=1)
    write(large, 1_000_000, times=48)
    printed = run_measured(MEASURE, small, large)
    grown = {call: int(peak) for call, peak in map(str.split, printed.splitlines())}
    assert list(grown) == ["paths", "findings", "whole"]
    assert grown["whole"] > BATCH_BYTES / 4
    assert max(grown.values()) < ROW_GROUP_BYTES / 3, grown


def write(path: Path, size: int, *, times: int) -> None:
    """One row group: eight rows of four times `size` bytes, as often as asked."""
    schema = parse_ddl("a STRING")
    # Long texts that differ get no dictionary.
    values = [
        Variant.of({"a": "abcdefgh"[i] * 3 * size, "b": "y" * size, "i": i}) for i in range(8)
    ]
    shredded = Shredder(schema).shred(VariantReader().read(variant_array(values)))
    kind = pa.schema([("v", arrow_type(schema))])
    batch = pa.record_batch([shredded], schema=kind)
    options = WriteOptions(row_group_bytes=2 * ROW_GROUP_BYTES)
    with FileWriter(path, kind, variant_columns=[("v",)], options=options) as writer:
        for _ in range(times):
            writer.write(batch)
    metadata = pq.read_metadata(path)
    assert metadata.num_row_groups == 1
    if times > 1:
        assert metadata.row_group(0).total_byte_size > 0.9 * ROW_GROUP_BYTES


def test_a_dictionary_of_large_values_counts_as_often_as_they_are_used(tmp_path: Path) -> None:
    row = {"metadata": b"\x01\x00\x00", "value": b"\x40" + (1 << 20).to_bytes(4, "little")}
    row["value"] += b"x" * (1 << 20)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"v": pa.array([row] * 200, VARIANT_TYPE)}), path)
    annotate(path, [("v",)])
    assert path.stat().st_size < 1 << 20
    assert max(batch.nbytes for batch in iter_batches(path)) <= BATCH_BYTES
    assert sum(batch.num_rows for batch in iter_batches(path)) == 200
