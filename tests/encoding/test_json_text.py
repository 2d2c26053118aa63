"""A Variant as JSON text, in the form of Spark's `to_json`: the table is what Spark 4.2 printed."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from tests.strategies import texts, trees
from variantlake.encoding.json_text import quote, scalar_to_json, tree_to_json
from variantlake.encoding.scalar import FALSE, NULL, TRUE, Scalar
from variantlake.encoding.tree import Tree
from variantlake.types import Primitive

DECIMAL, DATE, BINARY = Primitive.DECIMAL8, Primitive.DATE, Primitive.BINARY
STAMP, NTZ = Primitive.TIMESTAMP, Primitive.TIMESTAMP_NTZ

SPARK: list[tuple[Scalar, str]] = [
    (NULL, "null"),
    (TRUE, "true"),
    (FALSE, "false"),
    (Scalar(Primitive.INT64, -(1 << 63)), "-9223372036854775808"),
    (Scalar(DECIMAL, Decimal("12.340")), "12.34"),
    (Scalar(DECIMAL, Decimal(100)), "100"),
    (Scalar(DECIMAL, Decimal("100.00")), "100"),
    (Scalar(DECIMAL, Decimal("0.00000")), "0"),
    (Scalar(DECIMAL, Decimal("-0.50000")), "-0.5"),
    (Scalar(Primitive.DECIMAL16, Decimal("1E-38")), "0." + "0" * 37 + "1"),
    (Scalar(Primitive.DOUBLE, float("nan")), '"NaN"'),
    (Scalar(Primitive.DOUBLE, float("-inf")), '"-Infinity"'),
    (Scalar(Primitive.FLOAT, float("inf")), '"Infinity"'),
    (Scalar(Primitive.DOUBLE, -0.0), "-0.0"),
    (Scalar(Primitive.DOUBLE, 1e10), "1.0E10"),
    (Scalar(Primitive.FLOAT, 0.10000000149011612), "0.1"),
    (Scalar(DATE, 20194), '"2025-04-16"'),
    (Scalar(DATE, -719162), '"0001-01-01"'),
    (Scalar(DATE, -719163), '"0000-12-31"'),
    (Scalar(DATE, 2932896), '"9999-12-31"'),
    (Scalar(DATE, 2932897), '"+10000-01-01"'),
    (Scalar(DATE, (1 << 31) - 1), '"+5881580-07-11"'),
    (Scalar(DATE, -(1 << 31)), '"-5877641-06-23"'),
    (Scalar(STAMP, 1744806896780000), '"2025-04-16 12:34:56.78+00:00"'),
    (Scalar(STAMP, 1744806896000000), '"2025-04-16 12:34:56+00:00"'),
    (Scalar(STAMP, 1744806896123456), '"2025-04-16 12:34:56.123456+00:00"'),
    (Scalar(STAMP, 1744806896000001), '"2025-04-16 12:34:56.000001+00:00"'),
    (Scalar(STAMP, -1), '"1969-12-31 23:59:59.999999+00:00"'),
    (Scalar(STAMP, (1 << 63) - 1), '"+294247-01-10 04:00:54.775807+00:00"'),
    (Scalar(STAMP, -(1 << 63)), '"-290308-12-21 19:59:05.224192+00:00"'),
    (Scalar(NTZ, 1744806896780000), '"2025-04-16 12:34:56.78"'),
    (Scalar(NTZ, 1744761600000000), '"2025-04-16 00:00:00"'),
    (Scalar(NTZ, -1), '"1969-12-31 23:59:59.999999"'),
    (Scalar(BINARY, b"\x00\xff\x10"), '"AP8Q"'),
    (Scalar(BINARY, b""), '""'),
    (
        Scalar(Primitive.STRING, "é\u2028\u2029😀\x7f\x80</script>&"),
        '"é\u2028\u2029😀\x7f\x80</script>&"',
    ),
    (Scalar(Primitive.STRING, '\\"/\x01\x1f\b\f\n\r\t'), r'"\\\"/\u0001\u001F\b\f\n\r\t"'),
]


@pytest.mark.parametrize(("scalar", "text"), SPARK, ids=[ascii(text) for _, text in SPARK])
def test_text_is_that_of_spark(scalar: Scalar, text: str) -> None:
    assert scalar_to_json(scalar) == text


ST_JOHNS = ZoneInfo("America/St_Johns")


@pytest.mark.parametrize(
    ("micros", "zone", "text"),
    [
        (0, ST_JOHNS, "1969-12-31 20:30:00-03:30"),
        (1744806896780000, ST_JOHNS, "2025-04-16 10:04:56.78-02:30"),
        (-5000000000000000, ST_JOHNS, "1811-07-23 11:35:48-03:30"),  # local mean time: -03:30:52
        (-62135596800000000, ST_JOHNS, "0000-12-31 20:29:08-03:30"),
        (0, dt.timezone(dt.timedelta(hours=5, minutes=30)), "1970-01-01 05:30:00+05:30"),
        (253402300800000000, ST_JOHNS, "9999-12-31 20:30:00-03:30"),  # 10000-01-01 in UTC
    ],
)
def test_timestamps_have_the_offset_of_the_zone(micros: int, zone: dt.tzinfo, text: str) -> None:
    assert scalar_to_json(Scalar(STAMP, micros), zone) == f'"{text}"'
    assert scalar_to_json(Scalar(Primitive.TIMESTAMP_NTZ, 0), zone) == '"1970-01-01 00:00:00"'


@pytest.mark.parametrize(
    ("scalar", "text"),
    [
        (Scalar(Primitive.TIME, 45_234_123_400), '"12:33:54.1234"'),
        (Scalar(Primitive.TIME, 0), '"00:00:00"'),
        (
            Scalar(Primitive.TIMESTAMP_NANOS, 1730982834123456789),
            '"2024-11-07 12:33:54.123456789+00:00"',
        ),
        (
            Scalar(Primitive.TIMESTAMP_NTZ_NANOS, 1730982834123456000),
            '"2024-11-07 12:33:54.123456"',
        ),
        (
            Scalar(Primitive.UUID, UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56")),
            '"f24f9b64-81fa-49d1-b74e-8c09a6e31c56"',
        ),
    ],
)
def test_types_that_spark_cannot_write(scalar: Scalar, text: str) -> None:
    assert scalar_to_json(scalar) == text


def test_containers_have_no_white_space_and_keep_their_order() -> None:
    tree: Tree = {"b": [NULL, [], {}, [TRUE, FALSE]], 'a"\n': {"": {"x": NULL}}}
    assert tree_to_json(tree) == r'{"b":[null,[],{},[true,false]],"a\"\n":{"":{"x":null}}}'


@given(texts)
def test_quoted_text_parses_back(text: str) -> None:
    assert json.loads(quote(text)) == text


@given(trees)
def test_text_is_json(tree: Tree) -> None:
    found = json.loads(tree_to_json(tree), parse_float=Decimal, parse_int=Decimal)
    assert isinstance(found, dict) == isinstance(tree, dict)
    if isinstance(tree, dict):
        assert list(found) == list(tree)
    if isinstance(tree, list):
        assert len(found) == len(tree)
