"""CHAR and VARCHAR: what the metadata of columns says of them, from DDL to ALTER."""

from __future__ import annotations

from pathlib import Path

import pytest

from variantlake.delta.schema.char_types import char_length, declared_type, holds_char
from variantlake.delta.schema.ddl import DECLARED, parse_table_ddl
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, StructType
from variantlake.errors import InvalidSchema, UnsupportedFeature
from variantlake.table import Table

DDL = "c CHAR(5), v VARCHAR(3), s STRUCT<a: CHAR(4), b: BIGINT>, m MAP<CHAR(2), ARRAY<INT>>"


def test_ddl_writes_what_spark_writes() -> None:
    schema = parse_table_ddl(f"{DDL}, t STRING")
    assert [field.metadata.get(DECLARED) for field in schema.fields] == [
        "char(5)",
        "varchar(3)",
        "struct<a:char(4),b:bigint>",
        "map<char(2),array<int>>",
        None,
    ]
    assert schema.fields[0].type == PrimitiveType("string")
    assert "char" not in str(schema)


def test_the_declaration_goes_through_json() -> None:
    schema = StructType.from_json(parse_table_ddl(DDL).to_json())
    declared = [declared_type(field) for field in schema.fields]
    assert list(map(str, declared)) == [
        "char(5)",
        "varchar(3)",
        "struct<a: char(4), b: long>",
        "map<char(2), array<integer>>",
    ]
    assert list(map(holds_char, declared)) == [True, False, True, True]
    assert char_length(schema.fields[0]) == 5
    assert char_length(schema.fields[1]) == 0


def test_fields_go_by_name_where_the_struct_has_changed() -> None:
    (column,) = parse_table_ddl("s STRUCT<b: STRING, a: STRING, z: STRING>").fields
    column = StructField("s", column.type, metadata={DECLARED: "struct<A:char(4),b:varchar(2)>"})
    assert str(declared_type(column)) == "struct<b: varchar(2), a: char(4), z: string>"


def test_a_declaration_that_is_not_understood_is_refused() -> None:
    column = StructField("c", PrimitiveType("string"), metadata={DECLARED: "char(5) folded"})
    with pytest.raises(UnsupportedFeature, match="'char\\(5\\) folded', which is not understood"):
        declared_type(column)


@pytest.mark.parametrize("text", ["c CHAR", "c CHAR(0)", "c VARCHAR(x)", "c CHAR(1234567890)"])
def test_a_length_is_a_number_above_zero(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_table_ddl(text)


def test_alter_keeps_and_extends_declarations(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", DDL)
    table.add_column("w CHAR(2)")
    table.add_column("s STRUCT<z: VARCHAR(7)>")
    table.add_column("n INT")
    texts = {f.name: f.metadata.get(DECLARED) for f in Table.open(tmp_path / "t").schema.fields}
    assert texts == {
        "c": "char(5)",
        "v": "varchar(3)",
        "s": "struct<a:char(4),b:bigint,z:varchar(7)>",
        "m": "map<char(2),array<int>>",
        "w": "char(2)",
        "n": None,
    }


def test_odd_names_are_quoted() -> None:
    (column,) = parse_table_ddl("s STRUCT<`a b``c`: CHAR(4)>").fields
    assert column.metadata[DECLARED] == "struct<`a b``c`:char(4)>"
    assert str(declared_type(column)) == "struct<a b`c: char(4)>"
