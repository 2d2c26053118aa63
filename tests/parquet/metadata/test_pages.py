"""Page headers that do not fit their footer are refused before pyarrow believes them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import corpora
from tests.parquet.write.test_table_writer import of
from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.footer import Footer, RowGroup, read_footer
from variantlake.parquet.metadata.pages import MAX_FREE_VALUES, check_pages, pages_are_usual
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.write.table_writer import write_table

CASE_045 = corpora.SHREDDED_VARIANT / "case-045.parquet"


def varint(number: int) -> bytes:
    """Zigzag LEB128."""
    number = number << 1 ^ number >> 63
    result = b""
    while number > 0x7F:
        result += bytes([number & 0x7F | 0x80])
        number >>= 7
    return result + bytes([number])


def page(values: int, data: bytes = b"abcd", *, kind: int = 0, size: int | None = None) -> bytes:
    """A page: its header with type, sizes and the struct that counts its values."""
    sizes = b"".join(b"\x15" + varint(len(data) if size is None else size) for _ in range(2))
    # The struct is field 5, 7 or 8 of the header; the last field was 3.
    struct = {0: b"\x2c", 2: b"\x4c", 3: b"\x5c"}[kind]
    return b"\x15" + varint(kind) + sizes + struct + b"\x15" + varint(values) + b"\x00\x00" + data


def check(data: bytes, *, values: int, rows: int | None) -> None:
    """Check pages of a column; within a list when `rows` is None."""
    kind = pa.field("c", pa.int32() if rows is not None else pa.list_(pa.int32()))
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": [None]}, pa.schema([kind])), sink)
    footer = read_footer(sink)
    chunk = replace(
        footer.row_groups[0].columns[0], first_page=0, compressed_size=len(data), num_values=values
    )
    group = replace(footer.row_groups[0], num_rows=1 if rows is None else rows)
    group = replace(group, columns=(chunk,))
    at_once = pages_are_usual(data or b"\0", footer.leaves, group, [0])
    if at_once >= 0:  # else the plain twin decides
        read_at = lambda n, offset: data[offset : offset + n]
        assert at_once == check_pages(read_at, footer.leaves[0], chunk, group)
        return
    check_pages(lambda n, offset: data[offset : offset + n], footer.leaves[0], chunk, group)
    pytest.fail("the kernel finds the usual unusual")


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_real_files_at_once(version: Any, *, index: bool) -> None:
    """The kernel gives what the plain reader gives, and takes no changed byte for granted."""
    texts = [None, "a", "b"] * 50
    columns = {"n": list(range(150)), "s": texts, "l": [[1, 2], None, []] * 50}
    sink = io.BytesIO()
    pq.write_table(
        pa.table(columns),
        sink,
        row_group_size=60,
        write_page_index=index,
        data_page_version=version,
    )
    footer, data = read_footer(sink), sink.getvalue()
    random = Random(7)
    for changed in [data, *(_changed(data, random) for _ in range(300))]:
        for group in footer.row_groups:
            found = pages_are_usual(changed, footer.leaves, group, [0, 1, 2])
            plain = _plainly(changed, footer, group)
            assert found in (plain, -1)
            assert found == plain or changed is not data


def _changed(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) // 2)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _plainly(data: bytes, footer: Footer, group: RowGroup) -> int:
    read_at = lambda n, offset: data[offset : offset + n]
    try:
        return sum(
            check_pages(read_at, leaf, chunk, group)
            for leaf, chunk in zip(footer.leaves, group.columns, strict=True)
        )
    except MalformedFile:
        return -1


def test_pages_that_hold_the_values_of_their_chunk() -> None:
    check(page(2, kind=2) + page(3) + page(4, kind=3), values=7, rows=7)
    check(b"", values=0, rows=0)
    # What stands behind the last value is not read by anyone.
    check(page(3) + b"\xff\xff", values=3, rows=3)


@pytest.mark.parametrize(
    ("data", "values", "rows", "message"),
    [
        pytest.param(page(3), 3, 2, "3 values for 2 rows", id="rows"),
        pytest.param(page(4), 3, 3, "4 values instead of 3", id="too-many"),
        pytest.param(page((1 << 31) - 1), 3, None, "instead of 3", id="far-too-many"),
        pytest.param(page(2), 3, 3, "2 values instead of 3", id="too-few"),
        pytest.param(page(-1), 3, 3, "has -1 values", id="negative-count"),
        pytest.param(page(5, kind=2) + page(3), 3, 3, "has 5 values in 4 bytes", id="dictionary"),
        pytest.param(page(3, size=1 << 30), 3, 3, "does not fit its chunk", id="size"),
        pytest.param(page(3, size=-1), 3, 3, "does not fit its chunk", id="negative-size"),
        pytest.param(page(3)[:5], 3, 3, "the page header", id="cut"),
        pytest.param(b"\x00" * 8, 3, 3, "does not fit its chunk", id="empty-header"),
        pytest.param(
            page(MAX_FREE_VALUES << 1), MAX_FREE_VALUES << 1, None, "within lists", id="list-bomb"
        ),
    ],
)
def test_pages_that_do_not(data: bytes, values: int, rows: int | None, message: str) -> None:
    with pytest.raises(MalformedFile, match=message):
        check(data, values=values, rows=rows)


def test_headers_longer_than_the_first_read() -> None:
    """Statistics of long strings stand in page headers."""
    sink = io.BytesIO()
    table = pa.table({"s": ["x" * 3000]})
    pq.write_table(
        table, sink, write_page_index=False, use_dictionary=False, data_page_version="2.0"
    )
    assert read_table(sink) == table


@pytest.mark.corpus(corpora.SHREDDED_VARIANT)
def test_an_offset_that_points_into_a_page_is_refused() -> None:
    """One bit in the footer, for which pyarrow alone allocates a gigabyte."""
    data = bytearray(CASE_045.read_bytes())
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(3)
    field = b"\x26" + varint(chunk.data_page_offset)  # data_page_offset of ColumnMetaData
    assert data.count(field) == 1
    data[data.index(field) + 1] ^= 0x04
    with pytest.raises(MalformedFile, match="row group 0: a page of column 'value'"):
        read_table(io.BytesIO(data))
    assert any("column 'value'" in finding.message for finding in check_file(io.BytesIO(data)))


def test_a_flipped_bit_in_a_page_is_an_error_and_never_another_value(tmp_path: Path) -> None:
    """We write checksums, and look at those of others."""
    file = tmp_path / "t.parquet"
    values = of({"a": 1, "b": "x"}, {"a": 2, "c": [1.5]}, None)
    write_table(pa.table({"v": values}), file, shredding="a BIGINT, b STRING")
    data, expected = file.read_bytes(), read_table(file)
    footer = pq.ParquetFile(file).metadata
    for column in range(footer.num_columns):
        chunk = footer.row_group(0).column(column)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        last = start + chunk.total_compressed_size - 1  # in the data of the last page
        for bit in range(8):
            changed = bytearray(data)
            changed[last] ^= 1 << bit
            with pytest.raises(MalformedFile, match="row group 0"):
                read_table(io.BytesIO(changed))
    assert read_table(io.BytesIO(data)) == expected
