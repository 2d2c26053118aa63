"""Hypothesis strategies for everybody: scalars, trees, Variants, JSON documents, layouts.

The rules of the specification stand beside what generates by them. Values lean towards the edges:
widths of integers and decimals, 63 and 64 bytes of string, 255 and 256 elements, keys whose order
differs between UTF-8 and UTF-16.
"""

from __future__ import annotations

import json
import os
import struct
from decimal import Decimal

from hypothesis import strategies as st

from tests.encoding.layouts import Layouts
from variantlake.encoding.scalar import (
    DECIMAL_DIGITS,
    FALSE,
    INTEGER_BITS,
    NULL,
    TRUE,
    Scalar,
    decimal_of,
)
from variantlake.encoding.tree import Tree
from variantlake.encoding.variant import Variant
from variantlake.types import Primitive

MORE = int(os.environ.get("VARIANTLAKE_EXAMPLES", "1"))
"""So many times the examples that `make test` has: `make test-long`."""

# Text that UTF-8 can write: no surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
long_texts = st.integers(60, 70).flatmap(
    lambda size: st.text(st.sampled_from("aé😀"), min_size=size // 4, max_size=size)
)

# A few names, so that objects share them; U+FFFF sorts before U+10000 in UTF-8, after it in UTF-16.
keys = st.sampled_from(["a", "b", "c", "id", "ID", "", "a.b", "é", "\uffff", "\U00010000"]) | texts


def _integers(primitive: Primitive) -> st.SearchStrategy[Scalar]:
    top = 1 << (INTEGER_BITS[primitive] - 1)
    edges = st.sampled_from([-top, -1, 0, 1, top - 1])
    return (edges | st.integers(-top, top - 1)).map(lambda value: Scalar(primitive, value))


def _decimals(primitive: Primitive) -> st.SearchStrategy[Scalar]:
    """Scale up to 38 in every width, as the specification allows."""
    top = 10 ** DECIMAL_DIGITS[primitive]
    unscaled = st.sampled_from([-top + 1, 0, 10, top - 1]) | st.integers(-top + 1, top - 1)
    return st.builds(
        lambda number, scale: Scalar(primitive, decimal_of(number, scale)),
        unscaled,
        st.sampled_from([0, 1, 2, 9, 18, 38]) | st.integers(0, 38),
    )


def _int64(primitive: Primitive, *edges: int) -> st.SearchStrategy[Scalar]:
    values = st.sampled_from([0, -1, *edges]) | st.integers(-(1 << 63), (1 << 63) - 1)
    return values.map(lambda value: Scalar(primitive, value))


floats32 = st.integers(0, (1 << 32) - 1).map(
    lambda bits: struct.unpack("<f", bits.to_bytes(4, "little"))[0]
) | st.floats(width=32)
doubles = st.floats() | st.sampled_from([0.0, -0.0, 1e16, 1e22, 5e-324, 1.7976931348623157e308])

scalars_by_type: dict[Primitive, st.SearchStrategy[Scalar]] = {
    Primitive.NULL: st.just(NULL),
    Primitive.TRUE: st.just(TRUE),
    Primitive.FALSE: st.just(FALSE),
    **{primitive: _integers(primitive) for primitive in INTEGER_BITS},
    **{primitive: _decimals(primitive) for primitive in DECIMAL_DIGITS},
    Primitive.DOUBLE: doubles.map(lambda value: Scalar(Primitive.DOUBLE, value)),
    Primitive.FLOAT: floats32.map(lambda value: Scalar(Primitive.FLOAT, value)),
    Primitive.DATE: (
        st.sampled_from([-719_163, -719_162, 0, 20_194, 2_932_896, 2_932_897])
        | st.integers(-(1 << 31), (1 << 31) - 1)
    ).map(lambda value: Scalar(Primitive.DATE, value)),
    Primitive.TIMESTAMP: _int64(Primitive.TIMESTAMP, 1_744_821_296_780_000),
    Primitive.TIMESTAMP_NTZ: _int64(Primitive.TIMESTAMP_NTZ, 1_744_806_896_780_000),
    Primitive.TIMESTAMP_NANOS: _int64(Primitive.TIMESTAMP_NANOS, 1_730_982_834_123_456_789),
    Primitive.TIMESTAMP_NTZ_NANOS: _int64(Primitive.TIMESTAMP_NTZ_NANOS, 1_730_982_834_123_456_000),
    Primitive.TIME: st.integers(0, 86_399_999_999).map(lambda value: Scalar(Primitive.TIME, value)),
    Primitive.BINARY: st.binary(max_size=70).map(lambda value: Scalar(Primitive.BINARY, value)),
    Primitive.STRING: (texts | long_texts).map(lambda value: Scalar(Primitive.STRING, value)),
    Primitive.UUID: st.uuids().map(lambda value: Scalar(Primitive.UUID, value)),
}
"""One strategy for each primitive type; a test counts that none is missing."""

scalars = st.one_of(*scalars_by_type.values())

# What Spark 4.2 can read: no time, nanoseconds or UUID, and no scale above the width's digits.
spark_scalars = st.one_of(
    *(
        strategy
        for primitive, strategy in scalars_by_type.items()
        if primitive
        not in (
            Primitive.TIME,
            Primitive.TIMESTAMP_NANOS,
            Primitive.TIMESTAMP_NTZ_NANOS,
            Primitive.UUID,
        )
    )
).filter(
    lambda scalar: (
        not isinstance(scalar.value, Decimal)
        or -int(scalar.value.as_tuple().exponent) <= DECIMAL_DIGITS[scalar.type]
    )
)


def trees_of(leaves: st.SearchStrategy[Scalar], max_leaves: int = 12) -> st.SearchStrategy[Tree]:
    """Trees whose scalars are `leaves`: objects (the empty one too), arrays, nested."""

    def around(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        return st.lists(children, max_size=4) | st.dictionaries(keys, children, max_size=5)

    return st.recursive(leaves, around, max_leaves=max_leaves)


trees = trees_of(scalars)
spark_trees = trees_of(spark_scalars)
objects = st.dictionaries(keys, trees, max_size=6)

variants = trees.map(Variant.of_tree)

layouts = st.builds(
    Layouts,
    offset_size=st.integers(0, 4),
    id_size=st.integers(0, 4),
    is_large=st.booleans(),
    metadata_offset_size=st.integers(0, 4),
    sorted_strings=st.booleans(),
    unused_keys=st.lists(texts, max_size=3).map(tuple),
    repeat_keys=st.booleans(),
    reverse_values=st.booleans(),
    utf16_order=st.booleans(),
    reserved_bits=st.booleans(),
    short_strings=st.booleans(),
)
"""Every freedom that the encoding gives a writer; 0 means the narrowest size that fits."""

# Numbers as JSON writes them, at the edges of what `parse_json` tells apart.
json_integers = st.integers(-(10**40), 10**40).map(str) | st.integers(-300, 300).map(str)
json_decimals = st.builds(
    lambda sign, whole, fraction: f"{sign}{whole}.{fraction}",
    st.sampled_from(["", "-"]),
    st.integers(0, 10**22) | st.integers(0, 20),
    st.text("0123456789", min_size=1, max_size=40) | st.text("0123456789", min_size=1, max_size=4),
)
json_exponents = st.builds(
    lambda number, letter, exponent: f"{number}{letter}{exponent}",
    json_decimals | json_integers,
    st.sampled_from(["e", "E", "e+", "e-"]),
    st.integers(0, 400),
)
json_numbers = json_integers | json_decimals | json_exponents
json_strings = st.builds(
    lambda text, ascii_only: json.dumps(text, ensure_ascii=ascii_only), texts, st.booleans()
)
_white_space = st.sampled_from(["", "", "", " ", "\n", "\t ", "\r\n"])


def _json_around(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arrays = st.builds(
        lambda items, space: "[" + f"{space},{space}".join(items) + space + "]",
        st.lists(children, max_size=4),
        _white_space,
    )
    pairs = st.dictionaries(keys, children, max_size=5)
    json_objects = st.builds(
        lambda fields, space: (
            "{"
            + f",{space}".join(f"{json.dumps(k)}{space}:{space}{v}" for k, v in fields.items())
            + space
            + "}"
        ),
        pairs,
        _white_space,
    )
    return arrays | json_objects


json_texts = st.recursive(
    json_numbers | json_strings | st.sampled_from(["true", "false", "null"]),
    _json_around,
    max_leaves=12,
)
"""Valid JSON documents without duplicate keys or lone surrogates, as text."""
