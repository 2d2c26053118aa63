"""The states of aggregates for groups: made from rows, merged, and turned into values.

None depends on the order of rows and parts. Where Spark's result does, because a sum overflows in
one order and not in another or a double is rounded, the query is left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.engine.codes import (
    NumberedPairs,
    coded,
    decimals,
    different,
    different_of_parts,
    rank,
    ranked,
    unscaled,
)
from variantlake.errors import InvalidValue
from variantlake.expressions.arrays import checked, numbers, one_array, plain, valid
from variantlake.expressions.tree import Aggregate
from variantlake.expressions.typing import refused, scalar
from variantlake.kernels.columns.aggregates import add_groups, count_groups, reach_groups
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.shredding.fit import raw_array
from variantlake.types import Kind, ShreddedType

_EXACT_DOUBLE = 2**53
_SAFE = 2**62
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


class State(Protocol):
    """The state of one aggregate for some groups."""

    def merged(self, others: Sequence[Any], ids: Int64s, count: int) -> Any:
        """Merge the groups of this and the other states, in this order, into `count` by `ids`."""

    def result(self) -> Any:
        """The value of each group, as an Arrow array. Raises InvalidValue, UnsupportedFeature."""


def state_of(
    aggregate: Aggregate, argument: Any, ids: Int64s, count: int, sizes: Int64s | None = None
) -> State:
    """Make the state of `count` groups; `ids` has each row's group. No `argument` counts rows.

    With `sizes`, each row is a stretch of so many rows, and the aggregate is not a sum.
    """
    if aggregate.argument is None or argument is None:
        return Count(_counted(ids, count, sizes))
    if aggregate.distinct:
        return Distinct.of(argument, ids, count)
    if aggregate.function == "count":
        there = valid(argument)
        if not there.all():
            ids, sizes = ids[there], None if sizes is None else sizes[there]
        return Count(_counted(ids, count, sizes))
    type_ = scalar(aggregate.argument)
    if aggregate.function in ("min", "max"):
        return _extreme(aggregate.function == "max", type_, argument, ids, count)
    return Sum.of(aggregate, type_, plain(argument), ids, count)


def known_state(aggregate: Aggregate, values: Sequence[Raw | None]) -> State:
    """Make the state of groups whose values are known: counts, minima or maxima."""
    if aggregate.argument is None or aggregate.function == "count":
        return Count(np.array(values, np.int64))
    type_ = scalar(aggregate.argument)
    array = raw_array([typed(value, type_) for value in values], type_)
    ids = np.arange(len(values))
    return _extreme(aggregate.function == "max", type_, array, ids, len(values))


def typed(value: Raw | None, type_: ShreddedType) -> Raw | None:
    """Convert a value of the log to its type: a decimal gets all digits of its scale."""
    if type_.kind is Kind.DECIMAL and value is not None:
        exact = Decimal(value) if isinstance(value, int) else Decimal(str(value))
        return _WIDE.quantize(exact, Decimal((0, (1,), -type_.scale)))
    return bool(value) if type_.kind is Kind.BOOLEAN and value is not None else value


def _counted(ids: Int64s, count: int, sizes: Int64s | None = None) -> Int64s:
    """Count the rows of each group; `sizes` are the numbers of rows of stretches."""
    if sizes is None:
        if count == 1:
            return np.array([len(ids)], np.int64)
        counts = np.zeros((_COUNTERS if count <= _MANY else 1, count), np.int64)
        checked(count_groups(ids, count, counts.reshape(-1)))
        summed: Int64s = counts.sum(axis=0)
        return summed
    found = np.zeros(count, np.int64)
    checked(add_groups(ids, sizes, found))
    return found


_COUNTERS, _MANY = 4, 1 << 12
"""Counters per group, for at most so many groups: more do not stay in the cache."""


@dataclass(frozen=True, slots=True)
class Count:
    """Counts of rows, or of values that are not NULL."""

    counts: Int64s

    def merged(self, others: Sequence[Self], ids: Int64s, count: int) -> Count:
        """See State."""
        counts = np.concatenate([self.counts, *(each.counts for each in others)])
        return Count(_counted(ids, count, counts))

    def result(self) -> Any:
        """See State."""
        return arrow_array(self.counts)


@dataclass(frozen=True, slots=True)
class Distinct:
    """Distinct values: `values[codes[i]]` is a value of group `groups[i]`.

    A state made from rows may have a value twice, a merged one may not.
    """

    groups: Int64s
    codes: Int64s
    values: Any
    count: int

    @classmethod
    def of(cls, argument: Any, ids: Int64s, count: int) -> Distinct:
        """Make it from rows."""
        column = coded(argument)
        return cls._of(different(ids, count, column), column.values, count)

    @classmethod
    def _of(cls, pairs: tuple[Int64s, Int64s], values: Any, count: int) -> Distinct:
        groups, codes = pairs
        there = valid(values)
        if not there.all():
            kept = there[codes]
            groups, codes = groups[kept], codes[kept]
        # If conditions left few of a dictionary's entries, keep only those.
        used = np.zeros(len(values), np.bool_)
        used[codes] = True
        if 2 * int(np.count_nonzero(used)) >= len(values):
            return cls(groups, codes, values, count)
        places = arrow_array(np.flatnonzero(used))
        return cls(groups, (np.cumsum(used) - 1)[codes], values.take(places), count)

    def merged(self, others: Sequence[Self], ids: Int64s, count: int) -> Distinct:
        """See State."""
        column = coded(one_array([each.values for each in (self, *others)]))
        parts, start, entry = [], 0, 0
        for each in (self, *others):
            numbers = ids[start : start + each.count]
            entries = column.codes[entry : entry + len(each.values)]
            parts.append(NumberedPairs(each.groups, numbers, each.codes, entries))
            start, entry = start + each.count, entry + len(each.values)
        return Distinct._of(different_of_parts(parts, count, column.values), column.values, count)

    def result(self) -> Any:
        """See State."""
        return arrow_array(_counted(self.groups, self.count))


def _extreme(greatest: bool, type_: ShreddedType, array: Any, ids: Int64s, count: int) -> State:
    if not isinstance(array, pa.DictionaryArray):
        ranks = rank(array, type_)
        if ranks is not None:
            there = valid(array)
            return Extreme.of(greatest, type_, (ranks, there, ids), count)
    return Greatest.of(greatest, array, ids, count)


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or greatest values, as integers that rank them."""

    greatest: bool
    type: ShreddedType
    ranks: Int64s
    there: Bools

    @classmethod
    def of(
        cls, greatest: bool, type_: ShreddedType, rows: tuple[Int64s, Bools, Int64s], count: int
    ) -> Extreme:
        """Make it from rows: the rank of each, whether it has a value, and its group."""
        ranks, there, ids = rows
        flip = 0 if greatest else -1
        found = np.full(count, np.iinfo(np.int64).min, np.int64)
        has = np.zeros(count, np.uint8)
        counted = np.empty(0, np.uint8) if there.all() else there.view(np.uint8)
        checked(reach_groups(ids, ranks, counted, flip, found, has))
        return cls(greatest, type_, found ^ flip, has.view(np.bool_))

    def merged(self, others: Sequence[Self], ids: Int64s, count: int) -> Extreme:
        """See State."""
        ranks = np.concatenate([self.ranks, *(each.ranks for each in others)])
        there = np.concatenate([self.there, *(each.there for each in others)])
        return Extreme.of(self.greatest, self.type, (ranks, there, ids), count)

    def result(self) -> Any:
        """See State."""
        return ranked(self.ranks, self.type, self.there)


@dataclass(frozen=True, slots=True)
class Greatest:
    """The least or greatest strings, by their bytes, or other values without ranks."""

    greatest: bool
    values: Any

    @classmethod
    def of(cls, greatest: bool, array: Any, ids: Int64s, count: int) -> Greatest:
        """Make it from rows; only the entries of a dictionary are compared."""
        if isinstance(array, pa.DictionaryArray):
            pairs = Distinct.of(array, ids, count)
            array, ids = pairs.values.take(arrow_array(pairs.codes)), pairs.groups
        side = "max" if greatest else "min"
        if count == 1:
            return cls(greatest, arrow_array([pc.min_max(array)[side].as_py()], array.type))
        table: Any = pa.table({"group": ids, "value": array})
        found = table.group_by("group").aggregate([("value", side)])
        values = found[f"value_{side}"].combine_chunks()
        place = np.full(count, -1, np.int64)
        place[numpy_array(found["group"])] = np.arange(len(values))
        return cls(greatest, values.take(arrow_array(place, mask=place < 0)))

    def merged(self, others: Sequence[Self], ids: Int64s, count: int) -> Greatest:
        """See State."""
        values = one_array([each.values for each in (self, *others)])
        return Greatest.of(self.greatest, values, ids, count)

    def result(self) -> Any:
        """See State."""
        return self.values


@dataclass(frozen=True, slots=True)
class Sum:
    """Sums of integers or unscaled decimals, of those above and below zero separately.

    These show whether a sum overflows in every order of its rows, in some, or in none. `above` and
    `below` are int64 if they fit for sure, else Python's integers. No absolute sum exceeds `most`.
    """

    aggregate: Aggregate
    type: ShreddedType
    above: npt.NDArray[Any]
    below: npt.NDArray[Any]
    counts: Int64s
    most: int

    @classmethod
    def of(
        cls, aggregate: Aggregate, type_: ShreddedType, array: Any, ids: Int64s, count: int
    ) -> Sum:
        """Make it from rows."""
        there = valid(array)
        values = unscaled(array) if type_.kind is Kind.DECIMAL else numbers(array).astype(np.int64)
        if not there.all():
            values, ids = values[there], ids[there]
        most = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0)))) * len(values)
        if most >= _SAFE:
            values = values.astype(object)
        above, below = (np.zeros(count, values.dtype) for _ in range(2))
        np.add.at(above, ids, np.where(values > 0, values, 0))
        if len(values) and values.min() < 0:
            np.add.at(below, ids, np.where(values < 0, values, 0))
        return cls(aggregate, type_, above, below, _counted(ids, count), most)

    def merged(self, others: Sequence[Self], ids: Int64s, count: int) -> Sum:
        """See State."""
        parts = (self, *others)
        most = sum(each.most for each in parts)
        dtype: Any = object if most >= _SAFE else np.int64
        sides = []
        for name in ("above", "below"):
            total = np.zeros(count, dtype)
            given = np.concatenate([getattr(each, name).astype(dtype) for each in parts])
            np.add.at(total, ids, given)
            sides.append(total)
        counts = _counted(ids, count, np.concatenate([each.counts for each in parts]))
        return Sum(self.aggregate, self.type, sides[0], sides[1], counts, most)

    def result(self) -> Any:
        """See State."""
        there = self.counts > 0
        if self.aggregate.function == "sum":
            limit = 2**63 if self.type.kind is not Kind.DECIMAL else 0
            self._check(limit or 10**self.aggregate.type.precision)
            total = self.above + self.below
            if self.type.kind is Kind.DECIMAL:
                return decimals(total, self.aggregate.type, there)
            return arrow_array(total.astype(np.int64), mask=~there)
        if self.type.kind is Kind.DECIMAL:
            self._check(10 ** min(self.type.precision + 10, 38))
            means = [self._mean(row) if there[row] else None for row in range(len(there))]
            return arrow_array(means, self.aggregate.type.arrow)
        if self.most > _EXACT_DOUBLE and (self.above - self.below > _EXACT_DOUBLE).any():
            raise refused("an average whose sum no double holds exactly")
        whole = (self.above + self.below).astype(np.float64)
        return arrow_array(whole / np.maximum(self.counts, 1), mask=~there)

    def _check(self, limit: int) -> None:
        """Raise InvalidValue for a total beyond the limits, UnsupportedFeature for an unsure one.

        The order in which Spark adds is not known: it raises for sure only if the total is beyond.
        """
        if self.most < limit:
            return
        integers = self.type.kind is not Kind.DECIMAL
        total = self.above + self.below
        least = -limit if integers else 1 - limit
        if ((total >= limit) | (total < least)).any():
            raise InvalidValue(
                f"the sum is beyond {self.aggregate.type.ddl}",
                hint="Spark raises ARITHMETIC_OVERFLOW as well: sum a wider type",
            )
        if ((self.above >= limit) | (self.below < least)).any():
            raise refused("a sum that overflows in some orders of its rows and not in others")

    def _mean(self, row: int) -> Decimal:
        """Divide as Spark does: to 38 fractional digits first, then to the result's."""
        exact = Decimal(int(self.above[row]) + int(self.below[row])).scaleb(-self.type.scale, _WIDE)
        mean = _divided(exact, int(self.counts[row]))
        return _WIDE.quantize(mean, Decimal((0, (1,), -self.aggregate.type.scale)))


def _divided(exact: Decimal, count: int) -> Decimal:
    return _WIDE.quantize(_WIDE.divide(exact, Decimal(count)), Decimal((0, (1,), -38)))
