"""Run the queries within a query's expressions first, and replace them by constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from variantlake.encoding.scalar import decode_string
from variantlake.engine.queries import Query
from variantlake.errors import InvalidQuery
from variantlake.expressions.tree import Literal, Scalar
from variantlake.expressions.typing import no_char, refused, type_of, type_text, untyped
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.fit import raws_of
from variantlake.types import Kind

MOST_VALUES = 1000
"""The most distinct values that an `IN (SELECT …)` may have."""

RunQuery = Callable[[str, Query], Iterable[pa.RecordBatch]]
"""Runs a query of the named table, and returns its rows."""


class Subqueries:
    """Reads queries by `read`, and runs them by `run`.

    All methods raise InvalidQuery, UnsupportedFeature, and what a query itself raises.
    """

    def __init__(self, read: Callable[[exp.Select], tuple[str, Query]], run: RunQuery) -> None:
        self._read = read
        self._run = run

    def exists(self, node: exp.Expression) -> Literal:
        """TRUE if the query returns a row, else FALSE."""
        batches = self._first(*self._query(node), rows=1)
        return Literal(any(batch.num_rows for batch in batches), "boolean")

    def value(self, node: exp.Expression) -> Literal:
        """The one value that a query returns; NULL of its type if it returns no row."""
        table, query = self._query(node)
        type_ = _type_of_values(query)
        batches = self._first(table, query, rows=2)
        values = [each for batch in batches for each in _scalars(batch.column(0), type_)]
        if len(values) > 1:
            raise InvalidQuery(
                f"{node.sql('databricks')} gives several rows, and stands for one value",
                hint="an aggregate gives one value, and IN takes several",
            )
        return Literal(values[0] if values else None, type_)

    def values(self, node: exp.Expression) -> tuple[Literal, ...]:
        """The distinct values that a query returns, including NULL."""
        table, query = self._query(node)
        type_ = _type_of_values(query)
        found: dict[Scalar | None, None] = {}
        for batch in self._run(table, query):
            found |= dict.fromkeys(_scalars(pc.unique(batch.column(0)), type_))
            if len(found) > MOST_VALUES:
                raise refused(f"an IN of a query with more than {MOST_VALUES} different values")
        return tuple(Literal(value, type_) for value in found)

    def _query(self, node: exp.Expression) -> tuple[str, Query]:
        select = node.unnest()
        if not isinstance(select, exp.Select):
            raise refused(f"{node.sql('databricks')} in an expression")
        select = select.copy()
        for item in select.expressions:
            if not isinstance(item, exp.Alias | exp.Column | exp.Star):
                item.replace(exp.alias_(item.copy(), "value"))  # Spark's name does not matter
        try:
            return self._read(select)
        except InvalidQuery as error:
            # It may refer to columns of the query around it, which Spark supports.
            raise refused(f"{node.sql('databricks')} by itself: {error.message}") from None

    def _first(self, table: str, query: Query, *, rows: int) -> Iterable[pa.RecordBatch]:
        rows += query.skip
        limit = rows if query.limit is None else min(query.limit, rows)
        return self._run(table, replace(query, limit=limit))


def _type_of_values(query: Query) -> str:
    """Spark's name of the type of the one column of a query."""
    if len(query.outputs) != 1:
        raise InvalidQuery(f"a query of {len(query.outputs)} columns stands for values of one")
    expression = query.outputs[0].expression
    type_ = type_of(expression)
    if type_ is None:
        raise untyped("a query that stands for values", expression)
    no_char(expression)
    if type_.kind is Kind.FLOAT:  # no constant has this type
        raise refused("a query of FLOAT that stands for values")
    return type_text(expression)


def _scalars(array: AnyArray, type_: str) -> list[Scalar | None]:
    """The values in the form that constants of a type have."""
    raws: list[Any] = raws_of(array)
    if type_ != "string":
        return raws
    return [None if raw is None else decode_string(raw, 0, len(raw)) for raw in raws]
