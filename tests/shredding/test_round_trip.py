"""What was shredded comes back, whatever the schema."""

from __future__ import annotations

import contextlib
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shredding.strategies import schemas, trees_for
from tests.strategies import MORE
from tests.twins.shred import shred
from variantlake.encoding.metadata import encode_dictionary, encode_metadata
from variantlake.encoding.scalar import NULL, Scalar, decimal_of
from variantlake.encoding.tree import Tree, decode, encode, encode_value, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import MalformedFile, MalformedVariant, VariantLakeError
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.unshred import unshred_plain
from variantlake.types import KINDS, Kind, Primitive, ShreddedType


def rows_of(array: AnyArray) -> list[Any]:
    return array.to_pylist()


def tree_of(row: dict[str, bytes]) -> Tree:
    return decode(row["metadata"], row["value"])


def variant(tree: Tree) -> Variant:
    return Variant(*encode(tree))


@st.composite
def columns(draw: st.DrawFn) -> tuple[ShreddingSchema, list[Tree | None]]:
    schema = draw(schemas())
    return schema, draw(st.lists(st.none() | trees_for(schema.root), max_size=5))


@given(columns())
@settings(max_examples=100 * MORE, deadline=None)
def test_unshred_of_shred_is_the_same(column: tuple[ShreddingSchema, list[Tree | None]]) -> None:
    schema, trees = column
    variants = [None if tree is None else variant(tree) for tree in trees]
    shredded = shred(variants, schema)
    shredded.validate(full=True)
    assert shredded.type == arrow_type(schema)
    back = rows_of(unshred_plain(shredded))
    assert [row and logical_key(tree_of(row)) for row in back] == [
        None if tree is None else logical_key(tree) for tree in trees
    ]
    # Every key was in the dictionary, so every row keeps its own.
    for row, original in zip(back, variants, strict=True):
        assert (row is None) == (original is None)
        assert row is None or original is None or row["metadata"] == original.metadata


@settings(deadline=None)
@given(columns(), st.integers(0, 5), st.integers(0, 5))
def test_slices_read_as_their_rows(
    column: tuple[ShreddingSchema, list[Tree | None]], start: int, length: int
) -> None:
    schema, trees = column
    shredded = shred([None if tree is None else variant(tree) for tree in trees], schema)
    part = unshred_plain(shredded.slice(start, length))
    assert rows_of(part) == rows_of(unshred_plain(shredded))[start : start + length]


def test_dictionaries_may_be_unsorted_and_hold_unused_and_repeated_keys() -> None:
    metadata = encode_dictionary([b"z", b"a", b"z", b"b"], sorted_strings=False)
    tree: Tree = {"z": Scalar(Primitive.INT8, 1), "b": {"a": Scalar(Primitive.STRING, "x")}}
    value = encode_value(tree, {"z": 2, "a": 1, "b": 3})
    for ddl in ("VARIANT", "z BIGINT", "b STRUCT<a: STRING>", "b VARIANT, a STRING", "q STRING"):
        (row,) = rows_of(unshred_plain(shred([Variant(metadata, value)], parse_ddl(ddl))))
        assert tree_of(row) == tree or logical_key(tree_of(row)) == logical_key(tree)
        assert row["metadata"] == metadata


def test_a_key_that_the_dictionary_lacks_is_added() -> None:
    """The keys of shredded fields must be in the metadata; reading tolerates one that is not."""
    row = {
        "metadata": encode_metadata(["b"]),
        "value": encode_value({"b": Scalar(Primitive.INT8, 2)}, {"b": 0}),
        "typed_value": {"a": {"value": None, "typed_value": 1}},
    }
    array = pa.array([row], arrow_type(parse_ddl("a BIGINT")))
    assert isinstance(array, pa.StructArray)
    (back,) = rows_of(unshred_plain(array))
    assert tree_of(back) == {"a": Scalar(Primitive.INT64, 1), "b": Scalar(Primitive.INT8, 2)}
    assert back["metadata"] == encode_metadata(["b", "a"])


# --- Which value goes into which column -----------------------------------------------------------

NUMBERS = {
    "int8": Scalar(Primitive.INT8, 5),
    "int64": Scalar(Primitive.INT64, 5),
    "decimal4": Scalar(Primitive.DECIMAL4, Decimal(5)),
    "decimal16": Scalar(Primitive.DECIMAL16, Decimal("5.00")),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("ddl", ["TINYINT", "BIGINT", "DECIMAL(1,0)", "DECIMAL(38,37)"])
def test_exact_numbers_fit_by_value(name: str, ddl: str) -> None:
    """Spec: VariantEncoding, "Encoding types": the class Exact Numeric."""
    (row,) = rows_of(shred([variant(NUMBERS[name])], parse_ddl(ddl)))
    assert row["value"] is None
    assert row["typed_value"] == 5


@pytest.mark.parametrize(
    ("tree", "ddl"),
    [
        (Scalar(Primitive.INT16, 128), "TINYINT"),
        (Scalar(Primitive.INT64, 1 << 31), "INT"),
        (Scalar(Primitive.DECIMAL16, Decimal(1 << 63)), "BIGINT"),
        (Scalar(Primitive.DECIMAL4, Decimal("1.5")), "BIGINT"),
        (Scalar(Primitive.DECIMAL4, Decimal("1.25")), "DECIMAL(18,1)"),
        (Scalar(Primitive.INT8, 10), "DECIMAL(2,1)"),
        (Scalar(Primitive.INT8, 1), "DOUBLE"),
        (Scalar(Primitive.DOUBLE, 1.0), "BIGINT"),
        (Scalar(Primitive.DOUBLE, 1.0), "DECIMAL(18,2)"),
        (Scalar(Primitive.FLOAT, 1.0), "DOUBLE"),
        (Scalar(Primitive.TIMESTAMP, 1), "TIMESTAMP_NANOS"),
        (Scalar(Primitive.TIMESTAMP_NANOS, 1000), "TIMESTAMP"),
        (Scalar(Primitive.TIMESTAMP, 1), "TIMESTAMP_NTZ"),
        (Scalar(Primitive.DATE, 1), "INT"),
        (Scalar(Primitive.STRING, "x"), "BINARY"),
        (Scalar(Primitive.NULL, None), "STRING"),
    ],
)
def test_other_values_stay_in_the_residual(tree: Tree, ddl: str) -> None:
    (row,) = rows_of(shred([variant(tree)], parse_ddl(ddl)))
    assert row["typed_value"] is None
    assert decode(row["metadata"], row["value"]) == tree


EXTREMES: dict[Kind, list[Any]] = {
    Kind.BOOLEAN: [True, False],
    Kind.INT8: [-128, 127],
    Kind.INT16: [-(1 << 15), (1 << 15) - 1],
    Kind.INT32: [-(1 << 31), (1 << 31) - 1],
    Kind.INT64: [-(1 << 63), (1 << 63) - 1],
    Kind.FLOAT: [-0.0, 1.5, float("inf"), float("nan")],
    Kind.DOUBLE: [-0.0, 1.1, float("-inf"), float("nan")],
    Kind.DATE: [-(1 << 31), (1 << 31) - 1],
    Kind.TIME: [0, 86_399_999_999],
    Kind.TIMESTAMP: [-(1 << 63), (1 << 63) - 1],
    Kind.TIMESTAMP_NANOS: [-(1 << 63), (1 << 63) - 1],
    Kind.TIMESTAMP_NTZ: [-(1 << 63), (1 << 63) - 1],
    Kind.TIMESTAMP_NTZ_NANOS: [-(1 << 63), (1 << 63) - 1],
    Kind.BINARY: [b"", b"\xff\x00"],
    Kind.STRING: ["", "x" * 64, "\U0001f600"],
    Kind.UUID: [uuid.UUID(int=0), uuid.UUID(int=(1 << 128) - 1)],
}


@pytest.mark.parametrize("kind", EXTREMES, ids=lambda kind: kind.value)
def test_every_type_keeps_type_and_value(kind: Kind) -> None:
    primitive = KINDS[kind].primitives[0]
    trees = [Scalar(Primitive.FALSE if raw is False else primitive, raw) for raw in EXTREMES[kind]]
    shredded = shred([variant(tree) for tree in trees], parse_ddl(KINDS[kind].ddl))
    assert shredded.field("value").null_count == len(trees)
    back = [tree_of(row) for row in rows_of(unshred_plain(shredded))]
    assert [encode(tree) for tree in back] == [encode(tree) for tree in trees]


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        (9, Primitive.DECIMAL4),
        (10, Primitive.DECIMAL8),
        (18, Primitive.DECIMAL8),
        (19, Primitive.DECIMAL16),
        (38, Primitive.DECIMAL16),
    ],
)
def test_a_decimal_is_as_wide_as_its_column(precision: int, expected: Primitive) -> None:
    """Spec: VariantEncoding, decimal table."""
    schema = ShreddedType(Kind.DECIMAL, precision, 2).ddl
    numbers = [Decimal("0.25"), decimal_of(1 - 10**precision, 2)]
    array = pa.array(
        [{"metadata": b"\x01\x00\x00", "typed_value": n} for n in numbers],
        arrow_type(parse_ddl(schema)),
    )
    assert isinstance(array, pa.StructArray)
    assert [tree_of(row) for row in rows_of(unshred_plain(array))] == [
        Scalar(expected, number) for number in numbers
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.decimal32(4, 2), Primitive.DECIMAL4),
        (pa.decimal64(4, 2), Primitive.DECIMAL8),
        (pa.decimal128(4, 2), Primitive.DECIMAL4),
        (pa.decimal256(20, 2), Primitive.DECIMAL16),
    ],
    ids=str,
)
def test_decimals_of_every_arrow_width(kind: pa.DataType, expected: Primitive) -> None:
    numbers = [Decimal("12.34"), None, Decimal("-0.01")]
    group = pa.StructArray.from_arrays(
        [pa.array([b"\x01\x00\x00"] * 3), pa.array(numbers, kind)], ["metadata", "typed_value"]
    )
    assert [tree_of(row) for row in rows_of(unshred_plain(group))] == [
        Scalar(Primitive.NULL, None) if number is None else Scalar(expected, number)
        for number in numbers
    ]


@pytest.mark.parametrize(
    ("binary", "text"),
    [
        (pa.large_binary(), pa.large_string()),
        (pa.binary_view(), pa.string_view()),
        (pa.dictionary(pa.int32(), pa.binary()), pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=["large", "view", "dictionary"],
)
@pytest.mark.parametrize("large_list", [False, True])
def test_arrow_types_of_any_width_are_read(
    binary: pa.DataType, text: pa.DataType, large_list: bool
) -> None:
    element = pa.struct([pa.field("value", binary), pa.field("typed_value", text)])
    values = pa.StructArray.from_arrays(
        [pa.array([None, b"\x00", None], binary), pa.array(["x", None, "y"], text)],
        fields=[pa.field("value", binary), pa.field("typed_value", text)],
    )
    typed: AnyArray = pa.ListArray.from_arrays(
        pa.array([0, 2, 2, 3], pa.int32()), values, mask=pa.array([False, True, False])
    )
    if large_list:
        typed = typed.cast(pa.large_list(element))
    group = pa.StructArray.from_arrays(
        [pa.array([b"\x01\x00\x00"] * 3, binary), typed], ["metadata", "typed_value"]
    )
    x, y = Scalar(Primitive.STRING, "x"), Scalar(Primitive.STRING, "y")
    assert [tree_of(row) for row in rows_of(unshred_plain(group))] == [[x, NULL], NULL, [y]]


# --- Bad bytes ------------------------------------------------------------------------------------


def shredded_row(ddl: str, **members: Any) -> pa.StructArray:
    row = {"metadata": b"\x01\x00\x00", "value": None, "typed_value": None, **members}
    array = pa.array([None, row], arrow_type(parse_ddl(ddl)))
    assert isinstance(array, pa.StructArray)
    return array


def test_a_string_that_is_not_utf8_is_an_error_with_its_row() -> None:
    text = pa.array([b"\xff"], pa.binary()).view(pa.string())
    group = pa.StructArray.from_arrays(
        [pa.array([b"\x01\x00\x00"]), text], ["metadata", "typed_value"]
    )
    with pytest.raises(MalformedFile, match="not UTF-8") as caught:
        unshred_plain(group)
    assert caught.value.row == 0


@pytest.mark.parametrize("value", [b"", b"\x02", b"\x02\x01\x00\x00\x01\x00", b"\x02\x01"])
def test_malformed_residuals_are_errors_with_row_and_path(value: bytes) -> None:
    typed = {"a": {"value": None, "typed_value": None}}
    with pytest.raises(VariantLakeError) as caught:
        unshred_plain(shredded_row("a STRING", value=value, typed_value=typed))
    assert (caught.value.row, caught.value.path) == (1, "$")


def test_malformed_metadata_is_an_error() -> None:
    typed = {"a": {"value": None, "typed_value": "x"}}
    with pytest.raises(MalformedVariant) as caught:
        unshred_plain(shredded_row("a STRING", metadata=b"\x02\x00\x00", typed_value=typed))
    assert caught.value.row == 1


def test_null_metadata_is_an_error() -> None:
    group = pa.StructArray.from_arrays(
        [pa.array([None], pa.binary()), pa.array([1])], ["metadata", "typed_value"]
    )
    with pytest.raises(MalformedFile, match="`metadata` is null"):
        unshred_plain(group)


def test_a_type_of_a_later_version_passes_through() -> None:
    """Spec: VariantEncoding, "Versions and extensions"."""
    unknown = struct.pack("B", 21 << 2) + b"data"
    metadata = encode_metadata(["a", "b"])
    value = b"\x02\x02\x00\x01\x00\x02\x07" + b"\x0c\x07" + unknown
    original = Variant(metadata, value)
    for ddl in ("VARIANT", "a BIGINT", "b STRING", "a BIGINT, b VARIANT"):
        (row,) = rows_of(unshred_plain(shred([original], parse_ddl(ddl))))
        assert row["value"].endswith(unknown)


@settings(deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=40), schemas())
def test_any_bytes_give_an_answer_or_our_error(
    metadata: bytes, value: bytes, schema: ShreddingSchema
) -> None:
    with contextlib.suppress(VariantLakeError):
        unshred_plain(shred([Variant(metadata, value)], schema))
