"""Derive what a condition on a converted column implies for the column itself.

Spark pushes a comparison into Parquet only if it is on the bare column, and not through
`cast(decimal AS bigint)`, the usual case if integers share a decimal column (EXACTNESS, rule 13).
If the implied range is added to the condition, Spark skips row groups and pages by the raw values.
The range is never narrower than the condition: every row that fulfils the condition lies within,
and the condition itself still tests the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Literal as OneOf

from variantlake.expressions.casts.monotone import monotone_cast
from variantlake.expressions.tree import FLIPPED, Compare, In, Literal, Predicate, Ref
from variantlake.expressions.typing import INT_LIMITS, comparison_type, literal_as, spark_type
from variantlake.parquet.stats.bounds import Raw
from variantlake.planning.exact.casts import type_limits
from variantlake.planning.exact.exactness import IDENTITY
from variantlake.planning.exact.readings import PhysicalColumn
from variantlake.types import Kind, ShreddedType


@dataclass(frozen=True, slots=True)
class RawBound:
    """`column op value` on a physical column of type `stored`; `value` is one of its values."""

    op: OneOf[">=", "<="]
    value: int | Decimal
    stored: ShreddedType

    def sql(self, column: str) -> str:
        """The condition as Spark SQL over the text `column`."""
        return f"{column} {self.op} CAST('{Decimal(self.value):f}' AS {self.stored.ddl})"


def implied_bounds(conjunct: Predicate, ref: Ref, column: PhysicalColumn) -> tuple[RawBound, ...]:
    """Bounds on the raw column that hold in every row where `conjunct` is true.

    For comparisons and IN on `ref`, read as `column` by a cast that keeps the order, from integers
    and decimals; nothing otherwise. A column that is read as it is needs none.
    """
    requested = spark_type(ref.type)
    stored = column.stored
    if column.conversion == IDENTITY or requested is None or type_limits(stored)[0] is None:
        return ()
    if monotone_cast(stored, requested) is None or requested.kind is Kind.TIMESTAMP:
        return ()
    low, high = _wanted(conjunct, ref)
    least = None if low is None else _raw(low, stored, requested, down=True)
    most = None if high is None else _raw(high, stored, requested, down=False)
    bounds = [] if least is None else [RawBound(">=", least, stored)]
    bounds += [] if most is None else [RawBound("<=", most, stored)]
    return tuple(bounds)


def _wanted(conjunct: Predicate, ref: Ref) -> tuple[Raw | None, Raw | None]:
    """The least and the greatest converted value that can satisfy the condition."""
    match conjunct:
        case Compare(op, left, Literal() as literal) if left == ref:
            options = (literal,)
        case Compare(op, Literal() as literal, right) if right == ref:
            op, options = FLIPPED.get(op, op), (literal,)
        case In(operand, options) if operand == ref:
            op = "="
        case _:
            return None, None
    common = comparison_type(spark_type(ref.type), options)
    if common is None:
        return None, None
    values = [literal_as(option, common) for option in options]
    numbers = [
        value
        for value in values
        if isinstance(value, int | Decimal) or (isinstance(value, float) and math.isfinite(value))
    ]
    if not numbers or len(numbers) < sum(value is not None for value in values):
        return None, None
    low = min(numbers) if op in ("=", ">", ">=") else None
    high = max(numbers) if op in ("=", "<", "<=") else None
    return low, high


def _raw(
    value: Raw, stored: ShreddedType, requested: ShreddedType, *, down: bool
) -> int | Decimal | None:
    """A value of `stored` that bounds all raw values that convert to `value` or beyond.

    None if the type itself has no values beyond it.
    """
    if requested.kind is Kind.DOUBLE:
        # A value that rounds to this double lies between its neighbours.
        exact = Decimal(math.nextafter(float(value), -math.inf if down else math.inf))
    else:
        # Casts cut or round to a unit of the requested type, and change less than one unit.
        unit = Decimal((0, (1,), -requested.scale))
        number = Decimal(value) if isinstance(value, int | float | Decimal) else Decimal(0)
        exact = (_WIDE.subtract if down else _WIDE.add)(number, unit)
    if not exact.is_finite():
        return None
    rounded = (_FLOOR if down else _CEILING).quantize(exact, Decimal((0, (1,), -stored.scale)))
    least, greatest = type_limits(stored)
    if not isinstance(least, int | Decimal) or not isinstance(greatest, int | Decimal):
        return None
    if rounded <= least if down else rounded >= greatest:
        return None
    bound = min(rounded, Decimal(greatest)) if down else max(rounded, Decimal(least))
    return int(bound) if stored.kind in INT_LIMITS else bound


_WIDE = Context(prec=800)
"""Holds any double and any decimal of 38 digits exactly."""
_FLOOR = Context(prec=800, rounding=ROUND_FLOOR)
_CEILING = Context(prec=800, rounding=ROUND_CEILING)
