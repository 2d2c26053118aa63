"""Finds the LIMITs of a query over the rows of a single table.

Filters, projections, a sort, and common tables that are read once may be between the LIMIT and its
table. For a LIMIT over anything else (joins, aggregates, windows) Spark needs all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from variantlake.planning.stats.first_rows import FirstRows, Order
from variantlake.spark.query.plans.catalyst import Node
from variantlake.spark.query.plans.lineage import Lineage, view_of
from variantlake.spark.query.plans.predicates import Conditions

_PASSING = frozenset({"Filter", "Project"})
"""Operators that keep the order of their input, and at most drop rows by a condition."""


def first_rows(plan: Node, lineage: Lineage, text: str) -> dict[str, FirstRows]:
    """Return the rows that a LIMIT needs of each view, by view.

    A view that is read twice, or through more than one LIMIT, has no entry. `lineage` is that of
    `plan`, `text` is the query's SQL.
    """
    nodes = list(plan.walk())
    read = Counter(view for node in nodes if (view := view_of(node, lineage.views)) is not None)
    ctes = Counter(node.arguments["cteId"] for node in nodes if node.name == "CTERelationRef")
    once = {cte: lineage.definitions[cte] for cte in ctes if cte in lineage.definitions}
    once = {cte: definition for cte, definition in once.items() if ctes[cte] == 1}
    found: dict[str, list[FirstRows]] = {}
    for node in nodes:
        if node.name != "GlobalLimit":
            continue
        limit = _Limit(lineage, text, once).read(node)
        if limit is not None:
            found.setdefault(limit[0], []).append(limit[1])
    return {
        view: limits[0] for view, limits in found.items() if len(limits) == 1 and read[view] == 1
    }


@dataclass(frozen=True, slots=True)
class _Limit:
    _lineage: Lineage
    _text: str
    _once: Mapping[str, Node]
    """The definitions of common tables that are read once."""

    def read(self, node: Node) -> tuple[str, FirstRows] | None:
        """Return the view below a LIMIT, and its rows that the LIMIT needs; None if unknown."""
        sort, view = None, None
        counts, all_rows = [_constant(node)], True
        for below in self._below(node):
            if below.name == "Offset":
                if not all_rows:
                    return None  # OFFSET would skip rows before a filter or sort
                counts.append(_constant(below))
            elif below.name == "Sort":
                if below.arguments["global"] != "true":
                    return None
                sort = sort or below
            all_rows &= below.name not in ("Filter", "Sort")
            view = view_of(below, self._lineage.views)
        if view is None or None in counts:
            return None
        rows = sum(count or 0 for count in counts)
        if sort is None:
            return view, FirstRows(rows)
        order = self._order(sort.expressions, view)
        return None if order is None else (view, FirstRows(rows, order))

    def _below(self, node: Node) -> Iterator[Node]:
        """Yield the operators below a LIMIT, down to a view or to one that the LIMIT cannot pass.

        The last one is a view only if the LIMIT passes all operators above it.
        """
        (node,) = node.children
        while True:
            yield node
            if view_of(node, self._lineage.views) is not None:
                return
            if node.name == "CTERelationRef":
                definition = self._once.get(node.arguments["cteId"])
                if definition is None:
                    return
                node = definition
            elif node.name in (*_PASSING, "LocalLimit", "Offset", "Sort"):
                if node.name == "Project" and not all(e.deterministic for e in node.expressions):
                    return
                (node,) = node.children
            else:
                return

    def _order(self, terms: Sequence[Node], view: str) -> Order | None:
        """Return the first term of a sort; None if it is not a column or path of the view."""
        term = terms[0]
        if term.name != "SortOrder":
            return None
        key = term.children[0]
        ref = Conditions(view, self._lineage, self._text).operand(key)
        if ref is None or ref.type != key.type:
            return None
        return Order(
            ref,
            descending=term.arguments["direction"] == "Descending",
            nulls_first=term.arguments["nullOrdering"] == "NullsFirst",
            sole=len(terms) == 1,
        )


def _constant(limit: Node) -> int | None:
    """Return the row count of a LIMIT or an OFFSET; None if it is not a constant."""
    (count,) = limit.expressions
    return int(count.folded) if isinstance(count.folded, str) else None
