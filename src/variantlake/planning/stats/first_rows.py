"""Plan for a LIMIT: find files that hold enough rows, and how far the first rows reach.

For many files the log proves how many rows fulfil the query's condition, and between which values
these lie. So it proves that enough rows do not go beyond some value; rows beyond it are not among
the first. The engine applies the limit itself, to a scan of the rest. A row that ties with the last
one is never left out if further terms of the order may decide between the two (EXACTNESS, rule 37).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from variantlake.expressions.tree import (
    Compare,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
    conjuncts,
)
from variantlake.expressions.typing import spark_type
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, Int64s, RawColumn
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.files import FileColumns
from variantlake.planning.stats.domains import NO_TYPES
from variantlake.planning.stats.exact_facts import ExactFacts
from variantlake.planning.stats.skipping import Skipper, domains_in
from variantlake.types import Kind

_ORDERED = frozenset(
    {
        *(Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE),
        *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.STRING),
    }
)
"""Kinds of keys whose bounds are in the order of a sort."""


@dataclass(frozen=True, slots=True)
class Order:
    """The first term of an ORDER BY; `sole` if no other term breaks ties."""

    ref: Ref
    descending: bool = False
    nulls_first: bool = True
    sole: bool = False

    def __str__(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.ref} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class FirstRows:
    """A LIMIT: `rows` (also those that an OFFSET skips) of all that fulfil the query's condition.

    They are the first ones by `order`; without one, any.
    """

    rows: int
    order: Order | None = None

    def __str__(self) -> str:
        return f"ORDER BY {self.order} LIMIT {self.rows}" if self.order else f"LIMIT {self.rows}"


def map_order(first: FirstRows, change: Callable[[Ref], Ref]) -> FirstRows:
    """Replace the column of the order by what `change` returns for it."""
    if first.order is None:
        return first
    return replace(first, order=replace(first.order, ref=change(first.order.ref)))


def up_to(order: Order, last: Raw | None, *, nulls: bool = True) -> Predicate | None:
    """The condition of rows that do not come after `last` (None is NULL); None if all meet it.

    `nulls` tells whether some row may be NULL. NaN is the greatest double, as in a sort.
    """
    if last is None:
        return IsNull(order.ref) if order.nulls_first else None
    near = Compare(">=" if order.descending else "<=", order.ref, Literal(last, order.ref.type))
    return Or((near, IsNull(order.ref))) if order.nulls_first and nulls else near


def reach(
    first: FirstRows,
    files: FileColumns,
    predicate: Predicate | None,
    partition_types: Mapping[str, str] | None = None,
) -> Predicate | None:
    """A condition that all of the first rows fulfil; None if the log proves none.

    `predicate` is the whole condition of the rows that the limit chooses from.
    """
    order, types = first.order, partition_types or NO_TYPES
    if order is None or not _is_by_bounds(order.ref):
        return None
    facts = ExactFacts(files, types)
    matching, certain = facts.matching(predicate)
    found = domains_in(files, order.ref, types)
    nulls = not _drops_nulls(predicate, order.ref) and bool(np.any(found.nulls & matching))
    null_rows, values, rows = _certain_rows(facts, order, certain)
    if null_rows >= first.rows:
        return up_to(order, None) if np.any(found.values & matching) else None
    last = _value_of_row(values, rows, first.rows - null_rows, descending=order.descending)
    if last is None:
        return None
    condition = up_to(order, last, nulls=nulls)
    # A condition that every row fulfils would only cost time.
    (fails,) = Skipper(condition, types).may_fail(files)
    return condition if np.any(fails & matching) else None


def _is_by_bounds(ref: Ref) -> bool:
    wanted = spark_type(ref.type)
    return wanted is not None and wanted.kind in _ORDERED and not ref.char_length


def _drops_nulls(predicate: Predicate | None, ref: Ref) -> bool:
    """Whether the predicate excludes all rows in which this operand is NULL."""
    for part in conjuncts(predicate):
        match part:
            case Compare(op, left, right) if op != "<=>" and ref in (left, right):
                return True
            case In(operand) | StartsWith(operand) | Not(IsNull(operand)) if operand == ref:
                return True
    return False


def _certain_rows(
    facts: ExactFacts, order: Order, certain: Bools
) -> tuple[int, npt.NDArray[Any], Int64s]:
    """Values, and for each a number of rows that certainly come no later.

    The first result is the number of rows that come before all values: NULLs, if they are first.
    """
    found, counts = facts.domains(order.ref), _values(facts, order.ref)
    known = counts != UNKNOWN
    nulls = facts.rows - counts
    null_rows = int(nulls[certain & known].sum()) if order.nulls_first else 0
    # If the number of NULLs is unknown, all rows come no later than the farthest value.
    counts = np.where(known, counts, facts.rows if order.nulls_first else 0)
    far = found.minimum if order.descending else found.maximum
    near = facts.reached(order.ref, "max" if order.descending else "min")
    one = certain & near.valid & (counts > 0)
    all_ = certain & far.valid & (counts > 0)
    if not order.descending:
        all_ &= ~found.nan  # NaN comes after any other value
    rows = [np.ones(int(one.sum()), np.int64), (counts - one)[all_]]
    return null_rows, np.concatenate([near.values[one], far.values[all_]]), np.concatenate(rows)


def _values(facts: ExactFacts, ref: Ref) -> Int64s:
    """The number of remaining rows of each file that have a value; -1 if unknown."""
    found = facts.domains(ref)
    counts = np.where(found.nulls, facts.count(ref), facts.rows)
    return np.where(found.values, counts, 0)


def _value_of_row(
    values: npt.NDArray[Any], rows: Int64s, number: int, *, descending: bool
) -> Raw | None:
    """The value that `number` rows do not go beyond; None if there are fewer rows."""
    order = np.argsort(values, kind="stable")
    if descending:
        order = order[::-1]
    place = int(np.searchsorted(np.cumsum(rows[order]), number))
    if place >= len(order):
        return None
    column = RawColumn(values[order], np.ones(len(order), np.bool_))
    return column.raw(place)


def enough(
    first: FirstRows,
    files: FileColumns,
    predicate: Predicate | None,
    partition_types: Mapping[str, str] | None = None,
) -> Int64s | None:
    """Files with enough rows for a LIMIT to take any of them; None if there are none.

    Without an order any rows do, and so do NULLs that come first by its only term. Returns the
    smallest file that has enough, else as few files as possible.
    """
    facts = ExactFacts(files, partition_types)
    _, certain = facts.matching(predicate)
    usable = np.flatnonzero(certain)
    rows = _alike_rows(facts, first.order)[usable]
    alone = usable[rows >= first.rows]
    if len(alone):
        return alone[[np.argmin(files.sizes[alone])]] if first.rows else alone[:0]
    most = np.argsort(-rows, kind="stable")
    place = int(np.searchsorted(np.cumsum(rows[most]), first.rows))
    return None if place >= len(most) else np.sort(usable[most[: place + 1]])


def _alike_rows(facts: ExactFacts, order: Order | None) -> Int64s:
    """The number of rows of each file that come first, and tie in the order."""
    if order is None:
        return facts.rows
    if not (order.sole and order.nulls_first and _is_by_bounds(order.ref)):
        return np.zeros_like(facts.rows)
    values = _values(facts, order.ref)
    return np.where(values != UNKNOWN, facts.rows - values, 0)
