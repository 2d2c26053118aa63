"""Casts that skip files by bounds keep the order of values (EXACTNESS, rule 16)."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from variantlake.expressions.casts.monotone import Beyond, monotone_cast
from variantlake.expressions.casts.values import cast_raw
from variantlake.parquet.stats.bounds import Raw
from variantlake.types import Kind, ShreddedType

_INTEGERS = [ShreddedType(kind) for kind in (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)]
_REQUESTED = [
    *_INTEGERS,
    ShreddedType(Kind.DOUBLE),
    ShreddedType(Kind.TIMESTAMP),
    ShreddedType(Kind.DECIMAL, 5, 2),
    ShreddedType(Kind.DECIMAL, 38, 38),
]
_WHOLE = st.integers(-(2**63), 2**63 - 1)
_FRACTIONS = st.decimals(-(10**31), 10**31, allow_nan=False, allow_infinity=False, places=6)
_PAIRS = st.tuples(st.just(ShreddedType(Kind.INT64)), _WHOLE, _WHOLE) | st.tuples(
    st.just(ShreddedType(Kind.DECIMAL, 38, 6)), _FRACTIONS, _FRACTIONS
)


def _rank(value: Raw | Beyond) -> tuple[int, Raw]:
    if isinstance(value, Beyond):
        return (-1 if value is Beyond.BELOW else 1), 0
    return 0, value


@given(_PAIRS, st.sampled_from(_REQUESTED))
def test_a_greater_number_never_becomes_a_smaller_one(
    pair: tuple[ShreddedType, Raw, Raw], requested: ShreddedType
) -> None:
    stored, *numbers = pair
    cast = monotone_cast(stored, requested)
    if cast is None:
        assert (stored.kind, requested.kind) == (Kind.DECIMAL, Kind.TIMESTAMP)
        return
    low, high = sorted(numbers)
    assert _rank(cast(low)) <= _rank(cast(high))


@given(_WHOLE, st.sampled_from(_INTEGERS))
def test_what_a_type_cannot_hold_is_null(number: int, requested: ShreddedType) -> None:
    bits = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}[requested.kind]
    fits = -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    expected = number if fits else None
    assert cast_raw(number, ShreddedType(Kind.INT64), requested) == expected
    text = ShreddedType(Kind.STRING)
    assert cast_raw(str(number), text, requested) == expected


def test_decimals_round_half_up_and_integers_towards_zero() -> None:
    stored = ShreddedType(Kind.DECIMAL, 3, 1)
    assert cast_raw(Decimal("1.9"), stored, ShreddedType(Kind.INT32)) == 1
    assert cast_raw(Decimal("-1.9"), stored, ShreddedType(Kind.INT32)) == -1
    assert cast_raw(Decimal("1.5"), stored, ShreddedType(Kind.DECIMAL, 5, 0)) == 2
    assert cast_raw(Decimal("-1.5"), stored, ShreddedType(Kind.DECIMAL, 5, 0)) == -2
