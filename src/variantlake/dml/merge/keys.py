"""The join of a MERGE: equalities between the two sides, by codes of the source's values.

What a row of the table must hold to match is also asked of files: as a list of values, or as ranges
that hold all of them.
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
"""Values that files are asked for one by one; more are asked as RANGES ranges."""

RANGES = 64
PAIRS = 1 << 20
"""Pairs of rows that are made at a time."""


@dataclass(frozen=True, slots=True)
class Key:
    """`target = source`, each over columns of its own side; `null_safe` for `<=>`."""

    target: Expression
    source: Expression
    null_safe: bool


def check_key_types(refs: Sequence[Ref]) -> None:
    """Refuse a part of a key that cannot be compared.

    Raises InvalidQuery for a Variant, else UnsupportedFeature.
    """
    for ref in refs:
        if ref.type == "variant":
            raise InvalidQuery(
                f"{ref} cannot be a key: it is a Variant", hint=f"give it a type: {ref}::string"
            )
        compare("=", ref, ref)


def split_condition(on: Predicate, target: str, source: str) -> tuple[list[Key], list[Predicate]]:
    """The equalities of a condition, and its other conjuncts; the sides by their names."""
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
    """The source's rows by the values of their keys; without keys each pair of rows is one."""

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
        """Rows of the table, by their numbers, with those of the source that match them."""
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
        """What rows of the table that match any of the source fulfil, by the table's own names."""
        return [
            each for key, entries in self._entries if (each := _bound(key, entries)) is not None
        ]


def _normal(array: Any) -> Any:
    """Values that are equal if Spark's are: doubles by their order."""
    kind = array.type.value_type if isinstance(array, pa.DictionaryArray) else array.type
    if not pa.types.is_floating(kind):
        return array
    array = plain(array)
    return pa.array(ordered(array), mask=np.asarray(array.is_null()))


def _codes(array: Any, entries: Any, *, null_safe: bool) -> Int64s:
    """The entry that each value is; -1 for none of them, and for NULL unless it equals NULL."""
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
        # A cast that changes values, as of 1.5 to an integer, matches rows outside of the bound.
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
    """One of sorted values, or within ranges that hold all of them."""
    if len(values) <= MAX_OPTIONS:
        return In(ref, tuple(values)) if values else Or(())
    cuts = [len(values) * number // RANGES for number in range(RANGES + 1)]
    ranges = ((values[low], values[high - 1]) for low, high in pairwise(cuts))
    return Or(
        tuple(And((Compare(">=", ref, low), Compare("<=", ref, high))) for low, high in ranges)
    )
