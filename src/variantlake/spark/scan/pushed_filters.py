"""Repeats conditions on ordinary columns by the names in files, so that Spark pushes them down.

Spark pushes a condition into Parquet only if it is on a bare column. It pushes nothing through the
cast above a struct with renamed fields (column mapping), and the scan hides floats from it. The
same condition below, by the names in files, skips row groups and pages. The user's stays above.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from variantlake.expressions.spark_sql import condition_sql
from variantlake.expressions.tree import (
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
    refs,
)
from variantlake.expressions.typing import spark_type, type_of, type_text
from variantlake.planning.exact.moved_literals import may_move
from variantlake.types import Kind


def pushed_sql(conjunct: Predicate, columns: Collection[str]) -> str | None:
    """Return the condition as Spark SQL over `columns` and their fields, by the names in files.

    None if it reads anything else, or compares values of several types. A condition on floats
    qualifies only if NaN does not meet it and it compares with no zero: Parquet's statistics leave
    NaN out, and its dictionaries have two zeros (EXACTNESS, rule 8). `x > c` and `x <> c` do not
    qualify: NaN meets them, and no row group's statistics show it.
    """
    return condition_sql(conjunct, {}) if _is_pushable(conjunct, columns) else None


def _is_pushable(node: Predicate, columns: Collection[str]) -> bool:
    match node:
        case And(terms) | Or(terms):
            return bool(terms) and all(_is_pushable(term, columns) for term in terms)
        case IsNull(operand) | Not(IsNull(operand)) | StartsWith(operand):
            return _are_pushable((operand,), columns)
        case Not(term):
            return not any(map(is_floating, refs(term))) and _is_pushable(term, columns)
        case Compare(op, left, right):
            return _are_pushable((left, right), columns) and (
                not is_floating(left) or (op, isinstance(left, Ref)) in _WITHOUT_NAN
            )
        case In(operand, options):
            return _are_pushable((operand, *options), columns)
        case _:
            return False


_WITHOUT_NAN = frozenset(
    {("=", True), ("=", False), ("<", True), ("<=", True), (">", False), (">=", False)}
)
"""Comparisons with a constant that NaN, the greatest of all floats, never meets, each with whether
the column is on the left. Spark never pushes a comparison of two columns."""


def _are_pushable(operands: Collection[Expression], columns: Collection[str]) -> bool:
    (type_, *others) = {type_text(operand) for operand in operands}
    kind = spark_type(type_)
    return (
        not others
        and kind is not None
        and kind.kind is not Kind.BINARY
        and all(_is_plain(operand, columns) for operand in operands)
    )


def is_floating(expression: Expression) -> bool:
    """Whether an expression has a floating type, with NaN and two zeros."""
    type_ = type_of(expression)
    return type_ is not None and type_.kind in (Kind.FLOAT, Kind.DOUBLE)


def _is_plain(operand: Expression, columns: Collection[str]) -> bool:
    """Whether an operand is one of the columns, or a constant that Spark pushes exactly.

    Such a constant is no NaN, no floating zero, and no date or instant that Spark may move
    (EXACTNESS, rule 39).
    """
    if isinstance(operand, Ref):
        return operand.path is None and operand.column[0] in columns
    if not isinstance(operand, Literal):
        return False
    value = operand.value
    if isinstance(value, float):
        return not math.isnan(value) and value != 0
    return not may_move(operand)
