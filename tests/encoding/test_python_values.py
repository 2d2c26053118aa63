"""Python objects to Variants and back."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import example, given

from tests.strategies import trees
from variantlake.encoding.python_values import to_python, tree_of
from variantlake.encoding.scalar import FALSE, NULL, TRUE, Scalar, ScalarValue
from variantlake.encoding.tree import Tree, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidValue, LimitExceeded
from variantlake.types import Primitive

NEWFOUNDLAND = dt.timezone(dt.timedelta(hours=-3, minutes=-30))


class Colour(IntEnum):
    RED = 300


BOTH_WAYS: list[tuple[Any, Primitive, ScalarValue]] = [
    (None, Primitive.NULL, None),
    (True, Primitive.TRUE, True),
    (False, Primitive.FALSE, False),
    (-128, Primitive.INT8, -128),
    (1 << 62, Primitive.INT64, 1 << 62),
    (Decimal("-1.50"), Primitive.DECIMAL4, Decimal("-1.50")),
    (Decimal("1E-20"), Primitive.DECIMAL16, Decimal("1E-20")),
    (1.5, Primitive.DOUBLE, 1.5),
    ("é", Primitive.STRING, "é"),
    (b"\x00", Primitive.BINARY, b"\x00"),
    (dt.date(1969, 12, 31), Primitive.DATE, -1),
    (dt.date.min, Primitive.DATE, -719_162),
    (dt.date.max, Primitive.DATE, 2_932_896),
    (dt.datetime(1970, 1, 1, microsecond=1, tzinfo=dt.UTC), Primitive.TIMESTAMP, 1),
    (dt.datetime.min.replace(tzinfo=dt.UTC), Primitive.TIMESTAMP, -62_135_596_800_000_000),
    (dt.datetime.fromisoformat("0001-01-01"), Primitive.TIMESTAMP_NTZ, -62_135_596_800_000_000),
    (
        dt.datetime.fromisoformat("9999-12-31 23:59:59.999999"),
        Primitive.TIMESTAMP_NTZ,
        253_402_300_799_999_999,
    ),
    (dt.time(23, 59, 59, 999_999), Primitive.TIME, 86_399_999_999),
    (UUID(int=5), Primitive.UUID, UUID(int=5)),
    (np.datetime64(-1, "ns"), Primitive.TIMESTAMP_NTZ_NANOS, -1),
    (np.datetime64(2_932_897, "D"), Primitive.DATE, 2_932_897),
    (np.datetime64(1 << 62, "us"), Primitive.TIMESTAMP_NTZ, 1 << 62),
]


@pytest.mark.parametrize(
    ("value", "type_", "raw"), BOTH_WAYS, ids=lambda value: type(value).__name__
)
def test_both_ways(value: Any, type_: Primitive, raw: ScalarValue) -> None:
    scalar = tree_of(value)
    assert scalar == Scalar(type_, raw)
    found = to_python(scalar)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1 << 63, Scalar(Primitive.DECIMAL16, Decimal(1 << 63))),
        (Colour.RED, Scalar(Primitive.INT16, 300)),
        (np.int64(5), Scalar(Primitive.INT8, 5)),
        (np.uint64((1 << 64) - 1), Scalar(Primitive.DECIMAL16, Decimal((1 << 64) - 1))),
        (np.bool(1), TRUE),
        (np.float32(0.1), Scalar(Primitive.FLOAT, float(np.float32(0.1)))),
        (np.float64(0.1), Scalar(Primitive.DOUBLE, 0.1)),
        (np.str_("a"), Scalar(Primitive.STRING, "a")),
        (bytearray(b"a"), Scalar(Primitive.BINARY, b"a")),
        (memoryview(b"a"), Scalar(Primitive.BINARY, b"a")),
        (np.datetime64(3, "s"), Scalar(Primitive.TIMESTAMP_NTZ, 3_000_000)),
        (np.datetime64(3, "ms"), Scalar(Primitive.TIMESTAMP_NTZ, 3_000)),
        (np.datetime64(3, "h"), Scalar(Primitive.TIMESTAMP_NTZ, 10_800_000_000)),
        (
            dt.datetime(1970, 1, 1, tzinfo=NEWFOUNDLAND),
            Scalar(Primitive.TIMESTAMP, 12_600_000_000),
        ),
        (Scalar(Primitive.INT64, 1), Scalar(Primitive.INT64, 1)),
        (Variant.of(7), Scalar(Primitive.INT8, 7)),
        ((1, None), [Scalar(Primitive.INT8, 1), NULL]),
        (OrderedDict(b=False), {"b": FALSE}),
        ({"a": [Variant.of({"x": [1]})]}, {"a": [{"x": [Scalar(Primitive.INT8, 1)]}]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_from_python(value: object, expected: Tree) -> None:
    assert tree_of(value) == expected


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (Scalar(Primitive.DATE, -719_163), np.datetime64(-719_163, "D")),
        (Scalar(Primitive.TIMESTAMP, (1 << 63) - 1), np.datetime64((1 << 63) - 1, "us")),
        (Scalar(Primitive.TIMESTAMP_NANOS, 5), np.datetime64(5, "ns")),
        (Scalar(Primitive.INT64, 5), 5),
        (Scalar(Primitive.FLOAT, 1.5), 1.5),
    ],
)
def test_to_python(scalar: Scalar, expected: object) -> None:
    found = to_python(scalar)
    assert found == expected
    assert type(found) is type(expected)


def cyclic() -> object:
    value: list[object] = []
    value.append({"self": value})
    return value


@pytest.mark.parametrize(
    ("make", "path", "message"),
    [
        (lambda: {"a": [1, object()]}, "$['a'][1]", "object"),
        (lambda: {"a": {1, 2}}, "$['a']", "set"),
        (lambda: [[], {"b": 10**38}], "$[1]['b']", "38 digits"),
        (lambda: [Decimal("NaN")], "$[0]", "finite"),
        (lambda: {"a": {1: 2}}, "$['a']", "key 1"),
        (lambda: {"a": "\ud800"}, "$['a']", "surrogate"),
        (lambda: {"\ud800": 1}, "$", "surrogate"),
        (lambda: [dt.timedelta(1)], "$[0]", "timedelta"),
        (lambda: [dt.time(1, tzinfo=dt.UTC)], "$[0]", "time zone"),
        (lambda: [np.datetime64("NaT", "s")], "$[0]", "NaT"),
        (lambda: [np.datetime64(1, "Y")], "$[0]", r"\[Y\]"),
        (lambda: [1 + 2j], "$[0]", "complex"),
    ],
)
def test_what_no_variant_holds_is_refused_with_its_path(
    make: Callable[[], object], path: str, message: str
) -> None:
    with pytest.raises(InvalidValue, match=message) as caught:
        tree_of(make())
    assert caught.value.path == path


def test_a_container_that_holds_itself_is_refused() -> None:
    with pytest.raises(LimitExceeded):
        tree_of(cyclic())


def test_depth_up_to_the_limit() -> None:
    value: object = None
    for _ in range(1000):
        value = [value]
    tree = tree_of(value)
    assert logical_key(tree_of(to_python(tree))) == logical_key(tree)
    with pytest.raises(LimitExceeded):
        tree_of([value])


def test_a_time_outside_of_a_day_has_no_python_form() -> None:
    for micros in (-1, 86_400_000_000):
        with pytest.raises(InvalidValue, match="outside of a day"):
            to_python(Scalar(Primitive.TIME, micros))


def test_the_timestamp_that_numpy_takes_for_none_has_no_python_form() -> None:
    for type_ in (Primitive.TIMESTAMP_NANOS, Primitive.TIMESTAMP_NTZ):
        with pytest.raises(InvalidValue, match="NaT"):
            to_python(Scalar(type_, -(1 << 63)))
        assert to_python(Scalar(type_, 1 - (1 << 63))) is not None


@given(trees)
@example([Scalar(Primitive.TIMESTAMP_NANOS, -(1 << 63))])
def test_shape_is_kept(tree: Tree) -> None:
    try:
        found = to_python(tree)
    except InvalidValue as error:
        if "NaT" not in str(error):
            raise
        return
    again = tree_of(found)
    assert isinstance(again, type(tree))
    if isinstance(tree, dict) and isinstance(again, dict):
        assert again.keys() == tree.keys()


@pytest.mark.parametrize(
    ("zone", "expected"),
    [(None, Primitive.TIMESTAMP_NTZ_NANOS), ("Asia/Tokyo", Primitive.TIMESTAMP_NANOS)],
)
def test_nanoseconds_of_pandas_are_kept(zone: str | None, expected: Primitive) -> None:
    pandas = pytest.importorskip("pandas")
    stamp = pandas.Timestamp("2024-02-29T12:34:56.123456789", tz=zone)
    assert tree_of(stamp) == Scalar(expected, stamp.value)
    micros = Primitive.TIMESTAMP_NTZ if zone is None else Primitive.TIMESTAMP
    assert tree_of(stamp.floor("us")) == Scalar(micros, stamp.value // 1000)


def test_times_that_are_none_and_spans_of_time_are_refused() -> None:
    """pandas' NaT is a datetime, numpy's timedelta64 an integer."""
    pandas = pytest.importorskip("pandas")
    for value in (pandas.NaT, np.timedelta64(5, "ns"), np.timedelta64("NaT")):
        with pytest.raises(InvalidValue):
            tree_of(value)
