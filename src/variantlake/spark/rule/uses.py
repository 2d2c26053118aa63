"""Finds the paths that an optimized plan reads of each table, and the expressions that read them.

The rule replaces each of these expressions by a column. It carries the paths of a Variant through
operators that only pass on or drop the rows of their input. Every other use of a Variant needs the
whole Variant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from variantlake.expressions.tree import PRESENCE, Ref
from variantlake.expressions.typing import spark_type
from variantlake.paths import Path
from variantlake.spark.query.plans.catalyst import VARIANT, Node
from variantlake.spark.query.plans.lineage import ColumnSource, Lineage, view_of
from variantlake.spark.query.plans.predicates import conjuncts, variant_request

_PASSING = frozenset(
    {
        "Aggregate", "Filter", "GlobalLimit", "Join", "LocalLimit", "Offset", "Project",
        "RebalancePartitions", "Repartition", "RepartitionByExpression", "Sample", "Sort", "Window",
    }
)  # fmt: skip
"""Operators that read their input only through their expressions, and that still work if their
input has more or fewer columns."""

_NEED_VALUES = frozenset(
    {
        "Contains", "EndsWith", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "In", "IsNotNull",
        "LessThan", "LessThanOrEqual", "Like", "StartsWith",
    }
)  # fmt: skip
"""Conditions that are never true if their first operand is NULL, or the second of a comparison."""


@dataclass(slots=True)
class PlanUses:
    """What a plan reads.

    `paths` are extractions and tests for NULL, by their numbers in the plan. `whole` are columns of
    any type that the plan needs as they are. `implied` are conditions `variant IS NOT NULL` that
    follow from other conditions, by their numbers, each with its Variant.
    """

    paths: dict[int, tuple[ColumnSource, Ref]] = field(default_factory=dict)
    whole: set[ColumnSource] = field(default_factory=set)
    implied: dict[int, ColumnSource] = field(default_factory=dict)

    @property
    def sources(self) -> set[ColumnSource]:
        """All columns that the plan reads."""
        return self.whole | {source for source, _ in self.paths.values()}

    def of(self, view: str) -> Iterator[tuple[int, Ref]]:
        """Yield the paths into those columns of a view that the plan reads only by paths."""
        for number, (source, ref) in self.paths.items():
            if source.view == view and source not in self.whole:
                yield number, ref


def read_uses(plan: Node, lineage: Lineage) -> PlanUses:
    """Find what `plan` reads of the tables in its `lineage`; its expressions must have numbers."""
    reading = _UseReading(lineage)
    reading.visit(plan)
    reading.need_output(plan)
    return reading.uses


class _UseReading:
    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self.uses = PlanUses()

    def need_output(self, plan: Node) -> None:
        """Mark all output columns of a plan as needed whole."""
        sources = self._lineage.sources
        self.uses.whole.update(sources[each] for each, _ in plan.output if each in sources)

    def visit(self, plan: Node) -> None:
        """Collect what the operators of a plan read, apart from its output."""
        if view_of(plan, self._lineage.views) is not None:
            return
        for child in plan.children:
            self.visit(child)
            if plan.name not in _PASSING and plan.name != "Expand":
                self.need_output(child)
        if not plan.children:
            self.need_output(plan)  # a reference to a common table reads its definition's columns
        for expression in _expanded(plan) if plan.name == "Expand" else plan.expressions:
            if plan.name == "Filter":
                self._condition(expression)
            elif plan.name != "Project" or not self._passes(expression):
                self._expression(expression)

    def _passes(self, item: Node) -> bool:
        inner = item.children[0] if item.name == "Alias" else item
        return inner.name == "AttributeReference" and self._lineage.source(inner) is not None

    def _condition(self, condition: Node) -> None:
        """Collect a condition, except for an `event IS NOT NULL` that its other parts imply.

        Spark adds such tests itself; each would read one column more.
        """
        parts = list(conjuncts(condition))
        present = {source for part in parts for source in self._present(part)}
        for part in parts:
            tested = self._tested(part) if part.name == "IsNotNull" else None
            if tested is not None and tested in present:
                self.uses.implied[part.number] = tested
            else:
                self._expression(part)

    def _present(self, part: Node) -> Iterator[ColumnSource]:
        """Yield the Variants that cannot be NULL in a row that meets this condition on a path."""
        if part.name not in _NEED_VALUES:
            operands: tuple[Node, ...] = (part,)  # a boolean path is itself a condition
        else:
            operands = part.children[:1] if part.name == "In" else part.children
        for operand in operands:
            request = variant_request(operand, self._lineage)
            if request is not None:
                yield ColumnSource(request[0], request[1].column[0])

    def _tested(self, node: Node) -> ColumnSource | None:
        """Return the Variant that a test for NULL checks; None if it checks anything else."""
        (child,) = node.children
        is_column = child.name == "AttributeReference" and child.type == VARIANT
        return self._lineage.source(child) if is_column else None

    def _expression(self, node: Node) -> None:
        source = self._lineage.source(node)
        if source is not None:
            self.uses.whole.add(source)
            return
        if node.name in ("IsNull", "IsNotNull"):
            tested = self._tested(node)
            if tested is not None:
                self.uses.paths[node.number] = tested, Ref((tested.column,), Path(), PRESENCE)
                return
        request = variant_request(node, self._lineage)
        if request is not None and _is_column(node) and spark_type(request[1].type) is not None:
            view, ref = request
            self.uses.paths[node.number] = ColumnSource(view, ref.column[0]), ref
            return
        if node.plan is not None:
            self.visit(node.plan)
            if node.name != "Exists":
                self.need_output(node.plan)
        for child in node.children:
            self._expression(child)


def _expanded(plan: Node) -> Iterator[Node]:
    """Yield the expressions that an Expand (ROLLUP, CUBE) computes, without columns it passes on.

    The plan's expressions are one projection after the other, then the output columns.
    """
    width = len(plan.output)
    for at, (expr_id, _) in enumerate(plan.output):
        column = plan.expressions[at:-width:width]
        if any(each.name != "AttributeReference" or each.expr_id != expr_id for each in column):
            yield from column


def _is_column(request: Node) -> bool:
    """Whether the request reads a column of this plan, and not one of an outer query."""
    while request.children:
        request = request.children[0]
    return request.name == "AttributeReference"
