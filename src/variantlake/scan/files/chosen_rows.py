"""Which rows fulfil a condition, asked in as few of them as will do.

Of stretches or combinations of rows that are alike the condition is asked once.
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
    """The rows of row groups that fulfil a condition, at most `limit`, without empty ones.

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
    """The rows that are not deleted and fulfil a condition, of these the first `most`.

    Raises InvalidValue for a row before the last of them.
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
        # Spark does not ask the rows behind the last one that it gives.
        end = int(np.flatnonzero(found)[-1]) + 1
        _true(Truth(truth.flags[:end]), rows.kept[:end], where)
        return found
    return _true(truth, rows.kept, where)


def chosen_alike(where: Predicate | None, alike: Stretches | Combinations, kept: Bools) -> Bools:
    """The stretches or combinations that fulfil a condition.

    Raises InvalidValue for one that has a row which is `kept`.
    """
    if where is None:
        return np.ones(alike.count, np.bool_)
    truth = truth_of(where, of_refs(alike.columns.__getitem__), alike.count)
    if not truth.failed.any():
        return truth.true
    return _true(truth, alike.rows(kept) > 0, where)


def _first(rows: Bools, most: int | None) -> Bools:
    """The first of the marked rows."""
    return rows if most is None else rows & (np.cumsum(rows) <= most)


def _true(truth: Truth, kept: Bools, predicate: Predicate) -> Bools:
    if (truth.failed & kept).any():
        raise cast_error(predicate, None)
    return truth.true & kept


def cast_error(what: Expression, file: ScanFile | None) -> InvalidValue:
    """What is raised if Spark's cast or arithmetic raises an error."""
    hint, how = "try_cast and try_variant_get give NULL instead", "cast"
    if any(isinstance(part, Call) and part.function != "cast" for part in below(what)):
        how = "cast or computed"
        hint += "; cast numbers to a larger type, and divide by NULLIF of zero"
    return InvalidValue(
        f"a value cannot be {how}: {what}", file="" if file is None else file.path, hint=hint
    )
