"""Expressions in a query's text, typed. What is not provably Spark's is refused by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from variantlake.engine.expressions import (
    Aggregate,
    Constant,
    Expression,
    aggregate,
    below,
    call,
    cast,
    column,
    constant,
    zoned,
)
from variantlake.errors import InvalidQuery
from variantlake.expressions.columns import Columns
from variantlake.expressions.literals import constant as constant_of
from variantlake.expressions.literals import type_name
from variantlake.expressions.typing import refused, spark_type

_BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "remainder",
    exp.IntDiv: "div",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.NullSafeEQ: "same",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "concat",
}
_UNARY: dict[type[exp.Expression], str] = {
    exp.Neg: "negate",
    exp.Not: "not",
    exp.Abs: "abs",
    exp.Length: "length",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_NAMED = {
    "timestamp_micros": "timestamp_micros",
    "timestamp_millis": "timestamp_millis",
    "timestamp_seconds": "timestamp_seconds",
    "isnull": "is_null",
}
_AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Count: "count",
    exp.Min: "min",
    exp.Max: "max",
    exp.Sum: "sum",
    exp.Avg: "avg",
}
_HARMLESS = {"typed", "safe", "coalesce", "big_int", "this", "expression", "expressions"}
"""What sqlglot notes of operators beside their operands."""


class Expressions:
    """Reads expressions over one table; `utc` as in `QueryText`.

    `names` gives what a name of the result means, for texts that may use those.
    """

    def __init__(
        self, columns: Columns, *, utc: bool, names: Mapping[str, Expression | None] | None = None
    ) -> None:
        self._columns = columns
        self._utc = utc
        self._names = names or {}

    def expression(self, node: exp.Expression, *, inside: bool = False) -> Expression:
        """The expression; `inside` of an aggregate there is no other one.

        Raises InvalidQuery, and UnsupportedFeature for what Spark has to run.
        """
        found = self._read(node, inside=inside)
        if not self._utc and zoned(found):
            raise refused("a part of a timestamp in a time zone that only Spark knows")
        return found

    def _read(self, node: exp.Expression, *, inside: bool) -> Expression:
        if isinstance(node, exp.Paren):
            return self._read(node.this, inside=inside)
        if isinstance(node, exp.Column) and not node.table:
            named = self._named(node.name, inside=inside)
            if named is not None:
                return named
        if type(node) in _AGGREGATES or isinstance(node, exp.CountIf | exp.Filter):
            if inside:
                raise refused("an aggregate inside of an aggregate")
            return self._aggregate(node)
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            converted = self._cast(node, inside=inside)
            if converted is not None:
                return converted
        ref = self._columns.find(node)
        if ref is not None:
            return column(ref)
        if _is_constant(node):
            return constant(constant_of(node, utc=self._utc))
        return self._call(node, inside=inside)

    def _named(self, name: str, *, inside: bool) -> Expression | None:
        if name.lower() not in self._names:
            return None
        known = [field.name.lower() for field in self._columns.schema.fields]
        found = self._names[name.lower()]
        if found is None or (inside and name.lower() in known):
            raise refused(f"the name {name!r}, which may mean several columns")
        return None if inside else found

    def _cast(self, node: exp.Cast, *, inside: bool) -> Expression | None:
        """A cast of what is neither a path nor a constant."""
        inner = node.this.unnest()
        if isinstance(inner, exp.JSONExtract) or _is_constant(node) or node.args.get("format"):
            return None
        if isinstance(inner, exp.Column) and self._columns.find(inner).type == "variant":  # type: ignore[union-attr]
            return None
        type_ = spark_type(type_name(node.to))
        if type_ is None:
            raise refused("a cast to that type")
        return cast(self._read(inner, inside=inside), type_)

    def _aggregate(self, node: exp.Expression) -> Expression:
        if isinstance(node, exp.Filter):
            condition = self.expression(node.expression.this, inside=True)
            return self._filtered(node.this, condition)
        if isinstance(node, exp.CountIf):
            return self._counted_if(self.expression(node.this, inside=True))
        _only(node, "this", "big_int")
        inner, distinct = node.this, isinstance(node.this, exp.Distinct)
        if distinct:
            if len(inner.expressions) != 1 or inner.args.get("on"):
                raise refused("DISTINCT of several values")
            (inner,) = inner.expressions
        function = _AGGREGATES[type(node)]
        if function == "count" and not distinct and _counts_rows(inner):
            return aggregate("count", None)
        argument = self.expression(inner, inside=True)
        if isinstance(argument, Constant):
            raise refused(f"{function} of a constant")
        return aggregate(function, argument, distinct=distinct)

    def _filtered(self, node: exp.Expression, condition: Expression) -> Expression:
        found = self._aggregate(node)
        if not isinstance(found, Aggregate):
            raise refused("a FILTER of that")
        if found.argument is None:
            return self._counted_if(condition)
        nothing = Constant(None, None)
        argument = call("case", condition, found.argument, nothing)
        return aggregate(found.function, argument, distinct=found.distinct)

    def _counted_if(self, condition: Expression) -> Expression:
        one = Constant(1, spark_type("int"))
        return aggregate("count", call("case", condition, one, Constant(None, None)))

    def _call(self, node: exp.Expression, *, inside: bool) -> Expression:
        def read(*nodes: exp.Expression) -> list[Expression]:
            return [self._read(each, inside=inside) for each in nodes]

        if type(node) in _BINARY:
            _only(node, *_HARMLESS)
            return call(_BINARY[type(node)], *read(node.this, node.expression))
        if type(node) in _UNARY:
            _only(node, "this")
            inner = node.this
            return call(
                _UNARY[type(node)],
                *read(inner.this if isinstance(inner, exp.TsOrDsToDate) else inner),
            )
        special = _SPECIAL.get(type(node))
        if special is not None:
            return special(node, read)
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name in _NAMED and len(node.expressions) == 1:
                return call(_NAMED[name], *read(*node.expressions))
            if name == "isnotnull" and len(node.expressions) == 1:
                return call("not", call("is_null", *read(*node.expressions)))
            raise refused(f"the function {name}")
        raise refused(f"the expression {type(node).__name__.upper()}")


_Read = Callable[..., list[Expression]]


def _is(node: exp.Expression, read: _Read) -> Expression:
    (inner,) = read(node.this)
    if isinstance(node.expression, exp.Null):
        return call("is_null", inner)
    if isinstance(node.expression, exp.Boolean):
        return call("same", inner, Constant(bool(node.expression.this), spark_type("boolean")))
    raise refused("this IS")


def _between(node: exp.Expression, read: _Read) -> Expression:
    _only(node, "this", "low", "high")
    inner, low, high = read(node.this, node.args["low"], node.args["high"])
    return call("and", call("greater_equal", inner, low), call("less_equal", inner, high))


def _in(node: exp.Expression, read: _Read) -> Expression:
    _only(node, "this", "expressions")
    inner, *options = read(node.this, *node.expressions)
    if len({option.type for option in options if option.type}) > 1:
        raise refused("an IN of several types")
    found = [call("equal", inner, option) for option in options]
    return found[0] if len(found) == 1 else call("or", *found)


def _coalesce(node: exp.Expression, read: _Read) -> Expression:
    _only(node, "this", "expressions")
    return call("coalesce", *read(node.this, *node.expressions))


def _if(node: exp.Expression, read: _Read) -> Expression:
    default = node.args.get("false")
    parts = read(node.this, node.args["true"], *([] if default is None else [default]))
    return call("case", *parts, *([Constant(None, None)] if default is None else []))


def _case(node: exp.Expression, read: _Read) -> Expression:
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        condition, result = read(branch.this, branch.args["true"])
        if node.this is not None:
            condition = call("equal", *read(node.this), condition)
        parts += [condition, result]
    default = node.args.get("default")
    return call("case", *parts, *([Constant(None, None)] if default is None else read(default)))


def _nullif(node: exp.Expression, read: _Read) -> Expression:
    left, right = read(node.this, node.expression)
    return call("case", call("equal", left, right), Constant(None, left.type), left)


def _concat(node: exp.Expression, read: _Read) -> Expression:
    return call("concat", *read(*node.expressions))


def _substring(node: exp.Expression, read: _Read) -> Expression:
    _only(node, "this", "start", "length")
    numbers = [node.args[name] for name in ("start", "length") if node.args.get(name)]
    return call("substring", *read(node.this, *numbers))


def _left(node: exp.Expression, read: _Read) -> Expression:
    text, length = read(node.this, node.expression)
    return call("substring", text, Constant(1, length.type), length)


_SPECIAL: dict[type[exp.Expression], Callable[[exp.Expression, _Read], Expression]] = {
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Coalesce: _coalesce,
    exp.If: _if,
    exp.Case: _case,
    exp.Nullif: _nullif,
    exp.Concat: _concat,
    exp.Substring: _substring,
    exp.Left: _left,
}


def _is_constant(node: exp.Expression) -> bool:
    if isinstance(node, exp.Neg | exp.Paren):
        return _is_constant(node.this)
    if isinstance(node, exp.Cast):
        return isinstance(node.this, exp.Literal)
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


def _counts_rows(node: exp.Expression) -> bool:
    if isinstance(node, exp.Star):
        return not any(node.args.values())
    return isinstance(node, exp.Literal)


def _only(node: exp.Expression, *parts: str) -> None:
    more = [name for name, value in node.args.items() if value and name not in parts]
    if more:
        raise refused(f"{type(node).__name__.upper()} with {more[0].strip('_').upper()}")


def outside(expression: Expression, keys: tuple[Expression, ...]) -> None:
    """Refuse columns that are neither keys of the grouping nor inside of aggregates."""
    if expression in keys or isinstance(expression, Aggregate | Constant):
        return
    children = getattr(expression, "arguments", None)
    if children is None:
        raise InvalidQuery(f"{getattr(expression, 'ref', 'a column')} is not in the GROUP BY")
    for child in children:
        outside(child, keys)


def has_aggregate(expression: Expression) -> bool:
    """Whether an aggregate is in it."""
    return any(isinstance(part, Aggregate) for part in below(expression))
