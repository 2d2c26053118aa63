"""Raw statistics become bounds only if they are understood in full."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.encoding.scalar import decimal_of
from variantlake.parquet.metadata.column_chunks import ColumnChunk
from variantlake.parquet.metadata.footer import Footer, RowGroup
from variantlake.parquet.metadata.logical import Logical
from variantlake.parquet.metadata.schema_tree import SchemaNode, leaves_of
from variantlake.parquet.stats.bounds import Bounds, decode_bounds
from variantlake.parquet.stats.facts import UNKNOWN, facts_of

CHUNK = ColumnChunk(9, 0, None, None, None, None, 4, 0, 0, "ZSTD", page_index=False)
STRING = Logical("STRING")


def node(
    physical: str, logical: Logical | None = None, length: int = 0, repetition: str = "optional"
) -> SchemaNode:
    return SchemaNode("x", repetition, physical, length, logical, (), 0)


def bounds(
    column: SchemaNode,
    low: bytes | None,
    high: bytes | None,
    *,
    exact: bool | None = None,
    ours: bool = True,
) -> Bounds:
    chunk = replace(CHUNK, min_value=low, max_value=high, min_exact=exact, max_exact=exact)
    return decode_bounds(chunk, column, writer_is_exact=ours)


def decimal(precision: int, scale: int) -> Logical:
    return Logical("DECIMAL", precision=precision, scale=scale)


UNSIGNED = Logical("INTEGER", bits=32, signed=False)
VALUES: list[tuple[str, SchemaNode, bytes, Any]] = [
    ("int32", node("INT32"), b"\xfe\xff\xff\xff", -2),
    ("uint32", node("INT32", UNSIGNED), b"\xfe\xff\xff\xff", 2**32 - 2),
    ("int8", node("INT32", Logical("INTEGER", bits=8)), b"\x80\xff\xff\xff", -128),
    ("int64", node("INT64"), b"\x01" + b"\x00" * 7, 1),
    ("date", node("INT32", Logical("DATE")), b"\x01\x00\x00\x00", 1),
    ("float", node("FLOAT"), struct.pack("<f", 0.5), 0.5),
    ("double", node("DOUBLE"), struct.pack("<d", -math.inf), -math.inf),
    ("decimal in int32", node("INT32", decimal(9, 2)), b"\xff\xff\xff\xff", Decimal("-0.01")),
    ("decimal in int64", node("INT64", decimal(18, 0)), b"\x05" + b"\x00" * 7, Decimal(5)),
    ("decimal in bytes", node("BYTE_ARRAY", decimal(5, 1)), b"\xff\x7f", Decimal("-12.9")),
    ("decimal fixed", node("FIXED_LEN_BYTE_ARRAY", decimal(5, 1), 3), b"\0\0\x0a", Decimal("1.0")),
    ("string", node("BYTE_ARRAY", STRING), "é".encode(), "é"),
    ("enum", node("BYTE_ARRAY", Logical("ENUM")), b"a", "a"),
    ("binary", node("BYTE_ARRAY"), b"\xff\x00", b"\xff\x00"),
    ("fixed", node("FIXED_LEN_BYTE_ARRAY", None, 2), b"\xff\x00", b"\xff\x00"),
    ("uuid", node("FIXED_LEN_BYTE_ARRAY", Logical("UUID"), 16), b"\x01" * 16, b"\x01" * 16),
    ("int32 of 8 bytes", node("INT32"), b"\x01" * 8, None),
    ("double of 4 bytes", node("DOUBLE"), b"\x01" * 4, None),
    ("empty int64", node("INT64"), b"", None),
    ("nan", node("DOUBLE"), struct.pack("<d", math.nan), None),
    ("decimal of no bytes", node("BYTE_ARRAY", decimal(5, 1)), b"", None),
    ("decimal cut", node("FIXED_LEN_BYTE_ARRAY", decimal(5, 1), 3), b"\0\0", None),
    ("fixed too long", node("FIXED_LEN_BYTE_ARRAY", None, 2), b"abc", None),
    ("boolean", node("BOOLEAN"), b"\x01", None),
    ("int96", node("INT96"), b"\x01" * 12, None),
    ("interval", node("FIXED_LEN_BYTE_ARRAY", Logical("INTERVAL"), 12), b"\x01" * 12, None),
    ("float16", node("FIXED_LEN_BYTE_ARRAY", Logical("FLOAT16"), 2), b"\x01" * 2, None),
    ("unknown type of bytes", node("BYTE_ARRAY", Logical("UNKNOWN_19")), b"a", None),
    ("unknown type of integers", node("INT32", Logical("UNKNOWN_19")), b"\x01" * 4, None),
]


@pytest.mark.parametrize(
    ("column", "raw", "value"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES]
)
def test_values_of_every_type(column: SchemaNode, raw: bytes, value: Any) -> None:
    found = bounds(column, raw, raw)
    assert (found.minimum, found.maximum) == (value, value)
    assert type(found.minimum) is type(value)
    assert found.minimum_exact == found.maximum_exact == (value is not None)


@given(unscaled=st.integers(-(10**38), 10**38), scale=st.integers(0, 38))
def test_decimals_are_exact(unscaled: int, scale: int) -> None:
    sign, digits, exponent = decimal_of(unscaled, scale).as_tuple()
    assert int("".join(map(str, digits))) * (-1 if sign else 1) == unscaled
    assert exponent == -scale


@pytest.mark.parametrize(("flag", "ours", "exact"), [
    (True, False, True), (False, True, False), (None, True, True), (None, False, False),
])  # fmt: skip
def test_strings_are_exact_by_flag_or_by_writer(flag: bool | None, ours: bool, exact: bool) -> None:
    found = bounds(node("BYTE_ARRAY", STRING), b"a", b"b", exact=flag, ours=ours)
    assert found == Bounds("a", "b", exact, exact)


def test_numbers_are_exact_unless_flagged() -> None:
    one = b"\x01\x00\x00\x00"
    assert bounds(node("INT32"), one, one, ours=False) == Bounds(1, 1, True, True)
    assert bounds(node("INT32"), one, one, exact=False) == Bounds(1, 1, False, False)


def test_strings_cut_within_a_character() -> None:
    cut = "aé".encode()[:-1]
    text = node("BYTE_ARRAY", STRING)
    assert bounds(text, cut, b"b", exact=False) == Bounds("a", "b", False, False)
    assert bounds(text, b"a", cut, exact=False) == Bounds("a", None, False, False)
    assert bounds(text, cut, b"b", exact=True).minimum is None, "exact, so the data is no UTF-8"
    broken = b"\xff" + b"a" * 10
    assert bounds(text, broken, b"b", exact=False).minimum is None


def test_a_zero_is_widened_to_both_signs() -> None:
    positive, negative = struct.pack("<d", 0.0), struct.pack("<d", -0.0)
    found = bounds(node("DOUBLE"), positive, negative)
    assert isinstance(found.minimum, float)
    assert isinstance(found.maximum, float)
    assert math.copysign(1, found.minimum) == -1
    assert math.copysign(1, found.maximum) == 1


def test_bounds_in_the_wrong_order_are_none() -> None:
    assert bounds(node("BYTE_ARRAY", STRING), b"b", b"a") == Bounds()


def test_merging_keeps_a_side_only_if_both_know_it() -> None:
    left, right = Bounds(1, 5, True, False), Bounds(0, 9, False, True)
    assert left.merge(right) == right.merge(left) == Bounds(0, 9, False, True)
    assert left.merge(Bounds(0, None, True)) == Bounds(0, None, True, False)
    assert left.merge(Bounds()) == Bounds()


def footer(column: SchemaNode, *groups: tuple[int, ColumnChunk]) -> Footer:
    root = SchemaNode("root", "required", None, 0, None, (column,), None)
    row_groups = tuple(RowGroup(rows, 0, (chunk,)) for rows, chunk in groups)
    leaves = tuple(leaves_of(root))
    return Footer(sum(rows for rows, _ in groups), root, leaves, row_groups, "someone", ())


def integers(low: int, high: int, **changes: Any) -> ColumnChunk:
    raw = [value.to_bytes(4, "little") for value in (low, high)]
    return replace(CHUNK, min_value=raw[0], max_value=raw[1], **changes)


def test_row_groups_are_merged() -> None:
    null = replace(CHUNK, null_count=9)
    (column,) = facts_of(
        footer(node("INT32"), (9, integers(3, 4)), (9, null), (9, integers(1, 2))), 0
    ).columns
    assert (column.bounds.minimum, column.bounds.maximum, column.nulls) == (1, 4, 9)


@pytest.mark.parametrize("repetition", ["optional", "required"])
def test_statistics_that_cannot_be_are_not_used(repetition: str) -> None:
    column = node("INT32", repetition=repetition)
    (facts,) = facts_of(footer(column, (8, integers(3, 4))), 0).columns
    assert (facts.bounds.minimum, facts.nulls) == (None, UNKNOWN), "9 values in 8 rows"
    (facts,) = facts_of(footer(column, (9, integers(3, 4, null_count=None))), 0).columns
    assert (facts.bounds.minimum, facts.bounds.maximum) == (3, 4)
    assert facts.nulls == (0 if repetition == "required" else UNKNOWN)


METADATA = SchemaNode("metadata", "required", "BYTE_ARRAY", 0, None, (), 0)
VALUE = SchemaNode("value", "optional", "BYTE_ARRAY", 0, None, (), 1)


@pytest.mark.parametrize(
    ("chunk", "nulls", "residuals"),
    [
        ({"null_count": 9}, 0, 0),
        ({"null_count": 4, "min_value": b"\x00", "max_value": b"\x00"}, 5, 0),
        ({"null_count": 4, "min_value": b"", "max_value": b"\x00"}, 5, 0),
        ({"null_count": 4, "max_value": b"\x00"}, 5, 0),
        ({"null_count": 4, "min_value": b"\x00", "max_value": b"\x00", "max_exact": False}, -1, -1),
        ({"null_count": 4, "min_value": b"\x04", "max_value": b"\x0c\x01"}, 0, 5),
        ({"null_count": 4, "min_value": b"\x00", "max_value": b"\x0c\x01"}, -1, -1),
        ({"null_count": 4}, -1, -1),
        ({"null_count": None, "min_value": b"\x00", "max_value": b"\x00"}, -1, -1),
        ({"num_values": 8, "null_count": 8}, -1, -1),
    ],
)
def test_residuals_of_a_footer(chunk: dict[str, Any], nulls: int, residuals: int) -> None:
    facts = variant_facts(METADATA, chunk)
    assert (facts.paths[0].nulls, facts.paths[0].residuals) == (nulls, residuals)
    assert facts.paths[0].clean == (residuals == 0)


def variant_facts(metadata: SchemaNode, chunk: dict[str, Any], **of_metadata: Any) -> Any:
    mark = Logical("VARIANT", version=1)
    group = SchemaNode("v", "optional", None, 0, mark, (metadata, VALUE), None)
    root = SchemaNode("root", "required", None, 0, None, (group,), None)
    chunks = (replace(CHUNK, **of_metadata), replace(CHUNK, **chunk))
    leaves = tuple(leaves_of(root))
    made = Footer(9, root, leaves, (RowGroup(9, 0, chunks),), "someone", ())
    return facts_of(made, 0).variants[0]


def test_sql_nulls_are_those_of_required_metadata() -> None:
    optional = replace(METADATA, repetition="optional")
    assert variant_facts(METADATA, {}, null_count=3).nulls == 3
    assert variant_facts(optional, {}, null_count=0).nulls == 0
    assert variant_facts(optional, {}, null_count=3).nulls == UNKNOWN
