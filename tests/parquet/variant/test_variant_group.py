"""Variant groups are understood by name, found by position, and refused for what is not allowed."""

from __future__ import annotations

import io
import json
from pathlib import Path as File
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from tests import corpora
from tests.shredding.strategies import schemas
from tests.strategies import MORE
from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.metadata.logical import Logical
from variantlake.parquet.metadata.schema_tree import SchemaNode, leaves_of
from variantlake.parquet.variant.variant_group import VariantGroup, parse_group, variant_groups
from variantlake.parquet.write.file_writer import FileWriter
from variantlake.paths import Path
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import Leaf, ShreddingSchema

CASES = corpora.SHREDDED_VARIANT

# --- Schemas made by hand -------------------------------------------------------------------------


def leaf(
    name: str,
    physical: str = "BYTE_ARRAY",
    logical: Logical | None = None,
    repetition: str = "optional",
    length: int = 0,
) -> SchemaNode:
    return SchemaNode(name, repetition, physical, length, logical, (), 0)


def group(
    name: str,
    *children: SchemaNode,
    logical: Logical | None = None,
    repetition: str = "required",
) -> SchemaNode:
    return SchemaNode(name, repetition, None, 0, logical, children, None)


METADATA = leaf("metadata", repetition="required")
VALUE = leaf("value")
LIST = Logical("LIST")
INT64 = leaf("typed_value", "INT64")


def variant(*children: SchemaNode, version: int = 1) -> SchemaNode:
    mark = Logical("VARIANT", version=version)
    return group("v", *children, logical=mark, repetition="optional")


def array(*element: SchemaNode, repetition: str = "required") -> SchemaNode:
    inner = group("element", *element, repetition=repetition)
    repeated = group("list", inner, repetition="repeated")
    return group("typed_value", repeated, logical=LIST, repetition="optional")


def fields(*children: SchemaNode) -> SchemaNode:
    return group("typed_value", *children, repetition="optional")


ACCEPTED: list[tuple[str, SchemaNode, str]] = [
    ("unshredded", variant(METADATA, leaf("value", repetition="required")), "VARIANT"),
    ("optional metadata", variant(leaf("metadata"), VALUE), "VARIANT"),
    ("any order", variant(INT64, VALUE, METADATA), "BIGINT"),
    ("no value at the root", variant(METADATA, INT64), "BIGINT"),
    ("array", variant(METADATA, VALUE, array(VALUE, INT64)), "ARRAY<BIGINT>"),
    ("array of untyped", variant(METADATA, VALUE, array(VALUE)), "ARRAY<VARIANT>"),
    (
        "optional element",
        variant(METADATA, array(INT64, repetition="optional")),
        "ARRAY<BIGINT>",
    ),
    (
        "optional field group",
        variant(METADATA, VALUE, fields(group("a", VALUE, INT64, repetition="optional"))),
        "a BIGINT",
    ),
    ("field without typed_value", variant(METADATA, fields(group("a", VALUE))), "a VARIANT"),
    ("field without value", variant(METADATA, fields(group("a", INT64))), "a BIGINT"),
    ("underscore sibling", variant(METADATA, VALUE, leaf("_x", "INT96"), INT64), "BIGINT"),
    (
        "underscore sibling in a field",
        variant(METADATA, fields(group("a", INT64, group("_x", VALUE)))),
        "a BIGINT",
    ),
    (
        "fields called like parts of the layout",
        variant(METADATA, fields(group("value", VALUE), group("typed_value", INT64))),
        "value VARIANT, typed_value BIGINT",
    ),
    ("underscore fields are fields", variant(METADATA, fields(group("_a", INT64))), "_a BIGINT"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "ddl"), [case[1:] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED]
)
def test_tolerated_layouts(node: SchemaNode, ddl: str) -> None:
    parsed = parse_group(node)
    assert parsed.schema == parse_ddl(ddl)
    assert parsed.annotated


STRING = Logical("STRING")
TEXT_METADATA = leaf("metadata", logical=STRING, repetition="required")
NO_GROUP = "expected a group"


def shredded(*children: SchemaNode) -> SchemaNode:
    """A Variant shredded as an object of these fields."""
    return variant(METADATA, VALUE, fields(*children))


def listed(repeated: SchemaNode) -> SchemaNode:
    """A Variant shredded as a list with this repeated node."""
    return variant(METADATA, VALUE, group("typed_value", repeated, logical=LIST))


REFUSED: list[tuple[str, SchemaNode, str]] = [
    ("a leaf", leaf("v"), "is a group"),
    ("a list", group("v", METADATA, VALUE, logical=LIST), "logical type LIST"),
    ("version 2", variant(METADATA, VALUE, version=2), "version 2"),
    ("version 0", variant(METADATA, VALUE, version=0), "version 0"),
    ("no metadata", variant(VALUE), "no 'metadata'"),
    ("only metadata", variant(METADATA), "neither 'value' nor 'typed_value'"),
    ("metadata of text", variant(TEXT_METADATA, VALUE), "expected binary"),
    ("value is a number", variant(METADATA, leaf("value", "INT64")), "expected binary"),
    ("value is a group", variant(METADATA, group("value", VALUE)), "expected binary"),
    ("repeated value", variant(METADATA, leaf("value", repetition="repeated")), "repeated"),
    ("value twice", variant(METADATA, VALUE, VALUE), "appears twice"),
    ("unknown sibling", variant(METADATA, VALUE, leaf("extra")), "unknown field 'extra'"),
    ("metadata in a field", shredded(group("a", METADATA, VALUE)), "unknown field 'metadata'"),
    ("empty field", shredded(group("a")), "neither"),
    ("empty element", variant(METADATA, array()), "neither"),
    ("field is a leaf", shredded(leaf("a")), NO_GROUP),
    ("field is repeated", shredded(group("a", VALUE, repetition="repeated")), NO_GROUP),
    ("field is a list", shredded(group("a", VALUE, logical=LIST)), NO_GROUP),
    ("field twice", shredded(group("a", VALUE), group("a", VALUE)), "appears twice"),
    ("map", variant(METADATA, group("typed_value", VALUE, logical=Logical("MAP"))), "type MAP"),
    ("two-level list", listed(leaf("element", repetition="repeated")), "three levels"),
    ("two elements", listed(group("list", VALUE, INT64, repetition="repeated")), "three levels"),
    ("element is a leaf", listed(group("list", leaf("element"), repetition="repeated")), NO_GROUP),
    ("variant in a variant", shredded(variant(METADATA, VALUE)), NO_GROUP),
]


@pytest.mark.parametrize(
    ("node", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_the_specification_does_not_have_is_refused(node: SchemaNode, message: str) -> None:
    with pytest.raises(MalformedFile, match=message) as caught:
        parse_group(node, ("outer", "v"))
    assert caught.value.message.startswith("column 'outer.v': ")


def decimal(precision: int, scale: int) -> Logical:
    return Logical("DECIMAL", precision=precision, scale=scale)


def integer(bits: int, *, signed: bool = True) -> Logical:
    return Logical("INTEGER", bits=bits, signed=signed)


def stamp(unit: str, *, utc: bool, kind: str = "TIMESTAMP") -> Logical:
    return Logical(kind, unit=unit, utc=utc)


TYPES: list[tuple[str, Logical | None, int, str]] = [
    ("BOOLEAN", None, 0, "BOOLEAN"),
    ("INT32", integer(8), 0, "TINYINT"),
    ("INT32", integer(16), 0, "SMALLINT"),
    ("INT32", None, 0, "INT"),
    ("INT32", integer(32), 0, "INT"),
    ("INT64", None, 0, "BIGINT"),
    ("INT64", integer(64), 0, "BIGINT"),
    ("FLOAT", None, 0, "FLOAT"),
    ("DOUBLE", None, 0, "DOUBLE"),
    ("INT32", decimal(9, 2), 0, "DECIMAL(9,2)"),
    ("INT64", decimal(18, 18), 0, "DECIMAL(18,18)"),
    ("INT64", decimal(3, 0), 0, "DECIMAL(3,0)"),
    ("BYTE_ARRAY", decimal(38, 9), 0, "DECIMAL(38,9)"),
    ("FIXED_LEN_BYTE_ARRAY", decimal(38, 9), 16, "DECIMAL(38,9)"),
    ("FIXED_LEN_BYTE_ARRAY", decimal(2, 0), 1, "DECIMAL(2,0)"),
    ("INT32", Logical("DATE"), 0, "DATE"),
    ("INT64", stamp("MICROS", utc=False, kind="TIME"), 0, "TIME"),
    ("INT64", stamp("MICROS", utc=True), 0, "TIMESTAMP"),
    ("INT64", stamp("NANOS", utc=True), 0, "TIMESTAMP_NANOS"),
    ("INT64", stamp("MICROS", utc=False), 0, "TIMESTAMP_NTZ"),
    ("INT64", stamp("NANOS", utc=False), 0, "TIMESTAMP_NTZ_NANOS"),
    ("BYTE_ARRAY", None, 0, "BINARY"),
    ("BYTE_ARRAY", Logical("STRING"), 0, "STRING"),
    ("FIXED_LEN_BYTE_ARRAY", Logical("UUID"), 16, "UUID"),
    ("INT32", integer(32, signed=False), 0, ""),
    ("INT64", integer(64, signed=False), 0, ""),
    ("INT32", integer(64), 0, ""),
    ("INT32", decimal(10, 2), 0, ""),
    ("INT64", decimal(19, 2), 0, ""),
    ("BYTE_ARRAY", decimal(39, 2), 0, ""),
    ("FIXED_LEN_BYTE_ARRAY", decimal(3, 0), 1, ""),
    ("FLOAT", decimal(3, 0), 0, ""),
    ("FIXED_LEN_BYTE_ARRAY", None, 4, ""),
    ("FIXED_LEN_BYTE_ARRAY", None, 16, ""),
    ("FIXED_LEN_BYTE_ARRAY", Logical("UUID"), 15, ""),
    ("FIXED_LEN_BYTE_ARRAY", Logical("FLOAT16"), 2, ""),
    ("INT96", None, 0, ""),
    ("INT64", stamp("MILLIS", utc=True), 0, ""),
    ("INT32", stamp("MILLIS", utc=False, kind="TIME"), 0, ""),
    ("INT64", stamp("MICROS", utc=True, kind="TIME"), 0, ""),
    ("INT64", stamp("NANOS", utc=False, kind="TIME"), 0, ""),
    ("INT64", Logical("DATE"), 0, ""),
    ("BYTE_ARRAY", Logical("JSON"), 0, ""),
    ("BYTE_ARRAY", Logical("ENUM"), 0, ""),
    ("BYTE_ARRAY", Logical("UNKNOWN_19"), 0, ""),
]


@pytest.mark.parametrize(("physical", "logical", "length", "ddl"), TYPES, ids=str)
def test_types_of_typed_value(
    physical: str, logical: Logical | None, length: int, ddl: str
) -> None:
    node = variant(METADATA, VALUE, leaf("typed_value", physical, logical, length=length))
    if not ddl:
        with pytest.raises(MalformedFile, match="typed_value is"):
            parse_group(node)
        return
    parsed = parse_group(node)
    assert parsed.schema == parse_ddl(ddl)
    assert physical in parsed.root.parquet_type


def test_exact_types_are_told_apart() -> None:
    types = {
        parse_group(
            variant(METADATA, VALUE, leaf("typed_value", physical, logical, length=length))
        ).root.parquet_type
        for physical, logical, length, ddl in TYPES
        if ddl
    }
    assert len(types) == sum(bool(ddl) for *_, ddl in TYPES)
    shredded = parse_group(
        variant(METADATA, VALUE, fields(group("a", VALUE, array(INT64)), group("b", VALUE)))
    )
    found = shredded.find(Path.of("a"))
    assert found is not None
    assert found.element is not None
    assert found.element.parquet_type == "INT64"
    assert shredded.find(Path.of("a", 0)) is None
    assert shredded.find(Path.of("A")) is None


# --- Schemas of files -----------------------------------------------------------------------------


def written(schema: ShreddingSchema, tmp: io.BytesIO) -> Footer:
    kind = arrow_type(schema)
    arrow = pa.schema([pa.field("i", pa.int8()), pa.field("v", kind), pa.field("z", pa.int8())])
    empty = pa.Table.from_batches([], arrow)
    pq.write_table(empty, tmp, store_decimal_as_integer=True)
    return read_footer(tmp)


def check_positions(found: VariantGroup, footer: Footer) -> None:
    """Every index points at the leaf that stands in the node's own group."""
    leaves = [leaf.node for leaf in footer.leaves]
    assert found.metadata is not None
    assert leaves[found.metadata].name == "metadata"
    for _, node in found.nodes():
        members = {id(child) for child in node.group.children}
        for index, name in ((node.value, "value"), (node.typed_value, "typed_value")):
            if index is not None:
                assert leaves[index].name == name
                assert id(leaves[index]) in members
        assert (node.typed_value is not None) == isinstance(node.node, Leaf)


@settings(max_examples=50 * MORE, deadline=None)
@given(schema=schemas())
def test_schemas_that_we_write_are_found_again(schema: ShreddingSchema) -> None:
    footer = written(schema, io.BytesIO())
    assert variant_groups(footer) == (), "pyarrow marks nothing"
    (found,) = variant_groups(footer, [("v",), ("elsewhere",)])
    assert found.schema == schema
    assert [(path, node.node) for path, node in found.nodes()] == list(schema.nodes())
    assert (found.required, found.repeated, found.annotated) == (False, False, False)
    check_positions(found, footer)
    for path, node in found.nodes():
        assert found.find(path) is node


def test_dotted_keys_do_not_collide() -> None:
    footer = written(parse_ddl("`a.b` STRING, a STRUCT<b: BIGINT>"), io.BytesIO())
    (found,) = variant_groups(footer, [("v",)])
    dotted, nested = found.find(Path.of("a.b")), found.find(Path.of("a", "b"))
    assert dotted is not None
    assert nested is not None
    assert dotted.parquet_type == "BYTE_ARRAY STRING"
    assert nested.parquet_type == "INT64"
    assert dotted.typed_value != nested.typed_value


def test_variants_at_every_depth(tmp_path: File) -> None:
    kind = arrow_type(parse_ddl("a BIGINT"))
    schema = pa.schema(
        [
            pa.field("v", kind, nullable=False),
            pa.field("s", pa.struct([pa.field("v", kind, nullable=False)])),
            pa.field("l", pa.list_(pa.field("element", kind))),
            pa.field("m", pa.map_(pa.string(), pa.struct([pa.field("v", kind)]))),
        ]
    )
    columns = [("v",), ("s", "v"), ("l", "list", "element"), ("m", "key_value", "value", "v")]
    with FileWriter(tmp_path / "x.parquet", schema, variant_columns=columns) as writer:
        writer.close()
    groups = variant_groups(read_footer(tmp_path / "x.parquet"))
    assert [found.column for found in groups] == columns
    assert [found.required for found in groups] == [True, False, False, False]
    assert [found.repeated for found in groups] == [False, False, True, True]
    assert all(found.annotated for found in groups)


CASE_FILES = sorted(CASES.glob("*.parquet"))


@pytest.mark.corpus(corpora.SHREDDED_VARIANT)
@pytest.mark.parametrize("file", CASE_FILES, ids=lambda file: file.stem)
def test_conformance_files(file: File) -> None:
    cases: list[dict[str, Any]] = json.loads((CASES / "cases.json").read_text())
    case = next(c for c in cases if c.get("parquet_file") == file.name)
    footer = read_footer(file)
    if "Unsupported shredded value type" in case.get("error_message", ""):
        with pytest.raises(MalformedFile, match="typed_value is"):
            variant_groups(footer)
        return
    (found,) = variant_groups(footer)
    assert found.column == ("var",)
    assert parse_ddl(format_ddl(found.schema)) == found.schema
    check_positions(found, footer)


@pytest.mark.corpus(corpora.SHREDDED_VARIANT)
def test_all_conformance_files_are_there() -> None:
    assert len(CASE_FILES) == 112


@pytest.mark.corpus(corpora.DELTA_TABLES)
def test_variant_groups_of_delta_spark() -> None:
    tables = corpora.DELTA_TABLES
    file = next((tables / "variant-stats-no-checkpoint").glob("*.parquet"))
    groups = variant_groups(read_footer(file))
    assert [(g.column, format_ddl(g.schema)) for g in groups] == [
        (("v",), "id BIGINT, name STRING"),
        (("nv", "v"), "id BIGINT, name STRING"),
    ]


def test_leaves_are_walked_in_schema_order() -> None:
    node = group("root", variant(METADATA, VALUE, array(VALUE)), leaf("i", repetition="repeated"))
    levels = [(x.node.name, x.max_definition, x.max_repetition) for x in leaves_of(node)]
    assert levels == [("metadata", 1, 0), ("value", 2, 0), ("value", 4, 1), ("i", 1, 1)]
