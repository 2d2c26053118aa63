"""A small model of files and of Spark's semantics, for brute force: rows, facts, three values.

A document is a Python value: dict, list, int, Decimal, float, str, bool, None for the Variant null,
and MISSING if there is nothing. It knows nothing of the planner: what the planner claims about a
file is compared with what the model finds row by row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from variantlake.expressions.tree import (
    And,
    Compare,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import Kind, ShreddedType


class Missing:
    """Nothing at all: a field that a document lacks, or a SQL NULL at the root."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()
WIDE = Context(prec=100, rounding=ROUND_HALF_UP)
INT_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
INT_KINDS = {Kind.INT8: 7, Kind.INT16: 15, Kind.INT32: 31, Kind.INT64: 63}


@dataclass(frozen=True)
class Row:
    """One row: the Variant column `v` and ordinary columns."""

    variant: Any
    columns: dict[tuple[str, ...], Any] = field(default_factory=dict)


# --- Facts ----------------------------------------------------------------------------------------


def fits(value: Any, stored: ShreddedType) -> bool:
    """Whether the value belongs into a typed column of this type."""
    if isinstance(value, bool):
        return stored.kind is Kind.BOOLEAN
    if isinstance(value, int) and stored.kind in INT_KINDS:
        return -(1 << INT_KINDS[stored.kind]) <= value < 1 << INT_KINDS[stored.kind]
    if isinstance(value, int | Decimal) and stored.kind is Kind.DECIMAL:
        scaled = WIDE.scaleb(Decimal(value), stored.scale)
        return scaled == scaled.to_integral_value() and scaled.copy_abs() < 10**stored.precision
    if isinstance(value, float):
        return stored.kind is Kind.DOUBLE
    return isinstance(value, str) and stored.kind is Kind.STRING


def path_facts(path: Path, node: Node, values: Sequence[Any]) -> Iterator[PathFacts]:
    """The exact facts of a node and of all below it; `values` has one entry for each row."""
    present = [value for value in values if value is not MISSING]
    typed = [value for value in present if _is_typed(value, node)]
    partial = (
        [value for value in typed if not value.keys() <= {name for name, _ in node.fields}]
        if isinstance(node, Object)
        else []
    )
    others = [value for value in present if value is not None and not _is_typed(value, node)]
    nulls = sum(value is None for value in present)
    inside = _clean_inside(node.element, _elements(typed)) if isinstance(node, Array) else ()
    own = PathFacts(
        path,
        node,
        len(typed),
        nulls,
        len(others) + len(partial),
        clean_inside=sum(clean << number for number, clean in enumerate(inside)),
    )
    yield replace(own, **_bounds(node.type, typed)) if isinstance(node, Leaf) else own
    if isinstance(node, Object):
        for name, child in node.fields:
            below = [v.get(name, MISSING) if isinstance(v, dict) else MISSING for v in values]
            yield from path_facts(path.child(name), child, below)


def _clean_inside(node: Node, values: Sequence[Any]) -> Iterator[bool]:
    """Whether each node inside of an array is clean; `values` are all of its elements."""
    yield next(path_facts(Path(), node, values)).clean
    if isinstance(node, Object):
        for name, child in node.fields:
            below = [v.get(name, MISSING) if isinstance(v, dict) else MISSING for v in values]
            yield from _clean_inside(child, below)
    if isinstance(node, Array):
        yield from _clean_inside(node.element, _elements(values))


def _elements(values: Sequence[Any]) -> list[Any]:
    return [element for value in values if isinstance(value, list) for element in value]


def _is_typed(value: Any, node: Node) -> bool:
    match node:
        case Leaf(type_):
            return fits(value, type_)
        case Object():
            return isinstance(value, dict)
        case Array():
            return isinstance(value, list)
        case Untyped():
            return False


def _bounds(stored: ShreddedType, typed: list[Any]) -> dict[str, Any]:
    plain = not any(
        math.isnan(v) or (v == 0 and math.copysign(1, v) < 0) for v in typed if isinstance(v, float)
    )
    ordered = [v for v in typed if not (isinstance(v, float) and math.isnan(v))]
    if stored.kind is Kind.BOOLEAN or not ordered:
        return {"plain_floats": plain and stored.kind is Kind.DOUBLE}
    low, high = min(ordered), max(ordered)
    if stored.kind is Kind.DECIMAL:
        low, high = Decimal(low), Decimal(high)
    return {
        "bounds": Bounds(low, high, minimum_exact=True, maximum_exact=True),
        "plain_floats": plain and stored.kind is Kind.DOUBLE,
    }


def file_facts(
    schema: ShreddingSchema, rows: Sequence[Row], columns: tuple[ColumnFacts, ...] = ()
) -> FileFacts:
    """The exact facts of a file with these rows and this layout of the column `v`."""
    values = [row.variant for row in rows]
    paths = tuple(path_facts(Path(), schema.root, values))
    nulls = sum(value is MISSING for value in values)
    variant = VariantFacts(("v",), schema, nulls, paths)
    return FileFacts(1000, len(rows), 1, (variant,), columns)


# --- Spark ----------------------------------------------------------------------------------------


def lookup(document: Any, path: Path) -> Any:
    """The value at the path, MISSING if there is none."""
    for step in path.steps:
        if isinstance(step, str) and isinstance(document, dict):
            document = document.get(step, MISSING)
        elif isinstance(step, int) and isinstance(document, list) and step < len(document):
            document = document[step]
        else:
            return MISSING
    return document


def variant_get(document: Any, path: Path, requested: str) -> Any:
    """`try_variant_get`; None is NULL. As `variant`, a Variant null is a value."""
    found = lookup(document, path)
    if found is MISSING:
        return None
    if requested == "variant":
        return ("variant", found)
    return None if found is None else cast(found, requested)


def cast(value: Any, requested: str) -> Any:
    """Spark's cast of a scalar, as TRY: None if it fails."""
    if isinstance(value, dict | list):
        return repr(value) if requested == "string" else None
    if requested == "string":
        return _text(value)
    if requested == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?\d+(\.\d+)?", value):
            return None
        value = Decimal(value)
    if requested in INT_BITS:
        return _integer(value, requested)
    if requested == "double":
        return float(value)
    if requested.startswith("decimal"):
        return _decimal(value, requested)
    return None


def _text(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value.normalize(WIDE):f}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _integer(value: Any, requested: str) -> int | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    whole = (
        int(float(value)) if isinstance(value, Decimal) and requested != "bigint" else int(value)
    )
    limit = 1 << INT_BITS[requested]
    return whole if -limit <= whole < limit else None


def _decimal(value: Any, requested: str) -> Decimal | None:
    precision, scale = map(int, re.findall(r"\d+", requested))
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or exact.adjusted() > 40:
        return None
    rounded = WIDE.quantize(exact, Decimal(1).scaleb(-scale))
    return rounded if rounded.copy_abs() < Decimal(10) ** (precision - scale) else None


def operand(row: Row, ref: Ref) -> Any:
    """The value of a Ref in a row, None for NULL."""
    if ref.path is not None:
        return variant_get(row.variant, ref.path, ref.type)
    if ref.column == ("v",):
        return None if row.variant is MISSING else ("variant", row.variant)
    return row.columns.get(ref.column)


def compare(op: str, left: Any, right: Any) -> bool | None:
    """A comparison of two values of Spark's common type: NaN is the greatest, -0.0 is 0.0."""
    if op == "<=>":
        return (left is None and right is None) or bool(compare("=", left, right))
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = _double(left), _double(right)
    results: dict[str, bool] = {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return results[op]


def _double(value: Any) -> tuple[bool, float]:
    number = float(value)
    return (True, 0.0) if math.isnan(number) else (False, number)


FLIP = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def evaluate(predicate: Predicate, row: Row) -> bool | None:
    """The predicate's truth in one row; None is null."""
    match predicate:
        case Compare(op, Ref() as ref, Literal(value)):
            return compare(op, operand(row, ref), value)
        case Compare(op, Literal(value), Ref() as ref):
            return compare(FLIP.get(op, op), operand(row, ref), value)
        case In(Ref() as ref, options):
            as_double = any(isinstance(option.value, float) for option in options)
            own = operand(row, ref)
            if as_double and own is not None:
                own = float(own)
            return _any([compare("=", own, option.value) for option in options])
        case StartsWith(Ref() as ref, prefix):
            text = operand(row, ref)
            return None if text is None else str(text).startswith(prefix)
        case IsNull(Ref() as ref):
            return operand(row, ref) is None
        case And(terms):
            return _not(_any([_not(evaluate(term, row)) for term in terms]))
        case Or(terms):
            return _any([evaluate(term, row) for term in terms])
        case Not(term):
            return _not(evaluate(term, row))
        case _:
            raise AssertionError(predicate)


def _any(values: list[bool | None]) -> bool | None:
    if True in values:
        return True
    return None if None in values else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value
