"""Sort rows as Spark does: NaN is the greatest, strings order by their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.engine.codes import coded, rank
from variantlake.engine.queries import Ordering
from variantlake.expressions.arrays import ordered, valid
from variantlake.expressions.typing import type_of
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.types import Kind, ShreddedType


def in_order(
    terms: Sequence[Ordering], columns: Sequence[Any], rows: int, limit: int | None
) -> Int64s:
    """Sort rows and return the first `limit` of them; equal rows keep their order.

    `columns` are the values of the terms.
    """
    kept = np.arange(rows)
    if not terms:
        return kept[:limit]
    if limit is not None and rows > 4 * limit + 1024:
        kept = _nearest(terms[0], columns[0], limit)
        columns = [column.take(arrow_array(kept)) for column in columns]
    keys: list[Any] = []
    for term, column in zip(terms, columns, strict=True):
        keys += _keys(term, column)
    return kept[np.lexsort(keys[::-1])][:limit]


def _keys(term: Ordering, column: Any) -> list[Int64s]:
    there = valid(column)
    ranks = _ranks(column, type_of(term.expression))
    ranks = np.where(there, ~ranks if term.descending else ranks, 0)
    if there.all():
        return [ranks]
    return [there.astype(np.int64) if term.nulls_first else (~there).astype(np.int64), ranks]


def _nearest(term: Ordering, column: Any, limit: int) -> Int64s:
    """The rows that may be among the first `limit` by the first term, with all ties."""
    if column.null_count or limit == 0:
        if limit and not term.nulls_first and len(column) - column.null_count >= limit:
            there = np.flatnonzero(valid(column))
            return there[_nearest(term, column.take(arrow_array(there)), limit)]
        return np.arange(len(column))
    ranks = _ranks(column, type_of(term.expression))
    ranks = ~ranks if term.descending else ranks
    return np.flatnonzero(ranks <= np.partition(ranks, limit - 1)[limit - 1])


def _ranks(column: Any, type_: ShreddedType | None) -> Int64s:
    """Integers in the order of the values; arbitrary where NULL."""
    if type_ is None or isinstance(column, pa.DictionaryArray):
        return _ranked_entries(column)
    if type_.kind in (Kind.FLOAT, Kind.DOUBLE):
        return ordered(column)
    found = rank(column, type_)
    return _ranked_entries(column) if found is None else found


def _ranked_entries(column: Any) -> Int64s:
    known = coded(column)
    by_value: Any = pc.sort_indices(known.values)
    order = numpy_array(by_value).astype(np.int64)
    places: Int64s = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    if isinstance(column, pa.DictionaryArray):
        # Equal entries have one place.
        alike = known.values.take(by_value).dictionary_encode("encode")
        places[order] = numpy_array(alike.indices).astype(np.int64)
    return places[known.codes]
