"""Conditions on ordinary columns, said again of the columns as files name them.

Spark pushes a condition into Parquet where it stands on a bare column. Above a struct whose fields
were renamed (column mapping) there is a cast, through which it pushes nothing, and floats are
hidden from it. The same condition below that, on the files' own names, skips row groups and pages;
the user's stays above it.
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
    """The condition as Spark SQL over `columns` and their fields, by the names in files.

    None if it is about anything else, or compares values of several types. Of conditions on
    floats those alone are said that NaN does not fulfil, and that compare with no zero: Parquet's
    statistics leave NaN out, and its dictionaries know two zeros (EXACTNESS, rule 8). `x > c` and
    `x <> c` imply nothing that could be said: NaN fulfils them, and is seen in no row group.
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
"""Comparisons with a constant that NaN, the greatest of all floats, never fulfils; is the column on
the left? Those of two columns Spark never pushes."""


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
    """Whether it is of a type with NaN and two zeros."""
    type_ = type_of(expression)
    return type_ is not None and type_.kind in (Kind.FLOAT, Kind.DOUBLE)


def _is_plain(operand: Expression, columns: Collection[str]) -> bool:
    """Whether it is one of the columns, or a constant that Spark pushes exactly.

    That is not NaN and no zero, and no date or instant that Spark may move (EXACTNESS, rule 39).
    """
    if isinstance(operand, Ref):
        return operand.path is None and operand.column[0] in columns
    if not isinstance(operand, Literal):
        return False
    value = operand.value
    if isinstance(value, float):
        return not math.isnan(value) and value != 0
    return not may_move(operand)
