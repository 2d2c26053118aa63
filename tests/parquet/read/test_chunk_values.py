"""Column chunks by our kernels: what pyarrow reads, and nothing of what it refuses."""

from __future__ import annotations

import io
import random
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.parquet.metadata.footer import Footer, parse_footer, read_tail
from variantlake.parquet.read.chunk_pages import ChunkPlace
from variantlake.parquet.read.chunk_values import read_values
from variantlake.parquet.read.parquet_source import open_parquet
from variantlake.storage.opening import open_file

TEXTS = ("", "a", "b" * 40, "\u00e9", "\U00010000", "did:plc:1", "did:plc:2")
EDGES = (0, 1, -1, 2**31 - 1, -(2**31))
WIDE = (*EDGES, 2**63 - 1, -(2**63), 2**40)


def written(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": array}), file, **options)
    return file.getvalue()


def decoded(data: bytes, places: list[int] | None = None, footer: Footer | None = None) -> Any:
    """The column of the first row group as ours is; None if it is pyarrow's to read."""
    with open_file(io.BytesIO(data)) as file:
        if footer is None:
            tail = read_tail(file)
            footer = parse_footer(tail.footer, tail.offset)
        group = footer.row_groups[0]
        wanted = None if places is None else np.array(places, np.int64)
        return read_values(ChunkPlace(file, footer.leaves[0], group.columns[0], group), wanted)


def values_of(found: Any) -> list[Any]:
    """Its values, after a look at whether Arrow finds it sound."""
    found.validate(full=True)
    values: list[Any] = found.to_pylist()
    return values


texts = st.lists(st.sampled_from(TEXTS) | st.none(), min_size=1, max_size=400)
integers = st.lists(st.sampled_from(WIDE) | st.none(), min_size=1, max_size=400)
near = st.lists(st.integers(1000, 1030) | st.none(), min_size=1, max_size=400)
small = st.lists(st.sampled_from(EDGES) | st.none(), min_size=1, max_size=400)
forms = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "zstd", "snappy"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "write_page_checksum": st.booleans(),
        "max_rows_per_page": st.sampled_from([1, 7, 64, 20000]),
    }
)


FORMS: dict[str, dict[str, Any]] = {
    "differences": {"use_dictionary": False, "column_encoding": {"a": "DELTA_BINARY_PACKED"}},
    "as they are": {"use_dictionary": False},
    "codes": {"use_dictionary": True},
    "codes, then as they are": {"use_dictionary": True, "dictionary_pagesize_limit": 20},
}
"""How integers are written."""


def chosen_of(values: list[Any], seed: int) -> list[int]:
    chance = random.Random(seed)
    return sorted(chance.sample(range(len(values)), chance.randrange(len(values) + 1)))


@pytest.mark.rule(36)
@settings(deadline=None)
@given(values=texts, form=forms, repeats=st.sampled_from([1, 30]), seed=st.integers(0, 9))
def test_texts_are_those_that_pyarrow_reads(
    values: list[str | None], form: dict[str, Any], repeats: int, seed: int
) -> None:
    values = [each for each in values for _ in range(repeats)]
    data = written(pa.array(values, pa.string()), use_dictionary=True, **form)
    found = decoded(data)
    assert isinstance(found, pa.DictionaryArray)
    assert values_of(found) == values
    places = chosen_of(values, seed)
    part = decoded(data, places)
    assert part.take(pa.array(places, pa.int64())).to_pylist() == [values[at] for at in places]
    part.validate(full=True)


@pytest.mark.rule(36)
@settings(deadline=None)
@given(
    column=st.tuples(integers | near, st.just(pa.int64())) | st.tuples(small, st.just(pa.int32())),
    form=forms,
    written_as=st.sampled_from(list(FORMS)),
    seed=st.integers(0, 9),
)
def test_integers_are_those_that_pyarrow_reads(
    column: tuple[list[int | None], Any], form: dict[str, Any], written_as: str, seed: int
) -> None:
    values, arrow = column
    data = written(pa.array(values, arrow), **FORMS[written_as], **form)
    found = decoded(data)
    assert found.type == arrow
    assert values_of(found) == values
    places = chosen_of(values, seed)
    part = decoded(data, places)
    assert part.take(pa.array(places, pa.int64())).to_pylist() == [values[at] for at in places]


@pytest.mark.rule(36)
@settings(deadline=None)
@given(
    precision=st.integers(1, 38),
    shares=st.lists(st.integers(-1000, 1000) | st.none(), min_size=1, max_size=400),
    form=forms,
    seed=st.integers(0, 9),
)
def test_decimals_are_those_that_pyarrow_reads(
    precision: int, shares: list[int | None], form: dict[str, Any], seed: int
) -> None:
    arrow, most = pa.decimal128(precision, precision // 2), 10**precision - 1
    numbers = [None if each is None else each * most // 1000 for each in shares]
    values = [
        None if each is None else Decimal(each).scaleb(-arrow.scale, Context(40))
        for each in numbers
    ]
    data = written(pa.array(values, arrow), use_dictionary=False, **form)
    found = decoded(data)
    assert found.type == arrow
    assert values_of(found) == values
    places = chosen_of(values, seed)
    part = decoded(data, places)
    assert part.take(pa.array(places, pa.int64())).to_pylist() == [values[at] for at in places]


@pytest.mark.rule(36)
@settings(deadline=None)
@given(
    precision=st.integers(1, 18),
    shares=st.lists(st.integers(-1000, 1000) | st.none(), min_size=1, max_size=400),
    form=forms,
    written_as=st.sampled_from(list(FORMS)),
    seed=st.integers(0, 9),
)
def test_decimals_that_are_integers_are_those_that_pyarrow_reads(
    precision: int, shares: list[int | None], form: dict[str, Any], written_as: str, seed: int
) -> None:
    arrow, most = pa.decimal128(precision, precision // 2), 10**precision - 1
    numbers = [None if each is None else each * most // 1000 for each in shares]
    values = [
        None if each is None else Decimal(each).scaleb(-arrow.scale, Context(40))
        for each in numbers
    ]
    own = {"store_decimal_as_integer": True, **FORMS[written_as]}
    data = written(pa.array(values, arrow), **own, **form)
    found = decoded(data)
    assert found.type == arrow
    assert values_of(found) == values
    places = chosen_of(values, seed)
    part = decoded(data, places)
    assert part.take(pa.array(places, pa.int64())).to_pylist() == [values[at] for at in places]


@pytest.mark.rule(36)
@settings(deadline=None)
@given(values=texts, form=forms, seed=st.integers(0, 9))
def test_texts_that_share_their_beginnings_are_those_that_pyarrow_reads(
    values: list[str | None], form: dict[str, Any], seed: int
) -> None:
    encodings = {"a": "DELTA_BYTE_ARRAY"}
    array = pa.array(values, pa.string())
    data = written(array, use_dictionary=False, column_encoding=encodings, **form)
    found = decoded(data)
    assert found.type == pa.string()
    assert values_of(found) == values
    places = chosen_of(values, seed)
    part = decoded(data, places)
    assert part.take(pa.array(places, pa.int64())).to_pylist() == [values[at] for at in places]
    part.validate(full=True)


def test_a_struct_that_is_null_has_no_value() -> None:
    rows: list[Any] = [{"o": {"x": "a"}}, {"o": None}, {"o": {"x": None}}, None] * 50
    data = written(pa.array(rows))
    assert values_of(decoded(data)) == ["a", None, None, None] * 50


@pytest.mark.rule(36)
@pytest.mark.parametrize(
    ("array", "options"),
    [
        (pa.array([["a"], []]), {}),  # in lists
        (pa.array(["a", "b"]), {"use_dictionary": False}),
        (pa.array(["a", "b"]), {"compression": "gzip"}),
        (pa.array([1.5, 2.5]), {}),
        (pa.array([1, 2]), {"column_encoding": "BYTE_STREAM_SPLIT", "use_dictionary": False}),
        (pa.array([str(n) * 9 for n in range(9999)]), {"dictionary_pagesize_limit": 1000}),
        (pa.array([], pa.string()), {}),
    ],
    ids=["list", "plain", "codec", "double", "split integers", "full dictionary", "no rows"],
)
def test_what_is_not_of_the_form_is_left_to_pyarrow(array: Any, options: dict[str, Any]) -> None:
    assert decoded(written(array, **options)) is None


@pytest.mark.rule(36)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_changed_bytes_give_sound_arrays_or_none(version: str, compression: str) -> None:
    """What a flipped bit makes of the pages is never read from outside of them."""
    chance = random.Random(f"{version} {compression}")
    form: dict[str, Any] = {"data_page_version": version, "compression": compression}
    rows = [chance.choice((*TEXTS, None)) for _ in range(300)]
    numbers = [chance.choice((*WIDE, None)) for _ in range(300)]
    amounts = [None if each is None else Decimal(each) for each in numbers]
    encodings = {"a": "DELTA_BINARY_PACKED"}
    shared = {"a": "DELTA_BYTE_ARRAY"}
    refused = 0
    for data in (
        written(pa.array(rows), max_rows_per_page=50, **form),
        written(pa.array(numbers), use_dictionary=False, column_encoding=encodings, **form),
        written(pa.array(numbers), **FORMS["codes"], **form),
        written(pa.array(numbers), **FORMS["codes, then as they are"], **form),
        written(pa.array(rows), use_dictionary=False, column_encoding=shared, **form),
        written(pa.array(amounts, pa.decimal128(38, 2)), use_dictionary=False, **form),
    ):
        tail = read_tail(io.BytesIO(data))
        footer = parse_footer(tail.footer, tail.offset)
        for _ in range(300):
            changed = bytearray(data)
            for _ in range(chance.randrange(1, 4)):
                changed[chance.randrange(4, tail.offset)] ^= 1 << chance.randrange(8)
            found = decoded(bytes(changed), footer=footer)
            if found is None:
                refused += 1
                continue
            assert len(found) == 300
            if pa.types.is_string(found.type):
                found.cast(pa.binary()).validate(full=True)
            if isinstance(found, pa.DictionaryArray):
                codes = found.indices.drop_null().to_numpy()
                assert not len(codes) or 0 <= codes.min() <= codes.max() < len(found.dictionary)
    assert refused > 100


@pytest.mark.rule(36)
def test_a_page_that_its_checksum_is_not_of_is_left_to_pyarrow() -> None:
    data = written(pa.array(["a", "b"] * 9), write_page_checksum=True, compression="none")
    assert decoded(data) is not None
    at = data.index(b"\x01\x00\x00\x00a") + 4
    assert decoded(data[:at] + b"c" + data[at + 1 :]) is None


@pytest.mark.rule(36)
@pytest.mark.parametrize("compression", ["zstd", "snappy"])
def test_a_page_shorter_than_it_says_is_left_to_pyarrow(compression: str) -> None:
    """Arrow would give memory as it was for what is missing."""
    data = written(
        pa.array(["abc" * 20] * 9),
        compression=compression,
        write_statistics=False,
        use_dictionary=True,
    )
    tail = read_tail(io.BytesIO(data))
    footer = parse_footer(tail.footer, tail.offset)
    assert decoded(data) is not None
    first = footer.row_groups[0].columns[0].first_page
    at = data.index(b"\x15\x00\x15", first)  # the header of the data page: its kind, its size
    changed = data[: at + 3] + bytes([data[at + 3] + 2]) + data[at + 4 :]
    assert decoded(changed, footer=footer) is None


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_texts_of_other_encodings_are_read_whole(encoding: str) -> None:
    """Arrow does not make dictionaries of all of them, and says so by one error or another."""
    values = [f"did:plc:{number:024}" for number in range(50_000)]
    data = written(pa.array(values), use_dictionary=False, column_encoding={"a": encoding})
    tail = read_tail(io.BytesIO(data))
    footer = parse_footer(tail.footer, tail.offset)
    with open_parquet(io.BytesIO(data), "a file", footer, [0]) as source:
        for _ in range(2):
            batches = source.column(0, 0)
            assert batches is not None
            assert [each for batch in batches for each in batch.column(0).to_pylist()] == values
