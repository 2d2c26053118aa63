"""Write conditions as Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

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
)
from variantlake.quoting import quote_identifier


def condition_sql(node: Predicate, texts: Mapping[Ref, str]) -> str:
    """Write a condition as Spark SQL. `texts` gives the text of some of its Refs.

    The other Refs are written as columns, by their names. Raises TypeError for an Unknown.
    """

    def operand(part: Expression) -> str:
        return (texts.get(part) if isinstance(part, Ref) else None) or _operand(part)

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
            # SQL allows no empty list.
            return f"({operand(ref)} IN ({', '.join(map(_operand, options)) or 'NULL'}))"
    raise TypeError(f"{node} cannot be written as SQL")


def _operand(operand: Expression) -> str:
    if isinstance(operand, Ref):
        # This is mostly the column's own type, so Spark casts nothing.
        return f"CAST({'.'.join(map(quote_identifier, operand.column))} AS {operand.type})"
    if not isinstance(operand, Literal):
        raise TypeError(f"{operand} cannot be written as SQL")
    # A number's own text may be of another type: 1 is an INT, 1.5 a DECIMAL(2,1).
    return f"CAST('{operand.value}' AS {operand.type})" if _is_number(operand) else str(operand)


def _is_number(literal: Literal) -> bool:
    return isinstance(literal.value, int | float | Decimal) and literal.type.startswith(_NUMBERS)


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
