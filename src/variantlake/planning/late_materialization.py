"""Late materialization: find rows on typed columns first, and rebuild only their Variants.

Assembling Variants dominates a query that needs them whole (EXACTNESS, rule 14). If a conjunct
of its condition can be read from typed columns, our kernels first read only those, and then rebuild
the rows for which no conjunct is false or NULL. The engine evaluates the whole condition again on
these rows, so a conjunct that is left out here costs time and never rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from variantlake.expressions.tree import (
    And,
    Compare,
    In,
    IsNull,
    Literal,
    Or,
    Predicate,
    Ref,
    StartsWith,
    refs,
)
from variantlake.expressions.typing import comparison_type, spark_type
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.planning.choose_files import readings_of
from variantlake.planning.exact.readings import Native
from variantlake.planning.files import FileRows
from variantlake.planning.plan import ScanGroup, ScanPlan
from variantlake.planning.stats.skipping import Skipper

MIN_BYTES = 8 << 20
"""From so many bytes on, a group is worth the start of Python workers."""


def plan_late_materialization(
    plan: ScanPlan, partition_types: Mapping[str, str] | None = None
) -> ScanPlan:
    """Add a `prefilter` to the plan, for the files whose rows are better found first.

    From these files a whole Variant is needed, and some conjunct that is likely to drop rows has
    all of its operands in columns. A group that has such files and others is split.
    """
    types = partition_types or {}
    usable = [part for part in plan.conjuncts if _finds_rows(part, types)]
    if not usable or all(group.physical for group in plan.groups):
        return plan
    truths = Skipper(And(tuple(usable)), types).may_fail(plan.table)
    finding = [
        np.logical_and(_in_columns(part, plan), fails)
        for part, fails in zip(usable, truths, strict=True)
    ]
    groups: list[ScanGroup] = []
    for group in plan.groups:
        groups += [group] if group.physical else _split(group, usable, finding)
    return replace(plan, groups=tuple(groups))


def _split(group: ScanGroup, conjuncts: list[Predicate], finding: list[Bools]) -> list[ScanGroup]:
    rows = group.files.rows
    first = np.logical_or.reduce([each[rows] for each in finding])
    late = FileRows(group.files.columns, rows[first])
    # Files that our kernels have to read anyway need no further reason.
    if not len(late) or (late.size < MIN_BYTES and not group.kernels):
        return [group]
    by = tuple(part for part, each in zip(conjuncts, finding, strict=True) if each[late.rows].any())
    rest = FileRows(group.files.columns, rows[~first])
    found = replace(group, files=late, prefilter=by)
    return [found, replace(group, files=rest)] if len(rest) else [found]


def _in_columns(part: Predicate, plan: ScanPlan) -> Bools:
    """The files to read in which every path of the condition is a column, or NULL."""
    found = np.ones(plan.table.rows, np.bool_)
    for ref in refs(part):
        if ref.path is not None:
            readings = readings_of(plan.table, ref, plan.rows)
            native = [isinstance(reading, Native) for reading in readings.choices]
            found &= ~np.array(native, np.bool_)[readings.codes]
    return found


def _finds_rows(part: Predicate, partition_types: Mapping[str, str]) -> bool:
    """Whether the condition can be evaluated without Spark, and is likely to drop most rows.

    A condition on partition values alone has done all it can by skipping files.
    """
    requested = list(refs(part))
    return (
        _is_selective(part)
        and all(_is_readable(ref) for ref in requested)
        and any(ref.column[0] not in partition_types for ref in requested)
    )


def _is_selective(part: Predicate) -> bool:
    match part:
        case And(terms):
            return all(map(_is_known, terms)) and any(map(_is_selective, terms))
        case Or(terms):
            return bool(terms) and all(map(_is_selective, terms))
        case Compare(op):
            return op != "<>" and _is_known(part)
        case In() | StartsWith() | IsNull():
            return _is_known(part)
    return False


def _is_known(part: Predicate) -> bool:
    """Whether the local engine compares as Spark does."""
    match part:
        case Compare(_, Ref() as ref, Literal() as literal) | Compare(
            _, Literal() as literal, Ref() as ref
        ):
            return comparison_type(spark_type(ref.type), (literal,)) is not None
        case In(Ref() as ref, options):
            return comparison_type(spark_type(ref.type), options) is not None
        case StartsWith(Ref() as ref):
            return ref.type == "string"
        case IsNull(Ref()):
            return True
        case And(terms) | Or(terms):
            return all(map(_is_known, terms))
    return False


def _is_readable(ref: Ref) -> bool:
    # Whether a CHAR is padded is a setting of the session.
    return len(ref.column) == 1 and spark_type(ref.type) is not None and not ref.char_length
