"""Rewrites the text of a Spark Connect query: tables become views, paths become fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from sqlglot import exp

from variantlake.expressions.tree import Predicate, Ref
from variantlake.planning.plan import ScanPlan
from variantlake.quoting import quote_identifier
from variantlake.spark.scan.path_columns import PathColumn, field_splice
from variantlake.spark.scan.tables import TableVersion
from variantlake.sql.splice import Splice
from variantlake.sql.token_paths import PathExpression
from variantlake.sql.token_tables import TableName
from variantlake.sql.tokens import ParsedText, select_items


@dataclass(frozen=True, slots=True)
class ConnectTable:
    """One read of a table in a text.

    `refs` are the paths of the text by the names in the table's files. By the same names, `columns`
    are the Variants that become structs of paths, and `needed` are all columns that the text reads.
    `note` says why Variants do not become structs, or conditions do not skip files.
    """

    name: TableName
    source: str
    table: TableVersion
    predicate: Predicate | None
    plan: ScanPlan
    refs: Mapping[PathExpression, Ref]
    columns: Mapping[str, PathColumn]
    needed: frozenset[str]
    whole: tuple[str, ...]
    note: str


def over_views(names: Iterable[TableName], views: Iterable[str]) -> list[Splice]:
    """Return the changes that make a query read views under the names of tables."""
    return [
        Splice(name.start, name.stop, _with_alias(name, view))
        for name, view in zip(names, views, strict=True)
    ]


def _with_alias(name: TableName, view: str) -> str:
    if name.aliased:
        return view
    named = f"{view} AS {quote_identifier(name.parts[-1])}"
    return f"({named})" if name.sampled else named


def alike(tables: Sequence[ConnectTable]) -> tuple[ConnectTable, ...]:
    """Return the tables, with one form of struct for each column name.

    The text does not tell which table a path belongs to.
    """
    native = {
        path.column
        for table in tables
        for path, ref in table.refs.items()
        if table.columns[ref.column[0]].native
    }
    found = []
    for table in tables:
        columns = dict(table.columns)
        for path, ref in table.refs.items():
            column = ref.column[0]
            columns[column] = replace(columns[column], native=path.column in native)
        found.append(replace(table, columns=columns))
    return tuple(found)


def path_changes(
    parsed: ParsedText, tables: Iterable[ConnectTable], original: DataFrame
) -> list[Splice]:
    """Return splices that turn paths into fields of structs, and keep the names of select items."""
    paths = {
        path: field_splice(parsed.text, table.columns[ref.column[0]], ref, path.span, path.name)
        for table in tables
        for path, ref in table.refs.items()
    }
    if not paths:
        return []
    changes = list(paths.values())
    unnamed = _unnamed_items(parsed, original.columns)
    for start, stop, name in unnamed:
        if any(start <= path.span[0] < stop for path in paths):
            changes.append(_named(stop, name))
    for path in paths:
        outermost = any(start <= path.span[0] < stop for start, stop, _ in unnamed)
        if path.item_end is not None and path.bare and not outermost:
            changes.append(_named(path.item_end, path.bare))
    return changes


def _named(place: int, name: str) -> Splice:
    return Splice(place, place, f" AS {quote_identifier(name)}")


def _unnamed_items(parsed: ParsedText, names: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the outermost select items without an alias: spans, and Spark's names for them."""
    select: Any = parsed.tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    items = select_items(parsed.tokens)
    if not isinstance(select, exp.Select) or not len(select.expressions) == len(items) == len(
        names
    ):
        return []
    return [
        (start, stop, name)
        for (start, stop), name, item in zip(items, names, select.expressions, strict=True)
        if not isinstance(item, exp.Alias | exp.Aliases)
    ]
