"""A query of one table, resolved and typed: what the engine runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from variantlake.engine.expressions import Aggregate, Column, Expression, below
from variantlake.planning.predicates import Predicate


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a result."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Ordering:
    """One term of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Query:
    """`SELECT outputs FROM the table WHERE … GROUP BY keys HAVING … ORDER BY … LIMIT …`.

    `keys` is None where rows are not grouped; no keys make one group of all rows. Expressions above
    a grouping are made of its keys, of aggregates and of constants.
    """

    outputs: tuple[Output, ...]
    where: Predicate | None = None
    keys: tuple[Expression, ...] | None = None
    having: Expression | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The different aggregates, in the order of the text."""
        found = [part for each in self._above() for part in below(each)]
        return tuple(dict.fromkeys(part for part in found if isinstance(part, Aggregate)))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns and paths that the query reads beside its condition."""
        found = [part for each in (*(self.keys or ()), *self._above()) for part in below(each)]
        return tuple(dict.fromkeys(part for part in found if isinstance(part, Column)))

    def _above(self) -> list[Expression]:
        having = [] if self.having is None else [self.having]
        return [
            *(output.expression for output in self.outputs),
            *having,
            *(term.expression for term in self.order),
        ]
