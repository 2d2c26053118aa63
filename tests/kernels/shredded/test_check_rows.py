"""The first pass of checking against the twin alone: the same problems, and none overlooked."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.shredded.test_unshred import hostile_columns, shredded_documents
from tests.parquet.test_conformance import CASES, FOLDER, stem
from tests.strategies import MORE
from tests.twins.shred import shred
from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.scalar import DECIMAL_DIGITS, Scalar, decimal_of
from variantlake.encoding.tree import encode
from variantlake.encoding.variant import Variant
from variantlake.errors import VariantLakeError
from variantlake.kernels.shredded.check_rows import doubtful_rows, find_problems
from variantlake.parquet.read.reader import read_table
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE, arrow_type
from variantlake.shredding.rules import problems
from variantlake.types import NULL_VALUE


def check(array: pa.StructArray) -> None:
    expected = list(problems(array))
    assert list(find_problems(array)) == expected
    doubtful = doubtful_rows(array)
    assert all(doubtful[problem.row] for problem in expected)


@settings(max_examples=40 * MORE)
@given(shredded_documents(), st.integers(0, 5))
def test_good_documents(array: pa.StructArray, start: int) -> None:
    check(array)
    check(array.slice(start, max(len(array) - 2 * start, 0)))


@settings(max_examples=60 * MORE)
@given(hostile_columns())
def test_broken_columns(array: pa.StructArray) -> None:
    check(array)


@pytest.mark.parametrize("case", CASES, ids=stem)
def test_conformance_files(case: dict[str, Any]) -> None:
    try:
        table = pq.read_table(FOLDER / case["parquet_file"])
        column: Any = table.column("var").combine_chunks()
        list(problems(column))
    except (VariantLakeError, pa.ArrowException, OSError):
        with pytest.raises((VariantLakeError, pa.ArrowException, OSError)):
            read_table(FOLDER / case["parquet_file"])  # no column of rows: nothing to compare
        return
    check(column)


def variants(rows: list[tuple[bytes, bytes] | None]) -> pa.StructArray:
    data = [row and {"metadata": row[0], "value": row[1]} for row in rows]
    return pa.array(data, VARIANT_TYPE)  # type: ignore[return-value]  # a struct


def test_flipped_bits_are_not_overlooked() -> None:
    chance = random.Random(4)
    tree = {"a": 1.5, "é": [None, "x" * 70, {"b": True, "a": -3}], "b": b"\x00", "\U0001f600": {}}
    whole = encode(Variant.of(tree).tree())
    rows: list[tuple[bytes, bytes] | None] = []
    for _ in range(4000):
        parts = list(map(bytearray, whole))
        for _ in range(chance.choice([1, 1, 2])):
            part = chance.choice(parts)
            part[chance.randrange(len(part))] ^= 1 << chance.randrange(8)
        rows.append((bytes(parts[0]), bytes(parts[1])))
    check(variants(rows))
    # Few bad rows among good ones, which the first pass alone decides.
    check(variants([row if i % 40 == 0 else whole for i, row in enumerate(rows)]))


def test_good_rows_are_not_left_to_the_twin() -> None:
    tree = {"a": 1, "b": [{"c": "x"}, None, {"d": 1.5}], "d": {"c": [True], "a": "rest"}, "e": "é"}
    ddl = "STRUCT<a: BIGINT, d: STRUCT<c: ARRAY<BOOLEAN>>, b: ARRAY<STRUCT<c: STRING, d: DOUBLE>>>"
    values = [Variant.of(tree), None, Variant.of({}), Variant.of(7), Variant.of([1, tree])]
    array = shred(values, parse_ddl(ddl))
    assert not doubtful_rows(array).any()
    assert not doubtful_rows(shred(values, parse_ddl("VARIANT"))).any()


@pytest.mark.parametrize("primitive", DECIMAL_DIGITS)
@pytest.mark.parametrize("sign", [1, -1])
def test_decimals_of_one_digit_more_are_doubtful(primitive: Any, sign: int) -> None:
    largest = 10 ** DECIMAL_DIGITS[primitive] - 1
    few = Scalar(primitive, decimal_of(sign * (largest // 10), 2))
    metadata, value = encode(few)
    width = len(value) - 2
    more = value[:2] + (sign * (largest + 1)).to_bytes(width, "little", signed=True)
    array = variants([(metadata, value), (metadata, more)])
    assert doubtful_rows(array).tolist() == [False, True]
    check(array)


def test_what_nests_deeply_is_left_to_the_twin() -> None:
    value = NULL_VALUE
    for depth in range(120):
        width = 1 if len(value) < 256 else 2
        count = len(value).to_bytes(width, "little")
        value = bytes([3 | (width - 1) << 2, 1]) + bytes(width) + count + value
        if depth == 98:
            shallow = value
    empty = encode_metadata([])
    assert doubtful_rows(variants([(empty, shallow), (empty, value)])).tolist() == [False, True]
    check(variants([(empty, shallow), (empty, value)]))


def test_a_dictionary_is_not_that_of_the_row_before() -> None:
    one, other = encode_metadata(["a", "b"]), encode_metadata(["a"])
    kind = arrow_type(parse_ddl("STRUCT<b: BIGINT>"))
    rows = [{"metadata": keys, "typed_value": {"b": {"typed_value": 1}}} for keys in (one, other)]
    array: Any = pa.array(rows * 40, kind)
    assert doubtful_rows(array).tolist() == [False, True] * 40
    check(array)


def test_strings_that_are_not_utf8() -> None:
    kind = arrow_type(parse_ddl("STRING"))
    text = pa.array([b"ab", b"\xed\xa0\x80", None, b"\xff"]).view(pa.string())
    metadata = pa.array([encode_metadata([])] * 4)
    nothing = pa.array([None, None, NULL_VALUE, None], pa.binary())
    check(pa.StructArray.from_arrays([metadata, nothing, text], fields=list(kind)))


def test_columns_of_no_rows_have_no_problems() -> None:
    check(variants([]))
    check(shred([], parse_ddl("ARRAY<STRUCT<a: STRING>>")))
