"""A scan into which an engine pushes columns and conditions, by the names of the scan's columns.

A condition is pushed only if it has the same result in the engine and in the scan for every row:
comparisons of a column with a constant of exactly its type. NaN is the greatest double in all of
them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any

from variantlake.arrays import distinct_names
from variantlake.expressions.tree import (
    And,
    Compare,
    CompareOp,
    In,
    IsNull,
    Literal,
    Predicate,
    Ref,
    StartsWith,
    conjuncts,
)
from variantlake.expressions.typing import INT_LIMITS, spark_type
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import Item
from variantlake.types import Kind, ShreddedType

_KEPT = 16
"""The number of planned scans to keep, with their choice of files."""

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - timestamps without a zone count from it
_MICROSECOND = dt.timedelta(microseconds=1)


class NotPushed(ValueError):
    """A condition that the engine has to apply itself."""


@dataclass(frozen=True)
class PushedScan:
    """The columns of `scan`, which has no limit, by their names.

    Raises InvalidQuery for two columns with one name.
    """

    scan: Scan

    def __post_init__(self) -> None:
        distinct_names(self.scan.schema)

    def __getstate__(self) -> dict[str, Any]:
        return {"scan": self.scan}  # another process plans its own scans

    @cached_property
    def items(self) -> dict[str, Item]:
        """The columns by name."""
        return {item.name: item for item in self.scan.items}

    def narrowed(
        self, names: Iterable[str], conditions: Sequence[Predicate] = (), limit: int | None = None
    ) -> Scan:
        """Return a scan of these columns, with only the first rows that fulfil the conditions."""
        return self._planned(tuple(names), tuple(conditions), limit)

    @cached_property
    def _planned(self) -> Callable[[tuple[str, ...], tuple[Predicate, ...], int | None], Scan]:
        """Makes scans, and keeps those of the last queries, which have chosen their files."""

        @lru_cache(maxsize=_KEPT)
        def scan(
            names: tuple[str, ...], conditions: tuple[Predicate, ...], limit: int | None
        ) -> Scan:
            where = (*conjuncts(self.scan.condition), *conditions)
            return replace(
                self.scan,
                items=tuple(self.items[name] for name in names),
                condition=And(where) if where else None,
                max_rows=limit,
            )

        return scan

    def compared(self, op: CompareOp, name: str, value: Any) -> Predicate:
        """Make `name op value`. Raises NotPushed."""
        ref, kind = self._operand(name)
        return Compare(op, ref, _literal(kind, ref.type, value))

    def one_of(self, name: str, values: Iterable[Any]) -> Predicate:
        """Make `name IN (values)`. Raises NotPushed."""
        ref, kind = self._operand(name)
        return In(ref, tuple(_literal(kind, ref.type, value) for value in values))

    def starting(self, name: str, prefix: Any) -> Predicate:
        """Make `startswith(name, prefix)`. Raises NotPushed."""
        ref, kind = self._operand(name)
        if kind.kind is not Kind.STRING or not isinstance(prefix, str):
            raise NotPushed
        return StartsWith(ref, prefix)

    def null(self, name: str) -> Predicate:
        """Make `name IS NULL`. Raises NotPushed."""
        return IsNull(self._operand(name)[0])

    def _operand(self, name: str) -> tuple[Ref, ShreddedType]:
        if name not in self.items:
            raise NotPushed
        ref = self.items[name].ref
        kind = spark_type(ref.type)
        if kind is None or ref.char_length:
            raise NotPushed
        return ref, kind


def _literal(kind: ShreddedType, type_: str, value: Any) -> Literal:
    read = _VALUES.get(kind.kind)
    raw = None if read is None else read(kind, value)
    if raw is None:
        raise NotPushed
    return Literal(raw, type_)


def _integer(kind: ShreddedType, value: Any) -> int | None:
    limit = INT_LIMITS[kind.kind]
    return value if type(value) is int and -limit <= value < limit else None


def _double(_kind: ShreddedType, value: Any) -> float | None:
    return value if type(value) is float and math.isfinite(value) else None


def _decimal(kind: ShreddedType, value: Any) -> Decimal | None:
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    exponent = int(value.as_tuple().exponent)
    fits = -exponent <= kind.scale and value.adjusted() < kind.precision - kind.scale
    return value if fits else None


def _date(_kind: ShreddedType, value: Any) -> int | None:
    return value.toordinal() - _EPOCH.toordinal() if type(value) is dt.date else None


def _moment(kind: ShreddedType, value: Any) -> int | None:
    zoned = kind.kind is Kind.TIMESTAMP
    if zoned and type(value) is int:
        return value  # DuckDB's: microseconds in UTC
    if not isinstance(value, dt.datetime) or (value.tzinfo is not None) != zoned:
        return None
    since = value.astimezone(dt.UTC).replace(tzinfo=None) if zoned else value
    return (since - _EPOCH) // _MICROSECOND


_VALUES: dict[Kind, Callable[[ShreddedType, Any], Any]] = {
    **dict.fromkeys(INT_LIMITS, _integer),
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _moment,
    Kind.TIMESTAMP_NTZ: _moment,
    Kind.STRING: lambda _, value: value if type(value) is str else None,
    Kind.BOOLEAN: lambda _, value: value if type(value) is bool else None,
}
