"""Changing values inside of Variants, from the public surface, without Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.errors import DuplicateKey, InvalidPath, InvalidValue, PathTypeMismatch
from variantlake.kernels.variant.arrow_variants import as_variants, variant_column


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
