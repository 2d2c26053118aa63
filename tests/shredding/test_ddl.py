"""DDL text of shredding schemas."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.shredding.strategies import schemas
from variantlake.errors import InvalidSchema
from variantlake.paths import Path
from variantlake.shredding.ddl import MAX_SCHEMA_DEPTH, format_ddl, parse_ddl
from variantlake.shredding.layout import arrow_type, schema_of
from variantlake.shredding.schema import Array, Leaf, Object, ShreddingSchema, Untyped
from variantlake.types import BOOLEAN, INT64, KINDS, STRING, Kind, ShreddedType


@settings(deadline=None)
@given(schemas())
def test_ddl_round_trips(schema: ShreddingSchema) -> None:
    assert parse_ddl(format_ddl(schema)) == schema


@settings(deadline=None)
@given(schemas())
def test_arrow_type_round_trips(schema: ShreddingSchema) -> None:
    assert schema_of(arrow_type(schema)) == schema


def test_the_documented_example() -> None:
    text = "kind STRING, time_us BIGINT, commit STRUCT<record: STRUCT<langs: ARRAY<STRING>>>"
    langs = Object((("langs", Array(Leaf(STRING))),))
    expected = Object(
        (
            ("kind", Leaf(STRING)),
            ("time_us", Leaf(INT64)),
            ("commit", Object((("record", langs),))),
        )
    )
    assert parse_ddl(text).root == expected
    assert format_ddl(ShreddingSchema(expected)) == text


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.value)
def test_every_kind_has_a_name(kind: Kind) -> None:
    shredded = ShreddedType(kind, 18, 2) if kind is Kind.DECIMAL else ShreddedType(kind)
    assert parse_ddl(f"a {shredded.ddl.lower()}").root == Object((("a", Leaf(shredded)),))
    for alias in KINDS[kind].aliases:
        parse_ddl(f"a {alias}")


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("BIGINT", Leaf(INT64)),
        ("variant", Untyped()),
        ("ARRAY<VARIANT>", Array(Untyped())),
        ("decimal (3, 1)", Leaf(ShreddedType(Kind.DECIMAL, 3, 1))),
        ("STRUCT<a BOOLEAN>", Object((("a", Leaf(BOOLEAN)),))),
        ("struct STRING", Object((("struct", Leaf(STRING)),))),
        ("array ARRAY<STRING>", Object((("array", Array(Leaf(STRING))),))),
        ("`` STRING", Object((("", Leaf(STRING)),))),
        ("`a``b. c`: STRING", Object((("a`b. c", Leaf(STRING)),))),
        ("ID STRING, id STRING", Object((("ID", Leaf(STRING)), ("id", Leaf(STRING))))),
    ],
)
def test_forms_of_a_schema(text: str, root: object) -> None:
    assert parse_ddl(text).root == root


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("a", 0),
        ("STRUCT<>", 7),
        ("a INT,", 6),
        ("a INT b INT", 6),
        ("a: foo", 3),
        ("a DECIMAL(1", 11),
        ("a DECIMAL(39,1)", 2),
        ("`a` `b`", 4),
        ("`a", 0),
        ("a INT, a INT", 7),
        ("a ARRAY<INT", 11),
        ("a INT ;", 6),
        ("a INT)", 5),
    ],
)
def test_what_is_not_ddl_is_refused_with_its_offset(text: str, offset: int) -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse_ddl(text)
    assert caught.value.offset == offset


def test_nesting_is_limited() -> None:
    deep = "ARRAY<" * MAX_SCHEMA_DEPTH + "STRING" + ">" * MAX_SCHEMA_DEPTH
    with pytest.raises(InvalidSchema, match="nests deeper"):
        parse_ddl(deep)
    parse_ddl(deep[len("ARRAY<") : -1])


def test_an_object_without_fields_has_no_ddl() -> None:
    with pytest.raises(InvalidSchema, match="without fields"):
        format_ddl(ShreddingSchema(Object((("a", Object(())),))))


def test_schema_find_gives_the_deepest_node() -> None:
    schema = parse_ddl("a STRUCT<b: BIGINT>")
    assert schema.find(Path.of("a", "b", "c")) == (Leaf(INT64), Path.of("a", "b"))
