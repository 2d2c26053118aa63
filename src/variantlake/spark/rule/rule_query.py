"""A plan of the optimizer, read: what it reads of its tables, and which of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from variantlake.expressions.tree import Predicate, refs
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.spark.query.plans.catalyst import Node
from variantlake.spark.query.plans.limits import first_rows
from variantlake.spark.query.plans.lineage import Lineage, view_of
from variantlake.spark.query.plans.partial_aggregates import partial_aggregates
from variantlake.spark.query.plans.planned import TableUse
from variantlake.spark.query.plans.predicates import Extra, table_predicates
from variantlake.spark.rule.uses import PlanUses, read_uses
from variantlake.spark.scan.pushed_aggregates import PartialAggregate
from variantlake.spark.scan.tables import TableVersion


@dataclass(frozen=True, slots=True)
class RuleQuery:
    """A plan of the optimizer, read."""

    plan: Node
    lineage: Lineage
    text: str
    uses: PlanUses
    predicates: Mapping[str, Predicate | None]
    limits: Mapping[str, FirstRows]
    aggregates: tuple[PartialAggregate, ...]

    @classmethod
    def of(cls, plan: Node, names: Sequence[str], text: str) -> RuleQuery:
        """Read a plan of tables by these names; `text` is the SQL that it is of, for people."""
        lineage = Lineage({name: name for name in names})
        lineage.learn(plan)
        uses = read_uses(plan, lineage)
        # A DataFrame that stands in a plan twice is one relation, read twice.
        read = Counter(view_of(node, lineage.views) for node in plan.walk())
        aggregates = partial_aggregates(plan, lineage, text, uses.implied)
        return cls(
            plan,
            lineage,
            text,
            uses,
            table_predicates(plan, lineage, text, None, uses.implied),
            first_rows(plan, lineage, text),
            tuple(each for each in aggregates if read[each.view] == 1),
        )

    def with_conditions(self, extra: Extra) -> RuleQuery:
        """The query with more conditions on sides of its joins, which no row of it fails."""
        predicates = table_predicates(self.plan, self.lineage, self.text, extra, self.uses.implied)
        return replace(self, predicates=predicates)

    def asks(self, name: str, table: TableVersion) -> bool:
        """Whether a Variant of a table is looked at, or its rows are grouped."""
        if any(each.view == name for each in self.aggregates):
            return True
        columns = {source.column for source in self.uses.sources if source.view == name}
        conditions = refs(self.predicates.get(name))
        return bool(columns & table.variants) or any(ref.path is not None for ref in conditions)

    def table_use(self, name: str) -> TableUse:
        """What is read of a table."""
        whole = frozenset(each.column for each in self.uses.whole if each.view == name)
        first = self.limits.get(name)
        return TableUse(name, tuple(self.uses.of(name)), whole, self.predicates.get(name), first)

    def implied(self, names: Collection[str]) -> list[int]:
        """The conditions that may go, of tables that are read by us."""
        return [
            number
            for number, source in self.uses.implied.items()
            if source.view in names and source not in self.uses.whole
        ]
