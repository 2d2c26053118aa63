"""Casts of whole columns give what the casts of their values give."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.scan.files.casts import _direct, cast_raw
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
