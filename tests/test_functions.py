"""Changing values inside of Variants, from the public surface, without Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import json_texts
from variantlake.errors import (
    DuplicateKey,
    InvalidJson,
    InvalidPath,
    InvalidValue,
    PathTypeMismatch,
)
from variantlake.kernels.variant.arrow_variants import as_variants, variant_column

KINDS = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int32(), pa.string()),
)


def column(*texts: str | None) -> pa.StructArray:
    return variant_column([None if text is None else vl.parse_json(text) for text in texts])


def texts(array: Any) -> list[str | None]:
    return [
        row and vl.Variant(row["metadata"], row["value"]).to_json() for row in array.to_pylist()
    ]


def test_one_value() -> None:
    event: Any = vl.parse_json('{"a": 1, "tags": ["x"]}')
    assert vl.variant_set(event, "$.a", Decimal("1.50")).to_json() == '{"a":1.5,"tags":["x"]}'
    assert vl.variant_set(event, "$.a", None).get("$.a").type == "null"
    assert vl.variant_set(event, "$.b.c", 1, create_if_missing=False) == event
    assert vl.variant_insert(event, "$.tags[0]", "w").to_json() == '{"a":1,"tags":["w","x"]}'
    assert vl.variant_array_append(event, "$.tags", "y").get("$.tags").to_json() == '["x","y"]'
    assert vl.variant_delete(event, "$.a", "$.tags[0]").to_json() == '{"tags":[]}'
    assert vl.variant_remove(event, "$.a").to_json() == '{"tags":["x"]}'
    assert vl.variant_set(None, "$.a", 1) is None
    assert event.to_json() == '{"a":1,"tags":["x"]}'


@for_all(st.lists(st.none() | json_texts, max_size=8), st.data())
def test_texts_of_an_array_are_parsed_as_one_by_one(
    rows: list[str | None], data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    given: Any = pa.array(rows, pa.string()).cast(cast("Any", kind))
    keys: Any = data.draw(st.sampled_from(["error", "last"]))
    right = column(*rows)
    assert texts(vl.parse_json(given, duplicate_keys=keys)) == texts(right)
    cut = data.draw(st.integers(0, len(rows)))
    chunks: Any = pa.chunked_array([given[:cut], given[cut:]], cast("Any", kind))
    parsed = vl.parse_json(chunks, duplicate_keys=keys)
    assert parsed.num_chunks == 2
    assert vl.to_json(parsed).to_pylist() == vl.to_json(right).to_pylist() == texts(right)


@pytest.mark.parametrize("keys", ["error", "last"])
def test_a_bad_text_of_an_array_is_named_by_its_row(keys: Any) -> None:
    rows = pa.chunked_array([["1", None], ['{"a":1}', '{"a":}']])
    with pytest.raises(InvalidJson) as error:
        vl.parse_json(rows, duplicate_keys=keys)
    assert (error.value.row, error.value.column) == (3, 6)
    with pytest.raises(InvalidJson) as error:
        vl.parse_json(pa.array([b"1", b'"\xff"']), duplicate_keys=keys)
    assert error.value.row == 1


def test_a_key_that_comes_twice() -> None:
    rows = pa.array(['{"a": 1, "a": 2}'])
    with pytest.raises(InvalidJson, match="twice"):
        vl.parse_json(rows)
    assert texts(vl.parse_json(rows, duplicate_keys="last")) == ['{"a":2}']
    with pytest.raises(InvalidValue, match="duplicate_keys is 'first'"):
        vl.parse_json(rows, duplicate_keys="first")  # type: ignore[call-overload]


def test_text_of_one_value() -> None:
    assert vl.to_json(vl.parse_json('{"a": 1.50}')) == '{"a":1.5}'
    assert vl.to_json(None) is None
    for nothing in ("{}", 7, pa.array(["{}"]), pa.chunked_array([[1]])):
        with pytest.raises(InvalidValue, match="expected a Variant, found"):
            vl.to_json(nothing)
    for number in (pa.array([1]), pa.chunked_array([[1]])):
        with pytest.raises(InvalidValue, match="an array of int64 holds no JSON text"):
            vl.parse_json(number)
    assert vl.parse_json(pa.chunked_array([], pa.string())).to_pylist() == []


def test_errors_and_their_lenient_forms() -> None:
    event = vl.parse_json('{"a": 1}')
    with pytest.raises(PathTypeMismatch):
        vl.variant_set(event, "$.a.b", 1)
    with pytest.raises(DuplicateKey):
        vl.variant_insert(event, "$.a", 1)
    with pytest.raises(PathTypeMismatch):
        vl.variant_array_append(event, "$.a", 1)
    assert vl.try_variant_set(event, "$.a.b", 1) is None
    assert vl.try_variant_insert(event, "$.a", 1) is None
    assert vl.try_variant_array_append(event, "$.a", 1) is None
    for path in ("a", "$", "$.a[-1]", "$.a[*]"):
        with pytest.raises(InvalidPath):
            vl.variant_set(event, path, 1)
    with pytest.raises(InvalidPath, match="needs a path"):
        vl.variant_delete(event)
    with pytest.raises(InvalidValue, match="expected a Variant, found str"):
        vl.variant_set("{}", "$.a", 1)
    with pytest.raises(InvalidValue, match="found int64"):
        vl.variant_set(pa.array([1]), "$.a", 1)


def test_arrays() -> None:
    events = column('{"a":1}', None, '{"b":2}')
    assert texts(vl.variant_set(events, "$.a", {"k": True})) == [
        '{"a":{"k":true}}', None, '{"a":{"k":true},"b":2}',
    ]  # fmt: skip
    each = pa.array([dt.date(2026, 1, 2), None, dt.date(2026, 1, 3)])
    assert texts(vl.variant_set(events, "$.d", each)) == [
        '{"a":1,"d":"2026-01-02"}', None, '{"b":2,"d":"2026-01-03"}',
    ]  # fmt: skip
    assert texts(vl.try_variant_insert(events, "$.a", pa.array([7, 8, None]))) == [None] * 3
    assert texts(vl.variant_delete(events, "$.a", "$.b")) == ["{}", None, "{}"]
    with pytest.raises(InvalidValue, match="2 values for 3 Variants"):
        vl.variant_set(events, "$.a", pa.array([1, 2]))
    with pytest.raises(PathTypeMismatch) as caught:
        vl.variant_set(events, "$.b.c", 1)
    assert caught.value.row == 2
    assert len(vl.variant_set(events.slice(0, 0), "$.a", 1)) == 0


def test_chunked_arrays() -> None:
    events = pa.chunked_array([column('{"a":1}', "{}"), column("{}")])
    found = vl.variant_set(events, "$.a", pa.array([1, 2, 3]))
    assert isinstance(found, pa.ChunkedArray)
    assert texts(found) == ['{"a":1}', '{"a":2}', '{"a":3}']
    assert texts(vl.variant_set(events, "$.a", 9)) == ['{"a":9}'] * 3


def test_values_of_any_arrow_type() -> None:
    inner = column('{"z":1}', "2")
    array = pa.StructArray.from_arrays([inner, pa.array([[1], [None, 2]])], ["v", "list"])
    assert texts(as_variants(array)) == ['{"list":[1],"v":{"z":1}}', '{"list":[null,2],"v":2}']
    assert texts(as_variants(pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())))) == [
        '{"k":1}'
    ]
    assert texts(as_variants(pa.array(["a", None, "a"]))) == ['"a"', None, '"a"']
    assert texts(as_variants(pa.nulls(2))) == [None, None]
    with pytest.raises(InvalidValue):
        as_variants(pa.array([dt.timedelta(1)]))
