"""Shredding into the older layout: what the specification's tables say, and back again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shredding.legacy.test_unshred import TABLE
from tests.shredding.legacy_columns import EXAMPLE, NESTED, untyped
from tests.shredding.strategies import schemas, trees_for
from tests.strategies import MORE
from tests.twins.shred import shred, shred_legacy
from variantlake.encoding.tree import Tree, decode, encode, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidSchema
from variantlake.kernels.shredded.legacy_shredder import LegacyShredder
from variantlake.kernels.shredded.unshred_legacy import unshred_legacy
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.parquet.variant.variant_arrays import variants as variants_in
from variantlake.shredding.arrays import variants_of
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.legacy.layout import legacy_type
from variantlake.shredding.legacy.unshred import legacy_problems, unshred_legacy_plain
from variantlake.shredding.schema import Leaf, Object, ShreddingSchema
from variantlake.shredding.unshred import unshred_plain
from variantlake.types import Kind, ShreddedType

DDL = "a BIGINT, b STRUCT<c: STRING>"


def shredded(ddl: str, *values: Any) -> list[Any]:
    return [row.as_py() for row in shred_legacy(map(Variant.of, values), parse_ddl(ddl))]


def set_in(row: Any) -> Any:
    """The members that are set."""
    if isinstance(row, dict):
        return {name: set_in(value) for name, value in row.items() if value is not None}
    return [set_in(value) for value in row] if isinstance(row, list) else row


def test_the_schemas_of_the_examples() -> None:
    assert legacy_type(parse_ddl(DDL)) == EXAMPLE
    assert legacy_type(parse_ddl("ARRAY<STRUCT<a: ARRAY<BIGINT>, b: BIGINT>>")) == NESTED


@pytest.mark.parametrize(("value", "row"), TABLE)
def test_each_row_of_the_table_of_examples_is_shredded_as_it_says(value: Any, row: Any) -> None:
    assert set_in(shredded(DDL, value)[0]) == set_in(row)


def test_an_array_is_fully_shredded_and_its_objects_keep_leftovers() -> None:
    value = [
        {"a": [1, 2, 3], "b": 100, "c": "unexpected"},
        {"a": [4, 5, 6], "b": 200},
        "not an object",
    ]
    (row,) = shredded("ARRAY<STRUCT<a: ARRAY<BIGINT>, b: BIGINT>>", value)
    assert [element["untyped_value"] for element in row["array"]] == [
        untyped({"c": "unexpected"}),
        None,
        untyped("not an object"),
    ]
    assert row["untyped_value"] is None
    assert set_in(shredded("ARRAY<BIGINT>", {"no": "array"})[0]) == {
        "untyped_value": untyped({"no": "array"})
    }


def test_a_number_goes_into_the_column_of_another_if_nothing_is_lost() -> None:
    (whole, cut) = shredded("DECIMAL(9,2)", 123, 1.5)
    assert whole["typed_value"] == 123
    assert cut["typed_value"] is None, "a double is no decimal"
    (text, fraction) = shredded("BIGINT", "123", Variant.of(1.5))
    assert (text["typed_value"], fraction["typed_value"]) == (None, None)


def test_the_dictionary_of_an_untyped_value_has_its_own_keys_alone() -> None:
    (row,) = shredded("a BIGINT", {"a": {"x": 1}, "b": 2, "c": {"d": 3}})
    assert row["untyped_value"] == untyped({"b": 2, "c": {"d": 3}})
    assert row["object"]["a"]["untyped_value"] == untyped({"x": 1})


def test_what_must_not_be_written_is_refused() -> None:
    twins = Object((("k", Leaf(ShreddedType(Kind.INT64))), ("K", Leaf(ShreddedType(Kind.INT64)))))
    for root in (twins, Object(())):
        with pytest.raises(InvalidSchema):
            legacy_type(ShreddingSchema(root))


@st.composite
def documents(draw: st.DrawFn) -> tuple[ShreddingSchema, list[Tree | None]]:
    schema = draw(schemas())
    return schema, draw(st.lists(st.none() | trees_for(schema.root), max_size=6))


def keys_of(array: pa.StructArray) -> list[Any]:
    found: list[Any] = []
    for row in array:
        one: Any = row.as_py()
        found.append(None if one is None else logical_key(decode(one["metadata"], one["value"])))
    return found


@settings(max_examples=50 * MORE, deadline=None)
@given(documents())
def test_what_was_shredded_comes_back_in_both_layouts(
    column: tuple[ShreddingSchema, list[Tree | None]],
) -> None:
    schema, trees = column
    variants = [None if tree is None else Variant(*encode(tree)) for tree in trees]
    expected = [None if tree is None else logical_key(tree) for tree in trees]
    legacy = shred_legacy(variants, schema)
    legacy.validate(full=True)
    assert legacy.type == legacy_type(schema)
    assert not list(legacy_problems(legacy))
    assert keys_of(unshred_legacy_plain(legacy)) == expected
    assert keys_of(unshred_legacy(legacy)) == expected
    # The final layout and back: its rows are what a legacy column gave.
    final = unshred_plain(shred(variants_in(unshred_legacy(legacy)), schema))
    again = variants_in(final)
    assert keys_of(unshred_legacy_plain(shred_legacy(again, schema))) == expected


@settings(max_examples=50 * MORE, deadline=None)
@given(documents())
def test_the_compiled_shredder_is_the_plain_one(
    column: tuple[ShreddingSchema, list[Tree | None]],
) -> None:
    schema, trees = column
    variants = [None if tree is None else Variant(*encode(tree)) for tree in trees]
    rows = variants_of([None if v is None else (v.metadata, v.value) for v in variants])
    found = LegacyShredder(schema).shred(VariantReader().read(rows))
    found.validate(full=True)
    expected = shred_legacy(variants, schema)
    assert found.type == expected.type
    assert same(found, expected)


def same(found: pa.StructArray, expected: pa.StructArray) -> bool:
    return bool(found.equals(expected)) or repr(found) == repr(expected)  # NaN is not NaN
