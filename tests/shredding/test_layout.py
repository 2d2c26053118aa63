"""The Arrow type of a shredded column."""

from __future__ import annotations

import pyarrow as pa
import pytest

from variantlake.errors import InvalidSchema, MalformedFile, VariantLakeError
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE, arrow_type, schema_of
from variantlake.shredding.schema import Object, ShreddingSchema, Untyped
from variantlake.types import STRING

METADATA = pa.field("metadata", pa.binary(), nullable=False)
VALUE = pa.field("value", pa.binary())


def test_the_unshredded_type_has_a_required_value() -> None:
    assert arrow_type(ShreddingSchema()) == VARIANT_TYPE


def test_field_groups_are_required_and_their_members_optional() -> None:
    column = arrow_type(parse_ddl("a INT, b VARIANT"))
    fields = column.field("typed_value").type
    assert not fields.field("a").nullable
    assert all(member.nullable for member in fields.field("a").type)
    assert fields.field("b").type == pa.struct([VALUE])
    assert column.field("value").nullable
    assert column.field("typed_value").nullable


def test_elements_are_required_groups_named_element() -> None:
    element = arrow_type(parse_ddl("ARRAY<STRING>")).field("typed_value").type.value_field
    assert (element.name, element.nullable) == ("element", False)


def test_an_element_without_typed_value_has_a_required_value() -> None:
    """Spec: the early text of VariantShredding, "Arrays"; the final one allows it."""
    element = arrow_type(parse_ddl("ARRAY<VARIANT>")).field("typed_value").type.value_field
    assert not element.type.field("value").nullable


def test_members_are_found_by_name_in_any_order() -> None:
    column = pa.struct([pa.field("typed_value", pa.int32()), METADATA, VALUE])
    assert schema_of(column) == parse_ddl("INT")


def test_groups_without_value_are_read() -> None:
    field = pa.field("a", pa.struct([pa.field("typed_value", pa.string())]), nullable=False)
    assert schema_of(pa.struct([METADATA, pa.field("typed_value", pa.struct([field]))])) == (
        parse_ddl("a STRING")
    )


def test_siblings_that_start_with_an_underscore_are_ignored() -> None:
    """Spec: Delta's Variant type, "Variant data in Parquet"."""
    extra = pa.field("_note", pa.int32())
    group = pa.struct([VALUE, extra, pa.field("typed_value", pa.string())])
    fields = pa.struct([pa.field("_x", group)])
    column = pa.struct([extra, METADATA, VALUE, pa.field("typed_value", fields)])
    assert schema_of(column) == parse_ddl("_x STRING")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.int32(), "is a group"),
        (pa.struct([VALUE]), "no field 'metadata'"),
        (pa.struct([METADATA]), "neither 'value' nor 'typed_value'"),
        (pa.struct([pa.field("metadata", pa.string()), VALUE]), "'metadata' is string"),
        (pa.struct([METADATA, pa.field("value", pa.int32())]), "'value' is int32"),
        (pa.struct([METADATA, VALUE, pa.field("other", pa.int32())]), "unknown field 'other'"),
        (pa.struct([METADATA, VALUE, VALUE]), "'value' appears twice"),
        (
            pa.struct([METADATA, VALUE, pa.field("typed_value", pa.list_(pa.string()))]),
            "elements of a shredded array are string",
        ),
        (
            pa.struct([METADATA, pa.field("typed_value", pa.struct([pa.field("a", pa.int32())]))]),
            "shredded field is int32",
        ),
        (
            pa.struct(
                [METADATA, pa.field("typed_value", pa.struct([pa.field("a", pa.struct([]))]))]
            ),
            "neither 'value' nor 'typed_value'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_groups_that_are_no_variant_are_refused(column: pa.DataType, message: str) -> None:
    with pytest.raises(MalformedFile, match=message):
        schema_of(column)


@pytest.mark.parametrize(
    "typed",
    [
        pa.uint8(),
        pa.uint32(),
        pa.uint64(),
        pa.binary(4),
        pa.binary(16),
        pa.time32("ms"),
        pa.time64("ns"),
        pa.timestamp("ms"),
        pa.float16(),
        pa.null(),
        pa.duration("us"),
        pa.decimal256(39, 0),
        pa.map_(pa.string(), pa.string()),
    ],
    ids=str,
)
def test_types_outside_of_the_table_are_refused(typed: pa.DataType) -> None:
    with pytest.raises(VariantLakeError) as caught:
        schema_of(pa.struct([METADATA, VALUE, pa.field("typed_value", typed)]))
    assert str(typed) in str(caught.value)


def test_extension_and_view_types_are_looked_through() -> None:
    column = pa.struct(
        [
            pa.field("metadata", pa.large_binary()),
            pa.field("value", pa.dictionary(pa.int32(), pa.binary())),
            pa.field("typed_value", pa.dictionary(pa.int32(), pa.string())),
        ]
    )
    assert schema_of(column).root == parse_ddl("STRING").root


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (ShreddingSchema(Object(())), "without fields"),
        (parse_ddl("a STRUCT<ID: INT, id: INT>"), "differ only by case"),
        (ShreddingSchema(Object((("\ud800", Untyped()),))), "not Unicode"),
    ],
)
def test_schemas_that_must_not_be_written(schema: ShreddingSchema, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        arrow_type(schema)


def test_string_is_a_leaf() -> None:
    assert arrow_type(parse_ddl("STRING")).field("typed_value").type == STRING.arrow
