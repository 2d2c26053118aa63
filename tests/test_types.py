"""THE table of types against the specification's, and the names of shredded types."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.errors import InvalidSchema
from variantlake.types import (
    KINDS,
    PRIMITIVES,
    VARIABLE,
    Family,
    Kind,
    Primitive,
    ShreddedType,
)

SOURCES = Path(__file__).resolve().parent.parent / "src" / "variantlake"

# The specification's table of primitive types: equivalence class, id, bytes of data.
SPEC = {
    "null": (Family.NULL, [0], 0),
    "boolean": (Family.BOOLEAN, [1, 2], 0),
    "int8": (Family.EXACT_NUMERIC, [3], 1),
    "int16": (Family.EXACT_NUMERIC, [4], 2),
    "int32": (Family.EXACT_NUMERIC, [5], 4),
    "int64": (Family.EXACT_NUMERIC, [6], 8),
    "double": (Family.DOUBLE, [7], 8),
    "decimal4": (Family.EXACT_NUMERIC, [8], 5),
    "decimal8": (Family.EXACT_NUMERIC, [9], 9),
    "decimal16": (Family.EXACT_NUMERIC, [10], 17),
    "date": (Family.DATE, [11], 4),
    "timestamp": (Family.TIMESTAMP, [12], 8),
    "timestamp_ntz": (Family.TIMESTAMP_NTZ, [13], 8),
    "float": (Family.FLOAT, [14], 4),
    "binary": (Family.BINARY, [15], VARIABLE),
    "string": (Family.STRING, [16], VARIABLE),
    "time": (Family.TIME, [17], 8),
    "timestamp_nanos": (Family.TIMESTAMP, [18], 8),
    "timestamp_ntz_nanos": (Family.TIMESTAMP_NTZ, [19], 8),
    "uuid": (Family.UUID, [20], 16),
}


def test_primitives_are_those_of_the_specification() -> None:
    table = [
        (id_, name, family, width) for name, (family, ids, width) in SPEC.items() for id_ in ids
    ]
    assert [(i.id, i.name, i.family, i.width) for i in PRIMITIVES.values()] == table
    assert list(PRIMITIVES) == list(Primitive) == list(range(21))


def test_every_primitive_but_null_has_one_kind() -> None:
    covered = [primitive for info in KINDS.values() for primitive in info.primitives]
    assert sorted(covered) == sorted(set(Primitive) - {Primitive.NULL})
    assert set(KINDS) == set(Kind)


def test_no_type_id_is_written_elsewhere() -> None:
    """A number beside a name that means a type id would be a second table."""
    names = {"type_id", "primitive", "primitive_id", "primitive_header"}
    for module in SOURCES.rglob("*.py"):
        if module.name == "types.py":
            continue
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
                constants = [c for c in node.comparators if isinstance(c, ast.Constant)]
                assert node.left.id not in names or not constants, f"{module}:{node.lineno}"


ALL_TYPES = [
    *(ShreddedType(kind) for kind in Kind if kind is not Kind.DECIMAL),
    ShreddedType(Kind.DECIMAL, 1, 0),
    ShreddedType(Kind.DECIMAL, 18, 18),
    ShreddedType(Kind.DECIMAL, 38, 2),
]


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_names_and_arrow_types_come_back(type_: ShreddedType) -> None:
    assert ShreddedType.parse(type_.ddl) == type_
    assert ShreddedType.parse(f"  {str(type_).lower()} ") == type_
    assert ShreddedType.from_arrow(type_.arrow) == type_


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("long", ShreddedType(Kind.INT64)),
        ("INTEGER", ShreddedType(Kind.INT32)),
        ("real", ShreddedType(Kind.FLOAT)),
        ("DEC", ShreddedType(Kind.DECIMAL, 10, 0)),
        ("numeric( 12 )", ShreddedType(Kind.DECIMAL, 12, 0)),
        ("decimal (12 , 3)", ShreddedType(Kind.DECIMAL, 12, 3)),
    ],
)
def test_other_names_parse(text: str, type_: ShreddedType) -> None:
    assert ShreddedType.parse(text) == type_


@pytest.mark.parametrize(
    "text",
    [
        "",
        "VARCHAR",
        "BIGINT(3)",
        "DECIMAL(0)",
        "DECIMAL(39)",
        "DECIMAL(5,6)",
        "DECIMAL(5,)",
        "INT INT",
    ],
)
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        ShreddedType.parse(text)


@pytest.mark.parametrize(
    "arrow",
    [
        pa.uint8(), pa.uint64(), pa.binary(4), pa.time32("ms"), pa.time64("ns"),
        pa.timestamp("ms"), pa.timestamp("s", "UTC"), pa.date64(), pa.float16(), pa.null(),
        pa.decimal256(40, 2), pa.decimal128(5, -2), pa.list_(pa.int8()), pa.duration("us"),
    ],
    ids=str,
)  # fmt: skip
def test_arrow_types_outside_of_the_table_are_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidSchema):
        ShreddedType.from_arrow(arrow)


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.large_string(), Kind.STRING),
        (pa.string_view(), Kind.STRING),
        (pa.large_binary(), Kind.BINARY),
        (pa.binary_view(), Kind.BINARY),
        (pa.timestamp("us", "+01:00"), Kind.TIMESTAMP),
        (pa.timestamp("ns", "Europe/Rome"), Kind.TIMESTAMP_NANOS),
    ],
)
def test_arrow_synonyms(arrow: pa.DataType, kind: Kind) -> None:
    assert ShreddedType.from_arrow(arrow) == ShreddedType(kind)


def test_precision_belongs_to_decimals_alone() -> None:
    with pytest.raises(InvalidSchema):
        ShreddedType(Kind.INT64, 3)


@given(st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(InvalidSchema):
        assert isinstance(ShreddedType.parse(text), ShreddedType)
