"""Casts of whole columns give what the casts of their values give."""

from __future__ import annotations

import datetime as dt
import math
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import MORE
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.casts.values import cast_raw
from variantlake.scan.files.casts import _direct
from variantlake.types import Kind, ShreddedType

DOUBLE = ShreddedType(Kind.DOUBLE)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[ShreddedType, list[Decimal | None]]:
    precision = draw(st.integers(1, 38))
    stored = ShreddedType(Kind.DECIMAL, precision, draw(st.integers(0, precision)))
    most = 10**precision - 1
    unscaled = st.integers(-most, most) | st.integers(-min(most, 2**65), min(most, 2**65))
    texts = draw(st.lists(st.none() | unscaled, max_size=5))
    return stored, [None if n is None else Decimal(f"{n}E-{stored.scale}") for n in texts]


@settings(max_examples=100 * MORE, deadline=None)
@given(decimals())
def test_decimals_become_the_nearest_doubles(
    column: tuple[ShreddedType, list[Decimal | None]],
) -> None:
    stored, values = column
    kind = pa.decimal128(stored.precision, stored.scale)
    array = pa.array([None, *values, Decimal(0)], kind).slice(1, len(values))
    found = _direct(array, stored, DOUBLE)
    assert found is not None
    right = [None if each is None else cast_raw(each, stored, DOUBLE) for each in values]
    assert found.to_pylist() == right


DECIMALS = [
    ShreddedType.parse(each) for each in ("decimal(10,2)", "decimal(38,18)", "decimal(5,5)")
]


@given(
    st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(-(10**8), 10**8, places=3).map(float),
    st.sampled_from(DECIMALS),
)
def test_doubles_as_decimals_are_their_shortest_text(value: float, wanted: ShreddedType) -> None:
    try:
        found = cast_raw(value, ShreddedType(Kind.DOUBLE), wanted)
    except UnsupportedFeature:  # Java 17 may have another text
        assert len(Decimal(repr(value)).as_tuple().digits) > 15 or not 1e-12 <= abs(value) < 1e16
        return
    with localcontext(prec=400, rounding=ROUND_HALF_UP):
        right = Decimal(repr(value)).quantize(Decimal(1).scaleb(-wanted.scale))
    fits = abs(right) < Decimal(10) ** (wanted.precision - wanted.scale)
    assert found == (right if fits else None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_decimal_is_infinite(value: float) -> None:
    assert cast_raw(value, ShreddedType(Kind.DOUBLE), DECIMALS[0]) is None


def test_what_is_left_to_spark_says_what_to_write_instead(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    table.append([{"at": "2026-01-31T10:00:00", "tags": ["a"]}])
    with pytest.raises(UnsupportedFeature) as caught:
        table.scan("event:at::timestamp AS at").to_arrow()
    assert "::timestamp_ntz" in caught.value.hint
    assert table.scan("event:at::timestamp_ntz AS at").to_pylist() == [
        {"at": dt.datetime(2026, 1, 31, 10)}  # noqa: DTZ001 - a time without a zone
    ]
    with pytest.raises(UnsupportedFeature, match="makes no ARRAY<STRING> of a path") as caught:
        table.scan("event:tags::array<string> AS tags")
    assert "without a type a path is a VARIANT" in caught.value.hint
    assert table.scan("event:tags AS tags").to_pylist() == [{"tags": ["a"]}]
