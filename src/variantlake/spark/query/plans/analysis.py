"""What a query reads of each table: the paths with their places in the text, and whole columns.

Two trees are read together. Spark's analysed plan says what a name resolved to: which table's
column, which type, which implicit cast. Spark's parse has the exact spans of the column's own name
and of an explicit cast. The span of a `variant_get` is the same in both and joins them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from variantlake.expressions.tree import PRESENCE, Predicate, Ref
from variantlake.paths import Path
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.quoting import quote_identifier
from variantlake.spark.query.plans.catalyst import VARIANT, Node
from variantlake.spark.query.plans.join_values import SmallSide, small_sides
from variantlake.spark.query.plans.limits import first_rows
from variantlake.spark.query.plans.lineage import ColumnSource, Lineage, view_of
from variantlake.spark.query.plans.partial_aggregates import partial_aggregates
from variantlake.spark.query.plans.predicates import Extra, table_predicates, variant_request
from variantlake.spark.scan.path_columns import Span
from variantlake.spark.scan.pushed_aggregates import PartialAggregate
from variantlake.sql.splice import Splice


@dataclass(frozen=True, slots=True)
class PathUse:
    """One place in the text that reads a path as a type.

    `span` is the whole expression: an explicit cast with what is cast, else the extraction alone,
    which `implicit_cast` then tells the type of. `column` is the span of the column's name inside.
    Where only a test for NULL looks at the Variant, both are the column's name.
    """

    ref: Ref
    span: Span
    column: Span
    implicit_cast: bool


@dataclass(frozen=True, slots=True)
class TableUse:
    """What a query reads of one table instance.

    `paths` are those of columns that are read by paths alone; `whole` are all columns, of any type,
    that are needed as they are. `predicate` is what skipping may use; `first` is a LIMIT on the
    rows that fulfil it.
    """

    view: str
    paths: tuple[PathUse, ...]
    whole: frozenset[str]
    predicate: Predicate | None
    first: FirstRows | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A query's table instances by view, and the names that unnamed columns of the text have.

    `names` are insertions that keep the names of unnamed select items once their text changes,
    each with the spans of the paths inside the item. `small_sides` are joined sides whose values
    may skip files; `predicates` gives what skipping may use with more conditions. `aggregates` are
    those that tasks of ours may begin.
    """

    tables: Mapping[str, TableUse]
    names: tuple[tuple[Splice, frozenset[Span]], ...]
    small_sides: tuple[SmallSide, ...] = ()
    predicates: Callable[[Extra], Mapping[str, Predicate | None]] = lambda _: {}
    aggregates: tuple[PartialAggregate, ...] = ()


def analyse(parsed: Node, analysed: Node, views: Mapping[str, str], text: str) -> Analysis:
    """Read a query whose tables are the `views`.

    `parsed` and `analysed` are of the same `text`; `views` maps names of views, as the plan writes
    them, to those that the result uses.
    """
    lineage = Lineage(views)
    lineage.learn(analysed)
    reading = _Reading(lineage, parsed)
    reading.visit_query(analysed)
    if _collates(analysed):
        reading.give_up_strings()
    names: list[tuple[Splice, frozenset[Span]]] = []
    output_names = _output_names(parsed, analysed)
    for item in _unnamed_items(parsed):
        spans = frozenset(node.span for node in item.walk() if node.span in reading.uses)
        if spans:
            name = output_names.get(id(item)) or _name_of(analysed, spans)
            place = _end_of_item(item, text)
            if name is None or place is None:
                for span in spans:
                    reading.give_up(span)
            else:
                new = f" AS {quote_identifier(name)}"
                names.append((Splice(place, place, new), spans))
    predicates = table_predicates(analysed, lineage, text)
    limits = first_rows(analysed, lineage, text)
    tables = {
        view: TableUse(
            view,
            tuple(use for owner, use in reading.uses.values() if owner.view == view and use),
            frozenset(source.column for source in reading.whole if source.view == view),
            predicates.get(view),
            limits.get(view),
        )
        for view in views.values()
    }
    kept = {
        get
        for get, (owner, use) in reading.uses.items()
        if use is not None and owner not in reading.whole
    }
    return Analysis(
        {view: _without_whole(use) for view, use in tables.items()},
        tuple((change, spans) for change, spans in names if spans & kept),
        tuple(small_sides(analysed, views)),
        functools.partial(table_predicates, analysed, lineage, text),
        tuple(partial_aggregates(analysed, lineage, text)),
    )


def _collates(plan: Node) -> bool:
    """Whether some string in a plan has a collation that is not the usual one."""
    return any("collate" in node.type for node in plan.walk())


def _without_whole(use: TableUse) -> TableUse:
    paths = tuple(path for path in use.paths if path.ref.column[0] not in use.whole)
    return replace(use, paths=paths)


_PASSING = frozenset(
    {
        "Aggregate", "CTERelationDef", "CTERelationRef", "Expand", "Filter", "Generate",
        "GlobalLimit", "Join", "LateralJoin", "LocalLimit", "Offset", "Project", "ResolvedHint",
        "Sample", "Sort", "SubqueryAlias", "View", "Window", "WithCTE",
    }
)  # fmt: skip
"""Operators that look at their input only through their expressions.

All others (DISTINCT, UNION, PIVOT, …) look at every column, so that a Variant among them is needed
as it is.
"""


class _Reading:
    """Collects the paths and the whole columns of an analysed plan.

    `uses` has an entry for each extraction by its span, with None if the text cannot be changed.
    """

    def __init__(self, lineage: Lineage, parsed: Node) -> None:
        self._lineage = lineage
        self._extractions = _extractions(parsed)
        self._null_tests = dict(_null_tests(parsed))
        self.uses: dict[Span, tuple[ColumnSource, PathUse | None]] = {}
        self.whole: set[ColumnSource] = set()

    def give_up(self, span: Span) -> None:
        """Leave this place as it is, which needs its whole Variant."""
        source, _ = self.uses[span]
        self.uses[span] = source, None
        self.whole.add(source)

    def give_up_strings(self) -> None:
        """Leave paths that are strings as they are.

        A collation has a strength too, and a field of a struct has another one than `variant_get`:
        what it is compared, concatenated or put in an array with decides by it.
        """
        for span, (_, use) in list(self.uses.items()):
            if use is not None and use.ref.type.startswith("string"):
                self.give_up(span)

    def visit_query(self, plan: Node, *, output_matters: bool = True) -> None:
        """A query or subquery; EXISTS does not look at what its subquery selects."""
        self._visit(plan)
        if output_matters:
            self._need_output(plan)

    def _need_output(self, plan: Node) -> None:
        for expr_id, _ in plan.output:
            if expr_id in self._lineage.sources:
                self.whole.add(self._lineage.sources[expr_id])

    def _visit(self, plan: Node) -> None:
        if view_of(plan, self._lineage.views) is not None or plan.name == "CTERelationRef":
            return  # what they list as expressions is their output
        for child in plan.children:
            self._visit(child)
            if plan.name not in _PASSING:
                self._need_output(child)
        for place, expression in enumerate(plan.expressions):
            if not self._passes(plan, place, expression):
                self._visit_expression(expression)

    def _passes(self, plan: Node, place: int, item: Node) -> bool:
        """Whether an item of an operator hands a column on under an id that stands for it above.

        An Expand has a row of items for each grouping set. Where its output has another id than
        the item, as for a key, what is above reads the column under an id of which we know nothing.
        """
        if plan.name == "Expand":
            return item.expr_id == plan.output[place % len(plan.output)][0]
        inner = item.children[0] if item.name == "Alias" else item
        return plan.name == "Project" and self._lineage.source(inner) is not None

    def _visit_expression(self, node: Node) -> None:
        source = self._lineage.source(node)
        if source is not None:
            self.whole.add(source)
            return
        if node.name in _NULL_TESTS and self._test(node):
            return
        request = variant_request(node, self._lineage)
        if request is not None:
            view, ref = request
            self._use(ColumnSource(view, ref.column[0]), ref, node)
            return
        if node.plan is not None:
            # Its children repeat what the subquery takes from outside; inside stand the uses.
            self.visit_query(node.plan, output_matters=node.name != "Exists")
            return
        for child in node.children:
            self._visit_expression(child)

    def _test(self, node: Node) -> bool:
        """Take in `column IS NULL` or `IS NOT NULL` of a Variant; False for another test."""
        (child,) = node.children
        source = self._lineage.source(child)
        column = self._null_tests.get(node.span) if node.has_span else None
        if source is None or column is None or child.type != VARIANT:
            return False
        ref = Ref((source.column,), Path(), PRESENCE)
        self._add(node.span, source, PathUse(ref, column, column, implicit_cast=False))
        return True

    def _use(self, source: ColumnSource, ref: Ref, node: Node) -> None:
        """Take in an extraction, which is the cast of a Variant or a typed `variant_get`."""
        get = node.children[0] if node.name == "Cast" else node
        extraction = self._extractions.get(get.span) if get.has_span else None
        if extraction is None or _NOT_IN_TEXTS.search(ref.type):
            self.whole.add(source)
            return
        column, explicit = extraction
        span = explicit if explicit is not None and node is not get else get.span
        use = PathUse(ref, span, column, implicit_cast=node is not get and explicit is None)
        self._add(get.span, source, use)

    def _add(self, span: Span, source: ColumnSource, use: PathUse) -> None:
        known = self.uses.setdefault(span, (source, use))
        if known != (source, use):
            # One text that stands for two things: an expression that Spark uses twice.
            self.whole |= {source, known[0]}
            self.uses[span] = known[0], None


_NOT_IN_TEXTS = re.compile(r"^time(\(\d\))?$|collate")
"""Types that `variant_get` gives, and that a field of a struct cannot have: CAST knows no TIME."""


def _extractions(parsed: Node) -> dict[Span, tuple[Span, Span | None]]:
    """Spans of `column:path` and `variant_get(column, …)` in the text.

    Each with the span of the column's name, and that of an explicit cast round it.
    """
    found: dict[Span, tuple[Span, Span | None]] = {}
    for node in parsed.walk():
        inner = _unaliased(node.children[0]) if node.name == "Cast" else node
        if not (inner.name == "SemiStructuredExtract" or _is_variant_get(inner)):
            continue
        column = inner.children[0]
        if column.name == "UnresolvedAttribute" and column.has_span and inner.has_span:
            cast = node.span if node is not inner and node.has_span else None
            # The walk comes to the cast first, then to what is cast.
            found.setdefault(inner.span, (column.span, cast))
    return found


_NULL_TESTS = frozenset({"IsNull", "IsNotNull"})


def _null_tests(parsed: Node) -> Iterator[tuple[Span, Span]]:
    """Spans of `column IS NULL` and `column IS NOT NULL`, each with that of the column's name."""
    for node in parsed.walk():
        if node.name in _NULL_TESTS and node.has_span:
            (column,) = node.children
            if column.name == "UnresolvedAttribute" and column.has_span:
                yield node.span, column.span


def _is_variant_get(node: Node) -> bool:
    return (
        node.name == "UnresolvedFunction"
        and bool(node.children)
        and node.arguments["nameParts"][-1].lower() in ("variant_get", "try_variant_get")
    )


def _unaliased(node: Node) -> Node:
    return node.children[0] if node.name == "Alias" else node


def _unnamed_items(parsed: Node) -> Iterator[Node]:
    """Select items without a name of their own."""
    return (node.children[0] for node in parsed.walk() if node.name == "UnresolvedAlias")


def _output_names(parsed: Node, analysed: Node) -> dict[int, str]:
    """The names of the unnamed items of the outermost select list, by `id`; none beside a star."""
    plan = parsed
    while plan.name in _ABOVE_SELECT and plan.children:
        plan = plan.children[0]
    items = plan.expressions
    if plan.name != "Project" or len(items) != len(analysed.output):
        return {}
    if any("Star" in item.name for item in items):
        return {}
    return {
        id(item.children[0]): name
        for item, (_, name) in zip(items, analysed.output, strict=True)
        if item.name == "UnresolvedAlias"
    }


_ABOVE_SELECT = frozenset(
    {"Distinct", "GlobalLimit", "LocalLimit", "Offset", "Sort", "UnresolvedWith"}
)


def _name_of(analysed: Node, spans: frozenset[Span]) -> str | None:
    """The name that Spark gave to the select item with these extractions, None if unsure."""
    names = set()
    for plan in analysed.walk():
        for item in plan.expressions:
            if item.name == "Alias" and spans == {
                node.span for node in item.walk_expression() if node.span in spans
            }:
                names.add(item.arguments["name"])
    return names.pop() if len(names) == 1 else None


_OPENING = re.compile(r"(?:\s*\()*\s*$")
_CLOSING = re.compile(r"\s*\)")


def _end_of_item(item: Node, text: str) -> int | None:
    """Where the select item ends, closing parentheses of its own included."""
    spans = [node.span for node in item.walk() if node.has_span]
    if not spans:
        return None
    start, stop = min(span[0] for span in spans), max(span[1] for span in spans)
    opening = _OPENING.search(text, 0, start)
    for _ in range(text.count("(", opening.start(), start) if opening else 0):
        closing = _CLOSING.match(text, stop)
        if closing is None:
            return None
        stop = closing.end()
    return stop
