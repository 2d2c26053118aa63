"""Arrow scalars to Variants and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given

from tests.strategies import scalars
from variantlake.encoding.arrow_scalars import from_arrow, to_arrow
from variantlake.encoding.scalar import NULL, TRUE, Scalar
from variantlake.encoding.tree import logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue
from variantlake.types import Primitive

D, N = Decimal, Primitive
MAP_OF_LISTS = pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.string())])))


def decimal(text: str, type_: pa.DataType) -> Any:
    return pa.scalar(Decimal(text), type_)


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (pa.scalar(None, pa.null()), NULL),
        (pa.scalar(None, pa.struct([("a", pa.int8())])), NULL),
        (pa.scalar(True), TRUE),
        (pa.scalar(5, pa.int8()), Scalar(N.INT8, 5)),
        (pa.scalar(5, pa.int64()), Scalar(N.INT64, 5)),
        (pa.scalar(200, pa.uint8()), Scalar(N.INT16, 200)),
        (pa.scalar((1 << 64) - 1, pa.uint64()), Scalar(N.DECIMAL16, D((1 << 64) - 1))),
        (pa.scalar(1.5, pa.float16()), Scalar(N.FLOAT, 1.5)),
        (pa.scalar(1.5, pa.float32()), Scalar(N.FLOAT, 1.5)),
        (pa.scalar(1.5), Scalar(N.DOUBLE, 1.5)),
        (decimal("1.50", pa.decimal32(5, 2)), Scalar(N.DECIMAL4, D("1.50"))),
        (decimal("1.50", pa.decimal128(38, 2)), Scalar(N.DECIMAL4, D("1.50"))),
        (decimal("1.50", pa.decimal256(60, 2)), Scalar(N.DECIMAL4, D("1.50"))),
        (pa.scalar("é"), Scalar(N.STRING, "é")),
        (pa.scalar("é", pa.large_string()), Scalar(N.STRING, "é")),
        (pa.scalar("é", pa.string_view()), Scalar(N.STRING, "é")),
        (pa.scalar("é").cast(pa.dictionary(pa.int8(), pa.string())), Scalar(N.STRING, "é")),
        (pa.scalar(b"ab"), Scalar(N.BINARY, b"ab")),
        (pa.scalar(b"ab", pa.binary(2)), Scalar(N.BINARY, b"ab")),
        (pa.scalar(b"ab", pa.binary_view()), Scalar(N.BINARY, b"ab")),
        (pa.scalar(dt.date(1969, 12, 31)), Scalar(N.DATE, -1)),
        (pa.scalar(dt.date(1969, 12, 31), pa.date64()), Scalar(N.DATE, -1)),
        (pa.scalar(5, pa.timestamp("s")), Scalar(N.TIMESTAMP_NTZ, 5_000_000)),
        (pa.scalar(5, pa.timestamp("ms", "Europe/Rome")), Scalar(N.TIMESTAMP, 5_000)),
        (pa.scalar(5, pa.timestamp("us", "UTC")), Scalar(N.TIMESTAMP, 5)),
        (pa.scalar(5, pa.timestamp("ns")), Scalar(N.TIMESTAMP_NTZ_NANOS, 5)),
        (pa.scalar(5, pa.timestamp("ns", "UTC")), Scalar(N.TIMESTAMP_NANOS, 5)),
        (pa.scalar(5, pa.time32("s")), Scalar(N.TIME, 5_000_000)),
        (pa.scalar(5, pa.time32("ms")), Scalar(N.TIME, 5_000)),
        (pa.scalar(5, pa.time64("us")), Scalar(N.TIME, 5)),
        (pa.scalar(UUID(int=5).bytes, pa.uuid()), Scalar(N.UUID, UUID(int=5))),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Scalar) else "",
)
def test_from_arrow(scalar: Any, expected: Scalar) -> None:
    assert from_arrow(scalar) == expected


@pytest.mark.parametrize(
    ("scalar", "json"),
    [
        (pa.scalar({"a": 1, "b": None}), '{"a":1,"b":null}'),
        (pa.scalar([1, None]), "[1,null]"),
        (pa.scalar([1, 2], pa.large_list(pa.int8())), "[1,2]"),
        (pa.scalar([1, 2], pa.list_(pa.int8(), 2)), "[1,2]"),
        (pa.scalar([1, 2], pa.list_view(pa.int8())), "[1,2]"),
        (pa.scalar([("k", [{"x": "y"}])], MAP_OF_LISTS), '{"k":[{"x":"y"}]}'),
        (pa.scalar([], pa.map_(pa.string(), pa.int8())), "{}"),
    ],
)
def test_containers_from_arrow(scalar: Any, json: str) -> None:
    assert Variant.of(scalar).to_json() == json


@pytest.mark.parametrize(
    "make",
    [
        lambda: pa.scalar(5, pa.duration("s")),
        lambda: pa.scalar(5, pa.time64("ns")),
        lambda: pa.scalar(86_400_005, pa.date64()),
        lambda: pa.scalar((1, 2, 3), pa.month_day_nano_interval()),
        lambda: decimal("9" * 39, pa.decimal256(39, 0)),
        lambda: pa.scalar([(1, 2)], pa.map_(pa.int8(), pa.int8())),
        lambda: pa.scalar([("a", 1), ("a", 2)], pa.map_(pa.string(), pa.int8())),
        lambda: pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])[0],
    ],
)
def test_what_no_variant_holds_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidValue):
        from_arrow(make())


@given(scalars)
def test_scalars_come_back(scalar: Scalar) -> None:
    arrow = to_arrow(scalar)
    again = from_arrow(arrow)
    assert isinstance(again, Scalar)
    assert logical_key(again) == logical_key(scalar)
    if not isinstance(scalar.value, Decimal):
        assert again.type is scalar.type


@pytest.mark.parametrize(
    ("scalar", "type_"),
    [
        (Scalar(N.INT8, 1), pa.int8()),
        (Scalar(N.DECIMAL4, D("1.5")), pa.decimal128(9, 1)),
        (Scalar(N.DECIMAL8, D("1.5")), pa.decimal128(18, 1)),
        (Scalar(N.DECIMAL4, D("1E-20")), pa.decimal128(20, 20)),
        (Scalar(N.TIMESTAMP, 1), pa.timestamp("us", "UTC")),
        (NULL, pa.null()),
        (TRUE, pa.bool_()),
    ],
)
def test_types_to_arrow(scalar: Scalar, type_: pa.DataType) -> None:
    assert to_arrow(scalar).type == type_
