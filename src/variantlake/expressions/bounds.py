"""The set of truth values that a condition may take in the rows of a file, for many files at once.

Each node of a condition is evaluated to the SQL truth values that it *may* take in some row of the
file: true, false, null. NOT exchanges true and false in the set, so it never turns "may match" into
a proof (EXACTNESS, rule 19). A condition that bounds do not decide may take any value.

NaN is the greatest double, and -0.0 equals 0.0. Strings and binary values order by their bytes (for
strings the order of code points). No bound is a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import IntFlag
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from variantlake.expressions.tree import (
    FLIPPED,
    And,
    Compare,
    CompareOp,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from variantlake.expressions.typing import comparison_type, literal_as, type_of
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Bools, RawColumn

Truths = npt.NDArray[np.uint8]
"""For each file the set of truth values that a condition may take, as the bits of `May`."""


class May(IntFlag):
    """The truth values that a condition may take in some row of a file."""

    NEVER = 0
    TRUE = 1
    FALSE = 2
    NULL = 4
    ANY = 7


TRUE, FALSE, NULL = (np.uint8(int(may)) for may in (May.TRUE, May.FALSE, May.NULL))


class Domains(Protocol):
    """The values that an operand, read as the requested type, may take in each of many files.

    See `planning.stats.domains.OperandDomains`.
    """

    @property
    def values(self) -> Bools:
        """The files in which some row may have a value."""

    @property
    def nulls(self) -> Bools:
        """The files in which some row may be NULL."""

    @property
    def minimum(self) -> RawColumn:
        """A lower bound of the values; not valid: unbounded."""

    @property
    def maximum(self) -> RawColumn:
        """An upper bound of the values except NaN; not valid: unbounded."""

    @property
    def exact(self) -> Bools:
        """The files in which neither bound was cut."""

    @property
    def nan(self) -> Bools:
        """The files in which some row may be NaN."""


class Evaluation:
    """Evaluates conditions over `files` files; `domains` gives the domains of an operand."""

    def __init__(self, files: int, domains: Callable[[Ref], Domains]) -> None:
        self._files = files
        self.domains = domains

    def may(self, predicate: Predicate) -> Truths:
        """The truth values that the predicate may take in each file."""
        match predicate:
            case Compare(op, Ref() as ref, Literal() as literal):
                return self._compare(op, ref, literal)
            case Compare(op, Literal() as literal, Ref() as ref):
                return self._compare(FLIPPED.get(op, op), ref, literal)
            case In(Ref() as ref, options):
                return self._in(ref, options)
            case StartsWith(Ref() as ref, prefix):
                return self._starts_with(ref, prefix)
            case IsNull(Ref() as ref):
                return self._is_null(ref)
            case And(terms):
                return self._and([self.may(term) for term in terms])
            case Or(terms):
                return _not(self._and([_not(self.may(term)) for term in terms]))
            case Not(term):
                return _not(self.may(term))
            case _:
                return self._always(May.ANY)

    def _always(self, may: May) -> Truths:
        return np.full(self._files, int(may), np.uint8)

    def _and(self, terms: list[Truths]) -> Truths:
        may = self._always(May.TRUE)
        for term in terms:
            may = _AND[may, term]
        return may

    def _compare(self, op: CompareOp, ref: Ref, literal: Literal) -> Truths:
        common = comparison_type(type_of(ref), (literal,))
        if common is None:
            return self._always(May.ANY)
        value = literal_as(literal, common)
        if op == "<=>":
            if value is None:
                return self._is_null(ref)
            return _NULL_SAFE[self._compare("=", ref, literal)]
        if value is None:
            return self._always(May.NULL)
        return _over(self.domains(ref), op, value)

    def _in(self, ref: Ref, options: tuple[Literal, ...]) -> Truths:
        common = comparison_type(type_of(ref), options)
        if common is None:
            return self._always(May.ANY)
        values = [literal_as(option, common) for option in options]
        keys = [value for value in values if value is not None]
        numbers = [key for key in keys if not _is_nan(key)]
        no_match = NULL if len(keys) < len(values) else FALSE
        found = self.domains(ref)
        within = any_within(found.minimum, found.maximum, numbers)
        if len(numbers) < len(keys):
            within |= ~found.maximum.valid  # NaN is the greatest
        only = within & found.exact & equal(found.minimum, found.maximum)
        may = TRUE * within | no_match * ~only
        on_nan = TRUE if len(numbers) < len(keys) else no_match
        return _in_files(found, may, on_nan)

    def _starts_with(self, ref: Ref, prefix: str) -> Truths:
        if ref.type != "string":
            return self._always(May.ANY)
        # Cutting to the prefix's length keeps the order, so the bounds' prefixes are bounds. Where
        # both equal the prefix, every value starts with it, whether or not a bound was cut.
        found = self.domains(ref)
        low, high = (_cut(side, len(prefix)) for side in (found.minimum, found.maximum))
        within = ~(above(low, prefix) | below(high, prefix))
        return _in_files(found, TRUE * within | FALSE * ~(within & equal(low, high)), FALSE)

    def _is_null(self, ref: Ref) -> Truths:
        found = self.domains(ref)
        return TRUE * found.nulls | FALSE * found.values


def _not(may: Truths) -> Truths:
    return _NOT[may]


def _and_of(left: int, right: int) -> int:
    """The values of `l AND r` for l and r from the two sets."""
    if not (left and right):
        return May.NEVER  # no row at all
    may = (left | right) & May.FALSE
    may |= left & right & May.TRUE
    either = May.TRUE | May.NULL
    if (left | right) & May.NULL and left & either and right & either:
        may |= May.NULL
    return int(may)


_AND = np.array([[_and_of(left, right) for right in range(8)] for left in range(8)], np.uint8)
_NULL_SAFE = np.array([may & 1 | 2 * bool(may & 6) for may in range(8)], np.uint8)
"""The truth values of `<=>` for those of `=`: false if only one side is NULL."""
_NOT = np.array([may & 4 | (may & 1) << 1 | (may & 2) >> 1 for may in range(8)], np.uint8)


def _over(domains: Domains, op: CompareOp, key: Raw) -> Truths:
    """Compare all values of the domains with `key`."""
    on_range, on_nan = _ON_RANGE[op]
    return _in_files(domains, on_range(domains, key), on_nan[int(_is_nan(key))])


def _in_files(domains: Domains, on_range: Truths, on_nan: int | np.uint8) -> Truths:
    """Combine the truth values for values in range, NaN and NULL, where a file may have them."""
    may = on_range | np.uint8(on_nan) * domains.nan
    return may * domains.values | NULL * domains.nulls


def _is_nan(value: Raw) -> bool:
    return value != value  # noqa: PLR0124 - the one value that is not itself


def _equal(domains: Domains, key: Raw) -> Truths:
    low, high = domains.minimum, domains.maximum
    within = ~(above(low, key) | below(high, key))
    only = within & domains.exact & equal(low, high)
    return TRUE * within | FALSE * ~only


def _less(domains: Domains, key: Raw) -> Truths:
    low, high = domains.minimum, domains.maximum
    return TRUE * (~low.valid | below(low, key)) | FALSE * ~below(high, key)


def _less_or_equal(domains: Domains, key: Raw) -> Truths:
    low, high = domains.minimum, domains.maximum
    return TRUE * ~above(low, key) | FALSE * (~high.valid | above(high, key))


_OnRange = Callable[[Domains, Raw], Truths]
_OnNan = tuple[int, int]
"""The truth values of comparing NaN with another value, and with NaN."""


def _opposite(on_range: _OnRange) -> _OnRange:
    return lambda domains, key: _not(on_range(domains, key))


_T, _F = int(May.TRUE), int(May.FALSE)
_ON_RANGE: dict[CompareOp, tuple[_OnRange, _OnNan]] = {
    "=": (_equal, (_F, _T)),
    "<>": (_opposite(_equal), (_T, _F)),
    "<": (_less, (_F, _F)),
    ">=": (_opposite(_less), (_T, _T)),
    "<=": (_less_or_equal, (_F, _T)),
    ">": (_opposite(_less_or_equal), (_T, _F)),
}


def _cut(column: RawColumn, length: int) -> RawColumn:
    cut = RawColumn(column.values.copy(), column.valid)
    cut.values[column.valid] = [text[:length] for text in column.values[column.valid]]
    return cut


# --- Bounds and a constant, in Spark's order ------------------------------------------------------


def below(column: RawColumn, key: Raw) -> Bools:
    """Where the bound is less than `key`; False if it is not known."""
    if isinstance(key, float) and math.isnan(key):
        return column.valid
    return _compared(np.less, column, key, math.ceil)


def above(column: RawColumn, key: Raw) -> Bools:
    """Where the bound is greater than `key`; False if it is not known."""
    if isinstance(key, float) and math.isnan(key):
        return np.zeros(len(column.valid), np.bool_)
    return _compared(np.greater, column, key, math.floor)


def _compared(compare: Any, column: RawColumn, key: Raw, whole: Callable[[Decimal], int]) -> Bools:
    if isinstance(key, Decimal) and column.values.dtype == np.int64:
        key = whole(key)
    if column.values.dtype != np.object_:
        # NumPy compares integers exactly with any Python int, and small integers with doubles.
        compared: Bools = compare(column.values, key)
        return compared & column.valid
    result = np.zeros(len(column.valid), np.bool_)
    # Boxed, because NumPy would strip the trailing NULs of a bare string.
    box = np.empty((), np.object_)
    box[()] = key
    result[column.valid] = compare(column.values[column.valid], box)
    return result


def any_within(low: RawColumn, high: RawColumn, keys: Sequence[Raw]) -> Bools:
    """Where some key lies within the bounds; an unknown bound is no limit. No key is a NaN."""
    dtype = low.values.dtype
    if dtype == np.int64:
        # A key that equals no 64-bit integer equals no value of a file.
        keys = [int(key) for key in keys if key == _whole(key) and -(2**63) <= key < 2**63]
    ordered = np.empty(len(keys), dtype)
    ordered[:] = sorted(keys)
    first = np.zeros(len(low.valid), np.int64)
    last = np.full(len(low.valid), len(keys), np.int64)
    first[low.valid] = np.searchsorted(ordered, low.values[low.valid], "left")
    last[high.valid] = np.searchsorted(ordered, high.values[high.valid], "right")
    return np.greater(last, first)


def equal(one: RawColumn, other: RawColumn) -> Bools:
    """Where both bounds are known and equal."""
    both = one.valid & other.valid
    result = np.zeros(len(both), np.bool_)
    result[both] = one.values[both] == other.values[both]
    return result


def _whole(key: Any) -> int:
    return math.floor(key) if not isinstance(key, float) or math.isfinite(key) else 0
