"""Read sqlglot's trees as typed expressions; refuse by name what may differ from Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from sqlglot import exp

from variantlake.errors import InvalidQuery
from variantlake.expressions.casts.permitted import explicit_cast, tried_cast
from variantlake.expressions.columns import Columns
from variantlake.expressions.functions.from_sqlglot import read_function
from variantlake.expressions.functions.nodes import Read, only
from variantlake.expressions.functions.signatures import call
from variantlake.expressions.functions.time_signatures import zoned
from variantlake.expressions.literals import DAY, coerced, constant, type_name
from variantlake.expressions.tree import (
    Aggregate,
    And,
    Compare,
    CompareOp,
    Expression,
    In,
    Literal,
    Not,
    Or,
    Ref,
    StartsWith,
    below,
    children,
)
from variantlake.expressions.typing import (
    BIGINT,
    DOUBLE,
    NULL,
    STRING,
    aggregate,
    as_string,
    compare,
    comparison_type,
    condition,
    is_null,
    refused,
    spark_type,
    together,
    type_of,
    type_text,
)

_COMPARISONS: dict[type[exp.Expression], CompareOp] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Count: "count",
    exp.Min: "min",
    exp.Max: "max",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.LogicalAnd: "min",
    exp.LogicalOr: "max",
}


class QueriesWithin(Protocol):
    """Evaluates the queries within expressions to constants."""

    def exists(self, node: exp.Expression) -> Literal:
        """TRUE if the query returns a row, else FALSE."""

    def value(self, node: exp.Expression) -> Literal:
        """The one value that the query returns."""

    def values(self, node: exp.Expression) -> tuple[Literal, ...]:
        """The distinct values that the query returns."""


class Expressions:
    """Reads expressions over one table; `utc` as in `QueryText`.

    `names` maps the result's names to their expressions, None if ambiguous, for texts that may use
    them. `now` is the value of `now()` in microseconds since 1970; without it, or unless `utc`,
    `now()` is refused. `queries` evaluates nested queries; without it they are refused.
    """

    def __init__(
        self,
        columns: Columns,
        *,
        utc: bool,
        names: Mapping[str, Expression | None] | None = None,
        now: int | None = None,
        queries: QueriesWithin | None = None,
    ) -> None:
        self._columns = columns
        self._queries = queries
        self._utc = utc
        self._now = now if utc else None
        self._names = names or {}

    def expression(self, node: exp.Expression, *, inside: bool = False) -> Expression:
        """Read an expression; `inside` an aggregate, refuse another aggregate.

        Raises InvalidQuery, and UnsupportedFeature for expressions that only Spark can run.
        """
        found = self._read(node, inside=inside)
        if not self._utc and zoned(found):
            raise refused("a part of a timestamp in a time zone that only Spark knows")
        return found

    def condition(self, node: exp.Expression) -> Expression:
        """Read a condition on rows.

        Raises InvalidQuery, and UnsupportedFeature for conditions that only Spark can run.
        """
        found = condition(self.expression(node))
        if has_aggregate(found):
            raise InvalidQuery("an aggregate in WHERE")
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
        if isinstance(node, exp.Cast):  # TRY_CAST as well
            converted = self._cast(node, inside=inside)
            if converted is not None:
                return converted
        ref = self._columns.find(node)
        if ref is not None:
            return ref
        if _is_constant(node):
            return constant(node, utc=self._utc)
        if self._queries is not None and isinstance(node, exp.Subquery):
            return self._queries.value(node)
        if self._queries is not None and isinstance(node, exp.Exists):
            return self._queries.exists(node.this)
        if isinstance(node, exp.CurrentTimestamp | exp.CurrentDate) and self._now is not None:
            only(node)
            is_day = isinstance(node, exp.CurrentDate)
            return Literal(self._now // DAY, "date") if is_day else Literal(self._now, "timestamp")

        def read(*nodes: exp.Expression) -> list[Expression]:
            return [self._read(each, inside=inside) for each in nodes]

        logical = self._condition(node, read)
        return self._call(node, read) if logical is None else logical

    def _named(self, name: str, *, inside: bool) -> Expression | None:
        if name.lower() not in self._names:
            return None
        known = [field.name.lower() for field in self._columns.schema.fields]
        found = self._names[name.lower()]
        if found is None or (inside and name.lower() in known):
            raise refused(f"the name {name!r}, which may mean several columns")
        return None if inside else found

    def _cast(self, node: exp.Cast, *, inside: bool) -> Expression | None:
        """Read a cast; None for a cast of a path, a Variant or a constant."""
        inner = node.this.unnest()
        if isinstance(inner, exp.JSONExtract) or _is_constant(node) or node.args.get("format"):
            return None
        if isinstance(inner, exp.Column) and self._is_variant(inner):
            return None
        type_ = spark_type(type_name(node.to))
        found = self._read(inner, inside=inside)
        if type_ is None or (isinstance(found, Ref) and found.char_length):
            # Spark does not pad constants that it compares with a cast CHAR.
            raise refused(f"a cast of {found} to that type")
        return (tried_cast if isinstance(node, exp.TryCast) else explicit_cast)(found, type_)

    def _is_variant(self, node: exp.Column) -> bool:
        if not node.table and self._names.get(node.name.lower()) is not None:
            return False
        ref = self._columns.find(node)
        return ref is not None and ref.type == "variant"

    def _aggregate(self, node: exp.Expression) -> Expression:
        if isinstance(node, exp.Filter):
            return self._filtered(node.this, self.expression(node.expression.this, inside=True))
        if isinstance(node, exp.CountIf):
            return _counted_if(self.expression(node.this, inside=True))
        only(node, "this", "big_int")
        inner, distinct = node.this, isinstance(node.this, exp.Distinct)
        if distinct:
            if len(inner.expressions) != 1 or inner.args.get("on"):
                raise refused("DISTINCT of several values")
            (inner,) = inner.expressions
        function = _AGGREGATES[type(node)]
        if function == "count" and not distinct and _counts_rows(inner):
            return aggregate("count", None)
        argument = self.expression(inner, inside=True)
        if isinstance(argument, Literal):
            raise refused(f"{function} of a constant")
        if isinstance(node, exp.LogicalAnd | exp.LogicalOr):
            condition(argument)  # only of BOOLEAN
        return aggregate(function, argument, distinct=distinct)

    def _filtered(self, node: exp.Expression, where: Expression) -> Expression:
        found = self._aggregate(node)
        if not isinstance(found, Aggregate):
            raise refused("a FILTER of that")
        if found.argument is None:
            return _counted_if(where)
        argument = call("case", where, found.argument, NULL)
        return aggregate(found.function, argument, distinct=found.distinct)

    def _condition(self, node: exp.Expression, read: Read) -> Expression | None:
        """Read AND, OR, NOT, comparisons and tests such as LIKE; None for any other node."""
        match node:
            case exp.And() | exp.Or():
                # A chain of thousands of terms is a tree thousands of levels deep.
                every: Iterator[Any] = node.flatten()
                terms = tuple(condition(term) for term in read(*every))
                return And(terms) if isinstance(node, exp.And) else Or(terms)
            case exp.Not():
                return Not(condition(*read(node.this)))
            case exp.Between():
                only(node, "this", "low", "high")
                operand, low, high = read(node.this, node.args["low"], node.args["high"])
                return And((self._compare(">=", operand, low), self._compare("<=", operand, high)))
            case exp.In() if self._queries is not None and node.args.get("query"):
                (operand,) = read(node.this)
                return self._in_query(operand, node, self._queries)
            case exp.In():
                only(node, "this", "expressions")
                return self._in(*read(node.this, *node.expressions))
            case exp.Is():
                (operand,) = read(node.this)
                return self._is(node, operand)
            case exp.StartsWith():
                operand = as_string(*read(node.this))
                return StartsWith(operand, _text(operand, node.expression))
            case exp.Like() | exp.ILike():
                operand = as_string(*read(node.this))
                return _like(operand, node)
            case exp.Escape(this=exp.Like() as like):
                operand = as_string(*read(like.this))
                return _like(operand, like, _text(operand, node.expression))
            case exp.NullSafeNEQ():
                _check_operands(node)
                return Not(self._compare("<=>", *_padded(read(node.this, node.expression))))
        if type(node) in _COMPARISONS:
            op = _COMPARISONS[type(node)]
            _check_operands(node)
            return self._compare(op, *_padded(read(node.this, node.expression)))
        return None

    def _compare(self, op: CompareOp, left: Expression, right: Expression) -> Expression:
        """Make a comparison; an operand that is compared with a constant is not cast."""
        if {type_of(left), type_of(right)} == {BIGINT, DOUBLE}:
            return compare(op, left, right)  # bounds cannot decide: a DOUBLE rounds some BIGINTs
        if isinstance(right, Literal) and not isinstance(left, Literal):
            return Compare(op, left, coerced(left, right, utc=self._utc))
        if isinstance(left, Literal) and not isinstance(right, Literal):
            return Compare(op, coerced(right, left, utc=self._utc), right)
        return compare(op, left, right)

    def _in(self, operand: Expression, *options: Expression) -> Expression:
        operand, *options_ = _padded([operand, *options])
        constants = tuple(each for each in options_ if isinstance(each, Literal))
        if isinstance(operand, Literal) or len(constants) < len(options_):
            if len({type_of(option) for option in options_ if type_of(option)}) > 1:
                operand, *options_ = together("an IN", [operand, *options_])
            return Or(tuple(self._compare("=", operand, option) for option in options_))
        constants = tuple(coerced(operand, each, utc=self._utc) for each in constants)
        if comparison_type(type_of(operand), constants) is None:
            raise refused("an IN of several types")
        return In(operand, constants)

    def _in_query(self, operand: Expression, node: exp.In, queries: QueriesWithin) -> Expression:
        """Read `IN (SELECT …)` in a WHERE or HAVING.

        Elsewhere Spark gives FALSE instead of NULL. An IN of no values is FALSE, even for NULL.
        """
        above = node.parent
        while isinstance(above, exp.Paren | exp.And | exp.Or | exp.Not):
            above = above.parent
        if not isinstance(above, exp.Where | exp.Having):
            raise refused("IN (SELECT …) in an expression, which is more than AND, OR and NOT")
        only(node, "this", "query")
        values = queries.values(node.args["query"])
        return self._in(operand, *values) if values else Or(())

    def _is(self, node: exp.Is, operand: Expression) -> Expression:
        if isinstance(node.expression, exp.Null):
            return is_null(operand)
        if isinstance(node.expression, exp.Boolean):
            wanted = Literal(bool(node.expression.this), "boolean")
            return self._compare("<=>", operand, wanted)
        raise refused("this IS")

    def _call(self, node: exp.Expression, read: Read) -> Expression:
        if isinstance(node, exp.Case):
            return self._case(node, read)
        if isinstance(node, exp.Nullif):
            left, right = read(node.this, node.expression)
            same = self._compare("=", left, right)
            return call("case", same, Literal(None, type_text(left)), left)
        found = read_function(node, read)
        if not self._utc and isinstance(found, Literal) and found.type == "timestamp":
            raise refused("a timestamp moved in a time zone that only Spark knows")
        return found

    def _case(self, node: exp.Case, read: Read) -> Expression:
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            decides, result = read(branch.this, branch.args["true"])
            if node.this is not None:
                (operand,) = read(node.this)
                decides = self._compare("=", operand, decides)
            parts += [decides, result]
        default = node.args.get("default")
        return call("case", *parts, *([NULL] if default is None else read(default)))


def _check_operands(node: exp.Expression) -> None:
    """Refuse `a = b < c`: in Spark, unlike sqlglot, all comparisons have the same precedence.

    In `a = b IS NULL` and the like, Spark compares first; it takes no such test as a left operand.
    """
    if isinstance(node.this, _PREDICATES) or isinstance(
        node.expression, (*_PREDICATES, *_COMPARISONS, exp.NullSafeNEQ)
    ):
        raise refused("a comparison of a condition without parentheses")


_PREDICATES = (exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Escape, exp.Not)


def _padded(operands: list[Expression]) -> list[Expression]:
    """Pad a CHAR and the constants that it is compared with to the longest, as Spark does.

    Spark pads in comparisons and IN if all the constants are strings, but not in BETWEEN and LIKE.
    """
    columns = [each for each in operands if isinstance(each, Ref) and each.char_length]
    texts = [each.value for each in operands if isinstance(each, Literal)]
    if len(columns) != 1 or len(texts) != len(operands) - 1:
        return operands
    lengths = [len(text) for text in texts if isinstance(text, str)]
    if len(lengths) != len(texts):
        return operands
    length = max([columns[0].char_length, *lengths])
    return [
        replace(each, char_length=length)
        if isinstance(each, Ref)
        else Literal(str(each.value).ljust(length), each.type)
        for each in operands
        if isinstance(each, Ref | Literal)
    ]


def _text(operand: Expression, text: exp.Expression) -> str:
    if type_of(operand) != STRING or not isinstance(text, exp.Literal) or not text.is_string:
        raise refused("a prefix or a LIKE of something that is not a string")
    return str(text.this)


def _like(operand: Expression, node: exp.Like | exp.ILike, escape: str = "\\") -> Expression:
    """Read LIKE and ILIKE, also with ANY or ALL of several patterns; NOT negates each match."""
    several = node.expression if isinstance(node.expression, exp.Any | exp.All) else None
    texts = [node.expression] if several is None else several.this.unnest().expressions
    terms = []
    for text in texts or [several.this.unnest() if several else node.expression]:
        term = _matches(operand, _text(operand, text), escape, any_case=isinstance(node, exp.ILike))
        terms.append(Not(term) if node.args.get("negate") else term)
    if len(terms) == 1:
        return terms[0]
    return Or(tuple(terms)) if isinstance(several, exp.Any) else And(tuple(terms))


def _matches(operand: Expression, pattern: str, escape: str, *, any_case: bool) -> Expression:
    pattern = _with_backslashes(pattern, escape)
    if any_case:
        if not pattern.isascii():
            raise refused("an ILIKE of other than ASCII")
        return call("like", call("lower", operand), Literal(pattern.lower(), "string"))
    prefix, wildcard, rest = pattern.partition("%")
    if rest.strip("%") or "_" in prefix or "\\" in prefix:
        return call("like", operand, Literal(pattern, "string"))
    if not wildcard:
        return Compare("=", operand, Literal(prefix, "string"))
    return StartsWith(operand, prefix)


def _with_backslashes(pattern: str, escape: str) -> str:
    """Rewrite a pattern to escape with backslashes, as patterns without ESCAPE do."""
    if len(escape) != 1 or escape in "%_":
        raise refused(f"the escape {escape!r}")
    parts, characters = list[str](), iter(pattern)
    for character in characters:
        if character != escape:
            parts.append("\\\\" if character == "\\" else character)
            continue
        escaped = next(characters, "")
        if escaped not in ("%", "_", escape):
            raise refused(f"a pattern with {character + escaped!r}")
        parts.append(f"\\{escaped}" if escaped in ("%", "_", "\\") else escaped)
    return "".join(parts)


def _counted_if(where: Expression) -> Expression:
    return aggregate("count", call("case", where, Literal(1, "int"), NULL))


def _is_constant(node: exp.Expression) -> bool:
    if isinstance(node, exp.Neg | exp.Paren):
        return _is_constant(node.this)
    if isinstance(node, exp.Cast):
        return isinstance(node.this, exp.Literal)
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.HexString)


def _counts_rows(node: exp.Expression) -> bool:
    if isinstance(node, exp.Star):
        return not any(node.args.values())
    return isinstance(node, exp.Literal)


def outside(expression: Expression, keys: tuple[Expression, ...]) -> None:
    """Raise InvalidQuery for a column that is neither a grouping key nor inside an aggregate."""
    if expression in keys or isinstance(expression, Aggregate):
        return
    if isinstance(expression, Ref):
        raise InvalidQuery(f"{expression} is not in the GROUP BY")
    for child in children(expression):
        outside(child, keys)


def has_aggregate(expression: Expression) -> bool:
    """Whether the expression contains an aggregate."""
    return any(isinstance(part, Aggregate) for part in below(expression))
