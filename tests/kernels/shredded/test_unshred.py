"""The compiled rebuilding of shredded columns against the plain one: same bytes, same errors."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parquet import shredded
from tests.shredding import strategies
from tests.strategies import MORE
from tests.twins.shred import shred
from variantlake.encoding.metadata import encode_metadata
from variantlake.encoding.scalar import decimal_of, decimal_parts
from variantlake.encoding.tree import Tree, encode
from variantlake.encoding.variant import Variant
from variantlake.errors import VariantLakeError
from variantlake.kernels.shredded.unshred import unshred
from variantlake.paths import Path
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.unshred import unshred_plain
from variantlake.shredding.values import NumberForms


def outcome(read: object, array: pa.StructArray) -> object:
    """What reading gives: the rows, or all that there is to know of the error."""
    try:
        result = read(array)  # type: ignore[operator]  # either of two functions
    except VariantLakeError as error:
        return type(error), error.message, error.row, error.path, error.offset
    result.validate(full=True)
    return result.type, result.to_pylist()


def check(array: pa.StructArray) -> None:
    assert outcome(unshred, array) == outcome(unshred_plain, array)


@st.composite
def shredded_documents(draw: st.DrawFn) -> pa.StructArray:
    """Documents that fit more or less, in some slice of a column."""
    schema = draw(strategies.schemas())
    trees: list[Tree | None] = draw(
        st.lists(strategies.trees_for(schema.root) | st.none(), max_size=40)
    )
    return _column(schema, trees)


def _column(schema: ShreddingSchema, trees: list[Tree | None]) -> pa.StructArray:
    values = [None if tree is None else Variant(*encode(tree)) for tree in trees]
    return shred(values, schema)


@settings(max_examples=30 * MORE)
@given(shredded_documents(), st.integers(0, 5))
def test_documents_come_back(array: pa.StructArray, start: int) -> None:
    check(array)
    check(array.slice(start, max(len(array) - 2 * start, 0)))


KEYS = encode_metadata(["b", "\U0001f600", "\uffff", "a", "d", "c", "", "value", "a.b"])
METADATA = st.sampled_from(
    [
        KEYS,
        encode_metadata(["a", "b", "c", "d"]),
        b"\x01\x02\x00\x01\x02aa",  # one key twice
        b"\x11\x02\x00\x01\x02aa",  # and that where it is refused
        b"\x01\x00\x00",
        b"",
        b"\x02\x00\x00",
    ]
)
RESIDUALS = st.sampled_from(
    [
        b"\x00",
        b"",
        b"\x0c\x05",
        b"\x02\x00\x00",
        b"\x02\x01\x00\x00\x01\x00",  # the field of id 0
        b"\x02\x01\x04\x00\x02\x0c\x07",  # of id 4
        b"\x02\x02\x00\x01\x00\x01\x02\x00\x04",
        b"\x02\x02\x01\x01\x00\x01\x02\x00\x04",  # one field twice
        b"\x02\x02\x00\x01\x01\x00\x02\x00\x04",  # values out of order
        b"\x42\x01\x00\x00\x00\x03\x00\x01\x08",  # large
        b"\x02\x01\x63\x00\x01\x00",  # an id that no dictionary has
        b"\x02\x01\x00\x00\x02\x00",  # too short
        b"\x02\x00\x01\x00",
        b"\x03\x01\x00\x01\x00",
        b"\x02",
    ]
)


OBJECTS = [
    parse_ddl(ddl)
    for ddl in (
        "STRUCT<b: STRUCT<d: STRING>, d: STRING>",
        "ARRAY<STRUCT<d: VARIANT, c: INT>>",
        "STRUCT<a: STRUCT<`😀`: INT, b: VARIANT>, `\uffff`: BOOLEAN>",
    )
]


@st.composite
def hostile_columns(draw: st.DrawFn) -> pa.StructArray:
    """Columns in which metadata and residuals do not belong together."""
    schema = draw(st.sampled_from(OBJECTS) | strategies.schemas())
    data = draw(shredded.rows(schema))
    few = draw(st.booleans())
    for row in data:
        if row is not None:
            row["metadata"] = KEYS if few else draw(METADATA)
    array = shredded.column(schema, data * 32 if few else data)
    return _with_residuals(array, draw)


def _with_residuals(group: Any, draw: st.DrawFn) -> pa.StructArray:
    """The group with a few other residuals at this level and below its fields."""
    children = []
    for index, field in enumerate(group.type):
        child = group.field(index)
        if field.name == "value" and pa.types.is_binary(child.type) and len(child) > 0:
            values = child.to_pylist()
            for _ in range(draw(st.integers(0, 2))):
                at = draw(st.integers(0, len(values) - 1))
                if values[at] is not None or field.nullable:
                    values[at] = draw(RESIDUALS)
            child = pa.array(values, pa.binary())
        elif pa.types.is_struct(child.type):
            child = _with_residuals(child, draw)
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=list(group.type), mask=group.is_null())


@settings(max_examples=60 * MORE)
@given(hostile_columns())
def test_what_is_wrong_is_refused_as_the_twin_does(array: pa.StructArray) -> None:
    check(array)


def test_good_rows_need_no_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {"a": 1, "b": [{"c": "x"}, None, {"d": 1.5}], "d": {"c": [True], "a": "rest"}, "e": "é"}
    ddl = "STRUCT<a: BIGINT, d: STRUCT<c: ARRAY<BOOLEAN>>, b: ARRAY<STRUCT<c: STRING, d: DOUBLE>>>"
    array = shred([Variant.of(tree), None, Variant.of({}), Variant.of(7)], parse_ddl(ddl))
    expected = unshred_plain(array)
    monkeypatch.delattr("variantlake.kernels.shredded.unshred.unshred_plain")
    assert unshred(array).equals(expected)


def _rows(ddl: str, rows: list[object]) -> pa.StructArray:
    return pa.array(rows, arrow_type(parse_ddl(ddl)))  # type: ignore[return-value]  # a struct


GOOD = {"metadata": encode_metadata(["a", "b"]), "value": None}


@pytest.mark.parametrize(
    ("ddl", "bad"),
    [
        ("BIGINT", {"value": b"\x00", "typed_value": 1}),
        ("STRUCT<a: BIGINT>", {"value": b"\x02\x00\x00", "typed_value": None}),
        ("STRUCT<a: BIGINT>", {"typed_value": {"a": {"value": b"\x00", "typed_value": 1}}}),
        ("STRUCT<a: BIGINT>", {"value": b"\x02\x01\x00\x00\x01\x00", "typed_value": {"a": {}}}),
        ("ARRAY<BIGINT>", {"value": b"\x03\x00\x00", "typed_value": None}),
        ("ARRAY<BIGINT>", {"value": b"\x00", "typed_value": []}),
        ("STRUCT<a: BIGINT>", {"metadata": b"", "typed_value": {"a": {"typed_value": 1}}}),
    ],
)
def test_a_bad_row_among_many_is_named(ddl: str, bad: dict[str, object]) -> None:
    array = _rows(ddl, [{**GOOD, "value": b"\x0c\x01"}] * 70 + [{**GOOD, **bad}])
    with pytest.raises(VariantLakeError) as error:
        unshred(array)
    assert error.value.row == 70
    check(array)


def test_a_key_that_the_dictionary_lacks_is_added_to_it() -> None:
    with_key = {**GOOD, "typed_value": {"a": {"typed_value": 1}, "z": {}}}
    without = {**GOOD, "typed_value": {"a": {"typed_value": 1}, "z": {"typed_value": "y"}}}
    array = _rows("STRUCT<a: BIGINT, z: STRING>", [with_key] * 70 + [without, None])
    check(array)
    assert unshred(array)[70]["metadata"].as_py() == encode_metadata(["a", "b", "z"])


def test_large_objects_and_arrays() -> None:
    many = {f"k{i:04}": i for i in range(300)}
    text = "é" * 40_000
    trees = [{**many, "list": list(range(300)), "text": text}, {"text": "x" * 64, "list": []}]
    values = [Variant.of(tree) for tree in trees]
    check(shred(values, parse_ddl("STRUCT<text: STRING, list: ARRAY<BIGINT>, k0007: INT>")))


def test_strings_that_are_not_utf8_are_refused() -> None:
    array = _rows("STRING", [{**GOOD, "typed_value": "ab"}] * 70)
    broken = pa.array([b"ab"] * 69 + [b"\xff\xfe"]).view(pa.string())
    fields = list(array.type)
    parts = [array.field(0), array.field(1), broken]
    check(pa.StructArray.from_arrays(parts, fields=fields))


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 127, 128, -129, 2**31, -(2**63), 2**63 - 1, 2**63]),
    st.decimals(-(10**20), 10**20, allow_nan=False, allow_infinity=False, places=3),
)
ROWS_OF_NUMBERS = st.lists(
    st.fixed_dictionaries({}, optional={"a": NUMBERS, "b": st.lists(NUMBERS)}), min_size=1
)


@pytest.mark.rule(33)
@settings(max_examples=40 * MORE)
@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"a": NUMBERS, "b": st.lists(NUMBERS)}), min_size=1
    ),
    st.sampled_from([(9, 3), (18, 4), (38, 3), (38, 0)]),
)
def test_integers_come_back_as_integers(
    rows: list[dict[str, Any]], digits: tuple[int, int]
) -> None:
    """Where no decimal has a shorter form, each value has the type that it was written with."""
    ddl = "a DECIMAL({0},{1}), b ARRAY<DECIMAL({0},{1})>".format(*digits)
    shortened = [{key: _shortest(value) for key, value in row.items()} for row in rows]
    array = shred([Variant.of(row) for row in shortened], parse_ddl(ddl))
    paths = frozenset({Path.of("a"), Path.of("b", 0)})
    forms = NumberForms(shortest=paths)
    found = unshred(array, forms)
    assert found.equals(unshred_plain(array, forms))
    rebuilt: Any = found
    back = [Variant(row["metadata"], row["value"]).to_python() for row in rebuilt.to_pylist()]
    assert repr(back) == repr([dict(sorted(row.items())) for row in shortened])


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"a": NUMBERS, "b": st.lists(NUMBERS)}), min_size=1
    ),
    st.sampled_from([(9, 3), (18, 4), (38, 3)]),
)
def test_integers_come_back_beside_decimals_that_end_in_a_zero(
    rows: list[dict[str, Any]], digits: tuple[int, int]
) -> None:
    """Where no decimal looks like an integer; the decimals have the scale of their column."""
    precision, scale = digits
    ddl = "a DECIMAL({0},{1}), b ARRAY<DECIMAL({0},{1})>".format(*digits)
    scaled = [
        {key: _scaled(_shortest(value), precision, scale) for key, value in row.items()}
        for row in rows
    ]
    array = shred([Variant.of(row) for row in scaled], parse_ddl(ddl))
    forms = NumberForms(integers=frozenset({Path.of("a"), Path.of("b", 0)}))
    found = unshred(array, forms)
    assert found.equals(unshred_plain(array, forms))
    rebuilt: Any = found
    back = [Variant(row["metadata"], row["value"]).to_python() for row in rebuilt.to_pylist()]
    assert repr(back) == repr([dict(sorted(row.items())) for row in scaled])


def _scaled(value: Any, precision: int, scale: int) -> Any:
    """Decimals with a fraction, in the scale of the column if it holds them."""
    if isinstance(value, list):
        return [_scaled(each, precision, scale) for each in value]
    if isinstance(value, int):
        return value
    unscaled, own = decimal_parts(value)
    if not own or own > scale or abs(unscaled) * 10 ** (scale - own) >= 10**precision:
        return value
    return decimal_of(unscaled * 10 ** (scale - own), scale)


def _shortest(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_shortest, value))
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else Decimal(value)
    unscaled, scale = decimal_parts(value)
    while scale and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    if not scale and -(2**63) <= unscaled < 2**63:
        return unscaled
    return decimal_of(unscaled, scale)
