"""What a query reads of its tables once they are planned, and how its text says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import orjson
from pyspark.sql import DataFrame

from variantlake.planning.plan import ScanPlan
from variantlake.planning.predicates import PRESENCE, Predicate, map_refs
from variantlake.planning.stats.first_rows import map_order
from variantlake.spark.query.plans.analysis import PathUse, TableUse
from variantlake.spark.scan.path_columns import VARIANT_FIELD, PathColumn
from variantlake.spark.scan.pushed_aggregates import PushedAggregate
from variantlake.spark.scan.tables import TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.sql.splice import Splice


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One place where the query reads a table: `source` is how the text writes it.

    `joined` are those of the plan's conjuncts that come from values of a joined side. `pushed` is
    an aggregate over the table that tasks of ours begin.
    """

    source: str
    view: str
    table: TableVersion
    use: TableUse
    plan: ScanPlan
    joined: tuple[Predicate, ...] = ()
    pushed: PushedAggregate | None = None


@dataclass(slots=True)
class PreparedQuery:
    """A query with its scans. `frame` is None for an explanation alone."""

    tables: tuple[PlannedTable, ...] = ()
    note: str = ""
    frame: DataFrame | None = field(default=None)


def merged(
    frame: DataFrame, tables: Iterable[PlannedTable], helper: HelperSession
) -> DataFrame | None:
    """A query with partial rows below its aggregates; None where its plan is not as expected."""
    found: DataFrame | None = frame
    for table in tables:
        if table.pushed is not None and found is not None:
            own = table.pushed.found
            merges = orjson.dumps([merge.to_dict() for merge in own.merges]).decode()
            rows = table.pushed.rows(helper)
            if rows is None:
                return None
            found = helper.merged(found, table.view, rows, own.keys, merges)
    return found


def field_splice(text: str, use: PathUse, column: PathColumn) -> Splice:
    """The change of one path's expression into the field of its column's struct.

    Where some files are read natively the expression itself stays, over the Variant inside the
    struct: evaluated only in rows whose field is NULL, and only where the query itself comes to
    evaluate it.
    """
    name = text[use.column[0] : use.column[1]]
    path = f"{name}.{column.field(use.ref)}"
    if not column.native or use.ref.type == PRESENCE:
        return Splice(*use.span, path)
    before, after = text[use.span[0] : use.column[0]], text[use.column[1] : use.span[1]]
    native = f"{before}{name}.{VARIANT_FIELD}{after}"
    if use.implicit_cast:
        native = f"CAST({native} AS {use.ref.type})"
    return Splice(*use.span, f"coalesce({path}, {native})")


def by_stored_names(use: TableUse, table: TableVersion) -> TableUse:
    """What is read, by the names that the table's files have."""
    paths = tuple(replace(path, ref=table.stored_ref(path.ref)) for path in use.paths)
    predicate = use.predicate and map_refs(use.predicate, table.stored_ref)
    first = use.first and map_order(use.first, table.stored_ref)
    return replace(use, paths=paths, predicate=predicate, first=first)


def everything(view: str, table: TableVersion) -> TableUse:
    """All columns as they are, of all rows."""
    return TableUse(view, (), frozenset(table.schema.names), None)


def stored_names(columns: Iterable[str], table: TableVersion) -> frozenset[str]:
    """The names that the table's files have for some of its columns."""
    stored = dict(zip(table.schema.names, table.stored.names, strict=True))
    return frozenset(stored[name] for name in columns)
