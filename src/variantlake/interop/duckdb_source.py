"""A scan as what DuckDB reads: it hands over the columns and conditions of its own queries.

DuckDB offers conditions to datasets of pyarrow, and to sources of its own package; this is both.
The second is no public part of DuckDB 2: the tests notice when it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from duckdb._sources import ArrowScanSource
from duckdb._sources.nodes import Binary, Col, In, Lit, Node, Postfix, Unary, exact_value

from variantlake.expressions.tree import And, CompareOp, Not, Or, Predicate
from variantlake.interop.pushed_scan import NotPushed, PushedScan

_OPERATORS: dict[str, CompareOp] = {
    "=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="
}  # fmt: skip


class DuckDBSource(ds.Dataset, ArrowScanSource):
    """The rows of a scan, which a connection registers."""

    schema_is_stable = True

    def __init__(self, pushed: PushedScan) -> None:
        ArrowScanSource.__init__(self, pushed)
        texts = pa.dictionary(pa.int32(), pa.string())
        self._pushed = replace(pushed, scan=replace(pushed.scan, texts=texts))

    @property
    def schema(self) -> pa.Schema:
        """The columns that a query sees."""
        return self._pushed.scan.schema

    def __arrow_c_schema__(self) -> object:
        """The same, as DuckDB asks for it."""
        found: Any = self.schema
        return found.__arrow_c_schema__()

    def rows(self) -> int | None:
        """Not known without reading."""
        return None

    def accepts(self, predicate: Node) -> bool:
        """Whether `stream` gives only rows that fulfil a condition, by DuckDB's own rules."""
        try:
            condition(predicate, self._pushed)
        except NotPushed:
            return False
        return True

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Node]) -> tuple[object, bool]:
        """The rows, and whether they have the wanted columns alone."""
        names = list(self._pushed.items)
        wanted = names if columns is None else [names[at] for at in columns]
        conditions = [condition(each, self._pushed) for each in filters]
        return self._pushed.narrowed(wanted, conditions).__arrow_c_stream__(), columns is not None


def condition(node: Node, pushed: PushedScan) -> Predicate:
    """DuckDB's condition as ours. Raises NotPushed."""
    match node:
        case Binary("AND", left, right):
            return And((condition(left, pushed), condition(right, pushed)))
        case Binary("OR", left, right):
            return Or((condition(left, pushed), condition(right, pushed)))
        case Unary("NOT", operand):
            return Not(condition(operand, pushed))
        case Postfix("IS NULL", Col((name,))):
            return pushed.null(name)
        case Postfix("IS NOT NULL", Col((name,))):
            return Not(pushed.null(name))
        case Binary(op, Col((name,)), Lit() as literal) if op in _OPERATORS:
            return pushed.compared(_OPERATORS[op], name, _value(literal))
        case In(Col((name,)), values):
            return pushed.one_of(name, [_value(each) for each in values])
    raise NotPushed


def _value(node: Node) -> object:
    if not isinstance(node, Lit) or not exact_value(node):
        raise NotPushed
    return node.value
