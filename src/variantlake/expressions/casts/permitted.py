"""Casts that a query may write, and those that Spark makes to store a value in a column."""

from __future__ import annotations

from variantlake.expressions.casts.values import BY_VALUE
from variantlake.expressions.tree import Call, Expression
from variantlake.expressions.typing import INT_DIGITS, cast, refused, type_of
from variantlake.types import Kind, ShreddedType


def explicit_cast(expression: Expression, wanted: ShreddedType) -> Expression:
    """`CAST(expression AS wanted)`. Raises UnsupportedFeature for types that only Spark casts."""
    own = type_of(expression)
    if own is not None and (own.kind, wanted.kind) in _EXPLICIT:
        digits = own.precision - own.scale if own.kind is Kind.DECIMAL else 0
        if wanted.kind in INT_DIGITS and digits >= INT_DIGITS[Kind.INT64] - 1:
            raise refused(f"{own.ddl} as {wanted.ddl}")
        return Call("cast", (expression,), wanted)
    return cast(expression, wanted)


def tried_cast(expression: Expression, wanted: ShreddedType) -> Expression:
    """`TRY_CAST(expression AS wanted)`. Raises as `explicit_cast`."""
    found = explicit_cast(expression, wanted)
    is_cast = isinstance(found, Call) and found.arguments == (expression,)
    return Call("try_cast", (expression,), wanted) if is_cast else found


_NUMBERS = (*INT_DIGITS, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)
_CASTS = frozenset(
    {
        *((own, wanted) for own in _NUMBERS for wanted in INT_DIGITS if own is not wanted),
        *((own, Kind.BOOLEAN) for own in INT_DIGITS),
        *((Kind.BOOLEAN, wanted) for wanted in INT_DIGITS),
        *((own, Kind.STRING) for own in (*INT_DIGITS, Kind.BOOLEAN, Kind.DATE)),
        (Kind.DATE, Kind.TIMESTAMP),
        (Kind.TIMESTAMP, Kind.DATE),
    }
)
"""Casts that a user may write in addition to the implicit ones of `typing.cast`, with Arrow."""

_EXPLICIT = _CASTS | BY_VALUE | {(Kind.DECIMAL, Kind.STRING)}

_STORED = frozenset(
    {
        *((own, wanted) for own in INT_DIGITS for wanted in (Kind.FLOAT, Kind.DOUBLE)),
        (Kind.DOUBLE, Kind.FLOAT),
        *(
            (own, wanted)
            for own, wanted in _CASTS
            if Kind.BOOLEAN not in (own, wanted)
            and not (own in INT_DIGITS and wanted in INT_DIGITS)
        ),
        (Kind.BOOLEAN, Kind.STRING),
    }
)
"""Casts that Spark makes to store a value in a column, and that may change the value."""


def stored_as(expression: Expression, wanted: ShreddedType) -> Expression:
    """Cast an expression to a column's type by ANSI's rules of assignment.

    Returns it as it is if no cast of `_STORED` applies. Raises UnsupportedFeature as
    `explicit_cast`.
    """
    own = type_of(expression)
    if own is None or (own.kind, wanted.kind) not in _STORED:
        return expression
    if wanted.kind is Kind.FLOAT:
        return Call("cast", (expression,), wanted)
    return explicit_cast(expression, wanted)
