"""One file for each rule of the tables in Parquet's VariantShredding, written byte by byte.

Files and expected values stand here as the specifications write them (`by_hand` makes the files,
VariantEncoding.md says the bytes), so that these tests alone show that we read what it says.
"""

from __future__ import annotations

import io
import re
import struct
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.parquet.by_hand import file_bytes
from tests.shredding.test_spec_tables import EVENTS, METADATA, cell, elements, event, text
from variantlake.encoding.tree import Tree, decode
from variantlake.errors import MalformedFile
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.reader import iter_batches, read_table

EMPTY = bytes.fromhex("01 00 00")  # version 1, no keys, one offset
NULL = bytes.fromhex("00")
TAGS = """
    optional group typed_value (LIST) {
      repeated group list {
        required group element {
          optional binary value;
          optional binary typed_value (STRING);
        }
      }
    }"""
EVENT = """
    optional group typed_value {
      required group event_type {
        optional binary value;
        optional binary typed_value (STRING);
      }
      required group event_ts {
        optional binary value;
        optional int64 typed_value (TIMESTAMP(true, MICROS));
      }
    }"""


def message(typed_value: str, value: str = "optional binary value;") -> str:
    """A Variant column `v` with these fields beside its metadata."""
    return f"""
  optional group v (VARIANT(1)) {{
    required binary metadata;
    {value}
    {typed_value}
  }}"""


def file_of(schema: str, *rows: dict[str, Any] | None) -> io.BytesIO:
    return io.BytesIO(file_bytes(schema, [{"v": row} for row in rows]))


def values_of(file: io.BytesIO) -> list[Any]:
    """The rows of the column, which must be the same in batches of one row."""
    rows = read_table(file).column("v").to_pylist()
    batches = [row for batch in iter_batches(file, 1) for row in batch.column("v").to_pylist()]
    assert batches == rows
    return rows


def row(value: bytes | None, typed: Any, metadata: bytes = EMPTY) -> dict[str, Any]:
    return {"metadata": metadata, "value": value, "typed_value": typed}


def check_value(file: io.BytesIO, expected: bytes) -> None:
    assert [each["value"] for each in values_of(file)] == [expected]
    assert list(check_file(file)) == []


def check_tree(file: io.BytesIO, expected: Tree) -> None:
    assert [decode(each["metadata"], each["value"]) for each in values_of(file)] == [expected]
    assert list(check_file(file)) == []


def check_refused(file: io.BytesIO, message: str, at_row: int | None = 0) -> None:
    with pytest.raises(MalformedFile, match=message):
        read_table(file)
    assert [found.row for found in check_file(file)] == [at_row]


def test_pyarrow_agrees_that_these_are_files() -> None:
    """The judge of `by_hand`: the storage of every shape, read by pyarrow."""
    rows = [row(None, event("noop", 5)), row(b"\x0ca", None), None]
    noop: Any
    other: Any
    noop, other, missing = pq.read_table(file_of(message(EVENT), *rows)).column("v").to_pylist()
    assert noop["typed_value"]["event_type"] == {"value": None, "typed_value": "noop"}
    assert (other["value"], other["typed_value"], missing) == (b"\x0ca", None, None)
    lists = [row(None, elements("a", None)), row(None, []), row(NULL, None)]
    found: list[Any] = pq.read_table(file_of(message(TAGS), *lists)).column("v").to_pylist()
    assert [each["typed_value"] for each in found] == [elements("a", None), [], None]


# --- "Value Shredding" ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "typed", "expected"),
    [
        pytest.param(None, 34, "18 22 00 00 00 00 00 00 00", id="34"),
        pytest.param("00", None, "00", id="null"),
        pytest.param("0d 6e 2f 61", None, "0d 6e 2f 61", id="n-a"),
        pytest.param(None, 100, "18 64 00 00 00 00 00 00 00", id="100"),
    ],
)
def test_measurement(value: str | None, typed: int | None, expected: str) -> None:
    stored = None if value is None else bytes.fromhex(value)
    file = file_of(message("optional int64 typed_value;"), row(stored, typed))
    check_value(file, bytes.fromhex(expected))


def test_missing_reads_as_variant_null_where_a_value_is_required() -> None:
    file = file_of(message("optional int64 typed_value;"), row(None, None))
    assert [each["value"] for each in values_of(file)] == [NULL]
    assert [found.row for found in check_file(file)] == [0]


def test_value_and_typed_value_together_are_refused_unless_an_object() -> None:
    check_refused(file_of(message("optional int64 typed_value;"), row(NULL, 34)), "both")
    partly = row(cell({"email": text("x")}), event("login"), METADATA)
    check_tree(file_of(message(EVENT), partly), {"event_type": text("login"), "email": text("x")})


def test_a_column_that_is_null_is_no_variant_null() -> None:
    file = file_of(message("optional int64 typed_value;"), None, row(NULL, None))
    assert [each and each["value"] for each in values_of(file)] == [None, NULL]


def test_columns_are_found_by_name() -> None:
    backwards = """
  optional group v (VARIANT(1)) {
    optional int64 typed_value;
    optional binary value;
    required binary metadata;
  }"""
    check_value(file_of(backwards, row(None, 1)), b"\x18" + struct.pack("<q", 1))


def test_unshredded() -> None:
    file = file_of(message("", "required binary value;"), row(b"\x0c\x07", None))
    check_value(file, b"\x0c\x07")


# --- "Shredded Value Types" -----------------------------------------------------------------------

MICROS = 1_730_982_834_123_456
LARGE = (12345678912345678901).to_bytes(16, "big")
TYPES = [
    # A parquet type, a value of it, and the Variant: header (type id << 2), then little-endian.
    ("boolean typed_value", True, "04"),
    ("boolean typed_value", False, "08"),
    ("int32 typed_value (INT(8, true))", -34, "0c de"),
    ("int32 typed_value (INT(16, true))", 1234, "10 d2 04"),
    ("int32 typed_value", 123456, "14 40 e2 01 00"),
    ("int32 typed_value (INT(32, true))", -1, "14 ff ff ff ff"),
    ("int64 typed_value", 1 << 40, "18 00 00 00 00 00 01 00 00"),
    ("int64 typed_value (INT(64, true))", -2, "18 fe ff ff ff ff ff ff ff"),
    ("float typed_value", 1.5, "38 00 00 c0 3f"),
    ("double typed_value", -2.5, "1c 00 00 00 00 00 00 04 c0"),
    ("int32 typed_value (DECIMAL(9, 2))", 1234, "20 02 d2 04 00 00"),
    ("int64 typed_value (DECIMAL(18, 2))", -1, "24 02 ff ff ff ff ff ff ff ff"),
    ("fixed_len_byte_array(16) typed_value (DECIMAL(38, 2))", LARGE, f"28 02 {LARGE[::-1].hex()}"),
    ("binary typed_value (DECIMAL(38, 2))", LARGE[-9:], f"28 02 {LARGE[::-1].hex()}"),
    ("int32 typed_value (DATE)", -1, "2c ff ff ff ff"),
    ("int64 typed_value (TIME(false, MICROS))", 1, "44 01 00 00 00 00 00 00 00"),
    (
        "int64 typed_value (TIMESTAMP(true, MICROS))",
        MICROS,
        f"30 {MICROS.to_bytes(8, 'little').hex()}",
    ),
    ("int64 typed_value (TIMESTAMP(false, MICROS))", -1, "34 ff ff ff ff ff ff ff ff"),
    ("int64 typed_value (TIMESTAMP(true, NANOS))", 5, "48 05 00 00 00 00 00 00 00"),
    ("int64 typed_value (TIMESTAMP(false, NANOS))", 5, "4c 05 00 00 00 00 00 00 00"),
    ("binary typed_value", b"\x03\x13", "3c 02 00 00 00 03 13"),
    ("binary typed_value (STRING)", "é", "09 c3 a9"),  # a short string: size << 2 | 1
    ("binary typed_value (STRING)", "x" * 64, "40 40 00 00 00" + "78" * 64),
    (
        "fixed_len_byte_array(16) typed_value (UUID)",
        bytes(range(16)),
        f"50 {bytes(range(16)).hex()}",
    ),
]


@pytest.mark.parametrize(("kind", "stored", "expected"), TYPES, ids=lambda each: str(each)[:50])
def test_a_shredded_value_type(kind: str, stored: Any, expected: str) -> None:
    file = file_of(message(f"optional {kind};"), row(None, stored))
    check_value(file, bytes.fromhex(expected))
    inside = message(
        f"optional group typed_value {{\nrequired group a {{\noptional {kind};\n}}\n}}", ""
    )
    metadata = bytes.fromhex("11 01 00 01 61")
    rows = values_of(file_of(inside, row(None, {"a": {"typed_value": stored}}, metadata)))
    (only,) = rows
    # An object of one field: header, number of fields, id 0, offsets 0 and the value's size.
    size = len(bytes.fromhex(expected))
    assert only["value"] == bytes([2, 1, 0, 0, size]) + bytes.fromhex(expected)


@pytest.mark.parametrize(
    "kind",
    [
        "int32 typed_value (INT(32, false))",
        "int64 typed_value (INT(64, false))",
        "int96 typed_value",
        "int32 typed_value (TIME(false, MILLIS))",
        "int64 typed_value (TIME(true, MICROS))",
        "int64 typed_value (TIME(false, NANOS))",
        "int64 typed_value (TIMESTAMP(true, MILLIS))",
        "fixed_len_byte_array(16) typed_value",
        "fixed_len_byte_array(4) typed_value",
        "binary typed_value (ENUM)",
        "binary typed_value (JSON)",
    ],
)
def test_a_type_that_the_table_does_not_have_is_refused(kind: str) -> None:
    check_refused(file_of(message(f"optional {kind};"), row(NULL, None)), "typed_value", None)


# --- "Arrays" -------------------------------------------------------------------------------------

NO_TAGS = bytes.fromhex("03 00 00")


@pytest.mark.parametrize(
    ("value", "typed", "expected"),
    [
        pytest.param(
            None,
            elements("comedy", "drama"),
            "03 02 00 07 0d 19 636f6d656479 15 6472616d61",
            id="two-strings",
        ),
        pytest.param(
            None, elements("horror", None), "03 02 00 07 08 19 686f72726f72 00", id="null-element"
        ),
        pytest.param(
            None,
            elements("comedy", "drama", "romance"),
            "03 03 00 07 0d 15 19 636f6d656479 15 6472616d61 1d 726f6d616e6365",
            id="three-strings",
        ),
        pytest.param(NULL, None, "00", id="null"),
        pytest.param(None, [], "03 00 00", id="empty"),
        pytest.param(b"\x0c\x01", None, "0c 01", id="no-array"),
    ],
)
def test_tags(value: bytes | None, typed: Any, expected: str) -> None:
    check_value(file_of(message(TAGS), row(value, typed)), bytes.fromhex(expected))


@pytest.mark.parametrize(
    ("value", "typed", "message_"),
    [
        pytest.param(NULL, elements("a"), "both", id="value-beside-array"),
        pytest.param(NO_TAGS, elements("a"), "both", id="array-beside-array"),
        pytest.param(NO_TAGS, None, "array", id="array-in-value"),
        pytest.param(None, [{"value": NULL, "typed_value": "a"}], "both", id="element-with-both"),
    ],
)
def test_arrays_that_are_refused(value: bytes | None, typed: Any, message_: str) -> None:
    check_refused(file_of(message(TAGS), row(value, typed)), message_)


def test_a_missing_element_reads_as_variant_null() -> None:
    file = file_of(message(TAGS), row(None, [{}]))
    assert [each["value"] for each in values_of(file)] == [bytes.fromhex("03 01 00 01 00")]
    assert [found.path for found in check_file(file)] == ["$[0]"]


@pytest.mark.parametrize(
    ("fields", "item"),
    [
        ("required binary value;", {"value": b"\x09hi"}),
        ("optional binary typed_value (STRING);", {"typed_value": "hi"}),
    ],
    ids=["no-typed-value", "no-value"],
)
def test_elements_may_omit_one_of_their_fields(fields: str, item: dict[str, Any]) -> None:
    schema = re.sub(
        r"optional binary value;\s+optional binary typed_value \(STRING\);", fields, TAGS
    )
    check_value(file_of(message(schema), row(None, [item])), bytes.fromhex("03 01 00 03 09 6869"))


# --- "Objects" ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tree", "value", "typed"), EVENTS)
def test_event(tree: Tree, value: Tree | None, typed: Any) -> None:
    check_tree(file_of(message(EVENT), row(cell(value), typed, METADATA)), tree)


def test_the_bytes_of_an_event() -> None:
    """Fields in the order of their names, with the ids that the metadata gives them."""
    names = bytes.fromhex("11 02 00 08 12") + b"event_tsevent_type"
    file = file_of(message(EVENT), row(None, event("noop", 1), names))
    expected = bytes.fromhex("02 02 00 01 00 09 0e 30 0100000000000000 11 6e6f6f70")
    check_value(file, expected)


@pytest.mark.parametrize(
    ("value", "typed", "message_"),
    [
        pytest.param({"event_type": text("login")}, event("login", 1), "event_type", id="twice"),
        pytest.param({"event_type": text("login")}, event(), "event_type", id="missing-but-there"),
        pytest.param({"event_type": text("login")}, None, "object", id="object-without-typed"),
        pytest.param(text("a"), event(), "not an object", id="typed-beside-a-string"),
        pytest.param({}, None, "object", id="empty-object-in-value"),
        pytest.param(None, event("a", type_value=text("b")), "both", id="field-with-both"),
    ],
)
def test_events_that_are_refused(value: Tree | None, typed: Any, message_: str) -> None:
    check_refused(file_of(message(EVENT), row(cell(value), typed, METADATA)), message_)


def test_fields_may_omit_typed_value() -> None:
    fields = "optional group typed_value {\nrequired group a {\noptional binary value;\n}\n}"
    metadata = bytes.fromhex("11 01 00 01 61")
    file = file_of(message(fields), row(None, {"a": {"value": b"\x04"}}, metadata))
    check_value(file, bytes.fromhex("02 01 00 00 01 04"))
    file = file_of(message(fields), row(None, {"a": {}}, metadata))
    check_value(file, bytes.fromhex("02 00 00"))


def test_the_group_of_a_field_must_be_required() -> None:
    """Ours is to read it where nothing is in doubt; `check` reports it."""
    file = file_of(message(EVENT.replace("required group event_type", "optional group event_type")),
                   row(None, event("noop", 1), METADATA))  # fmt: skip
    assert len(values_of(file)) == 1
    assert {found.path for found in check_file(file)} == {"$['event_type']"}


# --- "Nesting" ------------------------------------------------------------------------------------

NESTED = f"""
    optional group typed_value {{
      required group location {{
        optional binary value;
        optional group typed_value {{
          required group latitude {{
            optional binary value;
            optional double typed_value;
          }}
          required group longitude {{
            optional binary value;
            optional double typed_value;
          }}
        }}
      }}
      required group tags {{
        optional binary value;
        {TAGS}
      }}
    }}"""
PLACE = {"latitude": {"typed_value": 1.5}, "longitude": {"value": b"\x0d\x4e/A"}}


def test_nesting() -> None:
    names = bytes.fromhex("11 04 00 08 10 19 1d") + b"latitudelocationlongitudetags"
    typed = {"location": {"typed_value": PLACE}, "tags": {"typed_value": elements("a", None)}}
    location = bytes.fromhex("02 02 00 02 00 09 0d 1c 000000000000f83f 0d 4e2f41")
    tags = bytes.fromhex("03 02 00 02 03 05 61 00")
    head = bytes([2, 2, 1, 3, 0, len(location), len(location) + len(tags)])
    check_value(file_of(message(NESTED), row(None, typed, names)), head + location + tags)
    other = {"location": {"value": NULL}, "tags": {"value": b"\x04"}}
    expected = bytes.fromhex("02 02 01 03 00 01 02 00 04")
    check_value(file_of(message(NESTED), row(None, other, names)), expected)
    missing: dict[str, Any] = {"location": {"typed_value": {}}, "tags": {}}
    expected = bytes.fromhex("02 01 01 00 03 02 00 00")
    check_value(file_of(message(NESTED), row(None, missing, names)), expected)


def test_lists_of_lists_of_objects() -> None:
    inner = TAGS.replace("optional binary typed_value (STRING);", """
          optional group typed_value {
            required group a {
              optional binary value;
              optional int32 typed_value (INT(8, true));
            }
          }""")  # fmt: skip
    outer = TAGS.replace("optional binary typed_value (STRING);", inner)
    names = bytes.fromhex("11 01 00 01 61")
    one = {"typed_value": {"a": {"typed_value": 7}}}
    rows = [
        row(None, [{"typed_value": [one, {"value": NULL}]}, {"typed_value": []}], names),
        row(None, [], names),
        row(None, [{"value": NULL}, {"typed_value": [one]}], names),
    ]
    found = values_of(file_of(message(outer), *rows))
    trees = [decode(each["metadata"], each["value"]) for each in found]
    assert [repr(tree).count("7") for tree in trees] == [1, 0, 1]
    assert [len(tree) for tree in trees if isinstance(tree, list)] == [2, 0, 2]
