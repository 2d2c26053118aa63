"""Every example table of the shredding texts, row by row, and every row that they mark invalid.

The texts are Parquet's VariantShredding (the final one and the early one, whose tables have the
same rows but for one) and Delta's two RFCs for the Variant type and its shredding.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.twins.shred import shred
from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.tree import Tree, decode, encode_value
from variantlake.encoding.variant import Variant
from variantlake.errors import MalformedFile
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.unshred import unshred_plain
from variantlake.types import Primitive

KEYS = ["click", "email", "error_msg", "event_ts", "event_type", "a"]
NULL = Scalar(Primitive.NULL, None)
MISSING = None
METADATA = encode_metadata(KEYS)
IDS = {key: index for index, key in enumerate(KEYS)}


def text(value: str) -> Scalar:
    return Scalar(Primitive.STRING, value)


def long(value: int) -> Scalar:
    return Scalar(Primitive.INT64, value)


def instant(value: int) -> Scalar:
    return Scalar(Primitive.TIMESTAMP, value)


def variant(tree: Tree) -> Variant:
    return Variant(METADATA, encode_value(tree, IDS))


def cell(tree: Tree | None) -> bytes | None:
    """What stands in a `value` column."""
    return None if tree is None else encode_value(tree, IDS)


def column(schema: ShreddingSchema, value: Tree | None, typed: Any) -> pa.StructArray:
    """One row of a shredded column, as it would come out of a file."""
    row = {"metadata": METADATA, "value": cell(value), "typed_value": typed}
    array = pa.array([row], arrow_type(schema))
    assert isinstance(array, pa.StructArray)
    return array


def rows_of(array: AnyArray) -> list[Any]:
    return array.to_pylist()


def rebuilt(array: pa.StructArray) -> Tree:
    (row,) = rows_of(unshred_plain(array))
    return decode(row["metadata"], row["value"])


def check_both_ways(schema: ShreddingSchema, tree: Tree, value: Tree | None, typed: Any) -> None:
    """The row is what shredding makes of the tree, and the tree what reading makes of the row."""
    expected = column(schema, value, typed)
    assert rebuilt(expected) == tree
    assert rows_of(shred([variant(tree)], schema)) == rows_of(expected)


# --- "Value Shredding": measurement ---------------------------------------------------------------

MEASUREMENT = parse_ddl("BIGINT")


@pytest.mark.parametrize(
    ("tree", "value", "typed"),
    [
        pytest.param(long(34), None, 34, id="34"),
        pytest.param(NULL, NULL, None, id="null"),
        pytest.param(text("n/a"), text("n/a"), None, id="n-a"),
        pytest.param(long(100), None, 100, id="100"),
    ],
)
def test_measurement(tree: Tree, value: Tree | None, typed: int | None) -> None:
    check_both_ways(MEASUREMENT, tree, value, typed)


def test_the_bytes_of_the_measurement_table() -> None:
    assert cell(NULL) == bytes.fromhex("00")
    # The text writes the short string's header as 13; length 3 in the upper bits makes it 0d.
    assert cell(text("n/a")) == bytes.fromhex("0d 6e 2f 61")


def test_missing_where_a_value_is_required_reads_as_variant_null() -> None:
    assert rebuilt(column(MEASUREMENT, None, None)) == NULL


def test_both_set_is_an_error_unless_the_value_is_an_object() -> None:
    with pytest.raises(MalformedFile, match="both") as caught:
        unshred_plain(column(MEASUREMENT, long(1), 2))
    assert (caught.value.row, caught.value.path) == (0, "$")


def test_both_set_is_an_error_for_a_primitive_beside_an_object() -> None:
    with pytest.raises(MalformedFile, match="both"):
        unshred_plain(column(MEASUREMENT, {"a": long(1)}, 2))


# --- "Arrays": tags -------------------------------------------------------------------------------

TAGS = parse_ddl("ARRAY<STRING>")


def elements(*items: str | None) -> list[dict[str, Any]]:
    """The typed_value of a list; None stands for a null element."""
    return [
        {"value": b"\x00", "typed_value": None}
        if item is None
        else {"value": None, "typed_value": item}
        for item in items
    ]


@pytest.mark.parametrize(
    ("tree", "value", "typed"),
    [
        pytest.param(
            [text("comedy"), text("drama")], None, elements("comedy", "drama"), id="two-strings"
        ),
        pytest.param([text("horror"), NULL], None, elements("horror", None), id="null-element"),
        pytest.param(
            [text("comedy"), text("drama"), text("romance")],
            None,
            elements("comedy", "drama", "romance"),
            id="three-strings",
        ),
        pytest.param(NULL, NULL, None, id="null"),
    ],
)
def test_tags(tree: Tree, value: Tree | None, typed: Any) -> None:
    check_both_ways(TAGS, tree, value, typed)


def test_an_element_with_both_set_is_an_error() -> None:
    with pytest.raises(MalformedFile, match="both") as caught:
        unshred_plain(column(TAGS, None, [{"value": b"\x00", "typed_value": "a"}]))
    assert caught.value.path == "$[0]"


def test_a_missing_element_reads_as_variant_null() -> None:
    assert rebuilt(column(TAGS, None, [{"value": None, "typed_value": None}])) == [NULL]


def test_a_shredded_array_beside_a_value_is_an_error() -> None:
    values: list[Tree] = [long(1), [text("a")], {"a": long(1)}]
    for value in values:
        with pytest.raises(MalformedFile, match="both"):
            unshred_plain(column(TAGS, value, elements("a")))


def test_an_array_in_value_where_arrays_are_shredded_is_an_error() -> None:
    with pytest.raises(MalformedFile, match="array"):
        unshred_plain(column(TAGS, [text("a")], None))


# --- "Objects": event -----------------------------------------------------------------------------

EVENT = parse_ddl("event_type STRING, event_ts TIMESTAMP")


def event(
    event_type: str | None = None,
    event_ts: int | None = None,
    *,
    type_value: Tree | None = None,
    ts_value: Tree | None = None,
) -> dict[str, Any]:
    """The typed_value of an event; the keywords are what stands in the fields' `value`."""
    return {
        "event_type": {"value": cell(type_value), "typed_value": event_type},
        "event_ts": {"value": cell(ts_value), "typed_value": event_ts},
    }


EVENTS = [
    pytest.param(
        {"event_type": text("noop"), "event_ts": instant(1729794114937)},
        None,
        event("noop", 1729794114937),
        id="fully-shredded",
    ),
    pytest.param(
        {
            "event_type": text("login"),
            "event_ts": instant(1729794146402),
            "email": text("user@example.com"),
        },
        {"email": text("user@example.com")},
        event("login", 1729794146402),
        id="partially-shredded",
    ),
    pytest.param(
        {"error_msg": text("malformed: ...")},
        {"error_msg": text("malformed: ...")},
        event(),
        id="all-shredded-fields-missing",
    ),
    pytest.param(
        text("malformed: not an object"), text("malformed: not an object"), None, id="not-an-object"
    ),
    pytest.param(
        {"event_ts": instant(1729794240241), "click": text("_button")},
        {"click": text("_button")},
        event(None, 1729794240241),
        id="event-type-missing",
    ),
    pytest.param(
        {"event_type": NULL, "event_ts": instant(1729794954163)},
        None,
        event(None, 1729794954163, type_value=NULL),
        id="event-type-null",
    ),
    pytest.param(
        {"event_type": text("noop"), "event_ts": text("2024-10-24")},
        None,
        event("noop", ts_value=text("2024-10-24")),
        id="event-ts-not-a-timestamp",
    ),
    pytest.param({}, None, event(), id="empty-object"),
    pytest.param(NULL, NULL, None, id="null"),
]


@pytest.mark.parametrize(("tree", "value", "typed"), EVENTS)
def test_event(tree: Tree, value: Tree | None, typed: Any) -> None:
    check_both_ways(EVENT, tree, value, typed)


def test_event_missing() -> None:
    """The last valid row: missing, which a column cannot be, so a Variant null comes back."""
    assert rebuilt(column(EVENT, None, None)) == NULL
    inside = parse_ddl("a STRUCT<event_type: STRING>")
    missing = {"a": {"value": None, "typed_value": None}}
    check_both_ways(inside, {}, None, missing)


@pytest.mark.parametrize(
    ("value", "typed", "message"),
    [
        pytest.param(
            {"event_type": text("login")},
            event("login", 1729795057774),
            "'event_type'",
            id="shredded-field-in-value",
        ),
        pytest.param(
            {"event_type": text("login")},
            None,
            "object",
            id="shredded-field-in-value-and-typed-value-null",
        ),
        pytest.param(text("a"), event(), "not an object", id="value-not-an-object"),
        pytest.param({}, None, "object", id="empty-object-in-value"),
        pytest.param(
            {"event_type": text("login")},
            event(None, 1),
            "'event_type'",
            id="missing-shredded-field-in-value",
        ),
        pytest.param(NULL, event(), "not an object", id="null-beside-typed-value"),
        pytest.param([], event(), "not an object", id="array-beside-typed-value"),
    ],
)
def test_invalid_event(value: Tree, typed: Any, message: str) -> None:
    with pytest.raises(MalformedFile, match=message) as caught:
        unshred_plain(column(EVENT, value, typed))
    assert caught.value.row == 0


def test_a_field_with_both_set_is_an_error() -> None:
    """Text: "When both `value` and `typed_value` for a field are non-null, engines should fail"."""
    with pytest.raises(MalformedFile, match="both") as caught:
        unshred_plain(column(EVENT, None, event("login", type_value=text("x"))))
    assert caught.value.path == "$['event_type']"


def test_an_empty_object_beside_shredded_fields_is_an_object() -> None:
    assert rebuilt(column(EVENT, {}, event("noop"))) == {"event_type": text("noop")}


# --- "Nesting" ------------------------------------------------------------------------------------

NESTED = parse_ddl(
    "event_type STRING, event_ts TIMESTAMP, "
    "location STRUCT<latitude: DOUBLE, longitude: DOUBLE>, tags ARRAY<STRING>"
)


def test_the_nested_example() -> None:
    keys = ["event_ts", "event_type", "latitude", "location", "longitude", "tags"]
    metadata = encode_metadata(keys)
    tree: Tree = {
        "event_type": text("noop"),
        "event_ts": instant(5),
        "location": {"latitude": Scalar(Primitive.DOUBLE, 1.5), "longitude": text("east")},
        "tags": [text("x"), long(3)],
    }
    value = encode_value(tree, {key: index for index, key in enumerate(keys)})
    shredded = shred([Variant(metadata, value)], NESTED)
    (row,) = rows_of(shredded)
    location = row["typed_value"]["location"]["typed_value"]
    assert location["latitude"] == {"value": None, "typed_value": 1.5}
    assert location["longitude"]["typed_value"] is None
    assert [e["typed_value"] for e in row["typed_value"]["tags"]["typed_value"]] == ["x", None]
    assert rebuilt(shredded) == tree


# --- Delta's RFCs ---------------------------------------------------------------------------------


def test_a_struct_of_value_and_metadata_is_a_variant() -> None:
    """Variant Data Type, "Variant data in Parquet": `value` and `metadata`, in this order."""
    array = pa.array(
        [{"value": cell(long(1)), "metadata": METADATA}],
        pa.struct([("value", pa.binary()), ("metadata", pa.binary())]),
    )
    assert isinstance(array, pa.StructArray)
    assert rebuilt(array) == long(1)


def test_fields_that_start_with_an_underscore_are_ignored() -> None:
    """Variant Data Type: struct fields which start with `_` can be safely ignored."""
    array = pa.array(
        [{"_seen": 1, "value": cell(long(1)), "metadata": METADATA}],
        pa.struct([("_seen", pa.int32()), ("value", pa.binary()), ("metadata", pa.binary())]),
    )
    assert isinstance(array, pa.StructArray)
    assert rebuilt(array) == long(1)


def test_other_fields_are_refused() -> None:
    """Variant Data Type: writers must not write additional, non-ignorable struct fields."""
    array = pa.array(
        [{"seen": 1, "value": cell(long(1)), "metadata": METADATA}],
        pa.struct([("seen", pa.int32()), ("value", pa.binary()), ("metadata", pa.binary())]),
    )
    assert isinstance(array, pa.StructArray)
    with pytest.raises(MalformedFile, match="unknown field 'seen'"):
        unshred_plain(array)


def test_shredded_is_metadata_value_and_typed_value() -> None:
    """Variant Shredding, "Shredded Variant data in Parquet": the table of three fields."""
    assert [field.name for field in arrow_type(EVENT)] == ["metadata", "value", "typed_value"]
    assert [field.nullable for field in arrow_type(EVENT)] == [False, True, True]
