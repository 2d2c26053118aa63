"""Extracts from an optimizer's plan the columns, paths and rows that it reads of its tables."""

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
    """What an optimizer's plan reads of its tables."""

    plan: Node
    lineage: Lineage
    text: str
    uses: PlanUses
    predicates: Mapping[str, Predicate | None]
    limits: Mapping[str, FirstRows]
    aggregates: tuple[PartialAggregate, ...]

    @classmethod
    def of(cls, plan: Node, names: Sequence[str], text: str) -> RuleQuery:
        """Read a plan over the tables `names`; `text` is its SQL, used only in messages."""
        lineage = Lineage({name: name for name in names})
        lineage.learn(plan)
        uses = read_uses(plan, lineage)
        # A DataFrame that occurs twice in a plan is one relation that is read twice.
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
        """Return the query with `extra` conditions on join sides, met by every row that counts."""
        predicates = table_predicates(self.plan, self.lineage, self.text, extra, self.uses.implied)
        return replace(self, predicates=predicates)

    def asks(self, name: str, table: TableVersion) -> bool:
        """Whether the query reads a Variant of the table, or a pushed aggregate groups its rows."""
        if any(each.view == name for each in self.aggregates):
            return True
        columns = {source.column for source in self.uses.sources if source.view == name}
        conditions = refs(self.predicates.get(name))
        return bool(columns & table.variants) or any(ref.path is not None for ref in conditions)

    def table_use(self, name: str) -> TableUse:
        """Return the paths, columns and rows that the query reads of a table."""
        whole = frozenset(each.column for each in self.uses.whole if each.view == name)
        first = self.limits.get(name)
        return TableUse(name, tuple(self.uses.of(name)), whole, self.predicates.get(name), first)

    def implied(self, names: Collection[str]) -> list[int]:
        """Return the numbers of the conditions that the rule may drop, for the tables `names`."""
        return [
            number
            for number, source in self.uses.implied.items()
            if source.view in names and source not in self.uses.whole
        ]
