"""THE table: when a physical column gives exactly what Spark's `variant_get` gives.

The judge is Spark's `variant_get` or `try_variant_get` on the unshredded data, without its variant
pushdown (EXACTNESS, rules 1 and 7). A pair of types stands here only when a test has compared both
on boundary and random values, with ANSI on and off; every other pair is read natively.

| stored               | asked              | how                                                 |
|----------------------|--------------------|-----------------------------------------------------|
| T                    | T                  | the column itself                                   |
| integer              | wider integer      | cast                                                |
| integer              | double, float      | cast                                                |
| integer              | string             | cast                                                |
| integer              | narrower, decimal, | cast if the file's bounds prove that every value |
|                      | timestamp          | fits, else try_cast for try_variant_get             |
| decimal              | bigint, decimal    | the same                                            |
| decimal of few       | int, smallint,     | the same                                            |
| digits of fraction   | tinyint            |                                                     |
| decimal              | double, float      | cast                                                |
| float                | double             | cast                                                |
| boolean, date        | string             | cast                                                |
| string               | integer, decimal,  | try_cast for try_variant_get                        |
|                      | double, date,      |                                                     |
|                      | boolean            |                                                     |

It lacks, among others: decimal to string (`variant_get` drops trailing zeros, the column keeps
them), decimals with many digits of fraction to integers narrower than bigint (`variant_get` casts
through a double, a column's cast does not always), casts that use the session's time zone, strings
to numbers by `variant_get` (the error differs from a cast's). A Variant integer has no width for
Spark: `variant_get` sees a bigint.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from variantlake.expressions.casts.monotone import DOUBLE_SAFE_SCALES, Beyond, monotone_cast
from variantlake.expressions.typing import spark_type
from variantlake.parquet.stats.fact_columns import Bools, BoundColumns
from variantlake.parquet.stats.facts import PathFacts
from variantlake.planning.exact.casts import cast_column, type_limits, usable_bounds
from variantlake.types import MAX_PRECISION, Kind, ShreddedType


class ConversionKind(enum.Enum):
    """The kind of expression over the physical column."""

    IDENTITY = "identity"
    CAST = "cast"
    TRY_CAST = "try_cast"


@dataclass(frozen=True, slots=True)
class Conversion:
    """The expression over a column `c`: `c`, `CAST(c AS cast_to)` or `TRY_CAST(c AS cast_to)`.

    A CAST here never fails and never overflows on this file's values, whatever ANSI says.
    `cast_to` is a Spark type name, empty for IDENTITY.
    """

    kind: ConversionKind
    cast_to: str = ""

    def sql(self, column: str) -> str:
        """The expression as Spark SQL over the text `column`."""
        if self.kind is ConversionKind.IDENTITY:
            return column
        return f"{self.kind.value}({column} AS {self.cast_to})"


IDENTITY = Conversion(ConversionKind.IDENTITY)

_WIDTHS = (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)
_FLOATS = frozenset({Kind.FLOAT, Kind.DOUBLE})

_TOTAL: frozenset[tuple[Kind, Kind]] = frozenset(
    {
        *((narrow, wide) for i, narrow in enumerate(_WIDTHS) for wide in _WIDTHS[i + 1 :]),
        *((stored, requested) for stored in (*_WIDTHS, Kind.DECIMAL) for requested in _FLOATS),
        *((stored, Kind.STRING) for stored in (*_WIDTHS, Kind.BOOLEAN, Kind.DATE)),
        (Kind.FLOAT, Kind.DOUBLE),
    }
)
"""Casts to types that hold every value of the stored type."""

_IN_RANGE: frozenset[tuple[Kind, Kind]] = frozenset(
    {
        *((wide, narrow) for i, narrow in enumerate(_WIDTHS) for wide in _WIDTHS[i + 1 :]),
        *((stored, Kind.DECIMAL) for stored in (*_WIDTHS, Kind.DECIMAL)),
        *((Kind.DECIMAL, requested) for requested in _WIDTHS),
        *((stored, Kind.TIMESTAMP) for stored in _WIDTHS),
    }
)
"""Casts that are exact if the values fit; each of them is monotone."""

_TRY: frozenset[tuple[Kind, Kind]] = frozenset(
    (Kind.STRING, requested)
    for requested in (*_WIDTHS, Kind.DECIMAL, Kind.DOUBLE, Kind.FLOAT, Kind.DATE, Kind.BOOLEAN)
)
"""Casts that fail for some values, which are the same for `try_cast` and `try_variant_get`."""

_OVERFLOWS_SILENTLY = frozenset((stored, Kind.TIMESTAMP) for stored in _WIDTHS)
"""Of _IN_RANGE: `try_cast` saturates where `try_variant_get` gives NULL."""


def conversion(
    stored: ShreddedType, requested: str, facts: PathFacts, *, strict: bool
) -> Conversion | None:
    """How to convert a clean path's column to `variant_get(…, requested)`; None: read natively.

    `facts` are those of the path in this file; their bounds may prove that values fit. `strict` is
    true for `variant_get` and casts that raise, false for `try_variant_get`.
    """
    target = spark_type(requested)
    if target is None or not stored.info.spark:
        return None
    if stored == target:
        return IDENTITY
    pair = (stored.kind, target.kind)
    name = target.ddl.lower()
    if pair in _TOTAL:
        return Conversion(ConversionKind.CAST, name)
    if pair in _IN_RANGE and stored.scale <= DOUBLE_SAFE_SCALES.get(target.kind, MAX_PRECISION):
        if all_values_fit(stored, target, facts):
            return Conversion(ConversionKind.CAST, name)
        if not strict and pair not in _OVERFLOWS_SILENTLY:
            return Conversion(ConversionKind.TRY_CAST, name)
    if pair in _TRY and not strict:
        return Conversion(ConversionKind.TRY_CAST, name)
    return None


def values_fit(stored: ShreddedType, requested: ShreddedType, bounds: BoundColumns) -> Bools:
    """`all_values_fit` by the bounds of many files."""
    minimum, maximum = (
        cast_column(side, stored, requested) for side in (bounds.minimum, bounds.maximum)
    )
    return minimum.fits & maximum.fits


def all_values_fit(stored: ShreddedType, requested: ShreddedType, facts: PathFacts) -> bool:
    """Whether the monotone cast to `requested` holds every value, by the type or by the bounds."""
    if facts.typed == 0:
        return True
    cast = monotone_cast(stored, requested)
    if cast is None:
        return False
    return any(
        low is not None
        and high is not None
        and not isinstance(cast(low), Beyond)
        and not isinstance(cast(high), Beyond)
        for low, high in (type_limits(stored), usable_bounds(facts, stored))
    )
