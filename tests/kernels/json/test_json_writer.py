"""Tape to JSON text, against the twin in every type."""

from __future__ import annotations

import struct
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import MORE, variants
from variantlake.encoding.json_text import to_json
from variantlake.encoding.scalar import Scalar, encode_scalar
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue, LimitExceeded, MalformedVariant, UnknownVariantType
from variantlake.kernels.json import json_writer
from variantlake.kernels.tape import arrow_arrays
from variantlake.types import EMPTY_METADATA, Primitive


def written(values: list[Variant | None]) -> list[str | None]:
    texts: list[str | None] = vl.to_json(vl.parquet.variant_array(values)).to_pylist()
    return texts


def texts_of(values: list[Variant | None]) -> list[str | None]:
    return [None if v is None else to_json(v.metadata, v.value) for v in values]


def scalar(primitive: Primitive, value: object) -> Variant:
    return Variant(EMPTY_METADATA, encode_scalar(Scalar(primitive, cast("int", value))))


@settings(max_examples=100 * MORE, deadline=None)
@given(st.lists(st.none() | variants, max_size=4))
def test_every_type_agrees_with_twin(values: list[Variant | None]) -> None:
    assert written(values) == texts_of(values)


def test_texts_beyond_one_array_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    # A name stands once in a Variant, and in its text for each field.
    wide = Variant.of([{"n" * 1000: None}] * 30)
    for module in (arrow_arrays, json_writer):
        monkeypatch.setattr(module, "LARGEST_ARRAY", 64_000)
    column = vl.to_json(vl.parquet.variant_array([wide, None, wide, wide]))
    assert column.to_pylist() == texts_of([wide, None, wide, wide])
    assert column.num_chunks > 1
    with pytest.raises(LimitExceeded, match="2 GB") as refused:
        vl.to_json(vl.parquet.variant_array([wide, Variant.of([wide] * 3)]))
    assert refused.value.row == 1


doubles = st.floats(allow_subnormal=True) | st.integers(0, (1 << 64) - 1).map(
    lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0]
)
decimals = st.builds(lambda n, e: n / 10**e, st.integers(-(10**17), 10**17), st.integers(0, 22))


@settings(max_examples=30 * MORE, deadline=None)
@given(st.lists(doubles | decimals | st.integers(-(1 << 70), 1 << 70).map(float), min_size=20))
@example([2.0**n for n in range(-1074, 1024)])
@example([float(f"1e{n}") for n in range(-323, 309)])
@example([float(f"9.999999999999999e{n}") for n in range(-307, 308)])
@example(
    [
        2e23,
        1.0e23,
        2.2250738585072014e-308,
        5e-324,
        1.7976931348623157e308,
        -0.0,
        9007199254740993.0,
    ]
)
def test_doubles_agree_with_twin(numbers: list[float]) -> None:
    values: list[Variant | None] = [scalar(Primitive.DOUBLE, number) for number in numbers]
    assert written(values) == texts_of(values)


@settings(max_examples=30 * MORE, deadline=None)
@given(st.lists(st.floats(width=32), min_size=20))
@example([float(1 << n) for n in range(128)])
@example([2.0**n for n in range(-149, 0)])
def test_floats_agree_with_twin(numbers: list[float]) -> None:
    values: list[Variant | None] = [scalar(Primitive.FLOAT, number) for number in numbers]
    assert written(values) == texts_of(values)


EDGES = [0, -1, 1, 86_399_999_999, -(1 << 63), (1 << 63) - 1, 253_402_300_800_000_000, 10**9]


@pytest.mark.parametrize(
    "primitive",
    [
        Primitive.TIMESTAMP,
        Primitive.TIMESTAMP_NTZ,
        Primitive.TIMESTAMP_NANOS,
        Primitive.TIMESTAMP_NTZ_NANOS,
    ],
)
@settings(max_examples=20 * MORE, deadline=None)
@given(numbers=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=10))
@example(numbers=EDGES)
def test_timestamps_agree_with_twin(primitive: Primitive, numbers: list[int]) -> None:
    values: list[Variant | None] = [scalar(primitive, number) for number in numbers]
    assert written(values) == texts_of(values)


@settings(max_examples=30 * MORE, deadline=None)
@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=10))
@example([0, -719_528, -719_529, -719_162, 2_932_896, 2_932_897, -(1 << 31), (1 << 31) - 1])
@example([*range(10_957, 10_957 + 3 * 366)])
def test_dates_agree_with_twin(days: list[int]) -> None:
    values: list[Variant | None] = [scalar(Primitive.DATE, day) for day in days]
    assert written(values) == texts_of(values)


@settings(max_examples=30 * MORE, deadline=None)
@given(st.text(st.characters(min_codepoint=0, max_codepoint=0x7F), max_size=120))
@example("".join(map(chr, range(128))))
@example("\x01" * 5000)
@example('é"' * 40)
def test_strings_and_keys_are_escaped(text: str) -> None:
    value = Variant.of({text: text, "k": [text, {}, []], text * 2: None})
    assert written([value]) == texts_of([value])


def test_long_texts_grow_the_output() -> None:
    values = [Variant.of("\x01" * 100_000), Variant.of(b"\xff" * 100_000), Variant.of([[]] * 9000)]
    assert written([*values]) == texts_of([*values])


def test_deep_values_are_closed() -> None:
    tree: object = 1
    for _ in range(999):
        tree = [tree]
    value = Variant.of(tree)
    assert written([value]) == ["[" * 999 + "1" + "]" * 999]


def test_batches_and_chunks_keep_their_rows() -> None:
    column = vl.parquet.variant_array([{"n": n} if n % 7 else None for n in range(20_000)])
    table = pa.chunked_array([column[:5], column[5:19_000], column[19_000:]])
    expected = [f'{{"n":{n}}}' if n % 7 else None for n in range(20_000)]
    assert vl.to_json(table).to_pylist() == expected


def test_what_has_no_text_is_said_with_its_row() -> None:
    rows = [{"metadata": EMPTY_METADATA, "value": value} for value in (b"\x00", b"\x0c", b"\x7c")]
    column = pa.array(rows, pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))
    with pytest.raises(MalformedVariant) as caught:
        vl.to_json(column)
    assert caught.value.row == 1
    with pytest.raises(UnknownVariantType) as unknown:
        vl.to_json(pa.chunked_array([column[:1], column[2:]]))
    assert unknown.value.row == 1
    with pytest.raises(InvalidValue):
        vl.to_json(pa.array(["x"]))
