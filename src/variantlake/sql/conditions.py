"""Conditions in a query's text: comparisons of columns and paths with constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlglot import exp

from variantlake.expressions.columns import Columns
from variantlake.expressions.literals import coerced, constant
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
    StartsWith,
)
from variantlake.expressions.typing import comparison_type, refused

_COMPARISONS: dict[type[exp.Expression], CompareOp] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}


def padded_alike(ref: Ref, literals: tuple[Literal, ...]) -> tuple[Ref, tuple[Literal, ...]]:
    """A CHAR and what it is compared with, as Spark pads them: all to the longest.

    It does so where all of the constants are strings, for comparisons and IN; BETWEEN and LIKE take
    them as they are.
    """
    texts = [literal.value for literal in literals if isinstance(literal.value, str)]
    if not ref.char_length or len(texts) != len(literals):
        return ref, literals
    length = max([ref.char_length, *map(len, texts)])
    return replace(ref, char_length=length), tuple(
        replace(literal, value=text.ljust(length))
        for literal, text in zip(literals, texts, strict=True)
    )


class Conditions:
    """Reads conditions on the rows of one table; `utc` as in `QueryText`."""

    def __init__(self, columns: Columns, *, utc: bool) -> None:
        self._columns = columns
        self._utc = utc

    def predicate(self, node: exp.Expression) -> Predicate:
        """The condition. Raises InvalidQuery, and UnsupportedFeature for what Spark has to run."""
        match node:
            case exp.Paren():
                return self.predicate(node.this)
            case exp.And() | exp.Or():
                # A chain of thousands leans to the left as deep.
                every: Iterator[Any] = node.flatten()
                terms = tuple(map(self.predicate, every))
                return And(terms) if isinstance(node, exp.And) else Or(terms)
            case exp.Not():
                return Not(self.predicate(node.this))
            case exp.Between() if not node.args.get("symmetric"):
                operand = self._operand(node.this)
                low, high = (self._constant(node.args[side]) for side in ("low", "high"))
                return And(
                    (
                        Compare(">=", operand, coerced(operand, low, utc=self._utc)),
                        Compare("<=", operand, coerced(operand, high, utc=self._utc)),
                    )
                )
            case exp.In() if not any(
                node.args.get(name) for name in ("query", "unnest", "field", "is_global")
            ):
                return self._in(node)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self._operand(node.this))
            case exp.Boolean():
                return And(()) if node.this else Or(())
            case exp.StartsWith():
                return self._starts_with(node, node.expression)
            case exp.Like():
                return self._like(node)
        if type(node) in _COMPARISONS:
            return self._comparison(_COMPARISONS[type(node)], node)
        ref = self._columns.find(node)
        if ref is None or ref.type != "boolean":
            raise refused("the condition")
        return Compare("=", ref, Literal(value=True, type="boolean"))

    def _comparison(self, op: CompareOp, node: exp.Expression) -> Predicate:
        left, right = self._columns.find(node.this), self._columns.find(node.expression)
        ref = left or right
        if ref is None or (left and right):
            raise refused("a comparison that is not of a column or path with a constant")
        given = self._constant(node.expression if left else node.this)
        ref, (literal,) = padded_alike(ref, (given,))
        literal = coerced(ref, literal, utc=self._utc)
        return Compare(op, ref, literal) if left else Compare(op, literal, ref)

    def _in(self, node: exp.In) -> Predicate:
        given = tuple(map(self._constant, node.expressions))
        operand, given = padded_alike(self._operand(node.this), given)
        options = tuple(coerced(operand, part, utc=self._utc) for part in given)
        if comparison_type(operand.type, options) is None:
            raise refused("an IN of several types")
        return In(operand, options)

    def _starts_with(self, node: exp.Expression, prefix: exp.Expression) -> Predicate:
        operand = self._operand(node.this)
        if operand.type != "string" or not isinstance(prefix, exp.Literal) or not prefix.is_string:
            raise refused("a prefix of what is not a string")
        return StartsWith(operand, prefix.this)

    def _like(self, node: exp.Like) -> Predicate:
        operand = self._operand(node.this)
        pattern = node.expression
        if (
            operand.type != "string"
            or not isinstance(pattern, exp.Literal)
            or not pattern.is_string
        ):
            raise refused("a LIKE of what is not a string")
        prefix, wildcard, rest = pattern.this.partition("%")
        if rest.strip("%") or "_" in prefix or "\\" in prefix:
            raise refused("a LIKE that is not of a prefix")
        found: Predicate = StartsWith(operand, prefix)
        if not wildcard:
            found = Compare("=", operand, Literal(prefix, "string"))
        return Not(found) if node.args.get("negate") else found

    def _operand(self, node: exp.Expression) -> Ref:
        ref = self._columns.find(node)
        if ref is None:
            raise refused("an operand that is neither a column nor a path")
        return ref

    def _constant(self, node: exp.Expression) -> Literal:
        return constant(node, utc=self._utc)
