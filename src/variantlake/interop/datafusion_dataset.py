"""Let DataFusion read a scan, with the columns and conditions of its queries.

DataFusion takes fragments and scanners from a pyarrow dataset, and leaves comparisons, IN, IS NULL
and their combinations to it, so this module must choose the same rows as DataFusion. Conditions
that mean the same to us skip files and rows. If some part of the condition does not, or if it
compares doubles or times, this module applies it again to the rows that were read, in DataFusion's
order of doubles, in which a negative NaN is the least.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from variantlake.expressions.tree import And, CompareOp, Not, Or, Predicate
from variantlake.interop.arrow_expression import (
    ArrowCall,
    ArrowConstant,
    ArrowField,
    Node,
    parse_expression,
)
from variantlake.interop.pushed_scan import NotPushed, PushedScan

_OPERATORS: dict[str, CompareOp] = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_FLIPPED: dict[CompareOp, CompareOp] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class DataFusionDataset(ds.Dataset):
    """A scan as a dataset that a session context registers. Each query reads its rows once."""

    def __init__(self, pushed: PushedScan) -> None:
        self._pushed = pushed

    @property
    def schema(self) -> pa.Schema:
        """The columns for queries."""
        return self._pushed.scan.schema

    def get_fragments(self, filter: Any = None) -> Iterator[ds.Fragment]:  # noqa: A002, ARG002
        """Yield one fragment with all rows: `scanner` gets the condition."""
        fragment: Any = self
        yield fragment

    def scanner(self, *_schema: Any, **keywords: Any) -> Any:
        """Return the scanner for a query's `columns` and `filter`.

        DataFusion uses its `projected_schema` and `to_batches`.
        """
        return _Scanner(self._pushed, keywords.get("columns"), keywords.get("filter"))


class _Scanner:
    def __init__(self, pushed: PushedScan, columns: Sequence[str] | None, condition: Any) -> None:
        names = list(pushed.items) if columns is None else list(columns)
        self._names = names
        self._expression = condition
        try:
            self._tree = None if condition is None else _checked(parse_expression(condition))
            read = list(dict.fromkeys([*names, *_fields(self._tree)]))
        except NotPushed:  # pyarrow filters, and may need any column
            self._tree = None
            read = list(pushed.items)
        parts = _parts(self._tree)
        conditions = [found for part in parts if (found := _pushed(part, pushed)) is not None]
        if parts and len(conditions) == len(parts) and _is_exact(self._tree, pushed):
            # The scan returns exactly the rows that fulfil the condition.
            self._tree = self._expression = None
            read = names
        self._scan = pushed.narrowed(read, conditions)
        self.projected_schema = pa.schema([pushed.scan.schema.field(name) for name in names])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._scan.to_batches():
            yield self._with_rows(batch)

    def _with_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._tree is not None:
            fulfilled = _evaluate(self._tree, batch)
            if fulfilled.true_count < batch.num_rows:
                batch = batch.filter(fulfilled)
        elif self._expression is not None:
            batch = batch.filter(self._expression)
        if self._names:
            return batch.select(self._names)
        # Without columns, only a struct array without fields keeps the number of rows.
        count: Any = pa.array([{}] * batch.num_rows, pa.struct([]))
        return pa.RecordBatch.from_struct_array(count)


def _fields(node: Node | None) -> Iterator[str]:
    match node:
        case ArrowField(name):
            yield name
        case ArrowCall(_, arguments):
            for each in arguments:
                yield from _fields(each)


# --- Conditions that skip files and rows ----------------------------------------------------------


def _parts(node: Node | None) -> list[Node]:
    """Split a condition into parts that are joined by AND."""
    if isinstance(node, ArrowCall) and node.function == "and_kleene":
        return [part for each in node.arguments for part in _parts(each)]
    return [] if node is None else [node]


def _pushed(part: Node, pushed: PushedScan) -> Predicate | None:
    """Return a condition of ours that is true for all rows of `part`, and perhaps for others.

    None if there is none.
    """
    try:
        return _condition(part, pushed)
    except NotPushed:
        return None


def _is_exact(node: Node | None, pushed: PushedScan) -> bool:
    """Whether our condition is true for no other rows. Doubles and times compare differently."""
    types = [pushed.scan.schema.field(name).type for name in _fields(node)]
    return not any(pa.types.is_floating(each) or pa.types.is_timestamp(each) for each in types)


def _condition(node: Node, pushed: PushedScan) -> Predicate:
    match node:
        case ArrowCall("or_kleene", parts):
            return Or(tuple(_condition(each, pushed) for each in parts))
        case ArrowCall("and_kleene", parts):
            return And(tuple(_condition(each, pushed) for each in parts))
        case ArrowCall("is_null", (ArrowField(name),)):
            return pushed.null(name)
        case ArrowCall("is_valid", (ArrowField(name),)):
            return Not(pushed.null(name))
        case ArrowCall("is_in", (ArrowField(name),), options):
            values = options["value_set"]
            return Or(tuple(_compared("=", name, each, pushed) for each in values))
        case ArrowCall(function, (ArrowField(name), ArrowConstant(scalar))) if (
            function in _OPERATORS
        ):
            return _compared(_OPERATORS[function], name, scalar.as_py(), pushed)
        case ArrowCall(function, (ArrowConstant(scalar), ArrowField(name))) if (
            function in _OPERATORS
        ):
            op = _OPERATORS[function]
            return _compared(_FLIPPED.get(op, op), name, scalar.as_py(), pushed)
        case ArrowField(name):
            return pushed.compared("=", name, value=True)
    raise NotPushed


def _compared(op: CompareOp, name: str, value: Any, pushed: PushedScan) -> Predicate:
    found = pushed.compared(op, name, value)
    if isinstance(value, float) and op in ("<", "<="):
        # DataFusion takes a negative NaN as the least; for us, all NaNs are the greatest.
        return Or((found, pushed.compared(">", name, sys.float_info.max)))
    return found


# --- The rows that DataFusion would choose --------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(pc, name) for name in _OPERATORS},
    "and_kleene": pc.and_kleene,
    "or_kleene": pc.or_kleene,
    "invert": pc.invert,
    "is_valid": pc.is_valid,
}


def _evaluate(node: Node, batch: pa.RecordBatch) -> Any:
    """Evaluate a condition or operand for each row; booleans may be null."""
    match node:
        case ArrowField(name):
            return batch.column(name)
        case ArrowConstant(scalar):
            return pa.repeat(scalar, batch.num_rows)
        case ArrowCall("is_null", (operand,)):
            return pc.is_null(_evaluate(operand, batch))
        case ArrowCall("is_in", (operand,), options):
            return _is_in(_evaluate(operand, batch), options["value_set"])
        case ArrowCall(function, arguments) if function in _OPERATORS:
            sides = [_evaluate(each, batch) for each in arguments]
            return _FUNCTIONS[function](*(_ordered(each, zeros_differ=False) for each in sides))
        case ArrowCall(function, arguments):
            return _FUNCTIONS[function](*(_evaluate(each, batch) for each in arguments))


def _checked(node: Node) -> Node:
    """Check that `_evaluate` can evaluate a condition, and return it. Raises NotPushed."""
    if isinstance(node, ArrowCall):
        if node.function not in {*_FUNCTIONS, "is_null", "is_in"}:
            raise NotPushed
        for each in node.arguments:
            _checked(each)
    return node


def _is_in(array: Any, values: Sequence[Any]) -> Any:
    """Evaluate IN as SQL does: NULL for NULL, and without a match if one of the values is NULL."""
    given = pa.array([each for each in values if each is not None], array.type)
    wanted, ordered = (_ordered(each, zeros_differ=True) for each in (given, array))
    found = pc.is_in(ordered, value_set=wanted)
    unknown = pc.is_null(array)
    if None in values:
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def _ordered(array: Any, *, zeros_differ: bool) -> Any:
    """Map doubles to integers in DataFusion's order, which is the total order of IEEE 754.

    In comparisons the two zeros are equal, in IN they are not.
    """
    if not pa.types.is_floating(array.type):
        return array
    numbers = np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0))
    bits = (numbers if zeros_differ else np.where(numbers == 0, 0.0, numbers)).view(np.int64)
    order = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return pa.array(order, mask=np.asarray(pc.is_null(array)))
