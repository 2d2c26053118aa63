from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.batches import read, same, trees
from tests.kernels.fuzz import SCHEMA, Documents, batches, check
from tests.kernels.variant.test_variant_reader import array_of
from tests.strategies import MORE, objects, scalars_by_type
from tests.twins.shred import shred
from variantlake.encoding.json import parse_json
from variantlake.encoding.tree import Tree, logical_key
from variantlake.encoding.variant import Variant
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.paths import Path
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.fit import raws_of
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import Leaf, ShreddingSchema
from variantlake.shredding.unshred import unshred_plain
from variantlake.shredding.values import ValueNotes
from variantlake.types import KINDS, Kind, Primitive, ShreddedType


def where(array: Any) -> Any:
    """Every typed value, and which residuals are there; not their bytes."""
    valid = array.is_valid().to_pylist()
    if isinstance(array, pa.StructArray):
        members = {field.name: array.field(i) for i, field in enumerate(array.type)}
        below = {
            name: member.is_valid().to_pylist() if name == "value" else where(member)
            for name, member in members.items()
            if name != "metadata"
        }
        return valid, below
    if isinstance(array, pa.ListArray):
        return valid, array.value_lengths().to_pylist(), where(array.flatten())
    return repr(raws_of(array))


def agree(variants: list[Variant | None], schema: ShreddingSchema) -> pa.StructArray:
    """Shred by kernel and twin: the same values typed, the same rows rebuilt."""
    rows = [None if v is None else (v.metadata, v.value) for v in variants]
    found = Shredder(schema).shred(VariantReader().read(array_of(rows)))
    found.validate(full=True)
    assert found.type == arrow_type(schema)
    expected = shred(variants, schema)
    assert where(found) == where(expected)
    for variant, tree in zip(variants, trees(unshred_plain(found)), strict=True):
        assert (variant is None) == (tree is None)
        if variant is not None and tree is not None:
            assert logical_key(variant.tree()) == logical_key(tree)
    return found


ONE_OF_EACH = [
    *(ShreddedType(kind) for kind in KINDS if kind is not Kind.DECIMAL),
    *(ShreddedType(Kind.DECIMAL, *ps) for ps in ((9, 2), (18, 0), (18, 18), (38, 2), (38, 38))),
]


@pytest.mark.parametrize("column", ONE_OF_EACH, ids=str)
@settings(max_examples=30 * MORE, deadline=None)
@given(data=st.data())
def test_a_column_takes_what_its_twin_takes(column: ShreddedType, data: st.DataObject) -> None:
    numbers = st.sampled_from([p for p in Primitive if Primitive.INT8 <= p <= Primitive.DECIMAL16])
    likely = st.sampled_from(column.info.primitives) | numbers | st.sampled_from(Primitive)
    scalars = likely.flatmap(lambda primitive: scalars_by_type[primitive])
    values = data.draw(st.lists(st.none() | scalars, max_size=8))
    variants = [None if value is None else Variant.of_tree(value) for value in values]
    agree(variants, ShreddingSchema(Leaf(column)))


SCHEMAS = [
    "a BIGINT, b STRING, `` DOUBLE, id STRUCT<a: STRING, b: VARIANT, id: STRUCT<a: BOOLEAN>>",
    "ARRAY<STRING>",
    "ARRAY<ARRAY<STRUCT<a: INT, b: ARRAY<VARIANT>>>>",
    "a ARRAY<STRUCT<a: TINYINT, b: ARRAY<STRING>>>, b ARRAY<DECIMAL(10,1)>",
    "VARIANT",
]


@pytest.mark.parametrize("ddl", SCHEMAS)
@settings(max_examples=40 * MORE, deadline=None)
@given(data=st.data())
def test_nested_schemas_agree_with_twin(ddl: str, data: st.DataObject) -> None:
    names = st.sampled_from(["a", "b", "id", "", "other"])
    leaves = st.one_of(*(scalars_by_type[p] for p in (*Primitive,)[:11]), st.just({}), st.just([]))
    trees_: st.SearchStrategy[Tree] = st.recursive(
        cast("st.SearchStrategy[Tree]", leaves),
        lambda kids: (
            st.dictionaries(names, kids, max_size=5) | st.lists(kids, max_size=4) | objects
        ),
        max_leaves=15,
    )
    values = data.draw(st.lists(st.none() | trees_, max_size=6))
    agree([None if v is None else Variant.of_tree(v) for v in values], parse_ddl(ddl))


@pytest.mark.parametrize("batch_bytes", [1 << 10, 1 << 16])
def test_random_documents(batch_bytes: int) -> None:
    assert check(Documents(batch_bytes)(150), batch_bytes) > 0


def test_documents_are_typed_as_by_the_twin() -> None:
    for batch in batches(Documents(3)(120), 1 << 14):
        tape = read(batch)
        good = [d for d, status in zip(batch, tape.status.tolist(), strict=True) if status == 0]
        found = Shredder(SCHEMA).shred(tape)
        assert where(found.drop_null()) == where(shred([parse_json(d) for d in good], SCHEMA))


def test_a_bad_row_is_null_above_empty_metadata() -> None:
    found = Shredder(parse_ddl("a BIGINT")).shred(read([b'{"a":1}', b"{", b"3"]))
    found.validate(full=True)
    assert [row is None for row in cast("Any", found).to_pylist()] == [False, True, False]
    assert cast("Any", found.field("metadata")).to_pylist()[1] == b""
    assert found.field("metadata").null_count == 0


def test_columns_without_a_value_and_batches_without_a_row() -> None:
    schema = parse_ddl("a STRUCT<b: STRING, c: ARRAY<STRUCT<d: UUID>>>, e DECIMAL(5,1)")
    for documents in ([], [b"1"], [b"{}"], [b"{"]):
        found = Shredder(schema).shred(read(documents))
        found.validate(full=True)
        assert found.type == arrow_type(schema)
        assert len(found) == len(documents)


def test_new_keys_of_later_batches_are_found() -> None:
    shredder = Shredder(parse_ddl("a BIGINT, b BIGINT"))
    for document in (b'{"a":1}', b'{"b":2}', b'{"c":3,"b":4}'):
        found = shredder.shred(read([document]))
        assert same(parse_json(document).tree(), next(iter(trees(unshred_plain(found)))))


def test_wide_residuals_and_many_keys() -> None:
    fields = ",".join(f'"k{i}":{i}' for i in range(700))
    long = f'{{"a":"{"x" * 70000}",{fields}}}'
    documents = [long.encode(), b'{"a":1,"k5":[' + b"0," * 300 + b"1]}"]
    found = Shredder(parse_ddl("a STRING, k699 BIGINT")).shred(read(documents))
    for document, tree in zip(documents, trees(unshred_plain(found)), strict=True):
        assert same(parse_json(document).tree(), tree)


@pytest.mark.parametrize(
    ("documents", "integers", "whole", "padded"),
    [
        (['{"a":7}', '{"a":7.5}'], {"a"}, set(), set()),
        (['{"a":7.0}'], set(), {"a"}, set()),
        (['{"a":-70}', '{"a":-70.00}'], {"a"}, {"a"}, set()),
        (['{"a":7.50}', '{"a":0}'], {"a"}, set(), {"a"}),
        (['{"a":-7.50}', '{"a":70.0}', '{"a":10.5}'], set(), {"a"}, {"a"}),
        (['{"a":0.0}'], set(), {"a"}, set()),
        (['{"a":100000000000000000000}'], set(), set(), set()),
        (['{"a":100000000000000000000.00}'], set(), {"a"}, set()),
        (['{"a":-12345678901234567890.25}'], set(), set(), set()),
        (['{"a":12345678901234567890.50}'], set(), set(), {"a"}),
        (['{"a":36893488147419103232.1}'], set(), set(), set()),
        (['{"b":[{"c":1},{"c":1.5}]}'], {"b"}, set(), set()),
        (['{"b":[{"c":1},{"c":1.5}]}', '{"b":[{"c":2.50}]}'], {"b"}, set(), {"b"}),
        (['{"a":"7"}', '{"x":7.0}', '{"a":[7]}'], set(), set(), set()),
    ],
)
def test_integers_and_padded_decimals_are_noted(
    documents: list[str], integers: set[str], whole: set[str], padded: set[str]
) -> None:
    shredder = Shredder(parse_ddl("a DECIMAL(38,2), b ARRAY<STRUCT<c: DECIMAL(9,2)>>"))
    paths = {"a": Path.of("a"), "b": Path.of("b", 0, "c")}
    shredder.shred(read([document.encode() for document in documents]))
    assert shredder.notes.integers == {paths[name] for name in integers}
    assert shredder.notes.whole == {paths[name] for name in whole}
    assert shredder.notes.padded == {paths[name] for name in padded}
    assert not shredder.notes.lacking
    shredder.shred(read([b"{}"]))
    assert shredder.notes == ValueNotes()  # of the last tape alone


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        *[("7", True), ("7.5", False), ("9223372036854775808", False)],
        *[("0E-30", True), ("10E-30", False)],
    ],
)
def test_a_decimal_without_a_fraction_is_noted_where_an_integer_holds_it(
    value: str, whole: bool
) -> None:
    shredder = Shredder(parse_ddl(f"DECIMAL(38,{30 if 'E' in value else 2})"))
    variant = Variant.of(Decimal(value))
    shredder.shred(VariantReader().read(array_of([(variant.metadata, variant.value)])))
    assert shredder.notes.whole == ({Path()} if whole else frozenset())
    assert shredder.notes.padded == ({Path()} if value == "10E-30" else frozenset())


@pytest.mark.parametrize(
    ("value", "lacking"),
    [
        (dt.time(1, 2), True),
        (np.datetime64(5, "ns"), True),
        ([{"a": [dt.time(1)]}], True),
        (uuid.UUID(int=1), False),
        (dt.datetime(2026, 1, 1), False),  # noqa: DTZ001 - without a zone on purpose
    ],
)
def test_types_that_spark_lacks_are_noted(value: object, lacking: bool) -> None:
    shredder = Shredder(parse_ddl("a BIGINT"))
    variant = Variant.of(value)
    shredder.shred(VariantReader().read(array_of([(variant.metadata, variant.value)])))
    assert shredder.notes == ValueNotes(lacking)


def test_a_type_of_a_later_version_is_one_that_spark_lacks() -> None:
    shredder = Shredder(parse_ddl("a BIGINT"))
    tape = VariantReader().read(array_of([(b"\x01\x00\x00", bytes([21 << 2]) + b"abcd")]))
    shredder.shred(tape)
    assert shredder.notes.lacking == bool((tape.status == 0).all())
