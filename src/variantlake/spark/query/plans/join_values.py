"""Values of a join's small side, with which the scan of the other side skips files.

`SELECT … FROM events e JOIN ids i ON e.event:user.id::bigint = i.id`: only rows of `e` whose key is
among those of `i` are in the answer. If `i` is small, this module reads its values before the query
and makes them the condition `e.event:user.id::bigint IN (…)`. This holds only if the join drops the
unmatched rows of the large side (EXACTNESS, rule 18), and if the small side cannot change until the
query runs: constants, and tables of ours, whose version is fixed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from variantlake.planning.plan import ScanPlan
from variantlake.spark.query.plans.catalyst import Node
from variantlake.spark.query.plans.lineage import view_of
from variantlake.sql.joins import join_of_plan

MAX_VALUES = 1000
"""The most values of a small side: a longer list would skip little more than its bounds do."""

MAX_ROWS = 10 * MAX_VALUES
"""The most rows of a small side that are searched for its values."""

MAX_SMALL_BYTES = 32 << 20
"""The most bytes of files that the small side may read."""

WORTH_BYTES = 8 << 20
"""The least bytes that the query must read of other tables before a small table is read once more,
which is a Spark job of its own. Constants cost nothing."""

SMALL_SHARE = 4
"""The query must read at least this many times the small side's bytes of other tables."""

MIN_FILES = 2
"""The least files left to read of some table: a single file is read anyhow."""

_FIXED = frozenset({"Aggregate", "Filter", "LocalRelation", "OneRowRelation", "Project", "Range"})
"""Operators that give the same rows whenever they run; LIMIT without an order does not."""

_CHANGES = re.compile("^OuterReference|UDF")
"""Expressions whose value may differ when the query runs, though Spark calls them deterministic."""

_TYPES = frozenset({"tinyint", "smallint", "int", "bigint", "string", "date"})


@dataclass(frozen=True, slots=True)
class SmallSide:
    """A join's small side, whose values may become a condition on `key` of the large side.

    `join` is the operator, `large` the index of the large side, `key` the expression there that
    equals the column. `steps` are indexes among children that lead from the plan's root to the
    small side. `column` is the index in its output, `type` its type. `views` are our tables there.
    """

    join: Node
    large: int
    key: Node
    steps: tuple[int, ...]
    column: int
    type: str
    views: tuple[str, ...]


def small_sides(plan: Node, views: Mapping[str, str]) -> Iterator[SmallSide]:
    """Yield the join sides that give the same rows whenever they run, of any size.

    `views` are as for Lineage. Joins inside subqueries are not among them.
    """
    stack: list[tuple[Node, tuple[int, ...]]] = [(plan, ())]
    while stack:
        node, steps = stack.pop()
        if view_of(node, views) is not None:
            continue
        stack.extend((child, (*steps, at)) for at, child in enumerate(node.children))
        if node.name == "Join":
            yield from _of_join(node, steps, views)


def _of_join(join: Node, steps: tuple[int, ...], views: Mapping[str, str]) -> Iterator[SmallSide]:
    for large in join_of_plan(join.arguments["joinType"]).on:
        small = join.children[1 - large]
        read = _fixed_views(small, views)
        if read is None or not any(view_of(n, views) for n in join.children[large].walk()):
            continue
        places = {expr_id: at for at, (expr_id, _) in enumerate(small.output)}
        for left, right in _equalities(join.expressions):
            for key, value in ((left, right), (right, left)):
                is_plain = value.name == "AttributeReference" and value.expr_id in places
                if is_plain and value.type in _TYPES and key.type == value.type:
                    column = places[value.expr_id]
                    yield SmallSide(join, large, key, (*steps, 1 - large), column, value.type, read)


def _fixed_views(plan: Node, views: Mapping[str, str]) -> tuple[str, ...] | None:
    """Our views in a plan that gives the same rows whenever it runs; None for any other plan."""
    view = view_of(plan, views)
    if view is not None:
        return (view,)
    if plan.name not in _FIXED:
        return None
    for expression in plan.expressions:
        for node in expression.walk_expression():
            if not node.deterministic or node.plan is not None or _CHANGES.search(node.name):
                return None
    found: list[str] = []
    for child in plan.children:
        below = _fixed_views(child, views)
        if below is None:
            return None
        found += below
    return tuple(found)


def _equalities(conditions: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
    for condition in conditions:
        if condition.name == "And":
            yield from _equalities(condition.children)
        elif condition.name == "EqualTo":
            left, right = condition.children
            yield left, right


def is_cheap(side: SmallSide, plans: Mapping[str, ScanPlan]) -> bool:
    """Whether reading a side's tables once more costs little compared to the query itself.

    `plans` are the scans of all tables of the query, by view.
    """
    price = sum(plans[view].read_bytes for view in side.views)
    rest = sum(plan.read_bytes for plan in plans.values()) - price
    if side.views and rest < WORTH_BYTES:
        return False
    return price <= min(MAX_SMALL_BYTES, rest // SMALL_SHARE)


def values_of(rows: DataFrame, side: SmallSide) -> list[str] | None:
    """Return the distinct values of a small side's `rows` in Spark's text, None for too many."""
    names = [f"c{at}" for at in range(len(rows.columns))]
    text = f"unix_date(c{side.column})" if side.type == "date" else f"c{side.column}"
    column = rows.toDF(*names).selectExpr(f"string({text}) AS v")
    if side.views:
        column = column.distinct()  # a Spark job, which constants do not need
    first_rows = column.limit(MAX_ROWS + 1).collect()
    found = {row.v for row in first_rows} - {None}
    is_all = len(first_rows) <= MAX_ROWS and len(found) <= MAX_VALUES
    return sorted(found) if is_all else None


def condition(side: SmallSide, values: Collection[str]) -> Node:
    """Build `key IN (values)` as an expression of an analysed plan."""
    options = tuple(
        Node("Literal", -1, -1, {}, (), type=side.type, folded=value) for value in values
    )
    return Node("In", -1, -1, {}, (side.key, *options), type="boolean")
