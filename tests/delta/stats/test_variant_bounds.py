"""Bounds of Variant columns as text: of Databricks, of the protocol's examples, and hostile."""

from __future__ import annotations

import contextlib
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.delta.stats import z85
from variantlake.delta.stats.variant_bounds import (
    decode_bounds,
    encode_bounds,
    raw_of,
    scalar_of,
    split,
)
from variantlake.encoding.scalar import Scalar
from variantlake.errors import MalformedLog, MalformedVariant, VariantLakeError
from variantlake.paths import Path
from variantlake.types import Primitive, ShreddedType

ID, NAME, ROOT = Path.of("id"), Path.of("name"), Path()


def _long(value: int) -> Scalar:
    return Scalar(Primitive.INT64, value)


def _text(value: str) -> Scalar:
    return Scalar(Primitive.STRING, value)


# Texts written by Databricks (the conformance tables), and what they hold, in dictionary order.
WRITTEN = [
    ("0rJlc5f$EczEEx[cTw04cUW9st(>6d00icd1U*?]0000000000", {NAME: _text("1"), ID: _long(0)}),
    ("0rJlc5f$EczEEx[cTw04cUW9st(>6d00icd1VWza0000000000", {NAME: _text("9"), ID: _long(9)}),
    ("0rJlc5f$EczEEx[cTw04cUW9st(>6d00rif2@adK3ig5a00000", {NAME: _text("11"), ID: _long(10)}),
    ("0rJlc5f$EczEEx[cTw04cUW9st(>6d00rif2@jgK6951j00000", {NAME: _text("20"), ID: _long(19)}),
    ("0rAf3bMW#D00%Fx0000000000", {ROOT: _long(0)}),
]

# The examples of the protocol: value first, not padded, the last group cut.
EXAMPLES = [
    ("0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu", "min-string", 1),
    ("0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K", "variant", 100),
]


@pytest.mark.parametrize(("text", "expected"), WRITTEN)
def test_texts_of_other_writers_are_read(text: str, expected: dict[Path, Scalar]) -> None:
    assert decode_bounds(text) == expected


@pytest.mark.parametrize(("text", "expected"), WRITTEN)
def test_our_texts_are_theirs_but_for_the_order_of_the_values(
    text: str, expected: dict[Path, Scalar]
) -> None:
    # Databricks lays the values of an object in the order of its dictionary, we in that of its
    # fields: where the two orders agree, so do all bytes.
    ours = encode_bounds(expected)
    assert len(ours) == len(text)
    assert split(z85.decode(ours))[0] == split(z85.decode(text))[0]
    if len(expected) == 1:
        assert ours == text


@pytest.mark.parametrize(("text", "a", "b_c"), EXAMPLES, ids=["min", "max"])
def test_the_examples_of_the_protocol_are_read(text: str, a: str, b_c: int) -> None:
    assert decode_bounds(text) == {
        Path.of("a"): _text(a),
        Path.of("b", "c"): Scalar(Primitive.INT8, b_c),
    }


keys = st.text(st.characters(codec="utf-8"), max_size=5)
paths = st.lists(keys, max_size=3).map(lambda steps: Path(tuple(steps)))
scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(_long),
    st.text(st.characters(codec="utf-8"), max_size=80).map(_text),
    st.floats(allow_nan=False).map(lambda value: Scalar(Primitive.DOUBLE, value)),
)


@given(st.dictionaries(paths, scalars, min_size=1, max_size=8))
def test_decoding_gives_what_was_encoded(bounds: dict[Path, Scalar]) -> None:
    assert decode_bounds(encode_bounds(bounds)) == bounds


@given(st.dictionaries(paths, scalars, min_size=1, max_size=8))
def test_both_orders_of_the_two_parts_mean_the_same(bounds: dict[Path, Scalar]) -> None:
    metadata, value = split(z85.decode(encode_bounds(bounds)))
    assert decode_bounds(z85.encode(value + metadata)) == bounds


def test_what_is_no_primitive_or_no_path_is_left_out() -> None:
    # 01 version, 3 keys; then an object of: "$['a']" -> {}, "b" -> 1, "$['c']" -> 2
    keys = [b"$['a']", b"b", b"$['c']"]
    metadata = b"\x01\x03" + bytes([0, 6, 7, 13]) + b"".join(keys)
    value = b"\x02\x03\x00\x02\x01" + bytes([0, 3, 5, 7]) + b"\x02\x00\x00" + b"\x0c\x02\x0c\x01"
    assert decode_bounds(z85.encode(metadata + value)) == {
        Path.of("c"): Scalar(Primitive.INT8, 2),
    }


def test_a_text_with_anything_behind_it_but_zeros_is_refused() -> None:
    data = z85.decode(encode_bounds({ID: _long(1)}))
    with pytest.raises(MalformedLog, match="padding"):
        decode_bounds(z85.encode(data + b"\x01\x00\x00\x00"))
    assert decode_bounds(z85.encode(data + bytes(8))) == {ID: _long(1)}


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(MalformedVariant):
        decode_bounds("")


@given(st.binary(max_size=60))
def test_any_bytes_give_bounds_or_one_of_our_errors(data: bytes) -> None:
    with contextlib.suppress(VariantLakeError):
        decode_bounds(z85.encode(data))


@given(st.data())
def test_a_damaged_text_gives_bounds_or_one_of_our_errors(data: st.DataObject) -> None:
    text, _ = data.draw(st.sampled_from(WRITTEN))
    position = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:position] + data.draw(st.sampled_from(z85.ALPHABET)) + text[position + 1 :]
    with contextlib.suppress(VariantLakeError):
        decode_bounds(damaged)


LEAVES = [
    ("TINYINT", 5, Primitive.INT8),
    ("SMALLINT", 5, Primitive.INT16),
    ("INT", 5, Primitive.INT32),
    ("BIGINT", 5, Primitive.INT64),
    ("DOUBLE", 0.5, Primitive.DOUBLE),
    ("FLOAT", 0.5, Primitive.FLOAT),
    ("DECIMAL(9,2)", Decimal("1.50"), Primitive.DECIMAL4),
    ("DECIMAL(10,2)", Decimal("1.50"), Primitive.DECIMAL8),
    ("DECIMAL(19,2)", Decimal("1.50"), Primitive.DECIMAL16),
    ("DATE", 3, Primitive.DATE),
    ("TIMESTAMP", 3, Primitive.TIMESTAMP),
    ("TIMESTAMP_NTZ", 3, Primitive.TIMESTAMP_NTZ),
    ("STRING", "x", Primitive.STRING),
    ("UUID", uuid.UUID(int=7).bytes, Primitive.UUID),
]


@pytest.mark.parametrize(("ddl", "raw", "primitive"), LEAVES)
def test_a_bound_has_the_type_of_its_column(ddl: str, raw: object, primitive: Primitive) -> None:
    leaf = ShreddedType.parse(ddl)
    scalar = scalar_of(leaf, raw)  # type: ignore[arg-type]  # the table holds many types
    assert scalar.type is primitive
    assert raw_of(leaf, scalar) == raw
    assert decode_bounds(encode_bounds({ID: scalar})) == {ID: scalar}


def test_integers_of_another_width_serve_and_other_types_do_not() -> None:
    narrow = Scalar(Primitive.INT8, 5)
    assert raw_of(ShreddedType.parse("BIGINT"), narrow) == 5
    assert raw_of(ShreddedType.parse("DECIMAL(9,2)"), narrow) == Decimal(5)
    assert raw_of(ShreddedType.parse("STRING"), narrow) is None
    assert raw_of(ShreddedType.parse("DATE"), narrow) is None
    assert raw_of(ShreddedType.parse("BIGINT"), Scalar(Primitive.DATE, 5)) is None
    assert raw_of(ShreddedType.parse("DOUBLE"), narrow) is None
