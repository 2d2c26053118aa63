"""Let DuckDB read a scan, with the columns and conditions of its queries.

DuckDB pushes conditions into pyarrow datasets and into sources of its own package; the class here
is both. The latter is not a public API of DuckDB 2; tests notice when it changes.
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
    """A scan as a source that a connection registers."""

    schema_is_stable = True

    def __init__(self, pushed: PushedScan) -> None:
        ArrowScanSource.__init__(self, pushed)
        texts = pa.dictionary(pa.int32(), pa.string())
        self._pushed = replace(pushed, scan=replace(pushed.scan, texts=texts))

    @property
    def schema(self) -> pa.Schema:
        """The columns for queries."""
        return self._pushed.scan.schema

    def __arrow_c_schema__(self) -> object:
        """Export the schema to DuckDB."""
        found: Any = self.schema
        return found.__arrow_c_schema__()

    def rows(self) -> int | None:
        """Return None: the number of rows is unknown."""
        return None

    def accepts(self, predicate: Node) -> bool:
        """Whether `stream` can apply a condition exactly as DuckDB would."""
        try:
            condition(predicate, self._pushed)
        except NotPushed:
            return False
        return True

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Node]) -> tuple[object, bool]:
        """Return the rows as a stream, and whether they have only the requested columns."""
        names = list(self._pushed.items)
        wanted = names if columns is None else [names[at] for at in columns]
        conditions = [condition(each, self._pushed) for each in filters]
        return self._pushed.narrowed(wanted, conditions).__arrow_c_stream__(), columns is not None


def condition(node: Node, pushed: PushedScan) -> Predicate:
    """Convert a condition of DuckDB to ours. Raises NotPushed."""
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
