"""Finds the aggregates that our tasks can begin, so that Spark merges only a few partial rows.

An aggregate qualifies if only filters and projections are between it and the table, and if our
engine evaluates every condition, key and argument exactly as Spark does. Its functions become
functions that merge partial rows (`PartialAggregates.java`). Arguments of DISTINCT and conditions
of FILTER become further keys of the partial rows, over which Spark's own function gives the same
result as over all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from variantlake.errors import UnsupportedFeature
from variantlake.expressions.functions.signatures import call
from variantlake.expressions.tree import Aggregate, Call, Predicate, Ref
from variantlake.expressions.typing import aggregate, spark_type
from variantlake.spark.query.plans.catalyst import Node
from variantlake.spark.query.plans.lineage import Lineage, view_of
from variantlake.spark.query.plans.predicates import Conditions, conjuncts
from variantlake.spark.scan.aggregate_task import Groups, flag
from variantlake.spark.scan.pushed_aggregates import KINDS, How, Merge, PartialAggregate
from variantlake.spark.scan.pushed_filters import is_floating
from variantlake.spark.session.settings import is_utc
from variantlake.types import Kind

EXACT_DOUBLE = 2**53
"""Sums of integers below it are exact as doubles, in whatever order they are added."""


_DISTINCT = frozenset({"Average", "Count", "HyperLogLogPlusPlus", "Max", "Min", "Sum"})
"""Functions that, with DISTINCT or by nature, ignore the order and repetition of their input."""

_FUNCTIONS = {
    "Hour": "hour",
    "Length": "length",
    "MicrosToTimestamp": "timestamp_micros",
    "Minute": "minute",
    "Second": "second",
}
"""Spark's functions that our engine evaluates as Spark does on every value; none of them fails."""

_TIMESTAMP = "timestamp"


def partial_aggregates(
    plan: Node, lineage: Lineage, text: str, implied: Collection[int] = ()
) -> Iterator[PartialAggregate]:
    """Yield the aggregates of a plan that tasks may begin, as far as the query itself allows it.

    The planner checks the table's files. `lineage` is that of `plan`, `text` is the query's SQL,
    and `implied` are the numbers of conditions that follow from others of the same filter.
    """
    for node in _operators(plan):
        if node.name != "Aggregate":
            continue
        below = _rows_of(node.children[0], lineage.views, implied)
        if below is None:
            continue
        view, conditions = below
        reading = Conditions(view, lineage, text)
        found = _AggregateReader(reading).read(node, conditions)
        if found is not None:
            whole = _AggregateReader(reading, _whole=True).read(node, conditions)
            is_own = whole is not None and len(whole.groups.keys) == whole.keys
            yield replace(found, whole=whole) if is_own else found


def _operators(plan: Node) -> Iterator[Node]:
    """Yield all operators but those of subqueries."""
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)


def _rows_of(
    plan: Node, views: Mapping[str, str], implied: Collection[int]
) -> tuple[str, list[Node]] | None:
    """Return the view below `plan` and the conditions on its rows, None below other operators."""
    conditions: list[Node] = []
    while True:
        view = view_of(plan, views)
        if view is not None:
            return view, conditions
        if plan.name == "Filter":
            parts = (part for each in plan.expressions for part in conjuncts(each))
            conditions += (part for part in parts if part.number not in implied)
        elif plan.name != "Project":
            return None
        (plan,) = plan.children


class _NotHereError(Exception):
    """An expression that only Spark evaluates."""


_Term = Ref | Call
_Kept = _Term | Aggregate


@dataclass(slots=True)
class _AggregateReader:
    """Reads one aggregate, and collects the columns of its partial rows.

    With `_whole`, one process sees all rows of a group, so it counts distinct values itself.
    """

    _conditions: Conditions
    _whole: bool = False
    _keys: list[_Term] = field(default_factory=list)
    _aggregates: dict[Aggregate, None] = field(default_factory=dict)
    _flags: list[Predicate] = field(default_factory=list)
    _sums: dict[tuple[Ref, int], None] = field(default_factory=dict)

    def read(self, node: Node, conditions: list[Node]) -> PartialAggregate | None:
        """Return the aggregate over rows that meet `conditions`, None if only Spark can do it."""
        before = len(node.expressions) - len(node.output)
        grouping, items = node.expressions[:before], node.expressions[before:]
        try:
            where = self._conditions.all_of(conditions) if conditions else None
            self._keys = [self._term(key) for key in grouping]
            found = [self._function(each) for item in items for each in _functions(item)]
        except (_NotHereError, UnsupportedFeature):
            return None
        if not self._aggregates:
            self._kept(aggregate("count", None))
        columns: list[_Kept] = [*self._keys, *self._aggregates]
        merges = tuple(
            Merge(
                how,
                function,
                tuple(columns.index(each) for each in own),
                None if condition is None else columns.index(condition),
            )
            for how, function, own, condition in found
        )
        groups = Groups(tuple(self._keys), tuple(self._aggregates), where, tuple(self._flags))
        return PartialAggregate(
            self._conditions.view, len(grouping), groups, merges, tuple(self._sums)
        )

    def _function(self, node: Node) -> tuple[How, str, tuple[_Kept, ...], _Term | None]:
        """How to merge a function, its name, the columns that it merges, the key of its FILTER."""
        function, *filters = node.children
        condition = None
        if filters:
            truth = self._conditions.all_of(filters)
            if truth not in self._flags:
                self._flags.append(truth)
            condition = self._key(flag(self._flags.index(truth)))
        how, own = self._merging(function, distinct=node.arguments["isDistinct"] == "true")
        return how, function.name, own, condition

    def _merging(self, node: Node, *, distinct: bool) -> tuple[How, tuple[_Kept, ...]]:
        rows = node.name == "Count" and not distinct
        if rows and all(_is_constant(child) for child in node.children):
            return "count", (self._kept(aggregate("count", None)),)
        arguments = [self._term(child) for child in node.children]
        if self._whole and distinct and node.name == "Count" and len(arguments) == 1:
            return "count", (self._kept(aggregate("count", arguments[0], distinct=True)),)
        if distinct or node.name == "HyperLogLogPlusPlus":
            # Hashes tell doubles apart by their bits; keys here have one NaN and one zero.
            floating = node.name != "Count" and any(is_floating(each) for each in arguments)
            if node.name not in _DISTINCT or floating:
                raise _NotHereError
            return "same", tuple(map(self._key, arguments))
        if len(arguments) != 1:
            raise _NotHereError
        (argument,) = arguments
        if node.name == "Count":
            return "count", (self._kept(aggregate("count", argument)),)
        if node.name in ("Min", "Max"):
            return "same", (self._kept(aggregate(node.name.lower(), argument)),)
        if node.name == "Sum" and isinstance(argument, Ref):
            return "same", (self._sum(argument, 2**63),)
        if node.name == "Average" and isinstance(argument, Ref):
            count = self._kept(aggregate("count", argument))
            return "mean", (self._sum(argument, EXACT_DOUBLE), count)
        raise _NotHereError

    def _sum(self, argument: Ref, limit: int) -> Aggregate:
        found = self._kept(aggregate("sum", argument))
        if found.type.kind is Kind.DECIMAL:
            limit = 10 ** (found.type.precision - found.type.scale)
        self._sums[(argument, limit)] = None
        return found

    def _term(self, node: Node) -> _Term:
        """Return a key or an argument. Raises _NotHereError if only Spark can compute it."""
        ref = self._conditions.operand(node)
        if ref is not None:
            type_ = spark_type(ref.type)
            if type_ is None or type_.kind not in KINDS or ref.type != node.type:
                raise _NotHereError
            return ref
        node = self._conditions.computed(node)
        function = _FUNCTIONS.get(node.name)
        if function is None or len(node.children) != 1:
            raise _NotHereError
        zoned = function in ("hour", "minute", "second") and node.children[0].type == _TIMESTAMP
        if zoned and not is_utc(node.arguments["timeZoneId"]):
            raise _NotHereError
        found = call(function, self._term(node.children[0]))
        if not isinstance(found, Call) or found.type.ddl.lower() != node.type:
            raise _NotHereError
        return found

    def _key(self, term: _Term) -> _Term:
        if term not in self._keys:
            self._keys.append(term)
        return term

    def _kept(self, found: Aggregate) -> Aggregate:
        self._aggregates[found] = None
        return found


def _functions(item: Node) -> Iterator[Node]:
    """Yield the aggregate functions of a column, in the order of `PartialAggregates.java`."""
    if item.plan is not None:
        raise _NotHereError
    if item.name == "AggregateExpression":
        yield item
        return
    for child in item.children:
        yield from _functions(child)


def _is_constant(node: Node) -> bool:
    """Whether the value is the same in every row, and not NULL."""
    return isinstance(node.folded, str)
