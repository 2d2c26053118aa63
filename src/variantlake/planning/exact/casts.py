"""Spark's casts on the bounds of files: `monotone_cast` of whole columns of bounds."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from variantlake.expressions.casts.monotone import SAME_ORDER, Beyond, monotone_cast
from variantlake.expressions.typing import INT_LIMITS
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, RawColumn
from variantlake.parquet.stats.facts import ColumnFacts, PathFacts
from variantlake.types import Kind, ShreddedType


def keeps_column(stored: ShreddedType, requested: ShreddedType) -> bool:
    """Whether Spark's cast of an ordinary column is `monotone_cast`, with ANSI and without.

    Without ANSI, a cast to a narrower integer keeps the lower bits of a value that does not fit.
    """
    if stored.kind in INT_LIMITS:
        wider = INT_LIMITS.get(requested.kind, 0) >= INT_LIMITS[stored.kind]
        return wider or requested.kind in (Kind.DECIMAL, Kind.DOUBLE)
    pair = (stored.kind, requested.kind)
    return pair in _COLUMN_CASTS or (stored == requested and stored.kind in SAME_ORDER)


_COLUMN_CASTS = {
    (Kind.DECIMAL, Kind.DECIMAL),
    (Kind.DECIMAL, Kind.DOUBLE),
    (Kind.FLOAT, Kind.DOUBLE),
    (Kind.TIMESTAMP, Kind.DATE),
}


def type_limits(stored: ShreddedType) -> tuple[Raw | None, Raw | None]:
    """The least and the greatest value of an integer or decimal type; None for other types."""
    if stored.kind in INT_LIMITS:
        return -INT_LIMITS[stored.kind], INT_LIMITS[stored.kind] - 1
    if stored.kind is Kind.DECIMAL:
        greatest = Decimal((0, (9,) * stored.precision, -stored.scale))
        return greatest.copy_negate(), greatest
    return None, None


def usable_bounds(
    facts: PathFacts | ColumnFacts, stored: ShreddedType
) -> tuple[Raw | None, Raw | None]:
    """The file's bounds, without those that cannot be values of `stored` or have no order."""
    bounds = RawColumn.of([facts.bounds.minimum, facts.bounds.maximum], stored)
    return bounds.raw(0), bounds.raw(1)


@dataclass(frozen=True, slots=True)
class CastColumn:
    """Bounds cast to another type. `values` is valid if the bound is and the type holds it.

    `below` and `above` mark the bounds that became Beyond.BELOW and Beyond.ABOVE.
    """

    values: RawColumn
    below: Bools
    above: Bools

    @property
    def fits(self) -> Bools:
        """The rows whose bound is known and held."""
        return self.values.valid


def cast_column(column: RawColumn, stored: ShreddedType, requested: ShreddedType) -> CastColumn:
    """`monotone_cast` of each row; nothing is known if there is no such cast."""
    rows = len(column.valid)
    below, above = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    cast = monotone_cast(stored, requested)
    if cast is None:
        return CastColumn(RawColumn.unknown(rows, requested), below, above)
    if stored == requested or stored.kind in SAME_ORDER:
        return CastColumn(column, below, above)
    if stored.kind in INT_LIMITS and requested.kind in INT_LIMITS:
        limit = INT_LIMITS[requested.kind]
        below = column.valid & (column.values < -limit)
        above = column.valid & (column.values > limit - 1)
        return CastColumn(RawColumn(column.values, column.valid & ~below & ~above), below, above)
    result = RawColumn.unknown(rows, requested)
    known = np.flatnonzero(column.valid)
    for row, value in zip(known.tolist(), column.values[known].tolist(), strict=True):
        held = cast(value)
        if isinstance(held, Beyond):
            (below if held is Beyond.BELOW else above)[row] = True
        else:
            result.values[row] = held
            result.valid[row] = True
    return CastColumn(result, below, above)
