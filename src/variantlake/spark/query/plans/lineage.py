"""Maps expression ids of an analysed plan to the table columns that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from variantlake.spark.query.plans.catalyst import Node


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """A column of the table that the query reads through `view`."""

    view: str
    column: str


@dataclass(slots=True)
class Lineage:
    """Expression ids, followed through renaming projections and CTEs.

    `sources` are ids that stand for a table's column, unchanged in every row. `computed` are ids of
    deterministic expressions of projections; the expression may replace the id.
    """

    views: Mapping[str, str]
    sources: dict[int, ColumnSource] = field(default_factory=dict)
    computed: dict[int, Node] = field(default_factory=dict)
    definitions: dict[str, Node] = field(default_factory=dict)

    def source(self, node: Node) -> ColumnSource | None:
        """Return the column that a reference means, also one of an outer query; None for others."""
        if node.name in ("AttributeReference", "OuterReference"):
            return self.sources.get(node.expr_id)
        return None

    def learn(self, plan: Node) -> None:
        """Record the expression ids of a plan and of its subqueries."""
        for child in plan.children:
            self.learn(child)
        self._learn_operator(plan)
        for expression in plan.expressions:
            for node in expression.walk_expression():
                if node.plan is not None:
                    self.learn(node.plan)

    def _learn_operator(self, plan: Node) -> None:
        view = view_of(plan, self.views)
        if view is not None:
            for expr_id, name in plan.output:
                self.sources[expr_id] = ColumnSource(view, name)
        elif plan.name == "Project":
            for item in plan.expressions:
                if item.name == "Alias":
                    self._same(item.expr_id, item.children[0])
        elif plan.name == "CTERelationDef":
            self.definitions[plan.arguments["id"]] = plan.children[0]
        elif plan.name == "CTERelationRef":
            definition = self.definitions.get(plan.arguments["cteId"])
            if definition is not None and len(definition.output) == len(plan.output):
                for (expr_id, _), (inner, _) in zip(plan.output, definition.output, strict=True):
                    if inner in self.sources:
                        self.sources[expr_id] = self.sources[inner]
                    elif inner in self.computed:
                        self.computed[expr_id] = self.computed[inner]

    def _same(self, expr_id: int, node: Node) -> None:
        source = self.source(node)
        if source is not None:
            self.sources[expr_id] = source
        elif node.name == "AttributeReference" and node.expr_id in self.computed:
            self.computed[expr_id] = self.computed[node.expr_id]
        elif node.deterministic:
            self.computed[expr_id] = node


def view_of(plan: Node, views: Mapping[str, str]) -> str | None:
    """Return the view of ours that a SubqueryAlias names; None for any other operator."""
    if plan.name != "SubqueryAlias":
        return None
    return views.get(plan.arguments["identifier"])
