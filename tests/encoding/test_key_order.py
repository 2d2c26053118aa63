"""Fields in Spark's order: the same object, with nothing moved but ids and offsets."""

from __future__ import annotations

from typing import Any

import pytest

import variantlake as vl
from variantlake.encoding.key_order import in_utf16_order, orders_may_differ
from variantlake.encoding.metadata import decode_metadata, encode_metadata
from variantlake.encoding.value import read_children

BELOW, ABOVE = "\uff21", "\U0001f600"
WIDE = {f"k{i:03}": i for i in range(300)} | {BELOW: "b", ABOVE: [1.5]}


@pytest.mark.rule(40)
@pytest.mark.parametrize(
    "document",
    [
        {BELOW: 1, ABOVE: 2, "a": None},
        WIDE,
        {"n": {"m": [WIDE, 7, {ABOVE + BELOW: 1, BELOW * 2: {}, BELOW + ABOVE: "x"}]}},
        [{BELOW: {ABOVE: {BELOW: 1, ABOVE: 2}, BELOW: 3}}],
    ],
)
def test_rule_40_fields_stand_in_the_order_of_utf16(document: Any) -> None:
    variants: Any = vl.parquet.variant_array([document])
    (row,) = variants.to_pylist()
    metadata, value = row["metadata"], row["value"]
    assert orders_may_differ(metadata)
    found = in_utf16_order(metadata, value)
    assert len(found) == len(value)
    assert vl.Variant(metadata, found).to_python() == document
    names = _names(metadata, found)
    assert all(each == sorted(each, key=lambda name: name.encode("utf-16-be")) for each in names)
    assert names != _names(metadata, value)


def _names(metadata: bytes, value: bytes) -> list[list[str]]:
    """The fields of all objects, in stored order."""
    found, waiting = [], [(0, len(value))]
    while waiting:
        start, end = waiting.pop()
        if value[start] & 3 not in (2, 3):
            continue
        children = read_children(decode_metadata(metadata), value, start, end)
        waiting.extend(zip(children.starts, children.ends, strict=True))
        if children.names is not None:
            found.append(list(children.names))
    return found


@pytest.mark.parametrize(
    "keys",
    [["a", "\xe9", "\u4e2d"], [BELOW], [ABOVE], ["x" * 238, "y"], [f"k{i}" for i in range(70000)]],
)
def test_most_dictionaries_have_one_order(keys: list[str]) -> None:
    assert not orders_may_differ(encode_metadata(keys))
