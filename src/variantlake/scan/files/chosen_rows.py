"""Find the rows that fulfil a condition, with few evaluations.

The condition is evaluated once for a stretch or a combination of rows with equal values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

from variantlake.errors import InvalidValue
from variantlake.expressions.rows import Truth, of_refs, truth_of
from variantlake.expressions.tree import Call, Expression, Predicate, below, refs
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.planning.files import ScanFile
from variantlake.scan.files.combinations import Combinations
from variantlake.scan.files.file_rows import Rows
from variantlake.scan.files.several_files import JoinedRows
from variantlake.scan.files.stretches import Stretches

R = TypeVar("R", Rows, JoinedRows, Rows | JoinedRows)


def rows_that_fulfil(
    where: Predicate | None, groups: Iterable[R], limit: int | None = None
) -> Iterator[R]:
    """Yield the rows of row groups that fulfil a condition, at most `limit`; none is empty.

    Raises InvalidValue.
    """
    left = limit
    for rows in groups:
        chosen = chosen_rows(where, rows, left)
        if chosen.any():
            yield rows if chosen.all() else rows.only(chosen)
            left = None if left is None else left - int(chosen.sum())
        if left == 0:
            return


def chosen_rows(where: Predicate | None, rows: Rows | JoinedRows, most: int | None = None) -> Bools:
    """Mark the rows that are not deleted and fulfil a condition, at most the first `most`.

    Raises InvalidValue for a failed row, unless it comes after `most` such rows.
    """
    if where is None:
        return _first(rows.kept, most)
    alike = rows.alike(refs(where))
    if alike is not None:
        truth = truth_of(where, of_refs(alike.columns.__getitem__), alike.count)
        if not truth.failed.any():
            return _first(alike.only(truth.true, rows.kept), most)
    truth = truth_of(where, of_refs(rows.values), rows.count)
    found = _first(truth.true & rows.kept, most)
    if most is not None and found.sum() == most:
        # Spark does not evaluate the rows after the last one that it returns.
        end = int(np.flatnonzero(found)[-1]) + 1
        _true(Truth(truth.flags[:end]), rows.kept[:end], where)
        return found
    return _true(truth, rows.kept, where)


def chosen_alike(where: Predicate | None, alike: Stretches | Combinations, kept: Bools) -> Bools:
    """Mark the stretches or combinations that fulfil a condition.

    Raises InvalidValue for a failed one that has a `kept` row.
    """
    if where is None:
        return np.ones(alike.count, np.bool_)
    truth = truth_of(where, of_refs(alike.columns.__getitem__), alike.count)
    if not truth.failed.any():
        return truth.true
    return _true(truth, alike.rows(kept) > 0, where)


def _first(rows: Bools, most: int | None) -> Bools:
    """The first `most` of the marked rows."""
    return rows if most is None else rows & (np.cumsum(rows) <= most)


def _true(truth: Truth, kept: Bools, predicate: Predicate) -> Bools:
    if (truth.failed & kept).any():
        raise cast_error(predicate, None)
    return truth.true & kept


def cast_error(what: Expression, file: ScanFile | None) -> InvalidValue:
    """Make the error for a value for which Spark's cast or arithmetic raises one."""
    hint, how = "try_cast and try_variant_get give NULL instead", "cast"
    if any(isinstance(part, Call) and part.function != "cast" for part in below(what)):
        how = "cast or computed"
        hint += "; cast numbers to a larger type, and divide by NULLIF of zero"
    return InvalidValue(
        f"a value cannot be {how}: {what}", file="" if file is None else file.path, hint=hint
    )
