"""Which files hold no row that a predicate wants.

Each node of the predicate is evaluated to the set of SQL truth values that it *may* take in some
row of the file: true, false, null. A file is skipped when one of the predicate's conjuncts cannot
be true. NOT exchanges true and false in the set, so it never turns "may match" into a proof
(EXACTNESS, rule 19); what is unknown may be anything and keeps the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntFlag

import numpy as np
import numpy.typing as npt

from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import Int64s, RawColumn
from variantlake.planning.exact.comparing import (
    Truths,
    above,
    any_within,
    below,
    comparison_type,
    equal,
    literal_as,
)
from variantlake.planning.files import FileColumns
from variantlake.planning.predicates import (
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
    Unknown,
    conjuncts,
    refs,
)
from variantlake.planning.stats.domains import NO_TYPES, Domains, domains_of


class May(IntFlag):
    """The truth values that a condition may take in some row of a file."""

    NEVER = 0
    TRUE = 1
    FALSE = 2
    NULL = 4
    ANY = 7


TRUE, FALSE, NULL = (np.uint8(int(may)) for may in (May.TRUE, May.FALSE, May.NULL))
NOT_SKIPPED = -1

_REMEMBERED = 32
"""Operands whose domains are kept with the files; of a million files one takes tens of MB."""


class Skipper:
    """A predicate, bound once and asked for many files; it keeps no state about any of them.

    `partition_types` gives the Spark types of the table's partition columns, by the names that
    files' partition values use.
    """

    def __init__(
        self, predicate: Predicate | None, partition_types: Mapping[str, str] | None = None
    ) -> None:
        self.conjuncts = conjuncts(predicate)
        self._types = partition_types or NO_TYPES

    def skipped_by(self, files: FileColumns) -> Int64s:
        """For each file the index of the first conjunct that skips it, or NOT_SKIPPED."""
        skipped = np.full(files.rows, NOT_SKIPPED, np.int64)
        evaluation = Evaluation(files, self._types)
        for number, part in enumerate(self.conjuncts):
            never = evaluation.may(part) & TRUE == 0
            skipped[never & (skipped == NOT_SKIPPED)] = number
        return skipped

    def may_match(self, files: FileColumns) -> npt.NDArray[np.bool_]:
        """For each file whether it may hold a match."""
        return np.equal(self.skipped_by(files), NOT_SKIPPED)

    def may_fail(self, files: FileColumns) -> list[npt.NDArray[np.bool_]]:
        """For each conjunct, and each file, whether it may be false or null in some row."""
        evaluation = Evaluation(files, self._types)
        return [evaluation.may(part) != TRUE for part in self.conjuncts]

    def why_kept(self, files: FileColumns, row: int) -> tuple[tuple[Predicate, str], ...]:
        """For a file that may match: each conjunct with the reason why it could not skip."""
        evaluation = Evaluation(files, self._types)
        return tuple((part, _reason(part, evaluation, row)) for part in self.conjuncts)


def domains_in(
    files: FileColumns, ref: Ref, partition_types: Mapping[str, str] = NO_TYPES
) -> Domains:
    """The domains of an operand in each file, remembered with the files."""
    memo = files.memo
    key = (ref, partition_types.get(ref.column[0]))
    known = memo.get(key)
    if not isinstance(known, Domains):
        while len(memo) >= _REMEMBERED:
            memo.pop(next(iter(list(memo)), None), None)  # other threads may add or take
        known = memo[key] = domains_of(ref, files, partition_types)
    return known


class Evaluation:
    """Predicates over one set of files."""

    def __init__(self, files: FileColumns, partition_types: Mapping[str, str]) -> None:
        self._files = files
        self._types = partition_types

    def domains(self, ref: Ref) -> Domains:
        """The domains of an operand."""
        return domains_in(self._files, ref, self._types)

    def may(self, predicate: Predicate) -> Truths:
        """The truth values that the predicate may take in each file."""
        match predicate:
            case Compare(op, Ref() as ref, Literal() as literal):
                return self._compare(op, ref, literal)
            case Compare(op, Literal() as literal, Ref() as ref):
                return self._compare(FLIPPED.get(op, op), ref, literal)
            case In(ref, options):
                return self._in(ref, options)
            case StartsWith(ref, prefix):
                return self._starts_with(ref, prefix)
            case IsNull(ref):
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
        return np.full(self._files.rows, int(may), np.uint8)

    def _and(self, terms: list[Truths]) -> Truths:
        may = self._always(May.TRUE)
        for term in terms:
            may = _AND[may, term]
        return may

    def _compare(self, op: CompareOp, ref: Ref, literal: Literal) -> Truths:
        common = comparison_type(ref.type, (literal,))
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
        common = comparison_type(ref.type, options)
        if common is None:
            return self._always(May.ANY)
        values = [literal_as(option, common) for option in options]
        keys = [value for value in values if value is not None]
        numbers = [key for key in keys if not _is_nan(key)]
        no_match = NULL if len(keys) < len(values) else FALSE
        found = self.domains(ref)
        within = any_within(found.minimum, found.maximum, numbers)
        if len(numbers) < len(keys):
            within |= ~found.maximum.known  # NaN is the greatest
        only = within & found.exact & equal(found.minimum, found.maximum)
        may = TRUE * within | no_match * ~only
        on_nan = TRUE if len(numbers) < len(keys) else no_match
        return _in_files(found, may, on_nan)

    def _starts_with(self, ref: Ref, prefix: str) -> Truths:
        if ref.type != "string":
            return self._always(May.ANY)
        # Cutting to the prefix' length keeps the order, so the bounds' prefixes are bounds, and
        # where both are the prefix it is that of every value, whether or not a bound was cut.
        found = self.domains(ref)
        cut = replace(
            found,
            minimum=_cut(found.minimum, len(prefix)),
            maximum=_cut(found.maximum, len(prefix)),
            exact=np.ones(self._files.rows, np.bool_),
        )
        return _over(cut, "=", prefix)

    def _is_null(self, ref: Ref) -> Truths:
        found = self.domains(ref)
        return TRUE * found.nulls | FALSE * found.values


def _reason(part: Predicate, evaluation: Evaluation, row: int) -> str:
    if isinstance(part, Unknown):
        return "planning does not understand it"
    texts: list[str] = []
    for ref in dict.fromkeys(refs(part)):
        domains = evaluation.domains(ref)
        about = "" if isinstance(part, Compare | In | StartsWith) else f"{ref}: "
        texts.append(about + (domains.reason(row) or _range_text(domains, row)))
    return "; ".join(texts) or "it may be true in any row"


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
"""`=` as `<=>` says it: where one side alone is NULL it is false."""
_NOT = np.array([may & 4 | (may & 1) << 1 | (may & 2) >> 1 for may in range(8)], np.uint8)


def _over(domains: Domains, op: CompareOp, key: Raw) -> Truths:
    """A comparison with `key` over all that the domains hold."""
    on_range, on_nan = _ON_RANGE[op]
    return _in_files(domains, on_range(domains, key), on_nan[int(_is_nan(key))])


def _in_files(domains: Domains, on_range: Truths, on_nan: int | np.uint8) -> Truths:
    """What holds for values in range, for NaN, and for NULLs, where a file may have them."""
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
    return TRUE * (~low.known | below(low, key)) | FALSE * ~below(high, key)


def _less_or_equal(domains: Domains, key: Raw) -> Truths:
    low, high = domains.minimum, domains.maximum
    return TRUE * ~above(low, key) | FALSE * (~high.known | above(high, key))


_OnRange = Callable[[Domains, Raw], Truths]
_OnNan = tuple[int, int]
"""What a comparison of NaN with another value says, and one with NaN."""


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
    cut = RawColumn(column.values.copy(), column.known)
    cut.values[column.known] = [text[:length] for text in column.values[column.known]]
    return cut


def _range_text(domains: Domains, row: int) -> str:
    low, high = (_raw_text(side.raw(row)) for side in (domains.minimum, domains.maximum))
    nan = " and perhaps NaN" if domains.nan[row] else ""
    return f"the file holds {low} to {high}{nan}"


def _raw_text(value: Raw | None) -> str:
    return "?" if value is None else repr(value) if isinstance(value, str) else str(value)
