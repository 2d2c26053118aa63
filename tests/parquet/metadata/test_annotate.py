"""Seven bytes make a group a VARIANT; everything else in the file stays as it was."""

from __future__ import annotations

import io
from pathlib import Path as File

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.errors import MalformedFile, MissingSource
from variantlake.parquet.metadata.annotate import annotate, annotate_footer
from variantlake.parquet.metadata.footer import read_footer, read_tail
from variantlake.parquet.metadata.logical import Logical

VARIANT = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), False)]
)
ROW = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}


def table() -> pa.Table:
    schema = pa.schema(
        [
            pa.field("i", pa.int64()),
            pa.field("v", VARIANT),
            pa.field("a.b", VARIANT),
            pa.field("a", pa.struct([pa.field("b", VARIANT)])),
            pa.field("l", pa.list_(VARIANT)),
            pa.field("s", pa.string()),
        ]
    )
    row = {"i": 1, "v": ROW, "a.b": ROW, "a": {"b": ROW}, "l": [ROW, ROW], "s": "x"}
    return pa.Table.from_pylist([row, {"v": None}], schema=schema)


@pytest.fixture
def file(tmp_path: File) -> File:
    path = tmp_path / "x.parquet"
    pq.write_table(table(), path, write_page_index=True, store_schema=False)
    return path


EVERY = [("v",), ("a.b",), ("a", "b"), ("l", "list", "element")]


def marked(path: File) -> list[str]:
    """Dotted paths of the groups that the file says are VARIANT(1)."""
    out = []
    stack = [(child, child.name) for child in read_footer(path).schema.children]
    while stack:
        node, name = stack.pop()
        if node.logical == Logical("VARIANT", version=1):
            out.append(name)
        stack.extend((child, f"{name}/{child.name}") for child in node.children)
    return sorted(out)


@pytest.mark.parametrize("column", EVERY, ids="/".join)
def test_exactly_one_group_is_marked(file: File, column: tuple[str, ...]) -> None:
    before = file.read_bytes()
    tail = read_tail(file)
    annotated = annotate(file, [column])
    assert marked(file) == ["/".join(column)]
    after = file.read_bytes()
    assert after[: tail.offset] == before[: tail.offset]
    assert read_tail(file) == annotated
    new = annotated.footer
    assert len(new) == len(tail.footer) + 7
    # One insertion turns the old footer into the new one, byte for byte.
    at = next(i for i, (a, b) in enumerate(zip(new, tail.footer, strict=False)) if a != b)
    assert any(new[:i] + new[i + 7 :] == tail.footer for i in range(at - 7, at + 1))


def test_several_groups_and_again(file: File) -> None:
    annotate(file, EVERY)
    assert marked(file) == sorted("/".join(column) for column in EVERY)
    after = file.read_bytes()
    assert annotate(file, EVERY) == read_tail(file)
    assert file.read_bytes() == after


def test_other_readers_see_a_variant(file: File) -> None:
    annotate(file, [("v",)])
    assert pq.read_table(file).equals(table())
    assert "v (Variant(1))" in str(pq.ParquetFile(file).schema)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT typeof(v), v::INT FROM '{file}'").fetchall()
    assert rows == [("VARIANT", 5), ("VARIANT", None)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (("none",), "no column 'none'"),
        (("v", "none"), "no column 'v.none'"),
        (("i",), "'i' is not a group"),
        (("v", "value"), "'v.value' is not a group"),
        (("l",), "has the logical type LIST"),
    ],
)
def test_what_cannot_be_marked_is_refused(
    file: File, column: tuple[str, ...], message: str
) -> None:
    before = file.read_bytes()
    with pytest.raises(MalformedFile, match=message) as caught:
        annotate(file, [("v",), column])
    assert caught.value.file == str(file)
    assert file.read_bytes() == before


def test_missing_and_broken_files(tmp_path: File) -> None:
    with pytest.raises(MissingSource):
        annotate(tmp_path / "none.parquet", [("v",)])
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + b"\x00" * 20)
    with pytest.raises(MalformedFile):
        annotate(tmp_path / "x.parquet", [("v",)])


def footer_bytes() -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(), sink, store_schema=False)
    return read_tail(sink).footer


FOOTER = footer_bytes()


@settings(max_examples=100 * MORE, deadline=None)
@given(data=st.data())
def test_changed_footers_are_marked_or_refused(data: st.DataObject) -> None:
    changed = bytearray(FOOTER)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        new, count = annotate_footer(bytes(changed), [("v",), ("a", "b")])
    except MalformedFile:
        return
    assert len(new) == len(changed) + 7 * count
    assert annotate_footer(new, [("v",), ("a", "b")]) == (new, 0)
