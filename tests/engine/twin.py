"""Aggregates and order in plain Python, over the rows of a small table: the twin of the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Term:
    """The same thing as SQL and as Python; `value` gives None for NULL."""

    text: str
    value: Callable[[Row], Any]


def same_key(value: Any) -> Any:
    """What Spark groups by: one NaN, one zero."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return (type(value).__name__, value)


def compare(one: Any, other: Any) -> int:
    """Spark's order of two values that are not NULL: NaN last, texts by their bytes."""
    left, right = _ordered(one), _ordered(other)
    return int(left > right) - int(left < right)


def _ordered(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


def least(values: Sequence[Any]) -> Any:
    return min(values, key=cmp_to_key(compare), default=None)


def greatest(values: Sequence[Any]) -> Any:
    return max(values, key=cmp_to_key(compare), default=None)


def total(values: Sequence[Any]) -> Any:
    return sum(values[1:], values[0]) if values else None


AGGREGATES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "count({})": len,
    "count(DISTINCT {})": lambda values: len({same_key(value) for value in values}),
    "min({})": least,
    "max({})": greatest,
    "sum({})": total,
    "avg({})": lambda values: sum(values) / len(values) if values else None,
}


def grouped(
    rows: Sequence[Row], keys: Sequence[Term], aggregates: Sequence[tuple[str, Term]]
) -> list[tuple[Any, ...]]:
    """A row for each group: its keys, `count(*)`, and each aggregate of the term's values."""
    groups: dict[Any, list[Row]] = {} if keys else {(): []}
    for row in rows:
        key = tuple(same_key(term.value(row)) for term in keys)
        groups.setdefault(key, []).append(row)
    found = []
    for group in groups.values():
        own = [term.value(group[0]) for term in keys]
        own = [value + 0.0 if isinstance(value, float) else value for value in own]
        values = [
            AGGREGATES[name]([v for row in group if (v := term.value(row)) is not None])
            for name, term in aggregates
        ]
        found.append((*own, len(group), *values))
    return found


def in_order(rows: list[Row], terms: Sequence[tuple[Term, bool, bool]]) -> list[Row]:
    """Rows by terms, each descending or not and with NULLs first or not."""

    def by(one: Row, other: Row) -> int:
        for term, descending, nulls_first in terms:
            left, right = term.value(one), term.value(other)
            if left is None or right is None:
                if left is not right:
                    return -1 if (left is None) == nulls_first else 1
            elif found := compare(left, right):
                return -found if descending else found
        return 0

    return sorted(rows, key=cmp_to_key(by))


def shown(value: Any) -> str:
    """A value as text that tells types and scales apart, but not the sign of zero."""
    if isinstance(value, float):
        return repr(value + 0.0)
    return f"Decimal {value}" if isinstance(value, Decimal) else repr(value)
