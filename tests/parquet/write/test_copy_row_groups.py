"""Row groups copied as bytes: every reader gives the rows of the sources, in their order."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parquet import shredded
from tests.shredding.strategies import schemas
from tests.strategies import MORE
from variantlake.encoding.json import parse_json
from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.footer import MAGIC, parse_footer, read_footer, read_tail
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.stats.facts import FileFacts
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write.copy_row_groups import (
    MIN_ROW_GROUP_BYTES,
    CopySource,
    NotMovable,
    copy_row_groups,
    open_source,
    why_not,
)
from variantlake.parquet.write.file_writer import FileWriter, WriteOptions
from variantlake.parquet.write.table_writer import write_table

DDL = "kind STRING, n BIGINT, tags ARRAY<STRING>, at STRUCT<x: INT>"


def joined(folder: File, files: list[File]) -> File:
    target = folder / "joined.parquet"
    copy_row_groups([open_source(file) for file in files], target)
    return target


def documents(start: int, rows: int) -> pa.Table:
    texts = [
        json.dumps({"kind": f"k{i % 5}", "n": i, "tags": ["é"] * (i % 3), "at": {"x": i}, "r": i})
        for i in range(start, start + rows)
    ]
    variants = variant_array([None if i % 11 == 5 else parse_json(t) for i, t in enumerate(texts)])
    return pa.table({"id": pa.array(range(start, start + rows), pa.int64()), "event": variants})


OPTIONS = WriteOptions(row_group_rows=40, page_rows=15, page_bytes=400)


def events(folder: File, count: int = 3, rows: int = 100) -> list[File]:
    files = []
    for number in range(count):
        file = folder / f"{number}.parquet"
        write_table(documents(number * rows, rows), file, shredding=DDL, options=OPTIONS)
        files.append(file)
    return files


def random_table(seed: int, rows: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    none = chance.random(rows) < 0.3
    numbers = chance.integers(-50, 50, rows)
    texts = pa.array([f"text {n}" for n in numbers], pa.string(), mask=none)
    lists = pa.array([None if n < -40 else [int(n)] * (n % 3) for n in numbers.tolist()])
    inner = pa.StructArray.from_arrays(
        [texts, pa.array(numbers / 7)], names=["t", "d"], mask=pa.array(none)
    )
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "text": texts,
            "lists": lists.cast(pa.list_(pa.int64())),
            "inner": inner,
            "maps": pa.array(
                [[(str(n), n)] for n in numbers.tolist()], pa.map_(pa.string(), pa.int64())
            ),
        }
    )


WRITINGS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "gzip", "brotli", "lz4", "zstd"]),
        "use_dictionary": st.booleans(),
        "data_page_size": st.sampled_from([64, 1 << 20]),
        "row_group_size": st.sampled_from([7, 1000]),
        "write_page_index": st.booleans(),
        "write_statistics": st.booleans(),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "write_page_checksum": st.booleans(),
        "store_schema": st.booleans(),
    }
)


@settings(max_examples=15 * MORE)
@given(
    parts=st.lists(
        st.tuples(st.integers(0, 99), st.integers(0, 60), WRITINGS), min_size=1, max_size=4
    ),
    store=st.booleans(),
)
def test_readers_give_the_rows_of_the_sources_in_order(parts: list[Any], store: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = File(name)
        files, tables = [], []
        for number, (seed, rows, writing) in enumerate(parts):
            tables.append(random_table(seed, rows))
            files.append(folder / f"{number}.parquet")
            pq.write_table(tables[-1], files[-1], **(writing | {"store_schema": store}))
        target = joined(folder, files)
        expected = pa.concat_tables(tables)
        assert pq.read_table(target).equals(expected)
        file = pq.ParquetFile(target, page_checksum_verification=True)
        assert file.metadata.num_rows == expected.num_rows
        for group in range(file.metadata.num_row_groups):
            assert file.metadata.row_group(group).num_rows > 0
            file.read_row_group(group)
        filtered = pq.read_table(target, filters=[("id", ">", 10)])
        assert filtered.equals(expected.filter(pc.field("id") > 10))
        with duckdb.connect() as connection:
            found = connection.execute(
                "select count(*), sum(id) from read_parquet(?) where text >= 'text 2'",
                [str(target)],
            ).fetchone()
        kept = expected.filter(pc.field("text") >= "text 2")
        assert found == (kept.num_rows, pc.sum(kept["id"]).as_py())


@settings(max_examples=12 * MORE)
@given(data=st.data(), schema=schemas())
def test_facts_are_those_of_a_file_written_at_once(data: st.DataObject, schema: Any) -> None:
    """With what the log knows of the sources, nothing is less tight than after a fresh write."""
    with tempfile.TemporaryDirectory() as name:
        folder = File(name)
        parts = [data.draw(shredded.rows(schema)) for _ in range(data.draw(st.integers(1, 3)))]

        def written(file: File, batches: list[list[Any]]) -> FileFacts:
            arrays = [shredded.column(schema, rows) for rows in batches]
            kind = pa.schema([pa.field("v", arrays[0].type)])
            with FileWriter(file, kind, variant_columns=[("v",)], options=OPTIONS) as writer:
                for array in arrays:
                    writer.write(pa.RecordBatch.from_arrays([array], schema=kind))
                return writer.close().facts

        sources = []
        for number, rows in enumerate(parts):
            file = folder / f"{number}.parquet"
            facts = written(file, [rows])
            sources.append(open_source(file, facts))
        expected = written(folder / "whole.parquet", parts)
        found = copy_row_groups(sources, folder / "joined.parquet").facts
        assert found.num_records == expected.num_records
        for one, other in zip(found.variants, expected.variants, strict=True):
            assert one.nulls == other.nulls
            for path, fresh in zip(one.paths, other.paths, strict=True):
                assert path == fresh or path == replace(fresh, bounds=path.bounds)
                if path.plain_floats == fresh.plain_floats and fresh.bounds.minimum is not None:
                    assert path.bounds.minimum == fresh.bounds.minimum or isinstance(
                        path.bounds.minimum, str | bytes
                    )


def test_variants_are_read_by_us_and_by_duckdb(tmp_path: File) -> None:
    files = events(tmp_path)
    target = joined(tmp_path, files)
    whole = pa.concat_tables([read_table(file) for file in files])
    assert read_table(target).equals(whole)
    with duckdb.connect() as connection:
        query = "select id, event from read_parquet({}) where id between 95 and 205 order by id"
        new, old = (
            connection.execute(query.format(text)).fetchall()
            for text in (f"'{target}'", "[" + ", ".join(f"'{f}'" for f in files) + "]")
        )
    assert new == old
    assert len(new) == 111


def test_offsets_of_pages_follow_their_chunks(tmp_path: File) -> None:
    """Pages that an offset index names start where a page header does."""
    target = joined(tmp_path, events(tmp_path))
    metadata = pq.ParquetFile(target).metadata
    assert metadata.num_row_groups == 9
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(0)
        assert chunk.has_offset_index
        assert chunk.has_column_index
    footer = read_footer(target)
    assert all(chunk.page_index for group in footer.row_groups for chunk in group.columns)


def test_columns_of_the_files_must_be_the_same(tmp_path: File) -> None:
    first, second = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"a": [1]}), first)
    pq.write_table(pa.table({"b": [1]}), second)
    sources = [open_source(first), open_source(second)]
    assert why_not(sources, small=True) == "their schemas differ"
    with pytest.raises(NotMovable, match="their schemas differ"):
        copy_row_groups(sources, tmp_path / "3.parquet")
    assert not (tmp_path / "3.parquet").exists()


def test_a_file_that_is_there_is_not_touched(tmp_path: File) -> None:
    first, second = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"a": [1]}), first)
    second.write_bytes(b"of another")
    with pytest.raises(FileExistsError):
        copy_row_groups([open_source(first)], second)
    assert second.read_bytes() == b"of another"


def test_ids_of_fields_must_be_the_same(tmp_path: File) -> None:
    sources = []
    for number in (1, 2):
        field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": str(number)})
        file = tmp_path / f"{number}.parquet"
        pq.write_table(
            pa.table([pa.array([1])], schema=pa.schema([field])), file, store_schema=False
        )
        sources.append(open_source(file))
    assert why_not(sources, small=True) == "their schemas differ"


def test_metadata_that_may_change_values_must_be_the_same(tmp_path: File) -> None:
    sources = []
    for number, metadata in enumerate([{}, {"org.apache.spark.legacyDateTime": ""}]):
        file = tmp_path / f"{number}.parquet"
        with pq.ParquetWriter(file, pa.schema([("d", pa.date32())])) as writer:
            writer.write_table(pa.table({"d": pa.array([1], pa.date32())}))
            writer.add_key_value_metadata(metadata)
        sources.append(open_source(file))
    reason = why_not(sources, small=True)
    assert reason is not None
    assert "org.apache.spark.legacyDateTime" in reason


def test_small_row_groups_are_not_copied(tmp_path: File) -> None:
    sources = [open_source(file) for file in events(tmp_path)]
    assert "row groups are small" in str(why_not(sources))
    assert why_not(sources, small=True) is None
    assert sources[0].pages_bytes < MIN_ROW_GROUP_BYTES


def numbers(folder: File, name: str, texts: list[str]) -> CopySource:
    table = pa.table({"v": variant_array([parse_json(f'{{"n": {t}}}') for t in texts])})
    write_table(table, folder / name, shredding="n DECIMAL(9,2)")
    return open_source(folder / name)


def test_integers_are_not_turned_into_decimals(tmp_path: File) -> None:
    integers = numbers(tmp_path, "1.parquet", ["7", "1.25"])
    more = numbers(tmp_path, "2.parquet", ["8", "2.25"])
    decimals = numbers(tmp_path, "3.parquet", ["7.50"])
    assert why_not([integers, more], small=True) is None
    copied = copy_row_groups([integers, more], tmp_path / "joined.parquet")
    assert read_table(copied.path).equals(
        pa.concat_tables([read_table(tmp_path / "1.parquet"), read_table(tmp_path / "2.parquet")])
    )
    # The notes of a file without integers do not tell whether its decimals look like some.
    assert "decimals" in str(why_not([integers, decimals], small=True))
    assert "decimals" in str(why_not([decimals, integers], small=True))


def test_files_without_rows_say_nothing(tmp_path: File) -> None:
    files = events(tmp_path, 2)
    empty = tmp_path / "empty.parquet"
    write_table(documents(0, 0), empty, shredding=DDL, options=OPTIONS)
    for order in ([empty, *files], [files[0], empty, files[1]], [empty, empty]):
        target = tmp_path / "joined.parquet"
        copied = copy_row_groups([open_source(file) for file in order], target)
        assert copied.facts.num_records == sum(file is not empty for file in order) * 100
        assert read_table(target).equals(pa.concat_tables([read_table(file) for file in order]))
        target.unlink()


def with_footer(file: File, change: Any) -> None:
    """Change the undecoded footer of a file."""
    tail = read_tail(file)
    footer = change(tail.footer)
    data = file.read_bytes()[: tail.offset]
    file.write_bytes(data + footer + len(footer).to_bytes(4, "little") + MAGIC)


def test_any_footer_is_copied_right_or_refused(tmp_path: File) -> None:
    """One byte of the footer changed: refused, or what is copied reads as the source does."""
    (good,) = events(tmp_path, 1, 60)
    original = good.read_bytes()
    tail = read_tail(good)
    outcomes = {"refused": 0, "copied": 0}
    for at in range(0, len(tail.footer), 41):
        bad = tmp_path / "bad.parquet"
        changed = bytearray(original)
        changed[tail.offset + at] ^= 1 << at % 7
        bad.write_bytes(changed)
        target = tmp_path / "out.parquet"
        try:
            copy_row_groups([open_source(bad)], target)
        except (NotMovable, MalformedFile):
            outcomes["refused"] += 1
            assert not target.exists()
            continue
        outcomes["copied"] += 1
        try:
            expected = read_table(bad)
        except MalformedFile:
            pass
        else:
            assert read_table(target).equals(expected)
        target.unlink()
    assert min(outcomes.values()) > 0


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("encryption", lambda footer: footer[:-1] + b"\x1c\x1c\x00\x00\x00"),
        ("is unknown", lambda footer: footer[:-1] + b"\x86\x02\x00"),
    ],
)
def test_unknown_fields_are_refused(tmp_path: File, reason: str, change: Any) -> None:
    (file,) = events(tmp_path, 1)
    with_footer(file, change)
    parse_footer(read_tail(file).footer)
    with pytest.raises(NotMovable, match=reason):
        open_source(file)


def test_a_damaged_page_is_not_copied(tmp_path: File) -> None:
    (file,) = events(tmp_path, 1)
    data = bytearray(file.read_bytes())
    data[4:20] = bytes(16)
    file.write_bytes(data)
    with pytest.raises(MalformedFile) as raised:
        copy_row_groups([open_source(file)], tmp_path / "out.parquet")
    assert raised.value.file == str(file)
    assert not (tmp_path / "out.parquet").exists()


def test_bloom_filters_are_copied(tmp_path: File) -> None:
    """Written by DuckDB, which asks them before it reads a row group."""
    files = []
    with duckdb.connect() as connection:
        for number in range(3):
            files.append(tmp_path / f"{number}.parquet")
            connection.execute(
                f"copy (select 'k' || (range % 10 + {number * 10}) as k, range as n"
                f" from range(5000)) to '{files[-1]}' (format parquet, row_group_size 2048)"
            )
        target = joined(tmp_path, files)
        metadata = pq.ParquetFile(target).metadata
        assert metadata.num_rows == 15000
        probe = "select distinct file_name, row_group_id, bloom_filter_excludes from"
        rows = connection.execute(f"{probe} parquet_bloom_probe('{target}', 'k', 'k25')").fetchall()
        assert [excluded for *_, excluded in sorted(rows)] == [True] * 6 + [False] * 3
        found = connection.execute(f"select count(*) from '{target}' where k = 'k25'").fetchone()
        assert found == (500,)


@pytest.mark.spark
def test_spark_reads_a_copy_with_its_page_index(tmp_path: File, spark: Any) -> None:
    files = events(tmp_path, 3, 200)
    target = joined(tmp_path, files)
    whole, copied = (spark.read.parquet(*map(str, each)) for each in (files, [target]))
    for condition in ("id = 333", "id between 190 and 410", "true"):
        rows = [
            frame.where(condition)
            .selectExpr("id", "to_json(event) as event")
            .orderBy("id")
            .collect()
            for frame in (whole, copied)
        ]
        assert rows[0] == rows[1]
        assert rows[0]
