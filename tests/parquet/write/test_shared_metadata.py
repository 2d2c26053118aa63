"""Metadata that rows share goes into a file as a dictionary; what is read is the same."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.encoding.variant import Variant
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.write.encodings import DICTIONARY_BYTES
from variantlake.parquet.write.file_writer import FileWriter, WriteOptions
from variantlake.parquet.write.shared_metadata import SharedMetadata
from variantlake.shredding.layout import VARIANT_TYPE

SCHEMA = pa.schema([pa.field("v", VARIANT_TYPE, nullable=False), pa.field("n", pa.int64())])
NULLABLE = pa.schema([pa.field("v", VARIANT_TYPE), pa.field("n", pa.int64())])
COLUMNS = [("v",)]


def metadata_of(key: str) -> bytes:
    """Of an object with one key."""
    return Variant.of({key: 1}).metadata


def batch(rows: Sequence[bytes | None], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """A Variant `true` with each metadata, SQL NULL for None."""
    variants = [None if row is None else {"metadata": row, "value": b"\x04"} for row in rows]
    return pa.record_batch([pa.array(variants, VARIANT_TYPE), range(len(rows))], schema=schema)


def written(batches: list[pa.RecordBatch], path: Path, **options: Any) -> pq.ParquetFile:
    with FileWriter(
        path, batches[0].schema, variant_columns=COLUMNS, options=WriteOptions(**options)
    ) as writer:
        for one in batches:
            writer.write(one)
    return pq.ParquetFile(path)


def chunk(file: pq.ParquetFile, group: int = 0) -> Any:
    """The footer's words on the metadata of a row group."""
    found = file.metadata.row_group(group).column(0)
    assert found.path_in_schema == "v.metadata"
    return found


rows = st.one_of(
    # All the same; a few values; one for each row.
    st.tuples(st.sampled_from("abc"), st.integers(1, 40)).map(
        lambda drawn: [metadata_of(drawn[0])] * drawn[1]
    ),
    st.lists(st.sampled_from([b"\x01\x00\x00", metadata_of("k"), metadata_of("long" * 9)])),
    st.integers(1, 30).map(lambda count: [metadata_of(f"key {i}") for i in range(count)]),
)


@settings(max_examples=30 * MORE, deadline=None)
@given(groups=st.lists(rows, min_size=1, max_size=5), most=st.integers(1, 50))
def test_any_metadata_comes_back(groups: list[list[bytes]], most: int) -> None:
    batches = [batch(group) for group in groups]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        written(batches, path, row_group_rows=most)
        assert pq.read_table(path).equals(pa.Table.from_batches(batches, SCHEMA))
        assert read_table(path).equals(pa.Table.from_batches(batches, SCHEMA))


@settings(max_examples=30 * MORE, deadline=None)
@given(groups=st.lists(rows.filter(bool), min_size=1, max_size=4), start=st.integers(0, 9))
def test_sharing_changes_no_row(groups: list[list[bytes]], start: int) -> None:
    batches = [batch(group) for group in groups]
    sliced = [one.slice(min(start, one.num_rows - 1)) for one in batches]
    shared = SharedMetadata(SCHEMA, sliced[0], COLUMNS)
    table = shared.unify(pa.Table.from_batches(map(shared.share, sliced), shared.schema))
    assert table.to_pylist() == pa.Table.from_batches(sliced, SCHEMA).to_pylist()


def test_rows_that_share_it_take_an_index_each() -> None:
    one = batch([metadata_of("k" * 300)] * 1000)
    kept = SharedMetadata(SCHEMA, one, COLUMNS).share(one)
    group: Any = kept.column(0)
    assert group.field("metadata").type == pa.dictionary(pa.int32(), pa.binary())
    assert kept.nbytes < one.nbytes / 5


def test_columns_that_may_be_null_stay_as_they_are(tmp_path: Path) -> None:
    one = batch([metadata_of("a"), None, metadata_of("a")], NULLABLE)
    same = batch([metadata_of("a")] * 3, NULLABLE)
    shared = SharedMetadata(NULLABLE, same, COLUMNS)
    assert shared.share(one) is one
    # pyarrow counts the null row of a Variant only so.
    assert chunk(written([same, one], tmp_path / "x.parquet")).statistics.null_count == 1


def test_batches_of_one_row_group_get_one_dictionary(tmp_path: Path) -> None:
    batches = [batch([metadata_of(key)] * 300) for key in "aabc"]
    found = chunk(written(batches, tmp_path / "x.parquet"))
    assert set(found.encodings) == {"PLAIN", "RLE", "RLE_DICTIONARY"}  # PLAIN is the dictionary's
    assert found.total_uncompressed_size < 1200  # under a byte a row
    assert found.statistics.min == metadata_of("a")
    assert found.statistics.max == metadata_of("c")
    assert found.statistics.null_count == 0


def test_metadata_of_each_row_its_own_is_no_dictionary(tmp_path: Path) -> None:
    one = batch([metadata_of(f"{i:0100}") for i in range(5000)])
    assert SharedMetadata(SCHEMA, one, COLUMNS).schema == SCHEMA
    assert "RLE_DICTIONARY" not in chunk(written([one], tmp_path / "x.parquet")).encodings


def test_a_dictionary_that_would_be_large_is_given_up(tmp_path: Path) -> None:
    size = DICTIONARY_BYTES // 8
    batches = [batch([metadata_of(letter * size)] * 3) for letter in "abcdefghij"]
    path = tmp_path / "x.parquet"
    file = written(batches, path)
    # The first batch's value is the dictionary, all others are as they are.
    assert 27 * size < chunk(file).total_uncompressed_size < 29 * size
    assert read_table(path).equals(pa.Table.from_batches(batches, SCHEMA))


def test_variants_within_structs_stay_as_they_are() -> None:
    inner = pa.struct([pa.field("v", VARIANT_TYPE)])
    rows = pa.array([{"v": {"metadata": b"\x01", "value": b"\x04"}}], inner)
    one = pa.record_batch([rows], schema=pa.schema([pa.field("s", inner, nullable=False)]))
    shared = SharedMetadata(one.schema, one, [("s", "v")])
    assert shared.share(one) is one
    assert shared.schema == one.schema


@pytest.mark.parametrize("keys", [["k", "k"], ["k", "other"]])
def test_columns_keep_their_field_ids(tmp_path: Path, keys: list[str]) -> None:
    """They come with the writer's schema, not with its batches."""
    ids = (b"7", b"8")
    schema = pa.schema(
        [
            field.with_metadata({b"PARQUET:field_id": number})
            for field, number in zip(SCHEMA, ids, strict=True)
        ]
    )
    path = tmp_path / "t.parquet"
    with FileWriter(path, schema, variant_columns=COLUMNS) as writer:
        writer.write(batch([metadata_of(key) for key in keys]))
    assert [node.field_id for node in read_footer(path).schema.children] == [7, 8]
