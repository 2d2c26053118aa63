"""Primitive values and short strings: widths, edges, and what is refused."""

from __future__ import annotations

import struct
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given

from tests.strategies import scalars, scalars_by_type
from variantlake.encoding.scalar import (
    NULL,
    Scalar,
    ScalarValue,
    decode_scalar,
    encode_scalar,
    exact_decimal,
    integer,
    scalar_size,
)
from variantlake.encoding.tree import logical_key
from variantlake.errors import InvalidValue, MalformedVariant, UnknownVariantType
from variantlake.types import PRIMITIVES, VARIABLE, Primitive


def decode(hexadecimal: str) -> Scalar:
    value = bytes.fromhex(hexadecimal)
    return decode_scalar(value, 0, len(value))


def test_every_primitive_type_has_a_strategy() -> None:
    assert set(scalars_by_type) == set(Primitive)


@pytest.mark.parametrize(
    ("hexadecimal", "type_", "value"),
    [
        ("00", Primitive.NULL, None),
        ("04", Primitive.TRUE, True),
        ("08", Primitive.FALSE, False),
        ("0c 80", Primitive.INT8, -128),
        ("10 ff7f", Primitive.INT16, 32767),
        ("14 00000080", Primitive.INT32, -(1 << 31)),
        ("18 ffffffffffffff7f", Primitive.INT64, (1 << 63) - 1),
        ("1c 000000000000f03f", Primitive.DOUBLE, 1.0),
        ("20 02 d2040000", Primitive.DECIMAL4, Decimal("12.34")),
        ("20 26 ffffffff", Primitive.DECIMAL4, Decimal("-1E-38")),
        ("24 00 ffffffffffffffff", Primitive.DECIMAL8, Decimal(-1)),
        ("28 01 feffffffffffffffffffffffffffffff", Primitive.DECIMAL16, Decimal("-0.2")),
        ("2c ffffffff", Primitive.DATE, -1),
        ("30 0100000000000000", Primitive.TIMESTAMP, 1),
        ("34 ffffffffffffffff", Primitive.TIMESTAMP_NTZ, -1),
        ("38 0000c03f", Primitive.FLOAT, 1.5),
        ("3c 02000000 00ff", Primitive.BINARY, b"\x00\xff"),
        ("40 02000000 c3a9", Primitive.STRING, "é"),
        ("44 0100000000000000", Primitive.TIME, 1),
        ("48 0100000000000000", Primitive.TIMESTAMP_NANOS, 1),
        ("4c 0100000000000000", Primitive.TIMESTAMP_NTZ_NANOS, 1),
        ("50 000102030405060708090a0b0c0d0e0f", Primitive.UUID, UUID(bytes=bytes(range(16)))),
        ("01", Primitive.STRING, ""),
        ("09 c3a9", Primitive.STRING, "é"),
        ("fd" + "61" * 63, Primitive.STRING, "a" * 63),
    ],
)  # fmt: skip
def test_bytes_of_each_type(hexadecimal: str, type_: Primitive, value: ScalarValue) -> None:
    assert decode(hexadecimal) == Scalar(type_, value)
    if not hexadecimal.startswith("40"):  # what fits a short string is written as one
        assert encode_scalar(Scalar(type_, value)) == bytes.fromhex(hexadecimal)


def test_a_string_of_64_bytes_is_no_short_string() -> None:
    encoded = encode_scalar(Scalar(Primitive.STRING, "a" * 62 + "é"))
    assert encoded[:5] == bytes.fromhex("40 40000000")
    assert encode_scalar(Scalar(Primitive.STRING, "a" * 61 + "é"))[0] == 0xFD


@pytest.mark.parametrize("type_id", [21, 22, 63])
def test_an_unknown_type_id_is_an_error_of_its_own(type_id: int) -> None:
    with pytest.raises(UnknownVariantType, match=f"id {type_id} ") as caught:
        decode_scalar(bytes([0, type_id << 2]), 1, 2)
    assert caught.value.offset == 1


@pytest.mark.parametrize("primitive", [p for p in Primitive if PRIMITIVES[p].width != VARIABLE])
@pytest.mark.parametrize("change", [-1, 1])
def test_data_is_exactly_as_wide_as_its_type(primitive: Primitive, change: int) -> None:
    width = PRIMITIVES[primitive].width + change
    if width >= 0:
        value = bytes([primitive << 2]) + bytes(width)
        with pytest.raises(MalformedVariant, match="bytes"):
            decode_scalar(value, 0, len(value))


@pytest.mark.parametrize(
    "hexadecimal",
    [
        "40",
        "40 0100",
        "40 01000000",
        "40 01000000 6162",
        "40 ffffffff 61",
        "3c 02000000 00",
        "05",
        "05 6162",
    ],
)
def test_sizes_of_strings_and_binaries_are_exact(hexadecimal: str) -> None:
    with pytest.raises(MalformedVariant):
        decode(hexadecimal)


@pytest.mark.parametrize(
    "hexadecimal", ["05 ff", "05 c3", "0d eda080", "40 02000000 c080", "11 f4908080"]
)
def test_strings_are_utf8(hexadecimal: str) -> None:
    with pytest.raises(MalformedVariant, match="UTF-8"):
        decode(hexadecimal)


@pytest.mark.parametrize(
    ("hexadecimal", "message"),
    [
        ("20 27 01000000", "scale 39"),
        ("20 ff 01000000", "scale 255"),
        ("20 00 00ca9a3b", "9 digits"),  # 1,000,000,000
        ("20 00 00000080", "9 digits"),
        ("24 00 000064a7b3b6e00d", "18 digits"),  # 10^18
        ("28 00 00000000 40228a097ac4865aa84c3b4b", "38 digits"),  # 10^38
    ],
)
def test_decimals_keep_scale_and_precision_of_their_width(hexadecimal: str, message: str) -> None:
    with pytest.raises(MalformedVariant, match=message):
        decode(hexadecimal)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (0, Primitive.INT8), (127, Primitive.INT8), (-128, Primitive.INT8),
        (128, Primitive.INT16), (-129, Primitive.INT16), (32768, Primitive.INT32),
        (1 << 31, Primitive.INT64), (-(1 << 63), Primitive.INT64),
        (1 << 63, Primitive.DECIMAL16), (10**38 - 1, Primitive.DECIMAL16),
    ],
)  # fmt: skip
def test_integers_take_the_narrowest_type(value: int, type_: Primitive) -> None:
    assert integer(value) == Scalar(type_, value)
    assert integer(value).type is type_


@pytest.mark.parametrize("value", [10**38, -(10**38), 10**5000], ids=["1", "-1", "long"])
def test_integers_beyond_38_digits_are_refused(value: int) -> None:
    with pytest.raises(InvalidValue, match="38 digits"):
        integer(value)


@pytest.mark.parametrize(
    ("text", "type_", "unscaled_and_scale"),
    [
        ("1.50", Primitive.DECIMAL4, (150, 2)),
        ("-0.0", Primitive.DECIMAL4, (0, 1)),
        ("999999999", Primitive.DECIMAL4, (999999999, 0)),
        ("1000000000", Primitive.DECIMAL8, (10**9, 0)),
        ("1E-9", Primitive.DECIMAL4, (1, 9)),
        ("1E-10", Primitive.DECIMAL8, (1, 10)),  # Spark reads no decimal4 of scale 10
        ("1E-19", Primitive.DECIMAL16, (1, 19)),
        ("1E+3", Primitive.DECIMAL4, (1000, 0)),
        ("0E+999999", Primitive.DECIMAL4, (0, 0)),
        ("1E-38", Primitive.DECIMAL16, (1, 38)),
    ],
)
def test_decimals_take_the_narrowest_width_for_digits_and_scale(
    text: str, type_: Primitive, unscaled_and_scale: tuple[int, int]
) -> None:
    scalar = exact_decimal(Decimal(text))
    assert scalar.type is type_
    assert isinstance(scalar.value, Decimal)
    unscaled, scale = unscaled_and_scale
    assert scalar.value == Decimal(unscaled).scaleb(-scale)
    assert scalar.value.as_tuple().exponent == -scale


@pytest.mark.parametrize(
    "text", ["NaN", "sNaN", "Infinity", "1E+38", "1E+999999999", "1E-39", "0E-39", "9" * 39]
)
def test_decimals_beyond_38_digits_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        exact_decimal(Decimal(text))


@pytest.mark.parametrize(
    "scalar",
    [
        Scalar(Primitive.NULL, 0),
        Scalar(Primitive.TRUE, False),
        Scalar(Primitive.FALSE, None),
        Scalar(Primitive.INT8, 128),
        Scalar(Primitive.INT8, True),
        Scalar(Primitive.INT64, 1 << 63),
        Scalar(Primitive.INT64, 10**5000),
        Scalar(Primitive.DATE, 1 << 31),
        Scalar(Primitive.DOUBLE, 1),
        Scalar(Primitive.FLOAT, 0.1),
        Scalar(Primitive.FLOAT, 1e300),
        Scalar(Primitive.DECIMAL4, Decimal(1234567890)),
        Scalar(Primitive.DECIMAL4, Decimal("1E-39")),
        Scalar(Primitive.DECIMAL16, 1),
        Scalar(Primitive.STRING, b"a"),
        Scalar(Primitive.STRING, "\ud800"),
        Scalar(Primitive.BINARY, "a"),
        Scalar(Primitive.UUID, "f24f9b64-81fa-49d1-b74e-8c09a6e31c56"),
    ],
    ids=lambda scalar: f"{scalar.type.name}-{type(scalar.value).__name__}",
)
def test_values_that_do_not_fit_their_type_are_refused(scalar: Scalar) -> None:
    with pytest.raises(InvalidValue):
        encode_scalar(scalar)


@given(scalars)
def test_decode_of_encode_is_the_same(scalar: Scalar) -> None:
    encoded = encode_scalar(scalar)
    assert scalar_size(encoded, 0, len(encoded)) == len(encoded)
    found = decode_scalar(encoded, 0, len(encoded))
    assert found.type is scalar.type
    assert logical_key(found) == logical_key(scalar)
    if isinstance(scalar.value, Decimal):
        assert str(found.value) == str(scalar.value)  # the scale is kept
    if scalar.type is Primitive.DOUBLE and isinstance(found.value, float):
        assert struct.pack("<d", found.value) == encoded[1:]  # -0.0 and NaN too


def test_null_is_one_byte() -> None:
    assert encode_scalar(NULL) == b"\x00"
