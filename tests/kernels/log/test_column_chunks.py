"""Column chunks read by compiled code are those that the plain reader of Thrift gives."""

from __future__ import annotations

import io
import pickle
from pathlib import Path as File
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.parquet.metadata.test_footer import FOREIGN_FILES, all_types, text, thrift, zigzag
from tests.strategies import MORE
from variantlake.errors import MalformedFile
from variantlake.kernels.log.column_chunks import END, column_chunks
from variantlake.parquet.metadata import footer as footers
from variantlake.parquet.metadata.column_chunks import ColumnChunks, fields_of, read_chunks
from variantlake.parquet.metadata.footer import Footer, parse_footer, read_tail
from variantlake.parquet.metadata.thrift import CompactReader, Fields, ListOf, Struct, Wire


def outcome(footer: bytes) -> Footer | str:
    """What `parse_footer` makes of it, or its error."""
    try:
        return parse_footer(footer, 1000)
    except MalformedFile as error:
        return str(error)


def plain_outcome(footer: bytes) -> Footer | str:
    """The same without compiled code."""
    footers._known.clear()
    with patch.object(footers, "read_chunks", return_value=None):
        return outcome(footer)


def check(footer: bytes) -> None:
    plain = plain_outcome(footer)
    assert outcome(footer) == plain  # perhaps with the schema of the one before
    footers._known.clear()
    assert outcome(footer) == plain


@pytest.mark.parametrize("file", FOREIGN_FILES, ids=lambda file: file.stem[-40:])
def test_footers_of_other_writers(file: File) -> None:
    check(read_tail(file).footer)


def footer_of(table: pa.Table, **options: bool) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=3, store_schema=False, **options)  # type: ignore[arg-type]
    return read_tail(sink).footer


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("statistics", [False, True])
def test_footers_of_pyarrow_are_read_at_once(*, index: bool, statistics: bool) -> None:
    footer = footer_of(all_types(), write_page_index=index, write_statistics=statistics)
    answers = []

    def ask(*given: Any) -> ColumnChunks | None:
        answers.append(read_chunks(*given))
        return answers[-1]

    with patch.object(footers, "read_chunks", ask):
        found = outcome(footer)
    assert isinstance(found, Footer)
    assert len(answers) == len(found.row_groups) > 1
    assert None not in answers
    assert found == plain_outcome(footer)


SMALL = footer_of(all_types().slice(0, 5), write_page_index=True)


@settings(max_examples=75 * MORE, deadline=None)
@given(data=st.data())
def test_changed_footers(data: st.DataObject) -> None:
    changed = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=1), st.binary(max_size=9)))
        changed[at : at + data.draw(st.integers(0, 3))] = new
    check(bytes(changed))


@settings(max_examples=40 * MORE, deadline=None)
@given(data=st.data())
def test_footers_that_begin_alike(data: st.DataObject) -> None:
    """What is behind a schema that is known is read as if it were not."""
    footers._known.clear()
    parse_footer(SMALL)
    (known,) = footers._known
    assert 100 < len(known.head) < len(SMALL)
    changed = bytearray(SMALL)
    at = data.draw(st.integers(len(known.head) - 1, len(changed) - 1))
    changed[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=9))
    found = outcome(bytes(changed))
    assert found == plain_outcome(bytes(changed))


def test_equal_schemas_are_one_object() -> None:
    one, two = parse_footer(SMALL), parse_footer(SMALL)
    assert one.schema is two.schema
    assert one.leaves is two.leaves
    chunk = one.row_groups[0].columns[2]
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own
    assert one.row_groups[0].columns[2] is chunk


def test_cut_footers() -> None:
    for size in range(0, len(SMALL), 7):
        check(SMALL[:size])


# --- Chunks of any fields: known ones mostly of their type, others of any -------------------------

numbers = st.one_of(st.integers(-70, 70), st.integers(-(2**63), 2**63 - 1)).map(zigzag)
values: st.SearchStrategy[tuple[int, bytes]] = st.recursive(
    st.one_of(
        st.sampled_from([(1, b""), (2, b""), (14, b""), (13, b"\x00" * 16), (7, b"\x00" * 8)]),
        st.binary(min_size=1, max_size=1).map(lambda byte: (3, byte)),
        st.tuples(st.sampled_from([4, 5, 6]), numbers),
        st.text(max_size=20).map(lambda value: (8, text(value))),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(
            lambda fields: (12, thrift(*((i + 1, *field) for i, field in enumerate(fields))))
        ),
        st.tuples(st.sampled_from([9, 10]), inner, st.integers(0, 20)).map(
            lambda drawn: (drawn[0], listed(drawn[1], drawn[2]))
        ),
    ),
    max_leaves=6,
)


def listed(element: tuple[int, bytes], count: int) -> bytes:
    wire, value = element
    value = b"\x01" if wire in (1, 2) else value
    head = bytes([count << 4 | wire]) if count < 15 else bytes([0xF0 | wire, count])
    return head + value * count


def structs(known: dict[int, int], **inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A struct whose known fields mostly have the type given, `inner` by `f` and the id."""

    def of(ids: set[int]) -> st.SearchStrategy[bytes]:
        fields = []
        for number in sorted(ids):
            right: st.SearchStrategy[tuple[int, bytes]]
            if f"f{number}" in inner:
                right = inner[f"f{number}"].map(lambda value: (12, value))
            elif known.get(number) == 8:
                right = st.binary(max_size=9).map(lambda raw: (8, bytes([len(raw)]) + raw))
            elif known.get(number) == 1:
                right = st.sampled_from([(1, b""), (2, b"")])
            elif number in known:
                wire, small = known[number], st.integers(-(2**31), 2**31 - 1).map(zigzag)
                right = st.tuples(st.just(wire), numbers if wire == 6 else small)
            else:
                right = values
            chosen = st.one_of(*[right] * 9, values)
            fields.append(st.tuples(st.just(number), chosen).map(lambda one: (one[0], *one[1])))
        return st.tuples(*fields).map(lambda drawn: thrift(*drawn))

    return st.sets(st.integers(1, 15), max_size=9).flatmap(of)


chunks = structs(
    {4: 6, 6: 6},
    f3=structs(
        {1: 5, 4: 5, 5: 6, 6: 6, 7: 6, 9: 6, 11: 6},
        f12=structs({1: 8, 2: 8, 3: 6, 5: 8, 6: 8, 7: 1, 8: 1}),
    ),
)

PLAIN = ListOf(Struct(footers._COLUMN_CHUNK, lambda fields, end: (fields, end)))


def plainly(data: bytes, count: int) -> list[tuple[Fields, int]] | None:
    head = bytes([count << 4 | Wire.STRUCT])
    reader = CompactReader(head + data, 41)
    try:
        found: list[tuple[Fields, int]] = reader.read(PLAIN, Wire.LIST)
    except MalformedFile:
        return None
    return found


@settings(max_examples=50 * MORE, deadline=None)
@given(drawn=st.lists(chunks, min_size=1, max_size=4))
@example(drawn=[b"\x8c\x00\x00"])  # encrypted
def test_any_chunks(drawn: list[bytes]) -> None:
    check_chunks(b"".join(drawn), drawn)


@settings(max_examples=50 * MORE, deadline=None)
@given(drawn=st.lists(chunks, min_size=1, max_size=3), data=st.data())
def test_any_chunks_cut(drawn: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(drawn)
    check_chunks(whole[: data.draw(st.integers(0, len(whole) - 1))], drawn)


def read_fields(reader: CompactReader, count: int) -> list[tuple[Fields, int]] | None:
    """The fields of `count` ColumnChunks and the offset in the file where each ends."""
    found = column_chunks(reader.data, reader.position, count)
    if found is None:
        return None
    slots, reader.position = found
    return [(fields_of(row, reader.data), reader.base + row[END]) for row in slots.tolist()]


def check_chunks(data: bytes, drawn: list[bytes]) -> None:
    reader = CompactReader(data, 42)
    found = read_fields(reader, len(drawn))
    if found is None:
        assert reader.position == 0  # the plain reader decides
    else:
        assert found == plainly(data, len(drawn))
        assert reader.position == len(data)


@settings(max_examples=100 * MORE, deadline=None)
@given(data=st.binary(max_size=60), count=st.integers(1, 5))
def test_any_bytes(data: bytes, count: int) -> None:
    reader = CompactReader(data, 42)
    if (found := read_fields(reader, count)) is not None:
        assert found == plainly(data, count)


def test_what_is_unusual_is_left_alone() -> None:
    usual = thrift((3, 12, thrift((1, 5, zigzag(2)))))
    assert column_chunks(usual, 0, 1) is not None
    long_form = b"\x0c" + zigzag(3) + thrift((1, 5, zigzag(2))) + b"\x00"
    assert plainly(long_form, 1) == [({3: {1: 2}}, 42 + len(long_form))]
    assert column_chunks(long_form, 0, 1) is None
    assert column_chunks(thrift((3, 6, zigzag(2))), 0, 1) is None  # no struct
    assert column_chunks(thrift((3, 12, thrift((1, 5, zigzag(2**31))))), 0, 1) is None
    assert column_chunks(usual[:-1], 0, 1) is None
    assert column_chunks(usual, 0, 2) is None
    # A set of two texts, of which the bytes end behind the first.
    assert column_chunks(thrift((2, 10, b"\x28" + 2 * text("content")))[:-9], 0, 1) is None
