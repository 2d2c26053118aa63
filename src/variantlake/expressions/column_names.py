"""The names that Spark gives to the columns of a result that the query does not name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from sqlglot import exp

from variantlake.errors import UnsupportedFeature
from variantlake.expressions.columns import Columns
from variantlake.expressions.literals import type_name
from variantlake.expressions.tree import Expression, Ref, below
from variantlake.expressions.typing import refused, type_of
from variantlake.types import Kind


def name_of(node: exp.Expression, ref: Ref) -> str:
    """The name of a column or a path."""
    inner: exp.Expr = node
    while isinstance(inner, exp.Cast | exp.TryCast | exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Column):
        return inner.name  # as the query writes it
    if isinstance(inner, exp.Anonymous):
        column, path, *_ = inner.expressions
        written = _column(column, ref) if isinstance(column, exp.Column) else ""
        return f"{str(inner.this).lower()}({written}, {path.this})"
    keys = [] if ref.path is None else [step for step in ref.path.steps if isinstance(step, str)]
    return keys[-1] if keys else ref.column[-1]


def name_of_expression(
    node: exp.Expression, found: Expression, column: Callable[[exp.Column], str], text: str
) -> str:
    """The name of any expression, read as `found` from a query's `text`.

    `column` names a column in it. Raises UnsupportedFeature if the name is not known here.
    """
    whole = node.unnest()
    inner = whole.this.unnest() if isinstance(whole, exp.Cast) else whole
    if isinstance(inner, exp.JSONExtract) and isinstance(found, Ref):
        return name_of(inner, found)
    if isinstance(inner, exp.Column) and (inner is whole or column(inner) == inner.name):
        return inner.name  # a cast field of a struct has a name of its own
    return _Names(found, column, text).of(whole)


def name_of_column(node: exp.Column, columns: Columns) -> str:
    """The name of a column, or of a struct's field with its struct, without the table's."""
    ref = columns.find(node)
    return node.name if ref is None else _column(node, ref)


def _column(column: exp.Column, ref: Ref) -> str:
    return ".".join([part.name for part in column.parts][-len(ref.column) :])


class _Names:
    """Writes the parts of one expression as Spark does, without quotes and implicit casts."""

    def __init__(self, found: Expression, column: Callable[[exp.Column], str], text: str) -> None:
        self._column, self._text = column, text
        # Spark writes `dt + 1` as `date_add(dt, 1)`, and only types tell the two apart.
        types = [type_of(part) for part in below(found)]
        self._has_times = any(type_ is not None and type_.kind in _TIMES for type_ in types)

    def of(self, node: exp.Expr) -> str:
        """Return the text of a part. Raises UnsupportedFeature if Spark's is not known."""
        if isinstance(node, exp.Paren):
            return self.of(node.this)
        if isinstance(node, exp.Cast | exp.JSONExtract | exp.Column):
            return self._value(node)
        if isinstance(node, exp.Literal | exp.Neg | exp.Boolean | exp.Null):
            return self._constant(node)
        called = self._called(node)
        if called:
            return self._call(node, called)
        operator = _OPERATORS.get(type(node))
        if isinstance(node, exp.Add | exp.Sub) and self._has_times:
            raise unnamed()
        if operator is not None:
            return f"({self.of(node.this)} {operator} {self.of(node.expression)})"
        write = _SPECIAL.get(type(node))
        if write is None:
            raise unnamed()
        return write(self, node)

    def all_of(self, nodes: list[exp.Expr]) -> str:
        """Return the texts of some parts, as in a call."""
        return ", ".join(map(self.of, nodes))

    def _value(self, node: exp.Expr) -> str:
        """Write a column, a path, or a cast."""
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Cast):
            if isinstance(node.this, exp.Literal):  # perhaps DATE'…', or 2L
                raise unnamed()
            called = self._called(node)
            if called:
                return self._call(node, called)
            word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
            return f"{word}({self.of(node.this)} AS {type_name(node.to).upper()})"
        steps = node.expression.expressions[1:]
        if not isinstance(node.this, exp.Column) or any(each.args.get("quoted") for each in steps):
            raise unnamed()  # the two spellings of such a key have two names
        keys = [each.this for each in steps if isinstance(each, exp.JSONPathKey)]
        path = "".join(
            f".{each.this}" if isinstance(each, exp.JSONPathKey) else f"[{each.this}]"
            for each in steps
        )
        return f"variant_get({self._column(node.this)}, ${path}) AS {keys[-1]}"

    def _constant(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Neg):
            of_number = isinstance(node.this, exp.Literal)
            return f"-{self.of(node.this)}" if of_number else f"(- {self.of(node.this)})"
        if isinstance(node, exp.Null):
            return "NULL"
        if isinstance(node, exp.Boolean):
            return str(node.this).lower()
        if node.is_string or node.this.isdigit():
            return str(node.this)
        if "e" in node.this.lower():  # a DOUBLE, as Java writes it
            raise unnamed()
        return str(Decimal(node.this))

    def _called(self, node: exp.Expr) -> str:
        """The name of a function as the query writes it, in lower case; empty for an operator."""
        if "start" not in node.meta:
            return _PLACELESS.get(type(node), "")
        return self._text[node.meta["start"] : node.meta["end"] + 1].lower()

    def _call(self, node: exp.Expr, name: str) -> str:
        if name in ("variant_get", "try_variant_get"):
            return f"{name}({self.all_of(node.expressions[:2])})"
        if name in _CASTS:
            return self.of(next(_arguments(node)))
        if name in _OTHERWISE:
            raise unnamed()
        if isinstance(node.this, exp.Star):
            return f"{name}(1)"
        if isinstance(node.this, exp.Distinct):
            return f"{name}(DISTINCT {self.all_of(node.this.expressions)})"
        texts = list(map(self.of, _arguments(node)))
        if name.endswith("trim") and len(texts) > 1:
            raise unnamed()
        if name in ("locate", "position"):
            texts[:2] = texts[1::-1]
        texts += _DEFAULTS.get((name, len(texts)), ())
        return f"{_SHOWN.get(name, name)}({', '.join(texts)})"

    def case(self, node: exp.Expr) -> str:
        """Write CASE."""
        pairs = []
        for each in node.args["ifs"]:
            condition = self.of(each.this)
            if node.this is not None:
                condition = f"({self.of(node.this)} = {condition})"
            pairs.append(f"WHEN {condition} THEN {self.of(each.args['true'])} ")
        default = node.args.get("default")
        last = "" if default is None else f"ELSE {self.of(default)} "
        return f"CASE {''.join(pairs)}{last}END"

    def is_of(self, node: exp.Expr) -> str:
        """Write IS NULL and IS TRUE."""
        operand = self.of(node.this)
        if isinstance(node.expression, exp.Null):
            return f"({operand} IS NULL)"
        return f"({operand} <=> {self.of(node.expression)})"

    def negated(self, node: exp.Expr) -> str:
        """Write NOT."""
        inner = node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            # sqlglot reads `NOT a IS NULL` alike.
            raise unnamed()
        return f"(NOT {self.of(inner)})"

    def like(self, node: exp.Expr) -> str:
        """Write LIKE and ILIKE."""
        if isinstance(node.expression, exp.Any | exp.All):
            raise unnamed()
        one, other = self.of(node.this), self.of(node.expression)
        found = f"ilike({one}, {other})" if isinstance(node, exp.ILike) else f"{one} LIKE {other}"
        return f"(NOT {found})" if node.args.get("negate") else found

    def listed(self, node: exp.Expr) -> str:
        """Write IN."""
        if set(node.args) - {"this", "expressions"}:
            raise unnamed()
        return f"({self.of(node.this)} IN ({self.all_of(node.expressions)}))"


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """The arguments of a call in the order of the query."""
    for each in node.args.values():
        for argument in each if isinstance(each, list) else [each]:
            if isinstance(argument, exp.Var):  # a unit, of which sqlglot keeps no letters
                raise unnamed()
            if isinstance(argument, exp.Expr):
                yield argument


def unnamed() -> UnsupportedFeature:
    """Make the error for an expression whose name is not known."""
    error = refused("an expression without a name of its own")
    error.hint = error.cli_hint = "give it one: … AS name"
    return error


_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.And: "AND", exp.Or: "OR",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
}  # fmt: skip
_PLACELESS: dict[type[exp.Expr], str] = {
    exp.Ceil: "ceil", exp.Floor: "floor", exp.Trim: "trim", exp.Substring: "substring",
    exp.StrPosition: "position", exp.CurrentDate: "current_date",
}  # fmt: skip
"""Functions of which sqlglot does not tell where they stand."""
_SHOWN = {
    "ceil": "CEIL", "floor": "FLOOR", "sqrt": "SQRT", "signum": "SIGNUM", "position": "locate",
    "rlike": "RLIKE", "regexp": "REGEXP", "regexp_like": "REGEXP_LIKE",
}  # fmt: skip
_DEFAULTS = {
    **dict.fromkeys([("round", 1), ("bround", 1)], ("0",)),
    **dict.fromkeys([("regexp_replace", 3), ("locate", 2), ("position", 2)], ("1",)),
    **dict.fromkeys([("lpad", 2), ("rpad", 2)], (" ",)),
    **dict.fromkeys([("substr", 2), ("substring", 2)], ("2147483647",)),
}
"""The arguments that Spark adds to a call with so many."""
_CASTS = {
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "boolean",
    "date", "timestamp", "binary",
}  # fmt: skip
"""Functions that cast, and show their operand alone."""
_OTHERWISE = {
    "isnull", "isnotnull", "positive", "if", "to_timestamp", "from_unixtime", "date_format",
    "unix_timestamp", "date_trunc", "trunc", "dateadd", "date_add", "datediff", "date_diff",
    "timestampdiff", "date_part", "split", "element_at", "try_element_at", "get", "size",
    "cardinality", "array_contains", "regexp_extract",
}  # fmt: skip
"""Functions that Spark writes in a way that needs more than our trees."""

_SPECIAL: dict[type[exp.Expr], Callable[[_Names, exp.Expr], str]] = {
    exp.NEQ: lambda names, node: f"(NOT ({names.of(node.this)} = {names.of(node.expression)}))",
    exp.NullSafeNEQ: lambda names, node: (
        f"(NOT ({names.of(node.this)} <=> {names.of(node.expression)}))"
    ),
    exp.Not: _Names.negated,
    exp.Is: _Names.is_of,
    exp.In: _Names.listed,
    exp.Like: _Names.like,
    exp.ILike: _Names.like,
    exp.Between: lambda names, node: (
        f"between({names.all_of([node.this, node.args['low'], node.args['high']])})"
    ),
    exp.DPipe: lambda names, node: f"concat({names.all_of([node.this, node.expression])})",
    exp.RegexpLike: lambda names, node: f"RLIKE({names.all_of([node.this, node.expression])})",
    exp.TsOrDsToDate: lambda names, node: names.of(node.this),  # which sqlglot adds to some calls
    exp.BitwiseNot: lambda names, node: f"~{names.of(node.this)}",
    exp.Case: _Names.case,
    exp.If: lambda names, node: (
        f"(IF({names.all_of([node.this, node.args['true'], node.args['false']])}))"
    ),
    exp.Filter: lambda names, node: (
        f"{names.of(node.this)} FILTER (WHERE {names.of(node.expression.this)})"
    ),
}
