"""Conditions on ordinary columns, said again of the columns as files name them.

Spark pushes a condition into Parquet where it stands on a bare column. Above a struct whose fields
were renamed (column mapping) there is a cast, through which it pushes nothing, and floats are
hidden from it. The same condition below that, on the files' own names, skips row groups and pages;
the user's stays above it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from decimal import Decimal

from variantlake.expressions.tree import (
    And,
    Compare,
    In,
    IsNull,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Ref,
    StartsWith,
    refs,
)
from variantlake.expressions.typing import spark_type
from variantlake.planning.exact.moved_literals import may_move
from variantlake.quoting import quote_identifier
from variantlake.types import Kind


def pushed_sql(conjunct: Predicate, columns: Collection[str]) -> str | None:
    """The condition as Spark SQL over `columns` and their fields, by the names in files.

    None where it is about anything else, or compares values of several types. Of conditions on
    floats those alone are said that NaN does not fulfil, and that compare with no zero: Parquet's
    statistics leave NaN out, and its dictionaries know two zeros (EXACTNESS, rule 8). `x > c` and
    `x <> c` imply nothing that could be said: NaN fulfils them, and is seen in no row group.
    """
    return condition_sql(conjunct, {}) if _is_pushable(conjunct, columns) else None


def condition_sql(node: Predicate, texts: Mapping[Ref, str]) -> str:
    """The condition as Spark SQL. `texts` are what some of its Refs are written as.

    All others are ordinary columns, by their names. Raises TypeError for an Unknown.
    """

    def operand(part: Operand) -> str:
        return texts.get(part) or _operand(part) if isinstance(part, Ref) else _operand(part)

    match node:
        case And(terms):
            return f"({' AND '.join(condition_sql(term, texts) for term in terms)})"
        case Or(terms):
            return f"({' OR '.join(condition_sql(term, texts) for term in terms)})"
        case Not(IsNull(ref)):
            return f"({operand(ref)} IS NOT NULL)"
        case Not(term):
            return f"(NOT {condition_sql(term, texts)})"
        case IsNull(ref):
            return f"({operand(ref)} IS NULL)"
        case StartsWith(ref, prefix):
            return f"startswith({operand(ref)}, {Literal(prefix, 'string')})"
        case Compare(op, left, right):
            return f"({operand(left)} {op} {operand(right)})"
        case In(ref, options):
            # A list may not be empty.
            return f"({operand(ref)} IN ({', '.join(map(_operand, options)) or 'NULL'}))"
    raise TypeError(f"{node} cannot be written as SQL")


def _is_pushable(node: Predicate, columns: Collection[str]) -> bool:
    match node:
        case And(terms) | Or(terms):
            return bool(terms) and all(_is_pushable(term, columns) for term in terms)
        case IsNull(ref) | Not(IsNull(ref)) | StartsWith(ref):
            return _are_pushable((ref,), columns)
        case Not(term):
            return not any(map(_is_float, refs(term))) and _is_pushable(term, columns)
        case Compare(op, left, right):
            return _are_pushable((left, right), columns) and (
                not _is_float(left) or (op, isinstance(left, Ref)) in _WITHOUT_NAN
            )
        case In(ref, options):
            return _are_pushable((ref, *options), columns)
        case _:
            return False


_WITHOUT_NAN = frozenset(
    {("=", True), ("=", False), ("<", True), ("<=", True), (">", False), (">=", False)}
)
"""Comparisons with a constant that NaN, the greatest of all floats, never fulfils; is the column on
the left? Those of two columns Spark never pushes."""


def _are_pushable(operands: Collection[Operand], columns: Collection[str]) -> bool:
    (type_, *others) = {operand.type for operand in operands}
    kind = spark_type(type_)
    return (
        not others
        and kind is not None
        and kind.kind is not Kind.BINARY
        and all(
            _is_plain(operand)
            if isinstance(operand, Literal)
            else operand.path is None and operand.column[0] in columns
            for operand in operands
        )
    )


def _is_float(operand: Operand) -> bool:
    kind = spark_type(operand.type)
    return kind is not None and kind.kind in (Kind.FLOAT, Kind.DOUBLE)


def _is_plain(literal: Literal) -> bool:
    """Not NaN and no zero, and no date or instant that Spark may move (EXACTNESS, rule 39)."""
    value = literal.value
    if isinstance(value, float):
        return not math.isnan(value) and value != 0
    return not may_move(literal)


def _operand(operand: Operand) -> str:
    if isinstance(operand, Ref):
        # The column's own type mostly, and then no cast at all.
        return f"CAST({'.'.join(map(quote_identifier, operand.column))} AS {operand.type})"
    # A number's own text may be of another type: 1 is an INT, 1.5 a DECIMAL(2,1).
    return f"CAST('{operand.value}' AS {operand.type})" if _is_number(operand) else str(operand)


def _is_number(literal: Literal) -> bool:
    return isinstance(literal.value, int | float | Decimal) and literal.type.startswith(_NUMBERS)


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
