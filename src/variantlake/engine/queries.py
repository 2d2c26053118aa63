"""A query of one table, resolved and typed: what the engine runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from variantlake.expressions.tree import Aggregate, Expression, Predicate, Ref, below
from variantlake.planning.stats.exact_facts import LogAggregate


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
    """`SELECT outputs FROM the table WHERE … GROUP BY keys HAVING … ORDER BY … LIMIT … OFFSET …`.

    `keys` is None if rows are not grouped; no keys make one group of all rows. Expressions over
    groups consist of keys, aggregates and constants. `limit` includes the first `skip` rows, which
    are not returned.
    """

    outputs: tuple[Output, ...]
    where: Predicate | None = None
    keys: tuple[Expression, ...] | None = None
    having: Expression | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    skip: int = 0

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The distinct aggregates, in the order of the text."""
        found = [part for each in self._above() for part in below(each)]
        return tuple(dict.fromkeys(part for part in found if isinstance(part, Aggregate)))

    @cached_property
    def columns(self) -> tuple[Ref, ...]:
        """The columns and paths that the query reads, apart from its condition."""
        found = [part for each in (*(self.keys or ()), *self._above()) for part in below(each)]
        return tuple(dict.fromkeys(part for part in found if isinstance(part, Ref)))

    def _above(self) -> list[Expression]:
        having = [] if self.having is None else [self.having]
        return [
            *(output.expression for output in self.outputs),
            *having,
            *(term.expression for term in self.order),
        ]


def asked_of_log(
    keys: Sequence[Expression], aggregates: Sequence[Aggregate], stored: Callable[[Ref], Ref]
) -> tuple[list[LogAggregate], list[Ref]] | None:
    """The aggregates and keys that the log would have to answer for; None if it never can.

    `stored` gives a column or path by the names that files use.
    """
    asked = []
    for each in aggregates:
        if each.function not in ("count", "min", "max") or each.distinct:
            return None
        if each.argument is None:
            asked.append(LogAggregate("count"))
        elif isinstance(each.argument, Ref):
            asked.append(LogAggregate(each.function, stored(each.argument)))
        else:
            return None
    columns = [stored(key) for key in keys if isinstance(key, Ref)]
    return (asked, columns) if len(columns) == len(keys) else None
