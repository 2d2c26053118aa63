"""Derives from an optimized plan the predicates that skip files of each table.

A condition reaches a table only if a row that fails it cannot change the answer (EXACTNESS,
rule 18): from WHERE and from ON, down through projections, sorts and the sides of joins (`joins`),
but never below a LIMIT, a window, an aggregate, a sample or the null-supplying side of an outer
join. A condition that planning does not know becomes `Unknown`, which keeps every file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from variantlake.errors import InvalidPath
from variantlake.expressions.tree import (
    And,
    Compare,
    CompareOp,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    Scalar,
    StartsWith,
    Unknown,
)
from variantlake.expressions.typing import spark_type
from variantlake.paths import MAX_STEPS, Path
from variantlake.planning.exact.casts import keeps_column
from variantlake.spark.query.plans.catalyst import VARIANT, Node, _Absent
from variantlake.spark.query.plans.lineage import ColumnSource, Lineage, view_of
from variantlake.sql.joins import join_of_plan

_Conditions = tuple[Node, ...]

_COMPARISONS: dict[str, CompareOp] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}

_THROUGH = frozenset({"Sort", "WithCTE"})
"""Operators that may skip an input row whenever its output row is not needed."""

Extra = Mapping[tuple[Node, int], Sequence[Node]]
"""Additional conditions on the rows of a join's side."""


def table_predicates(
    plan: Node,
    lineage: Lineage,
    text: str,
    extra: Extra | None = None,
    implied: Collection[int] = (),
) -> dict[str, Predicate | None]:
    """Return for each view the condition that every relevant row meets, None if all rows matter.

    `text` is the query's SQL, which shows the unknown conditions in messages. `implied` are the
    numbers of conditions that follow from others of the same filter.
    """
    finder = _Finder(lineage, text, extra or {}, implied)
    finder.walk_query(plan)
    return {
        view: None if any(found is None for found in conditions) else _any(conditions)
        for view, conditions in finder.predicates.items()
    }


@dataclass(frozen=True, slots=True)
class Conditions:
    """Translates expressions to predicates on the rows of one view.

    Refs are columns of `view` alone. `text` is as in `table_predicates`.
    """

    view: str
    lineage: Lineage
    text: str

    def all_of(self, nodes: Iterable[Node]) -> Predicate:
        """Return the conjunction of conditions; a condition that is not known becomes Unknown."""
        return And(tuple(map(self._predicate, nodes)))

    def operand(self, node: Node) -> Ref | None:
        """Return the column or path that an expression reads; None for any other expression."""
        found = self._operand(node)
        return found if isinstance(found, Ref) else None

    def computed(self, node: Node) -> Node:
        """Return the expression that a projected name means, any other expression unchanged."""
        return self.lineage.computed.get(node.expr_id, node)

    def _predicate(self, node: Node) -> Predicate:
        """Return the condition as a predicate for planning."""
        if not node.deterministic:
            return self._unknown(node)
        if node.name == "AttributeReference" and node.expr_id in self.lineage.computed:
            return self._predicate(self.lineage.computed[node.expr_id])
        if node.name in ("And", "Or"):
            terms = tuple(map(self._predicate, node.children))
            return And(terms) if node.name == "And" else Or(terms)
        if node.name == "Not":
            return Not(self._predicate(node.children[0]))
        operands = [self._operand(child) for child in node.children]
        return _leaf(node, operands, self._unknown(node)) or self._boolean(node)

    def _unknown(self, node: Node) -> Unknown:
        written = self.text[node.start : node.stop] if node.has_span else node.name
        return Unknown(" ".join(written.split()))

    def _boolean(self, node: Node) -> Predicate:
        """Return the predicate of a boolean path or column as a condition, else Unknown."""
        operand = self._operand(node)
        if isinstance(operand, Ref) and operand.type == "boolean":
            return Compare("=", operand, Literal(value=True, type="boolean"))
        return self._unknown(node)

    def _operand(self, node: Node) -> Ref | Literal | None:
        if not isinstance(node.folded, _Absent):
            return literal(node.folded, node.type)
        if node.name == "Cast" and node.children[0].type == node.type:
            # Spark casts the operand of IN to the common type, even if it is that already.
            return self._operand(node.children[0])
        computed = self.lineage.computed.get(node.expr_id)
        if node.name == "AttributeReference" and computed is not None:
            return self._operand(computed)
        source = self.lineage.source(node) if node.name == "AttributeReference" else None
        if source is not None:
            if source.view != self.view or node.type == VARIANT:
                return None
            return Ref((source.column,), None, node.type)
        if node.name == "GetStructField" and node.type != VARIANT:
            above = self._operand(node.children[0])
            name = node.arguments["name"]
            if not isinstance(above, Ref) or above.path is not None or name is None:
                return None
            return Ref((*above.column, name), None, node.type)
        found = variant_request(node, self.lineage)
        if found is not None:
            return found[1] if found[0] == self.view else None
        if node.name == "Cast":
            return _cast(self._operand(node.children[0]), node.type)
        return None


def _any(conditions: list[Predicate | None]) -> Predicate | None:
    known = tuple(condition for condition in conditions if condition is not None)
    return known[0] if len(known) == 1 else Or(known)


class _Finder:
    def __init__(self, lineage: Lineage, text: str, extra: Extra, implied: Collection[int]) -> None:
        self._lineage = lineage
        self._implied = implied
        self._text = text
        self._extra = extra
        self.predicates: dict[str, list[Predicate | None]] = {}
        self._references: dict[str, int] = {}
        self._waiting: dict[str, _Conditions] = {}

    def walk_query(self, plan: Node) -> None:
        """Collect the predicates of a whole query."""
        for node in plan.walk():
            if node.name == "CTERelationRef":
                cte = node.arguments["cteId"]
                self._references[cte] = self._references.get(cte, 0) + 1
        self._walk(plan, ())

    def _walk(self, plan: Node, active: _Conditions) -> None:
        view = view_of(plan, self._lineage.views)
        if view is not None:
            reading = Conditions(view, self._lineage, self._text)
            self.predicates.setdefault(view, []).append(reading.all_of(active) if active else None)
            return
        for expression in plan.expressions:
            for node in expression.walk_expression():
                if node.plan is not None:
                    self._walk(node.plan, ())
        if plan.name == "WithCTE":
            *definitions, query = plan.children
            self._walk(query, active)
            # A definition may use the ones before it: the last one is walked first.
            for definition in reversed(definitions):
                self._walk(definition, self._waiting.pop(definition.arguments["id"], ()))
        elif plan.name == "CTERelationDef":
            self._walk(plan.children[0], active)
        elif plan.name == "CTERelationRef":
            if self._references[plan.arguments["cteId"]] == 1:
                self._waiting[plan.arguments["cteId"]] = active
        elif plan.name == "Filter":
            parts = conjuncts(plan.expressions[0])
            own = (part for part in parts if part.number not in self._implied)
            self._walk(plan.children[0], (*active, *own))
        elif plan.name == "Join":
            self._walk_join(plan, active)
        else:
            passes = plan.name in _THROUGH or (
                plan.name == "Project" and all(item.deterministic for item in plan.expressions)
            )
            for child in plan.children:
                self._walk(child, active if passes else ())

    def _walk_join(self, plan: Node, active: _Conditions) -> None:
        join = join_of_plan(plan.arguments["joinType"])
        on = tuple(part for condition in plan.expressions for part in conjuncts(condition))
        for side, child in enumerate(plan.children):
            above = active if side in join.above else ()
            own = on if side in join.on else ()
            self._walk(child, (*above, *own, *self._extra.get((plan, side), ())))


def variant_request(node: Node, lineage: Lineage) -> tuple[str, Ref] | None:
    """Return view and Ref of `cast(variant_get(column, path) AS type)` or `variant_get(…, type)`.

    The column may itself be the Variant at a path of another column. None for other expressions,
    and for a path whose result is a Variant.
    """
    get, type_, strict = node, "", True
    if node.name == "Cast" and node.children[0].name == "VariantGet":
        get = node.children[0]
        if get.type != VARIANT or node.type == VARIANT:
            return None
        type_, strict = node.type, node.arguments["evalMode"] != "TRY"
    elif node.name != "VariantGet" or node.type == VARIANT:
        return None
    else:
        type_, strict = node.type, node.arguments["failOnError"] == "true"
    found = _extracted(get, lineage)
    if found is None:
        return None
    source, steps = found
    return source.view, Ref((source.column,), Path(steps), type_, strict)


def _extracted(get: Node, lineage: Lineage) -> tuple[ColumnSource, tuple[str | int, ...]] | None:
    """Return the column that a `variant_get` reads, and the steps to its result; None if not known.

    Nested calls join their steps: `:b` of the Variant `event:a` is `event:a.b`, NULL in the same
    rows.
    """
    below, steps = get.children[0], _steps(get.children[1].folded)
    if steps is None:
        return None
    if below.name == "VariantGet" and below.type == VARIANT:
        inner = _extracted(below, lineage)
        if inner is None or len(inner[1]) + len(steps) > MAX_STEPS:
            return None
        return inner[0], (*inner[1], *steps)
    source = lineage.source(below)
    return None if source is None else (source, steps)


def _steps(path: object) -> tuple[str | int, ...] | None:
    if not isinstance(path, str):
        return None
    try:
        return Path.parse_spark(path).steps
    except InvalidPath:
        return None


def _cast(operand: Ref | Literal | None, requested: str) -> Ref | None:
    """Return the Ref of a column's cast, which Spark mostly adds to compare it with a constant."""
    if not isinstance(operand, Ref) or operand.path is not None:
        return None
    from_type, to_type = spark_type(operand.type), spark_type(requested)
    if from_type is None or to_type is None or not keeps_column(from_type, to_type):
        return None
    return Ref(operand.column, None, requested)


def conjuncts(condition: Node) -> Iterable[Node]:
    """Return the terms of a condition's nested ANDs; the condition itself if it is no AND."""
    if condition.name == "And":
        return (part for child in condition.children for part in conjuncts(child))
    return (condition,)


def _leaf(node: Node, operands: list[Ref | Literal | None], shown: Unknown) -> Predicate | None:
    """Return the predicate of a condition on its operands; `shown` stands for its unknown part."""
    match operands:
        case [left, right] if node.name in _COMPARISONS and left and right:
            return Compare(_COMPARISONS[node.name], left, right)
        case [Ref() as operand] if node.name == "IsNull":
            return IsNull(operand)
        case [Ref() as operand] if node.name == "IsNotNull":
            return Not(IsNull(operand))
        case [Ref() as operand, Literal(str() as prefix, "string")] if node.name == "StartsWith":
            return StartsWith(operand, prefix)
        case [Ref() as operand, Literal(str() as pattern, "string")] if node.name == "Like":
            return _like(operand, pattern, str(node.arguments.get("escapeChar")), shown)
        case [Ref() as operand, *options] if node.name == "In":
            literals = tuple(option for option in options if isinstance(option, Literal))
            return In(operand, literals) if len(literals) == len(options) else None
    return None


def _like(operand: Ref, pattern: str, escape: str, shown: Unknown) -> Predicate | None:
    if escape in pattern or operand.type != "string":
        return None
    prefix = _WILDCARD.split(pattern, maxsplit=1)[0]
    rest = pattern[len(prefix) :]
    if not rest:
        return Compare("=", operand, Literal(pattern, "string"))
    starts = StartsWith(operand, prefix)
    # A pattern with more than a prefix is stricter than its prefix, and NULL for the same values.
    return starts if not rest.strip("%") else And((starts, shown))


_WILDCARD = re.compile("[%_]")


_INTEGERS = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)")


def literal(text: str | None, type_: str) -> Literal | None:
    """Return a constant from the text that the JVM prints; None if planning does not take its type.

    Dates are in days and timestamps in microseconds, as in Spark's rows.
    """
    if text is None:
        return Literal(None, type_)
    value: Scalar
    try:
        if type_ in _INTEGERS:
            value = int(text)
        elif type_ in ("double", "float"):
            value = float(text)  # Java writes NaN and Infinity as Python reads them
        elif _DECIMAL.fullmatch(type_):
            value = Decimal(text)
        elif type_ == "boolean":
            value = text == "true"
        elif type_ == "string":
            value = text
        elif type_ == "binary":
            value = bytes.fromhex(text)
        else:
            return None
    except (ValueError, InvalidOperation):
        return None
    return Literal(value, type_)
