"""Let Polars read a table lazily, with the columns, conditions and row limit of its queries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from variantlake.errors import UnsupportedFeature
from variantlake.expressions.from_python import Expr
from variantlake.expressions.tree import And, CompareOp, Not, Or, Predicate
from variantlake.familiar_names import says_its_keywords
from variantlake.interop.pushed_scan import NotPushed, PushedScan
from variantlake.storage.options import reach_with
from variantlake.table import Table

if TYPE_CHECKING:
    import polars as pl

_OPERATORS: dict[str, CompareOp] = {
    "Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="
}  # fmt: skip
_DYNAMIC = "dynamic_pred"
"""Polars' internal hint for a TOP-N, with which a frame cannot be filtered."""


@says_its_keywords
def scan_polars(
    table: Table | str | os.PathLike[str],
    select: str | Expr | Sequence[str | Expr] = "*",
    where: str | Expr | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> pl.LazyFrame:
    """Make a lazy Polars frame of a table, which reads only the data that its query needs.

    `vl.scan_polars(table, ["id", "event:user::string AS user"]).filter(pl.col("user") == "x")`
    reads what `Table.scan` would read: the columns that the query names, of files that may hold its
    rows. The scan takes over comparisons of columns with constants, is_in, is_null, is_between,
    str.starts_with, their combinations, and head; Polars evaluates the rest.

    Args:
        table: A table or its location; the frame reads this version.
        select: Columns and paths, as for `Table.scan`.
        where: Only rows that fulfil this condition, as for `Table.scan`.
        storage_options: Options to access the table's bucket, as for `Table.open`.

    Raises:
        InvalidQuery: As `Table.scan`; two columns with one name.
        UnsupportedFeature: As `Table.scan`; Polars is not installed.
    """
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise UnsupportedFeature(
            f"Polars is not installed: {error}", hint="pip install 'variantlake[polars]'"
        ) from error
    reach_with(table, storage_options)
    # Polars stores strings as views; it takes four times as long as Arrow to make them.
    pushed = PushedScan(replace(Table.of(table).scan(select, where), texts=pa.string_view()))
    names = list(pushed.items)

    def source(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,
        _batch: int | None,
    ) -> Iterator[pl.DataFrame]:
        filtered, conditions = _conditions(predicate, pushed)
        # With both, Polars wants the first rows, and of these the ones that fulfil the condition.
        scan = pushed.narrowed(
            names if columns is None else columns, () if rows is not None else conditions, rows
        )
        batch = None
        for batch in scan.to_batches():
            # From a pyarrow table, Polars would lose the type of Variants in structs and lists.
            frame = pl.DataFrame(pa.RecordBatchReader.from_batches(scan.schema, [batch]))
            yield frame if filtered is None else frame.filter(filtered)
        if batch is None and filtered is not None:
            # A condition that Polars refuses must also fail if all files are skipped.
            yield pl.DataFrame(scan.schema.empty_table()).filter(filtered)

    empty = pl.DataFrame(pushed.scan.schema.empty_table())
    return register_io_source(source, schema=empty.schema, is_pure=True)


def _conditions(
    predicate: pl.Expr | None, pushed: PushedScan
) -> tuple[pl.Expr | None, list[Predicate]]:
    """Return the filter for Polars' frames, and the conditions that the scan takes over, too."""
    if predicate is None:
        return None, []
    import polars as pl

    try:
        parts = list(_conjuncts(json.loads(predicate.meta.serialize(format="json"))))
    except pl.exceptions.PolarsError:  # a Python function
        return predicate, []
    real = [each for each in parts if _DYNAMIC not in str(each.get("Display"))]
    if len(real) < len(parts):
        kept = [_expression(each) for each in real]
        predicate = pl.all_horizontal(kept) if kept else None
    found = []
    for part in real:
        try:
            found.append(condition(part, pushed))
        except NotPushed:
            continue
    return predicate, found


def _conjuncts(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match node:
        case {"BinaryExpr": {"op": "And", "left": left, "right": right}}:
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield node


def condition(node: Any, pushed: PushedScan) -> Predicate:
    """Convert a condition of Polars, in JSON, to ours. Raises NotPushed."""
    match node:
        case {"BinaryExpr": {"op": "And", "left": left, "right": right}}:
            return And((condition(left, pushed), condition(right, pushed)))
        case {"BinaryExpr": {"op": "Or", "left": left, "right": right}}:
            return Or((condition(left, pushed), condition(right, pushed)))
        case {"BinaryExpr": {"op": op, "left": {"Column": name}, "right": {"Literal": _} as value}}:
            if op in _OPERATORS:
                return pushed.compared(_OPERATORS[op], name, _value(value))
        case {"Function": {"function": function, "input": [{"Column": name}, *values]}}:
            return _function(function, name, values, pushed)
        case {"Function": {"function": {"Boolean": "Not"}, "input": [operand]}}:
            return Not(condition(operand, pushed))
    raise NotPushed


def _function(function: Any, name: str, values: Sequence[Any], pushed: PushedScan) -> Predicate:
    match function, values:
        case {"Boolean": "IsNull"}, []:
            return pushed.null(name)
        case {"Boolean": "IsNotNull"}, []:
            return Not(pushed.null(name))
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [options]:
            return pushed.one_of(name, list(_value(options)))
        case {"Boolean": {"IsBetween": {"closed": closed}}}, [low, high]:
            ends: tuple[CompareOp, CompareOp] = (
                ">=" if closed in ("Both", "Left") else ">",
                "<=" if closed in ("Both", "Right") else "<",
            )
            bounds = zip(ends, (low, high), strict=True)
            return And(tuple(pushed.compared(op, name, _value(each)) for op, each in bounds))
        case {"StringExpr": "StartsWith"}, [prefix]:
            return pushed.starting(name, _value(prefix))
    raise NotPushed


def _value(node: Any) -> Any:
    """Return the value of a literal. Raises NotPushed."""
    if not isinstance(node, dict) or "Literal" not in node:
        raise NotPushed
    import polars as pl

    try:
        return pl.select(_expression(node)).item()
    except pl.exceptions.PolarsError:  # NaN and infinity have no JSON
        raise NotPushed from None


def _expression(node: Any) -> pl.Expr:
    import io

    import polars as pl

    return pl.Expr.deserialize(io.BytesIO(json.dumps(node).encode()), format="json")
