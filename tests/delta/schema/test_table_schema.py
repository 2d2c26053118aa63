"""Schemas: Delta's JSON and back, Arrow, DDL."""

from __future__ import annotations

import json
import pickle
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import corpora
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.errors import InvalidSchema, LimitExceeded, MalformedLog
from variantlake.shredding.layout import VARIANT_TYPE

EVERY_TYPE = (
    "s STRING, l BIGINT, i INT, h SMALLINT, b TINYINT, f FLOAT, d DOUBLE, o BOOLEAN, y BINARY, "
    "e DATE, t TIMESTAMP, z TIMESTAMP_NTZ, c DECIMAL(20,3), c0 DECIMAL, v VARIANT, "
    "st STRUCT<a: INT, v: VARIANT>, ar ARRAY<VARIANT>, ma MAP<STRING, STRUCT<v: VARIANT>>"
)


def test_every_type_goes_through_json() -> None:
    schema = parse_table_ddl(EVERY_TYPE)
    assert StructType.from_json(schema.to_json()) == schema


def test_the_text_is_that_of_delta() -> None:
    schema = parse_table_ddl("event VARIANT, a ARRAY<INT> NOT NULL, m MAP<STRING,DECIMAL(3,1)>")
    assert json.loads(schema.to_json()) == {
        "type": "struct",
        "fields": [
            {"name": "event", "type": "variant", "nullable": True, "metadata": {}},
            {
                "name": "a",
                "type": {"type": "array", "elementType": "integer", "containsNull": True},
                "nullable": False,
                "metadata": {},
            },
            {
                "name": "m",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": "decimal(3,1)",
                    "valueContainsNull": True,
                },
                "nullable": True,
                "metadata": {},
            },
        ],
    }


def test_the_example_of_the_specification_is_read() -> None:
    # It writes a Variant element as an object with a type, where others write the name alone.
    text = """{"type":"struct","fields":[
        {"name":"raw_data","type":"variant","nullable":true,"metadata":{}},
        {"name":"variant_array","type":{"type":"array","elementType":{"type":"variant"},
         "containsNull":false},"nullable":false,"metadata":{}}]}"""
    assert StructType.from_json(text) == StructType(
        (
            StructField("raw_data", VariantType()),
            StructField("variant_array", ArrayType(VariantType(), contains_null=False), False),
        )
    )


@pytest.mark.corpus(corpora.DELTA_TABLES)
def test_schemas_of_other_writers_come_back_as_they_were() -> None:
    for log in sorted(corpora.DELTA_TABLES.glob("*/_delta_log")):
        lines = (log / f"{0:020d}.json").read_bytes().splitlines()
        found = [orjson.loads(line) for line in lines]
        (text,) = [action["metaData"]["schemaString"] for action in found if "metaData" in action]
        assert StructType.from_json(text).to_json() == text


def _json(type_: Any, **field: Any) -> str:
    return json.dumps({"type": "struct", "fields": [{"name": "c", "type": type_, **field}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ('"long"', "not a struct"),
        ("7", "neither a name nor an object"),
        ('{"type":"struct"}', "no list of fields"),
        ('{"type":"struct","fields":[1]}', "no name"),
        ('{"type":"struct","fields":[{"name":1}]}', "no name"),
        (_json("quaternion"), "type of c is unknown: 'quaternion'"),
        (_json("decimal(39,0)"), "decimal"),
        (_json("decimal(3,4)"), "decimal"),
        (_json({"type": "list"}), "unknown"),
        (_json({"type": 5}), "unknown"),
        (_json(None), "neither"),
        (_json("long", nullable="yes"), "nullable of c"),
        (_json("long", metadata=[1]), "metadata of c"),
        (_json({"type": "array"}), "c.element"),
    ],
)
def test_what_is_no_schema_is_refused(text: str, message: str) -> None:
    with pytest.raises(MalformedLog, match=message):
        StructType.from_json(text)


def test_a_schema_nested_without_end_is_refused() -> None:
    text = '{"type":"array","elementType":' * 300 + '"long"' + "}" * 300
    with pytest.raises(LimitExceeded):
        StructType.from_json(_json("long").replace('"long"', text))


def test_fields_are_got_as_those_of_other_schemas() -> None:
    schema = StructType((StructField("a", VariantType()), StructField("b", VariantType())))
    assert schema["b"] is schema.field("b") is schema.get("b")
    assert [each.name for each in schema] == ["a", "b"]
    assert "b" in schema
    assert "B" not in schema
    with pytest.raises(KeyError, match="no column 'B'; columns: a, b"):
        schema["B"]


def test_variant_columns_are_those_reached_through_structs() -> None:
    schema = parse_table_ddl(EVERY_TYPE)
    assert schema.variant_columns() == (("v",), ("st", "v"))
    assert schema.holds_variant()
    assert parse_table_ddl("a ARRAY<STRUCT<v: VARIANT>>").holds_variant()
    assert not parse_table_ddl("a ARRAY<STRUCT<v: INT>>").holds_variant()


def test_physical_names_come_from_the_metadata() -> None:
    name = {"delta.columnMapping.physicalName": "col-1"}
    schema = StructType((StructField("v", VariantType(), metadata=name),))
    assert schema.variant_columns(physical=True) == (("col-1",),)
    assert schema.variant_columns() == (("v",),)


def test_to_arrow_and_back() -> None:
    schema = parse_table_ddl(
        EVERY_TYPE.split(", v VARIANT", maxsplit=1)[0] + ", a ARRAY<INT>, m MAP<STRING,INT>"
    )
    assert StructType.from_arrow(schema.to_arrow()) == schema


def test_a_variant_is_a_struct_of_metadata_and_value_in_arrow() -> None:
    arrow = parse_table_ddl("v VARIANT, a ARRAY<VARIANT>").to_arrow()
    assert arrow.field("v").type == VARIANT_TYPE
    assert arrow.field("a").type == pa.list_(pa.field("element", VARIANT_TYPE))


def test_from_arrow_names_a_column_that_cannot_be() -> None:
    arrow = pa.schema([("a", pa.struct([("b", pa.duration("s"))]))])
    with pytest.raises(InvalidSchema, match=r"a\.b"):
        StructType.from_arrow(arrow)


def test_from_arrow_takes_the_many_forms_of_a_type() -> None:
    arrow = pa.schema(
        [
            ("s", pa.large_string()),
            ("d", pa.dictionary(pa.int8(), pa.string())),
            ("t", pa.timestamp("ms", "Europe/Berlin")),
            ("v", VARIANT_TYPE),
            ("l", pa.large_list(pa.int8())),
        ]
    )
    found = StructType.from_arrow(arrow, variants=["v"])
    assert [str(field.type) for field in found.fields[:4]] == [
        "string",
        "string",
        "timestamp",
        "variant",
    ]
    assert found.fields[4].type == ArrayType(PrimitiveType("byte"))


def test_ddl_takes_what_spark_takes() -> None:
    schema = parse_table_ddl(
        "`odd ``name``` string not null comment 'it''s \\'fine\\'', m map<int, array<date>>"
    )
    assert schema.fields == (
        StructField("odd `name`", PrimitiveType("string"), False, {"comment": "it's 'fine'"}),
        StructField("m", MapType(PrimitiveType("integer"), ArrayType(PrimitiveType("date")))),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a column name"),
        ("a", "expected a type"),
        ("a INT,", "expected a column name"),
        ("a INT b INT", "expected ','"),
        ("a INT, a STRING", "appears twice"),
        ("a NUMBER", "unknown type 'NUMBER'"),
        ("a ARRAY<INT", "expected '>'"),
        ("a ARRAY INT", "expected '<'"),
        ("a MAP<INT>", "expected ','"),
        ("a STRUCT<b INT", "expected ','"),
        ("a DECIMAL(39)", "no such precision"),
        ("a DECIMAL(3,4)", "no such precision"),
        ("a DECIMAL(x)", "expected a number"),
        ("a INT NOT", "expected NULL"),
        ("a INT COMMENT 5", "expected a quoted text"),
        ("a INT ; drop", "unexpected character"),
        ("a `INT`", "expected a type"),
        ("a " + "ARRAY<" * 200 + "INT" + ">" * 200, "nested deeper"),
    ],
)
def test_ddl_that_does_not_parse(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message) as caught:
        parse_table_ddl(text)
    assert caught.value.offset is not None


@given(st.lists(st.sampled_from(["a", "A", "b", "É", "é", "ß", "SS", ""]), max_size=6))
def test_fields_are_the_first_of_their_names(names: list[str]) -> None:
    kind = PrimitiveType("integer")
    fields = [StructField(name, kind, metadata={"at": at}) for at, name in enumerate(names)]
    struct = StructType(tuple(fields))
    for name in ("a", "A", "B", "b", "é", "É", "ß", "ss", "", "none"):
        same = next((each for each in fields if each.name == name), None)
        alike = next((each for each in fields if each.name.lower() == name.lower()), None)
        assert (struct.get(name), struct.find(name)) == (same, alike)
        assert (struct.get(name), struct.find(name)) == (same, alike)  # by what is remembered
    assert pickle.loads(pickle.dumps(struct)) == struct  # noqa: S301 - ours
