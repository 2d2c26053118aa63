"""Layouts that other writers make: what is read, what is refused, and what `check` says of it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.tree import Tree, decode, encode_value
from variantlake.errors import MalformedFile, VariantLakeError
from variantlake.parquet.metadata.annotate import annotate
from variantlake.parquet.read.check import Finding, check_file
from variantlake.parquet.read.reader import read_table
from variantlake.types import Primitive

KEYS = ["a", "b", "c", "d"]
METADATA = encode_metadata(KEYS)
BINARY = pa.binary()


def cell(tree: Tree) -> bytes:
    return encode_value(tree, {key: i for i, key in enumerate(KEYS)})


def integer(number: int) -> Scalar:
    return Scalar(Primitive.INT32, number)


def text(value: str) -> Scalar:
    return Scalar(Primitive.STRING, value)


NULL = Scalar(Primitive.NULL, None)


def required(name: str, kind: pa.DataType) -> pa.Field[Any]:
    return pa.field(name, kind, nullable=False)


def group(*fields: Any) -> pa.StructType:
    return pa.struct(list(fields))


def typed(kind: pa.DataType, *, value: bool = True) -> pa.StructType:
    """A field's group."""
    fields = [pa.field("typed_value", kind)]
    return group(*([pa.field("value", BINARY)] if value else []), *fields)


def variant_type(*fields: Any) -> pa.StructType:
    return group(required("metadata", BINARY), *fields)


VALUE = pa.field("value", BINARY)
LIST_OF_STRINGS = pa.list_(required("element", typed(pa.string())))


def write(
    folder: Path, kind: pa.DataType, row: dict[str, Any], *, mark: bool = True, **options: Any
) -> Path:
    """One row in a file of pyarrow's, marked as VARIANT."""
    file = folder / "t.parquet"
    full = {"metadata": METADATA, **row}
    pq.write_table(pa.table({"v": pa.array([full], kind)}), file, **options)
    if mark:
        annotate(file, [("v",)])
    return file


def tree_in(file: Path) -> Tree:
    rows: list[Any] = read_table(file).column("v").to_pylist()
    (row,) = rows
    return decode(row["metadata"], row["value"])


def findings(file: Path) -> list[Finding]:
    return list(check_file(file))


# --- Valid layouts --------------------------------------------------------------------------------


def test_a_missing_value_column(tmp_path: Path) -> None:
    kind = variant_type(pa.field("typed_value", pa.int32()))
    file = write(tmp_path, kind, {"typed_value": 34})
    assert tree_in(file) == integer(34)
    assert findings(file) == []


def test_null_value_and_null_typed_value(tmp_path: Path) -> None:
    kind = variant_type(VALUE, pa.field("typed_value", pa.int32()))
    file = write(tmp_path, kind, {})
    assert tree_in(file) == NULL
    assert [(f.row, f.path) for f in findings(file)] == [(0, "$")]


def test_an_object_without_value_column(tmp_path: Path) -> None:
    fields = group(required("a", typed(pa.int32())), required("b", typed(pa.string())))
    kind = variant_type(pa.field("typed_value", fields))
    row = {"typed_value": {"a": {"value": cell(NULL)}, "b": {"typed_value": "x"}}}
    file = write(tmp_path, kind, row)
    assert tree_in(file) == {"a": NULL, "b": text("x")}
    assert findings(file) == []


def test_fields_without_value_column(tmp_path: Path) -> None:
    fields = group(required("a", typed(pa.int32(), value=False)), required("b", typed(pa.string())))
    kind = variant_type(VALUE, pa.field("typed_value", fields))
    row = {"typed_value": {"a": {"typed_value": None}, "b": {"typed_value": "x"}}}
    file = write(tmp_path, kind, row)
    assert tree_in(file) == {"b": text("x")}
    assert findings(file) == []


@pytest.mark.parametrize("nullable", [True, False], ids=["optional", "required"])
def test_fields_without_typed_value_column(tmp_path: Path, nullable: bool) -> None:
    only_value = group(pa.field("value", BINARY, nullable=nullable))
    kind = variant_type(VALUE, pa.field("typed_value", group(required("a", only_value))))
    file = write(tmp_path, kind, {"typed_value": {"a": {"value": cell([text("x")])}}})
    assert tree_in(file) == {"a": [text("x")]}
    assert findings(file) == []


def test_arrays_without_value_columns(tmp_path: Path) -> None:
    element = required("element", typed(pa.string(), value=False))
    kind = variant_type(pa.field("typed_value", pa.list_(element)))
    row = {"typed_value": [{"typed_value": "comedy"}, {"typed_value": "drama"}]}
    file = write(tmp_path, kind, row)
    assert tree_in(file) == [text("comedy"), text("drama")]
    assert findings(file) == []


def test_elements_without_typed_value(tmp_path: Path) -> None:
    element = required("element", group(required("value", BINARY)))
    kind = variant_type(VALUE, pa.field("typed_value", pa.list_(element)))
    file = write(tmp_path, kind, {"typed_value": [{"value": cell(integer(1))}]})
    assert tree_in(file) == [integer(1)]
    assert findings(file) == []


def test_a_missing_element_is_a_null_and_a_finding(tmp_path: Path) -> None:
    kind = variant_type(VALUE, pa.field("typed_value", LIST_OF_STRINGS))
    row = {"typed_value": [{"typed_value": "comedy"}, {}, {"typed_value": "drama"}]}
    file = write(tmp_path, kind, row)
    assert tree_in(file) == [text("comedy"), NULL, text("drama")]
    assert [(f.row, f.path) for f in findings(file)] == [(0, "$[1]")]


def test_an_array_column_with_other_values(tmp_path: Path) -> None:
    kind = variant_type(VALUE, pa.field("typed_value", LIST_OF_STRINGS))
    trees: list[Tree] = [integer(34), {"a": NULL}, text("x")]
    for tree in trees:
        file = write(tmp_path, kind, {"value": cell(tree)})
        assert tree_in(file) == tree
        assert findings(file) == []


def test_optional_groups_are_tolerated_and_reported(tmp_path: Path) -> None:
    fields = group(pa.field("a", typed(pa.int32())), pa.field("b", typed(pa.string())))
    kind = variant_type(VALUE, pa.field("typed_value", fields))
    file = write(tmp_path, kind, {"typed_value": {"a": None, "b": {"typed_value": "x"}}})
    assert tree_in(file) == {"b": text("x")}
    assert [f.path for f in findings(file)] == ["$['a']", "$['b']"]
    element = pa.field("element", typed(pa.string()))
    kind = variant_type(VALUE, pa.field("typed_value", pa.list_(element)))
    file = write(tmp_path, kind, {"typed_value": [None, {"typed_value": "x"}]})
    assert tree_in(file) == [NULL, text("x")]
    assert {f.path for f in findings(file)} == {"$[0]"}


def test_members_in_any_order_and_underscored_siblings(tmp_path: Path) -> None:
    note = pa.field("_note", pa.list_(pa.int8()))
    field = group(note, pa.field("typed_value", pa.int32()), VALUE)
    kind = group(
        pa.field("typed_value", group(required("_a", field))),
        note,
        VALUE,
        required("metadata", BINARY),
    )
    row = {"typed_value": {"_a": {"typed_value": 1, "_note": [1]}}, "_note": [2, 3]}
    file = write(tmp_path, kind, row)
    assert tree_in(file) == {"_a": integer(1)}
    # The key is not in the metadata, which reading mends.
    assert [f.path for f in findings(file)] == ["$['_a']"]


def test_lists_whose_levels_have_other_names(tmp_path: Path) -> None:
    kind = variant_type(VALUE, pa.field("typed_value", LIST_OF_STRINGS))
    row = {"typed_value": [{"typed_value": "x"}]}
    file = write(tmp_path, kind, row, use_compliant_nested_type=False)
    assert tree_in(file) == [text("x")]
    file = write(
        tmp_path,
        variant_type(
            VALUE, pa.field("typed_value", pa.list_(required("item", typed(pa.string()))))
        ),
        row,
        use_compliant_nested_type=False,
    )
    assert tree_in(file) == [text("x")]
    assert any("levels" in f.message for f in findings(file))


@pytest.mark.parametrize("as_integer", [True, False], ids=["integer", "fixed"])
@pytest.mark.parametrize(
    ("precision", "primitive"),
    [(9, Primitive.DECIMAL4), (18, Primitive.DECIMAL8), (38, Primitive.DECIMAL16)],
)
def test_decimals_in_every_physical_type(
    tmp_path: Path, precision: int, primitive: Primitive, as_integer: bool
) -> None:
    kind = variant_type(VALUE, pa.field("typed_value", pa.decimal128(precision, 2)))
    number = Decimal("-1234567.89")
    file = write(tmp_path, kind, {"typed_value": number}, store_decimal_as_integer=as_integer)
    assert tree_in(file) == Scalar(primitive, number)


@pytest.mark.parametrize(
    ("precision", "primitive"),
    [(9, Primitive.DECIMAL4), (18, Primitive.DECIMAL8), (38, Primitive.DECIMAL16)],
)
@pytest.mark.parametrize("unscaled", [-123456789, 0, 200, 10**9 - 1])
def test_decimals_in_byte_arrays(
    tmp_path: Path, precision: int, primitive: Primitive, unscaled: int
) -> None:
    """pyarrow writes none: the footer makes one of a binary column."""
    kind = variant_type(VALUE, pa.field("typed_value", BINARY))
    big_endian = unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)
    file = write(tmp_path, kind, {"typed_value": big_endian})
    name = b"\x18\x0btyped_value"
    # SchemaElement: converted_type (6) DECIMAL, scale (7) 2, precision (8).
    decimal = bytes([0x25, 0x0A, 0x15, 2 << 1, 0x15, precision << 1])
    data = file.read_bytes()
    assert data.count(name + b"\0") == 1
    length = int.from_bytes(data[-8:-4], "little") + len(decimal)
    spliced = data.replace(name + b"\0", name + decimal + b"\0")
    file.write_bytes(spliced[:-8] + length.to_bytes(4, "little") + b"PAR1")
    expected = Scalar(primitive, Decimal(unscaled).scaleb(-2))
    assert repr(tree_in(file)) == repr(expected)
    assert findings(file) == []


def test_keys_that_look_like_the_layout(tmp_path: Path) -> None:
    keys = ["value", "typed_value", "metadata", "list", "element", "a.b"]
    fields = group(*(required(key, typed(pa.int32())) for key in keys))
    kind = variant_type(VALUE, pa.field("typed_value", fields))
    row = {"typed_value": {key: {"typed_value": i} for i, key in enumerate(keys)}}
    file = write(tmp_path, kind, {**row, "metadata": encode_metadata(sorted(keys))})
    assert tree_in(file) == {key: integer(i) for i, key in enumerate(keys)}
    assert findings(file) == []


# --- Invalid files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.binary(4),
        pa.binary(16),
        pa.float16(),
        pa.time32("ms"),
        pa.time64("ns"),
        pa.timestamp("ms"),
        pa.timestamp("ms", "UTC"),
        pa.decimal256(39, 0),
        pa.map_(pa.string(), pa.int32()),
        pa.list_(pa.string()),
        pa.list_(required("element", pa.struct([("other", pa.int32())]))),
        pa.null(),
    ],
    ids=str,
)
def test_types_that_the_specification_does_not_have_are_refused(
    tmp_path: Path, kind: pa.DataType
) -> None:
    file = write(tmp_path, variant_type(VALUE, pa.field("typed_value", kind)), {})
    with pytest.raises(VariantLakeError) as caught:
        read_table(file)
    assert caught.value.file == str(file)
    assert [f.row for f in findings(file)] == [None]


def test_int96_timestamps_are_refused(tmp_path: Path) -> None:
    kind = variant_type(VALUE, pa.field("typed_value", pa.timestamp("ns")))
    file = write(tmp_path, kind, {}, use_deprecated_int96_timestamps=True)
    with pytest.raises(MalformedFile, match="INT96"):
        read_table(file)


@pytest.mark.rule(2)
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (variant_type(VALUE, pa.field("other", pa.int32())), "unknown field 'other'"),
        (variant_type(), "neither"),
        (group(VALUE), "no 'metadata'"),
        (variant_type(pa.field("value", pa.int32())), "'value' is INT32"),
        (group(required("metadata", pa.string()), VALUE), "'metadata' is"),
        (
            variant_type(VALUE, pa.field("typed_value", group(pa.field("a", pa.int32())))),
            "expected a group",
        ),
        (
            variant_type(
                VALUE,
                pa.field(
                    "typed_value", group(required("a", group(required("metadata", BINARY), VALUE)))
                ),
            ),
            "unknown field 'metadata'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_groups_that_are_no_variant_are_refused(
    tmp_path: Path, kind: pa.StructType, message: str
) -> None:
    row = {field.name: None for field in kind if field.nullable}
    file = tmp_path / "t.parquet"
    blank = {f.name: b"" if f.type == BINARY else "" for f in kind if not f.nullable}
    pq.write_table(pa.table({"v": pa.array([{**row, **blank}], kind)}), file)
    annotate(file, [("v",)])
    with pytest.raises(MalformedFile, match=re.escape(message)):
        read_table(file)
    assert [f.row for f in findings(file)] == [None]


def test_another_version_of_variant_is_refused(tmp_path: Path) -> None:
    kind = variant_type(required("value", BINARY))
    file = write(tmp_path, kind, {"value": cell(NULL)})
    mark = bytes([0x0C, 0x20, 0x13, 0x01, 0x00, 0x00])
    data = file.read_bytes()
    assert data.count(mark) == 1
    file.write_bytes(data.replace(mark, mark.replace(b"\x13\x01", b"\x13\x02")))
    with pytest.raises(MalformedFile, match="version 2"):
        read_table(file)


INT_LEAF = variant_type(VALUE, pa.field("typed_value", pa.int32()))
FIELDS = group(required("a", typed(pa.int32())), required("b", typed(pa.string())))
OBJECT = variant_type(VALUE, pa.field("typed_value", FIELDS))
ARRAY = variant_type(VALUE, pa.field("typed_value", LIST_OF_STRINGS))
BLANK: dict[str, Any] = {"a": {}, "b": {}}


@pytest.mark.parametrize(
    ("kind", "value", "typed_value", "path"),
    [
        pytest.param(INT_LEAF, text("str"), 34, "$", id="value-and-typed-value"),
        pytest.param(INT_LEAF, NULL, 34, "$", id="null-and-typed-value"),
        pytest.param(INT_LEAF, {"a": NULL}, 34, "$", id="object-and-primitive"),
        pytest.param(OBJECT, integer(34), {"a": {"typed_value": 1}, "b": {}}, "$", id="non-object"),
        pytest.param(OBJECT, text("x"), BLANK, "$", id="non-object-with-missing-fields"),
        pytest.param(
            OBJECT,
            {"b": integer(5)},
            {"a": {}, "b": {"typed_value": "x"}},
            "$['b']",
            id="field-twice",
        ),
        pytest.param(
            OBJECT,
            {"b": integer(5)},
            {"a": {"value": cell(NULL)}, "b": {}},
            "$['b']",
            id="field-missing",
        ),
        pytest.param(OBJECT, {"c": integer(5)}, None, "$", id="object-in-value"),
        pytest.param(OBJECT, {}, None, "$", id="empty-object-in-value"),
        pytest.param(
            OBJECT,
            None,
            {"a": {"value": cell(NULL), "typed_value": 1}, "b": {}},
            "$['a']",
            id="field",
        ),
        pytest.param(
            ARRAY,
            None,
            [{"value": cell(integer(3)), "typed_value": "comedy"}],
            "$[0]",
            id="element",
        ),
        pytest.param(ARRAY, [text("x")], [{"typed_value": "y"}], "$", id="two-arrays"),
        pytest.param(ARRAY, [text("x")], None, "$", id="array-in-value"),
    ],
)
def test_rows_that_the_specification_forbids(
    tmp_path: Path, kind: pa.DataType, value: Tree | None, typed_value: Any, path: str
) -> None:
    row = {"value": None if value is None else cell(value), "typed_value": typed_value}
    file = write(tmp_path, kind, row)
    with pytest.raises(MalformedFile) as caught:
        read_table(file)
    assert (caught.value.file, caught.value.row) == (str(file), 0)
    assert [(f.row, f.path) for f in findings(file)] == [(0, path)]


def test_an_empty_object_beside_missing_fields_is_an_empty_object(tmp_path: Path) -> None:
    file = write(tmp_path, OBJECT, {"value": cell({}), "typed_value": BLANK})
    assert tree_in(file) == {}
    assert findings(file) == []


# --- What only `check` sees -----------------------------------------------------------------------


def test_fields_out_of_order_are_found(tmp_path: Path) -> None:
    fields = bytes([0x02, 0x02, 0x01, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00])
    file = write(tmp_path, variant_type(required("value", BINARY)), {"value": fields})
    assert tree_in(file) == {"a": NULL, "b": NULL}
    assert ["ordered" in f.message for f in findings(file)] == [True]


def test_a_wrong_sorted_flag_is_found(tmp_path: Path) -> None:
    metadata = bytes([0x11, 0x02, 0x00, 0x01, 0x02]) + b"ba"
    kind = variant_type(required("value", BINARY))
    file = write(tmp_path, kind, {"value": cell(NULL), "metadata": metadata})
    assert ["sorted_strings" in f.message for f in findings(file)] == [True]


def test_times_that_no_day_has_are_found(tmp_path: Path) -> None:
    kind = variant_type(VALUE, pa.field("typed_value", pa.time64("us")))
    metadata = pa.array([METADATA])
    times = pa.array([86_400_000_000], pa.int64()).view(pa.time64("us"))
    nothing = pa.array([None], BINARY)
    column = pa.StructArray.from_arrays([metadata, nothing, times], fields=list(kind))
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"v": column}), file)
    annotate(file, [("v",)])
    assert ["not a time of day" in f.message for f in findings(file)] == [True]


def test_every_broken_rule_of_a_row_is_found(tmp_path: Path) -> None:
    row = {
        "value": cell({"a": NULL, "b": NULL}),
        "typed_value": {"a": {"value": cell(NULL), "typed_value": 1}, "b": {"typed_value": "x"}},
    }
    file = write(tmp_path, OBJECT, row)
    assert [f.path for f in findings(file)] == ["$['a']", "$['b']", "$['a']"]
    assert str(findings(file)[0]).startswith("row 0, v, $['a']: ")
