"""Several column chunks decoded as one: the values of each, one after the other."""

from __future__ import annotations

import io
import random
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parquet.read.test_chunk_values import EDGES, FORMS, TEXTS, forms, values_of, written
from variantlake.parquet.metadata.footer import Footer, parse_footer, read_tail
from variantlake.parquet.read.chunk_pages import ChunkPlace
from variantlake.parquet.read.chunk_values import read_joined
from variantlake.storage.opening import open_file

DICTIONARY: dict[str, Any] = {"use_dictionary": True}
PREFIXES: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}
NUMBERS: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BINARY_PACKED"}}
PLAIN: dict[str, Any] = {"use_dictionary": False}

texts = st.sampled_from(TEXTS) | st.none()
columns = st.one_of(
    st.tuples(st.just(pa.string()), st.just(DICTIONARY), st.just(texts)),
    st.tuples(st.just(pa.string()), st.just(PREFIXES), st.just(texts)),
    st.tuples(
        st.just(pa.int32()),
        st.sampled_from(list(FORMS.values())),
        st.just(st.sampled_from(EDGES) | st.none()),
    ),
    st.tuples(
        st.just(pa.decimal128(30, 0)), st.just(PLAIN), st.just(st.integers(-99, 99) | st.none())
    ),
)


def footer_of(data: bytes) -> Footer:
    tail = read_tail(io.BytesIO(data))
    return parse_footer(tail.footer, tail.offset)


def joined(files: list[bytes], footers: list[Footer] | None = None) -> Any:
    """The columns of all row groups of the files as one; None if they are not decoded so."""
    with ExitStack() as stack:
        places = []
        for data, footer in zip(files, footers or map(footer_of, files), strict=True):
            file = stack.enter_context(open_file(io.BytesIO(data)))
            places += [
                ChunkPlace(file, footer.leaves[0], group.columns[0], group)
                for group in footer.row_groups
            ]
        return read_joined(places)


@pytest.mark.rule(36)
@settings(deadline=None)
@given(data=st.data(), column=columns, form=forms, size=st.sampled_from([3, 50]))
def test_joined_chunks_are_those_that_pyarrow_reads(
    data: st.DataObject, column: tuple[Any, dict[str, Any], Any], form: dict[str, Any], size: int
) -> None:
    arrow, options, values = column
    parts = data.draw(
        st.lists(st.lists(values, min_size=1, max_size=60), min_size=1, max_size=5), "parts"
    )
    files = [
        written(pa.array(part).cast(arrow), row_group_size=size, **options, **form)
        for part in parts
    ]
    found = joined(files)
    assert values_of(found) == [each for part in parts for each in part]


@pytest.mark.rule(36)
def test_rule_36_chunks_of_other_forms_are_not_joined() -> None:
    amounts = pa.array([Decimal(1)] * 9)
    base = written(pa.array(["a", "b"] * 9), compression="zstd", **DICTIONARY)
    assert joined([base, base]) is not None
    for other in (
        written(pa.array(["a", "b"] * 9), compression="none", **DICTIONARY),
        written(pa.array(["a", "b"] * 9), compression="zstd", **PREFIXES),
        written(pa.array(["a", "b"] * 9), compression="zstd", **PLAIN),  # pyarrow's to read
        written(pa.array([1, 2]), compression="zstd", **NUMBERS),
        written(pa.array([{"a": "b"}]), compression="zstd", **DICTIONARY),
    ):
        assert joined([base, other]) is None
        assert joined([other, base]) is None
    one, other = (written(amounts.cast(pa.decimal128(30, scale)), **PLAIN) for scale in (0, 2))
    assert joined([one, one]) is not None
    assert joined([one, other]) is None
    required = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    numbers = written(pa.array([1, 2]), **NUMBERS)
    file = io.BytesIO()
    pa.parquet.write_table(pa.table([[1, 2]], schema=required), file, **NUMBERS)
    assert joined([file.getvalue(), file.getvalue()]).to_pylist() == [1, 2, 1, 2]
    assert joined([numbers, file.getvalue()]) is None


@pytest.mark.rule(36)
def test_rule_36_each_dictionary_ends_with_its_page() -> None:
    """Pages that lie about their entries, so that those of both together fit, and all codes."""
    values = [9 * text for text in "abc" for _ in range(40)]
    runs = b"\x50\x00\x50\x01\x50\x02"
    files, footers = [], []
    for lie in (+1, -1):
        data = written(pa.array(values), compression="none", **DICTIONARY)
        footers.append(footer_of(data))
        first = footers[-1].row_groups[0].columns[0].first_page
        at = data.index(b"\x4c\x15", first) + 2  # the entries of the dictionary
        assert data[at] == 2 * 3
        assert data.count(runs) == 1
        data = data[:at] + bytes([2 * (3 + lie)]) + data[at + 1 :]
        files.append(data.replace(runs, runs[:-1] + b"\x01"))
    assert joined(files, footers) is None


@pytest.mark.rule(36)
@pytest.mark.parametrize("options", [DICTIONARY, PREFIXES], ids=["codes", "prefixes"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_changed_bytes_of_joined_chunks_give_sound_arrays_or_none(
    options: dict[str, Any], compression: str
) -> None:
    chance = random.Random(compression)
    rows = [chance.choice((*TEXTS, None)) for _ in range(200)]
    data = written(pa.array(rows), max_rows_per_page=50, compression=compression, **options)
    footer = footer_of(data)
    end = (
        footer.row_groups[0].columns[0].first_page + footer.row_groups[0].columns[0].compressed_size
    )
    refused = 0
    for _ in range(400):
        files = [bytearray(data), bytearray(data)]
        for file in files:
            file[chance.randrange(4, end)] ^= 1 << chance.randrange(8)
        found = joined(list(map(bytes, files)), [footer, footer])
        if found is None:
            refused += 1
            continue
        assert len(found) == 400
        if isinstance(found, pa.DictionaryArray):
            codes = found.indices.drop_null().to_numpy()
            assert not len(codes) or 0 <= codes.min() <= codes.max() < len(found.dictionary)
        else:
            found.cast(pa.binary()).validate(full=True)
    assert refused > 100


@pytest.mark.rule(36)
def test_rule_36_dictionaries_without_entries_are_joined() -> None:
    nothing = written(pa.array([None] * 40, pa.string()), **DICTIONARY)
    some = written(pa.array([None, "a"] * 20, pa.string()), **DICTIONARY)
    assert values_of(joined([nothing, nothing])) == [None] * 80
    assert values_of(joined([nothing, some])) == [None] * 40 + [None, "a"] * 20
