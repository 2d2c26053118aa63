"""The join of a MERGE: equalities between the two sides, by codes of the source's values.

The source's values also give a predicate that skips files and row groups: a list of values, or
ranges that contain all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.dml.merge.sides import in_table, sides_of
from variantlake.errors import InvalidQuery
from variantlake.expressions.arrays import Values, of_entries, ordered, plain
from variantlake.expressions.tree import (
    And,
    Call,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Or,
    Predicate,
    Ref,
    conjuncts,
)
from variantlake.expressions.typing import common_type, compare, type_of
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.shredding.arrays import bools_of
from variantlake.shredding.fit import raws_of

MAX_OPTIONS = 256
"""The most values for a list of values; more become RANGES ranges."""

RANGES = 64
PAIRS = 1 << 20
"""About how many pairs of rows to make at a time, in a join without keys."""


@dataclass(frozen=True, slots=True)
class Key:
    """`target = source`, each an expression over its own side's columns; `null_safe` for `<=>`."""

    target: Expression
    source: Expression
    null_safe: bool


def check_key_types(refs: Sequence[Ref]) -> None:
    """Refuse a key with a part that cannot be compared.

    Raises InvalidQuery for a Variant, else UnsupportedFeature.
    """
    for ref in refs:
        if ref.type == "variant":
            raise InvalidQuery(
                f"{ref} cannot be a key: it is a Variant", hint=f"give it a type: {ref}::string"
            )
        compare("=", ref, ref)


def split_condition(on: Predicate, target: str, source: str) -> tuple[list[Key], list[Predicate]]:
    """Split a condition into its equalities between the two sides and its other conjuncts."""
    keys, rest = list[Key](), list[Predicate]()
    for part in conjuncts(on):
        if isinstance(part, Compare) and part.op in ("=", "<=>"):
            left, right = part.left, part.right
            if sides_of(left) == {source}:
                left, right = right, left
            if sides_of(left) == {target} and sides_of(right) == {source}:
                keys.append(Key(left, right, null_safe=part.op == "<=>"))
                continue
        rest.append(part)
    return keys, rest


class KeyJoin:
    """Finds the source's rows by the values of their keys; without keys, all rows match.

    `codes` number the distinct keys of the source's rows; -1 for a key that matches nothing.
    """

    def __init__(self, keys: Sequence[Key], source: Sequence[Values], rows: int) -> None:
        self._rows = rows
        self._entries: list[tuple[Key, Any]] = []
        self._steps: list[Any] = []
        codes = np.zeros(rows, np.int64)
        for key, values in zip(keys, source, strict=True):
            array = _normal(values.array)
            entries = pc.unique(array)
            self._entries.append((key, entries))
            own = _codes(array, entries, null_safe=key.null_safe)
            combined = np.where((own < 0) | (codes < 0), -1, codes * len(entries) + own)
            known = np.unique(combined[combined >= 0])
            self._steps.append(known)
            codes = np.where(combined < 0, -1, np.searchsorted(known, combined))
        self._order = np.flatnonzero(codes >= 0)
        self._order = self._order[np.argsort(codes[self._order], kind="stable")]
        self._count = np.bincount(codes[codes >= 0])
        self._first = np.concatenate([[0], np.cumsum(self._count)])
        self.codes = codes

    def pairs(self, target: Sequence[Values], kept: Bools) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield the numbers of the table's `kept` rows with those of the source that match them."""
        if not self._entries:
            rows = np.flatnonzero(kept)
            step = max(1, PAIRS // max(self._rows, 1))
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                yield np.repeat(part, self._rows), np.tile(np.arange(self._rows), len(part))
            return
        codes = np.where(kept, 0, -1)
        for (key, entries), known, values in zip(self._entries, self._steps, target, strict=True):
            own = _codes(_normal(values.array), entries, null_safe=key.null_safe)
            combined = np.where((own < 0) | (codes < 0), -1, codes * len(entries) + own)
            places = np.minimum(np.searchsorted(known, combined), max(len(known) - 1, 0))
            there = (combined >= 0) & (len(known) > 0)
            there[there] = known[places[there]] == combined[there]
            codes = np.where(there, places, -1)
        hits = np.flatnonzero(codes >= 0)
        if not len(hits):
            return
        counts = self._count[codes[hits]]
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        yield (
            np.repeat(hits, counts),
            self._order[np.repeat(self._first[codes[hits]], counts) + within],
        )

    def bounds(self) -> list[Predicate]:
        """Return predicates, by the table's names, that all rows with a match fulfil."""
        return [
            each for key, entries in self._entries if (each := _bound(key, entries)) is not None
        ]


def _normal(array: Any) -> Any:
    """Make values equal exactly if Spark finds them equal: floats become numbers of their order."""
    kind = array.type.value_type if isinstance(array, pa.DictionaryArray) else array.type
    if not pa.types.is_floating(kind):
        return array
    array = plain(array)
    return pa.array(ordered(array), mask=np.asarray(array.is_null()))


def _codes(array: Any, entries: Any, *, null_safe: bool) -> Int64s:
    """Return each value's index in `entries`, -1 for none. NULL has one only if `null_safe`."""
    entries = plain(entries)

    def of(values: Any) -> Any:
        return pc.index_in(values, entries.cast(values.type), skip_nulls=True)

    codes: Int64s = np.asarray(of_entries(array, of).fill_null(-1), np.int64)
    if null_safe:
        place = pc.index_in(pa.nulls(1, entries.type), entries)[0].as_py()
        null = of_entries(array, pc.is_null).fill_null(True)
        codes[bools_of(null)] = -1 if place is None else place
    return codes


def _bound(key: Key, entries: Any) -> Predicate | None:
    inner, type_ = key.target, type_of(key.target)
    if isinstance(inner, Call) and inner.function == "cast":
        (inner,) = inner.arguments
        own = type_of(inner)
        # With a cast that changes values, as of 1.5 to an integer, rows outside the bound match.
        if own is None or type_ is None or common_type(own, type_) != type_:
            return None
    if not isinstance(inner, Ref) or type_ is None or pa.types.is_floating(type_.arrow):
        return None
    ref, values = in_table(inner), plain(entries).drop_null()
    raws: list[Any] = list(raws_of(values.take(pc.sort_indices(values))))
    name = type_.ddl.lower()
    literals = [
        Literal(raw.decode() if isinstance(raw, bytes) and name == "string" else raw, name)
        for raw in raws
    ]
    bound = _within(ref, literals)
    return Or((bound, IsNull(ref))) if key.null_safe and entries.null_count else bound


def _within(ref: Ref, values: Sequence[Literal]) -> Predicate:
    """Return the predicate for one of these sorted values, or for ranges that contain them all."""
    if len(values) <= MAX_OPTIONS:
        return In(ref, tuple(values)) if values else Or(())
    cuts = [len(values) * number // RANGES for number in range(RANGES + 1)]
    ranges = ((values[low], values[high - 1]) for low, high in pairwise(cuts))
    return Or(
        tuple(And((Compare(">=", ref, low), Compare("<=", ref, high))) for low, high in ranges)
    )
