"""The older shredding layout, row by row: every table of its specification, and all it forbids."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.shredding.legacy_columns import EXAMPLE, NESTED, column, leaf, untyped
from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidSchema, MalformedFile, MalformedVariant, VariantLakeError
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.legacy.unshred import LegacyRule, legacy_problems, unshred_legacy_plain
from variantlake.types import Primitive

BIGINT: Any = leaf(pa.int64())
NULL = untyped(None)


def values(arrow: pa.DataType, rows: list[Any]) -> list[Any]:
    """The rows as Python; a Variant null is the text `null`, to tell it from SQL NULL."""
    array = column(arrow, rows)
    result = unshred_legacy_plain(array)
    result.validate(full=True)
    return [_plain(row) for row in result]


def _plain(row: pa.StructScalar) -> Any:
    if not row.is_valid:
        return None
    variant = Variant(row["metadata"].as_py(), row["value"].as_py())
    return "null" if variant.type == "null" else variant.to_python()


def refused(arrow: pa.DataType, row: Any) -> VariantLakeError:
    with pytest.raises(VariantLakeError) as error:
        unshred_legacy_plain(column(arrow, [None, row]))
    assert error.value.row == 1
    return error.value


def rules(arrow: pa.DataType, row: Any) -> list[tuple[str, LegacyRule]]:
    found = list(legacy_problems(column(arrow, [None, row])))
    assert all(problem.row == 1 for problem in found)
    return [(problem.path, problem.rule) for problem in found]  # type: ignore[misc]  # its Enum


# The first table of the specification: what stands where.
TABLE = [
    (
        {"a": 123, "b": {"c": "hello"}},
        {"object": {"a": {"typed_value": 123}, "b": {"object": {"c": {"typed_value": "hello"}}}}},
    ),
    (
        {"a": 1.5, "b": {"c": "123"}},
        {
            "object": {
                "a": {"untyped_value": untyped(1.5)},
                "b": {"object": {"c": {"typed_value": "123"}}},
            }
        },
    ),
    (
        {"a": [1, 2, 3], "b": {"c": None}},
        {
            "object": {
                "a": {"untyped_value": untyped([1, 2, 3])},
                "b": {"object": {"c": {"untyped_value": NULL}}},
            }
        },
    ),
    (
        {"a": 123, "c": 456},
        {"untyped_value": untyped({"c": 456}), "object": {"a": {"typed_value": 123}, "b": None}},
    ),
    (
        {"a": 123, "b": {"c": "hello", "d": 456}},
        {
            "object": {
                "a": {"typed_value": 123},
                "b": {
                    "untyped_value": untyped({"d": 456}),
                    "object": {"c": {"typed_value": "hello"}},
                },
            }
        },
    ),
    (
        [{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}],
        {"untyped_value": untyped([{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}])},
    ),
]


@pytest.mark.parametrize(("value", "row"), TABLE)
def test_each_row_of_the_table_of_examples(value: Any, row: Any) -> None:
    assert values(EXAMPLE, [row]) == [value]
    assert rules(EXAMPLE, row) == []


def test_each_row_of_the_table_of_a_leaf() -> None:
    row = {
        "object": {
            "a": {"typed_value": None, "untyped_value": None},
            "b": {"untyped_value": untyped([True])},
        }
    }
    assert values(EXAMPLE, [row]) == [{"b": [True]}], "null, null: the field is missing"
    assert values(BIGINT, [{"untyped_value": untyped("x")}]) == ["x"]
    assert values(BIGINT, [{"typed_value": 7}]) == [7]
    error = refused(BIGINT, {"typed_value": 7, "untyped_value": untyped(7)})
    assert isinstance(error, MalformedFile)


def test_the_example_of_arrays() -> None:
    def whole(elements: list[int], number: int) -> dict[str, Any]:
        numbers = [{"typed_value": element} for element in elements]
        return {"object": {"a": {"array": numbers}, "b": {"typed_value": number}}}

    row = {"array": [whole([1, 2, 3], 100), whole([4, 5, 6], 200)]}
    expected: list[Any] = [{"a": [1, 2, 3], "b": 100}, {"a": [4, 5, 6], "b": 200}]
    assert values(NESTED, [row]) == [expected]
    row["array"][0]["untyped_value"] = untyped({"c": "unexpected"})
    row["array"].append({"untyped_value": untyped("not an object")})
    expected[0]["c"] = "unexpected"
    assert values(NESTED, [row]) == [[*expected, "not an object"]]
    assert rules(NESTED, row) == []


def test_metadata_ends_where_its_last_offset_says() -> None:
    data = b"\x01\x01\x00\x02hi" + b"\x02\x01\x00\x00\x02\x0c\x05"
    assert values(BIGINT, [{"untyped_value": data}]) == [{"hi": 5}]


# --- Null, missing, nothing -----------------------------------------------------------------------


def test_a_variant_null_beside_a_typed_leaf_is_a_variant_null() -> None:
    row = {"typed_value": 7, "untyped_value": NULL}
    assert values(BIGINT, [row, None]) == ["null", None]
    assert rules(BIGINT, row) == []


def test_nothing_is_sql_null_at_the_top_missing_in_an_object_and_null_in_an_array() -> None:
    assert values(EXAMPLE, [{}, None, {"untyped_value": NULL}]) == [None, None, "null"]
    assert values(EXAMPLE, [{"object": {"a": {}, "b": None}}]) == [{}]
    row = {"array": [{}, None, {"untyped_value": NULL}]}
    assert values(NESTED, [row, {"array": []}]) == [[None, None, None], []]
    assert rules(NESTED, row) == [(f"$[{i}]", LegacyRule.ELEMENT) for i in range(2)]


def test_an_object_whose_fields_are_all_missing_is_empty() -> None:
    assert values(EXAMPLE, [{"object": {"b": {"object": {}}}}]) == [{"b": {}}]


@pytest.mark.parametrize("group", [None, {}])
def test_a_field_group_without_a_value_takes_the_leftover(group: Any) -> None:
    row = {"untyped_value": untyped({"a": 5, "z": 6}), "object": {"a": group}}
    assert values(EXAMPLE, [row]) == [{"a": 5, "z": 6}]
    assert rules(EXAMPLE, row) == [("$['a']", LegacyRule.SHREDDED)]


def test_a_column_wins_over_the_leftover() -> None:
    row = {"untyped_value": untyped({"a": 5}), "object": {"a": {"typed_value": 6}}}
    assert values(EXAMPLE, [row]) == [{"a": 6}]
    assert rules(EXAMPLE, row) == [("$['a']", LegacyRule.SHREDDED)]


def test_a_whole_object_or_array_in_untyped_value_is_read_and_reported() -> None:
    row = {"untyped_value": untyped({"a": 5, "b": 1})}
    assert values(EXAMPLE, [row]) == [{"a": 5, "b": 1}]
    assert rules(EXAMPLE, row) == [("$['a']", LegacyRule.SHREDDED), ("$['b']", LegacyRule.SHREDDED)]
    assert rules(EXAMPLE, {"untyped_value": untyped({"z": 5})}) == []
    assert values(NESTED, [{"untyped_value": untyped([1])}]) == [[1]]
    assert rules(NESTED, {"untyped_value": untyped([1])}) == [("$", LegacyRule.SHREDDED)]


# --- Members that are absent, several forms -------------------------------------------------------


def test_each_member_may_be_absent_from_the_file() -> None:
    assert values(pa.struct([("typed_value", pa.int64())]), [{"typed_value": 7}, {}]) == [7, None]
    only_untyped = pa.struct([("untyped_value", pa.binary())])
    assert values(only_untyped, [{"untyped_value": untyped({"a": 1})}]) == [{"a": 1}]
    lists = pa.struct([("array", pa.list_(pa.field("element", only_untyped)))])
    assert values(lists, [{"array": [{"untyped_value": NULL}]}, None]) == [[None], None]
    fields = pa.struct([("a", only_untyped), ("b", pa.struct([("typed_value", pa.string())]))])
    objects = pa.struct([("object", fields)])
    assert values(objects, [{"object": {"b": {"typed_value": "x"}}}, {"object": {}}]) == [
        {"b": "x"},
        {},
    ]


EVERYTHING = pa.struct(
    [
        ("typed_value", pa.string()),
        ("array", pa.list_(pa.field("element", BIGINT))),
        ("object", pa.struct([("a", BIGINT)])),
        ("untyped_value", pa.binary()),
    ]
)


def test_a_group_may_have_all_four_members() -> None:
    rows = [
        {"typed_value": "x"},
        {"array": [{"typed_value": 1}]},
        {"object": {"a": {"typed_value": 1}}},
        {"object": {}, "untyped_value": untyped({"z": 2})},
        {"untyped_value": untyped(True)},
    ]
    assert values(EVERYTHING, rows) == ["x", [1], {"a": 1}, {"z": 2}, True]


@pytest.mark.parametrize(
    "row",
    [
        {"typed_value": "x", "array": []},
        {"typed_value": "x", "object": {}},
        {"array": [], "object": {}},
        {"typed_value": "x", "array": [], "object": {}},
    ],
)
@pytest.mark.parametrize("beside", [{}, {"untyped_value": NULL}])
def test_two_forms_in_a_row_are_refused(row: Any, beside: Any) -> None:
    assert isinstance(refused(EVERYTHING, {**row, **beside}), MalformedFile)
    assert rules(EVERYTHING, {**row, **beside})[0] == ("$", LegacyRule.ONE_FORM)


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"typed_value": "x", "untyped_value": untyped("x")}, LegacyRule.ALONE),
        ({"typed_value": "x", "untyped_value": untyped({})}, LegacyRule.ALONE),
        ({"array": [], "untyped_value": NULL}, LegacyRule.ALONE),
        ({"array": [], "untyped_value": untyped([])}, LegacyRule.ALONE),
        ({"object": {}, "untyped_value": NULL}, LegacyRule.LEFTOVERS),
        ({"object": {}, "untyped_value": untyped([1])}, LegacyRule.LEFTOVERS),
        ({"object": {}, "untyped_value": untyped("x")}, LegacyRule.LEFTOVERS),
    ],
)
def test_what_may_not_stand_beside_each_other_is_refused(row: Any, rule: LegacyRule) -> None:
    error = refused(EVERYTHING, row)
    assert isinstance(error, MalformedFile)
    assert rule.value in error.hint
    assert rules(EVERYTHING, row) == [("$", rule)]
    deep = pa.struct([("object", pa.struct([("k", EVERYTHING)]))])
    assert refused(deep, {"object": {"k": row}}).path == "$['k']"


def test_all_broken_rules_of_a_row_are_reported() -> None:
    row = {
        "array": [
            {"typed_value": 1, "untyped_value": untyped(1)},
            {},
            {"untyped_value": b"\x01\x00\x00"},
        ],
        "typed_value": "x",
    }
    assert rules(EVERYTHING, row) == [
        ("$", LegacyRule.ONE_FORM),
        ("$[0]", LegacyRule.ALONE),
        ("$[1]", LegacyRule.ELEMENT),
        ("$[2]", LegacyRule.UNTYPED),
    ]


# --- Bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\x01\x00\x00",  # metadata and nothing more
        b"\x02\x00\x00\x00",  # another version
        b"\x01\x01\x00\x63hi\x00",  # the last key ends far behind the end
        b"\xc1\xff\xff\xff\xff" + bytes(12),  # four billion keys
        b"\x01\x01\x02\x01hi\x00",  # offsets out of order
        b"\x01\x01\x00\x01\xff\x00",  # a key that is not UTF-8
        b"\x01\x00\x00\x00\x00",  # a byte too many
        b"\x01\x00\x00\x02\x01\x00\x00\x01\x00",  # a field id without a key
        b"\x01\x00\x00\x14\x01",  # cut
    ],
)
def test_bytes_that_are_no_variant_are_refused(data: bytes) -> None:
    error = refused(BIGINT, {"untyped_value": data})
    assert isinstance(error, MalformedVariant)
    assert [rule for _, rule in rules(BIGINT, {"untyped_value": data})] == [LegacyRule.UNTYPED]


def test_check_finds_keys_that_are_not_sorted_though_they_say_so() -> None:
    data = b"\x11\x02\x00\x01\x02ba\x00"
    assert values(BIGINT, [{"untyped_value": data}]) == ["null"]
    assert rules(BIGINT, {"untyped_value": data}) == [("$", LegacyRule.UNTYPED)]


def test_a_field_in_an_untyped_value_knows_its_own_dictionary() -> None:
    first, second = encode_metadata(["z", "y"]), encode_metadata(["y", "x"])
    row = {
        "untyped_value": first + b"\x02\x01\x00\x00\x02\x0c\x01",
        "object": {"a": {"untyped_value": second + b"\x02\x01\x01\x00\x02\x0c\x02"}},
    }
    assert values(EXAMPLE, [row]) == [{"z": 1, "a": {"x": 2}}]


# --- Types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrow", "typed", "expected"),
    [
        (pa.int64(), 123, Scalar(Primitive.INT64, 123)),
        (pa.int8(), 123, Scalar(Primitive.INT8, 123)),
        (pa.float32(), 1.5, Scalar(Primitive.FLOAT, 1.5)),
        (pa.float64(), 1.5, Scalar(Primitive.DOUBLE, 1.5)),
        (pa.date32(), 5, Scalar(Primitive.DATE, 5)),
        (pa.timestamp("us", "UTC"), 5, Scalar(Primitive.TIMESTAMP, 5)),
        (pa.timestamp("ns"), 5, Scalar(Primitive.TIMESTAMP_NTZ_NANOS, 5)),
        (pa.binary(), b"x", Scalar(Primitive.BINARY, b"x")),
    ],
    ids=str,
)
def test_a_typed_value_has_the_type_of_its_column(
    arrow: pa.DataType, typed: Any, expected: Scalar
) -> None:
    found: Any = unshred_legacy_plain(column(leaf(arrow), [{"typed_value": typed}]))[0].as_py()
    assert Variant(**found).tree() == expected


@pytest.mark.parametrize(
    ("arrow", "message"),
    [
        (pa.struct([("untyped_value", pa.binary()), ("x", pa.int64())]), "unknown field 'x'"),
        (pa.struct([("_x", pa.int64())]), "none of"),
        (pa.struct([("untyped_value", pa.string())]), "expected binary"),
        (pa.struct([("object", pa.int64())]), "expected a group"),
        (pa.struct([("array", pa.int64())]), "expected a list"),
        (pa.struct([("array", pa.list_(pa.int64()))]), "expected a group"),
        (pa.struct([("object", pa.struct([("a", pa.int64())]))]), "expected a group"),
        (
            pa.struct([("object", pa.struct([("a", leaf(pa.int64())), ("a", BIGINT)]))]),
            "appears twice",
        ),
    ],
    ids=str,
)
def test_a_group_of_other_members_is_refused(arrow: pa.DataType, message: str) -> None:
    with pytest.raises(MalformedFile, match=message):
        unshred_legacy_plain(pa.array([], arrow))  # type: ignore[arg-type]  # a struct


def test_a_type_that_no_variant_has_is_refused() -> None:
    with pytest.raises(InvalidSchema):
        unshred_legacy_plain(pa.array([], leaf(pa.uint32())))  # type: ignore[arg-type]  # a struct


def test_members_with_an_underscore_are_ignored() -> None:
    arrow = pa.struct([*BIGINT, ("_metadata_key_paths", pa.list_(pa.string())), ("_spark", BIGINT)])
    assert values(arrow, [{"typed_value": 1, "_spark": {"typed_value": 2}}]) == [1]
    fields = pa.struct([("object", pa.struct([("_a", BIGINT)]))])
    assert values(fields, [{"object": {"_a": {"typed_value": 1}}}]) == [{"_a": 1}]


def test_slices_of_a_column_read_like_the_column() -> None:
    rows = [{"array": [{"untyped_value": untyped(i)}] * i} for i in range(5)]
    array: AnyArray = column(NESTED, rows)
    found = [_plain(row) for row in unshred_legacy_plain(array.slice(2, 2))]  # type: ignore[arg-type]
    assert found == [[2, 2], [3, 3, 3]]
