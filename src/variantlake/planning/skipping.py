"""Which files hold no row that a predicate wants.

Each node of the predicate is evaluated to the set of SQL truth values that it *may* take in some
row of the file: true, false, null. A file is skipped when one of the predicate's conjuncts cannot
be true. NOT exchanges true and false in the set, so it never turns "may match" into a proof
(EXACTNESS, rule 19); what is unknown may be anything and keeps the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from variantlake.parquet.bounds import Raw
from variantlake.parquet.facts import FileFacts
from variantlake.planning.domains import ColumnDomain, Domain, PathDomain
from variantlake.planning.literals import comparison_type, literal_as, order_key
from variantlake.planning.predicates import (
    FLIPPED,
    And,
    Compare,
    CompareOp,
    In,
    IsNotNull,
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


class May(IntFlag):
    """The truth values that a condition may take in some row of a file."""

    NEVER = 0
    TRUE = 1
    FALSE = 2
    NULL = 4
    ANY = 7


# Arithmetic on plain integers: on flags it is ten times slower, and this runs for each file.
_NEVER, _TRUE, _FALSE, _NULL, _ANY = (
    int(may) for may in (0, May.TRUE, May.FALSE, May.NULL, May.ANY)
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`may_match` is false when no row can match; `by` is then the conjunct that proves it."""

    may_match: bool
    by: Predicate | None = None


MIGHT_MATCH = Outcome(may_match=True)
NO_PARTITION: Mapping[str, str | None] = {}


@dataclass(frozen=True, slots=True)
class _File:
    facts: FileFacts | None
    partition: Mapping[str, str | None]


_Test = Callable[[_File], int]


class Skipper:
    """A predicate, bound once and asked for many files; it keeps no state about any of them.

    `partition_types` gives the Spark types of the table's partition columns, by the names that
    files' partition values use.
    """

    def __init__(
        self, predicate: Predicate | None, partition_types: Mapping[str, str] | None = None
    ) -> None:
        binder = _Binder(partition_types or {})
        self.conjuncts = conjuncts(predicate)
        self._tests = tuple((part, binder.bind(part)) for part in self.conjuncts)
        self._domain = binder.domain

    def outcome(
        self, facts: FileFacts | None, partition: Mapping[str, str | None] = NO_PARTITION
    ) -> Outcome:
        """Whether the file with these facts and serialised partition values may hold a match."""
        file = _File(facts, partition)
        for part, test in self._tests:
            if not test(file) & _TRUE:
                return Outcome(may_match=False, by=part)
        return MIGHT_MATCH

    def may(
        self, facts: FileFacts | None, partition: Mapping[str, str | None] = NO_PARTITION
    ) -> tuple[tuple[Predicate, May], ...]:
        """Each conjunct with the truth values that it may take."""
        file = _File(facts, partition)
        return tuple((part, May(test(file))) for part, test in self._tests)

    def why_kept(
        self, facts: FileFacts | None, partition: Mapping[str, str | None] = NO_PARTITION
    ) -> tuple[tuple[Predicate, str], ...]:
        """For a file that may match: each conjunct with the reason why it could not skip."""
        file = _File(facts, partition)
        return tuple((part, self._reason(part, file)) for part in self.conjuncts)

    def _reason(self, part: Predicate, file: _File) -> str:
        if isinstance(part, Unknown):
            return "planning does not understand it"
        texts: list[str] = []
        for ref in dict.fromkeys(refs(part)):
            domain = self._domain(ref)(file)
            about = "" if isinstance(part, Compare | In | StartsWith) else f"{ref}: "
            texts.append(about + (domain.why or _range_text(domain)))
        return "; ".join(texts) or "it may be true in any row"


class _Binder:
    """Turns predicates into tests of a file."""

    def __init__(self, partition_types: Mapping[str, str]) -> None:
        self._partition_types = partition_types
        self._domains: dict[Ref, Callable[[_File], Domain]] = {}

    def domain(self, ref: Ref) -> Callable[[_File], Domain]:
        """The domain of a Ref, as a function of the file."""
        known = self._domains.get(ref)
        if known is None:
            known = self._domains[ref] = self._bind_domain(ref)
        return known

    def _bind_domain(self, ref: Ref) -> Callable[[_File], Domain]:
        if ref.path is None:
            column = ColumnDomain(ref, self._partition_types)
            return lambda file: column.of(file.facts, file.partition)
        path = PathDomain(ref)
        return lambda file: path.of(file.facts)

    def bind(self, predicate: Predicate) -> _Test:
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
            case IsNotNull(ref):
                return _not(self._is_null(ref))
            case And(terms):
                return _and(tuple(map(self.bind, terms)))
            case Or(terms):
                return _not(_and(tuple(_not(self.bind(term)) for term in terms)))
            case Not(term):
                return _not(self.bind(term))
            case _:
                return _anything

    def _compare(self, op: CompareOp, ref: Ref, literal: Literal) -> _Test:
        common = comparison_type(ref.type, (literal,))
        if common is None or op == "<=>":
            return _anything
        value = literal_as(literal, common)
        if value is None:
            return lambda _file: _NULL
        domain, key, on_range = self.domain(ref), order_key(value), _ON_RANGE[op]
        return lambda file: _over(domain(file), key, on_range)

    def _in(self, ref: Ref, options: tuple[Literal, ...]) -> _Test:
        common = comparison_type(ref.type, options)
        if common is None:
            return _anything
        values = [literal_as(option, common) for option in options]
        keys = sorted({order_key(value) for value in values if value is not None})
        null_option = len([value for value in values if value is None]) > 0
        domain = self.domain(ref)

        def test(file: _File) -> int:
            found = domain(file)
            may = _NULL if found.nulls else _NEVER
            for low, high, exact in _ranges(found):
                within = [key for key in keys if _between(low, key, high)]
                if within:
                    may |= _TRUE
                if not (within and exact and low is not None and low == high):
                    may |= _NULL if null_option else _FALSE
            return may

        return test

    def _starts_with(self, ref: Ref, prefix: str) -> _Test:
        if ref.type != "string":
            return _anything
        domain = self.domain(ref)

        def test(file: _File) -> int:
            # Cutting to the prefix' length keeps the order, so the bounds' prefixes are bounds.
            found = domain(file)
            cut = Domain(
                found.values,
                found.nulls,
                None if found.minimum is None else str(found.minimum)[: len(prefix)],
                None if found.maximum is None else str(found.maximum)[: len(prefix)],
                found.exact,
            )
            return _over(cut, order_key(prefix), _ON_RANGE["="])

        return test

    def _is_null(self, ref: Ref) -> _Test:
        domain = self.domain(ref)

        def test(file: _File) -> int:
            found = domain(file)
            return (_TRUE if found.nulls else 0) | (_FALSE if found.values else 0)

        return test


_Key = tuple[int, Any]
"""What `order_key` gives. Values of one comparison type compare with each other."""


def _anything(_file: _File) -> int:
    return _ANY


def _not(test: _Test) -> _Test:
    def swapped(file: _File) -> int:
        may = test(file)
        return (may & _NULL) | (may & _TRUE) << 1 | (may & _FALSE) >> 1

    return swapped


def _and(tests: tuple[_Test, ...]) -> _Test:
    def test(file: _File) -> int:
        may = _TRUE
        for term in tests:
            may = _AND[may][term(file)]
        return may

    return test


def _and_of(left: int, right: int) -> int:
    """The values of `l AND r` for l and r from the two sets."""
    if not (left and right):
        return _NEVER  # no row at all
    may = (left | right) & _FALSE
    may |= left & right & _TRUE
    if (left | right) & _NULL and left & (_TRUE | _NULL) and right & (_TRUE | _NULL):
        may |= _NULL
    return may


_AND = [[_and_of(left, right) for right in range(8)] for left in range(8)]


def _over(
    domain: Domain, key: _Key, on_range: Callable[[_Key | None, _Key | None, _Key, bool], int]
) -> int:
    """A comparison with `key` over all that the domain holds."""
    may = _NULL if domain.nulls else 0
    for low, high, exact in _ranges(domain):
        may |= on_range(low, high, key, exact)
    return may


_NAN = order_key(float("nan"))


def _ranges(domain: Domain) -> list[tuple[_Key | None, _Key | None, bool]]:
    """The ranges that enclose the domain's values, by order key, and whether they are exact."""
    if not domain.values:
        return []
    ranges = [
        (
            None if domain.minimum is None else order_key(domain.minimum),
            None if domain.maximum is None else order_key(domain.maximum),
            domain.exact,
        )
    ]
    if domain.nan:
        ranges.append((_NAN, _NAN, True))
    return ranges


def _between(low: _Key | None, key: _Key, high: _Key | None) -> bool:
    return (low is None or low <= key) and (high is None or key <= high)


def _equal(low: _Key | None, high: _Key | None, key: _Key, exact: bool) -> int:
    may = _TRUE if _between(low, key, high) else _NEVER
    return may if exact and low == high == key else may | _FALSE


def _less(low: _Key | None, high: _Key | None, key: _Key, _exact: bool) -> int:
    may = _TRUE if low is None or low < key else _NEVER
    return may | _FALSE if high is None or high >= key else may


def _less_or_equal(low: _Key | None, high: _Key | None, key: _Key, _exact: bool) -> int:
    may = _TRUE if low is None or low <= key else _NEVER
    return may | _FALSE if high is None or high > key else may


_OnRange = Callable[[_Key | None, _Key | None, _Key, bool], int]


def _opposite(on_range: _OnRange) -> _OnRange:
    def swapped(low: _Key | None, high: _Key | None, key: _Key, exact: bool) -> int:
        may = on_range(low, high, key, exact)
        return (may & _TRUE) << 1 | (may & _FALSE) >> 1

    return swapped


_ON_RANGE: dict[CompareOp, _OnRange] = {
    "=": _equal,
    "<>": _opposite(_equal),
    "<": _less,
    ">=": _opposite(_less),
    "<=": _less_or_equal,
    ">": _opposite(_less_or_equal),
}


def _range_text(domain: Domain) -> str:
    low, high = (_raw_text(bound) for bound in (domain.minimum, domain.maximum))
    nan = " and perhaps NaN" if domain.nan else ""
    return f"the file holds {low} to {high}{nan}"


def _raw_text(value: Raw | None) -> str:
    return "?" if value is None else repr(value) if isinstance(value, str) else str(value)
