"""What a query reads of its tables, before and after they are planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from variantlake.expressions.tree import Predicate, Ref, map_refs
from variantlake.planning.plan import ScanPlan
from variantlake.planning.stats.first_rows import FirstRows, map_order
from variantlake.spark.scan import pushed_aggregates
from variantlake.spark.scan.pushed_aggregates import (
    DRIVER_BYTES_SETTING,
    MIN_BYTES_SETTING,
    PartialAggregate,
    PushedAggregate,
    bytes_here,
    pushed_aggregate,
)
from variantlake.spark.scan.tables import TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.settings import bytes_in


@dataclass(frozen=True, slots=True)
class TableUse:
    """What a query reads of one table instance.

    `paths` are those of columns that are read by paths alone, with the numbers of the expressions
    that ask for them; `whole` are all columns, of any type, that are needed as they are.
    `predicate` is what skipping may use; `first` is a LIMIT on the rows that fulfil it.
    """

    view: str
    paths: tuple[tuple[int, Ref], ...]
    whole: frozenset[str]
    predicate: Predicate | None
    first: FirstRows | None = None

    @property
    def refs(self) -> list[Ref]:
        """The paths."""
        return [ref for _, ref in self.paths]


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One place where the query reads a table: `source` is how the text writes it.

    `joined` are those of the plan's conjuncts that come from values of a joined side. `pushed` is
    an aggregate over the table that tasks of ours begin. `relation` is the number of a
    `TableRelation`; None for a table of Spark's own.
    """

    source: str
    view: str
    table: TableVersion
    use: TableUse
    plan: ScanPlan
    joined: tuple[Predicate, ...] = ()
    pushed: PushedAggregate | None = None
    relation: int | None = None

    @property
    def whole(self) -> tuple[str, ...]:
        """The Variants that are needed as they are."""
        return tuple(sorted(self.use.whole & self.table.variants))


@dataclass(slots=True)
class PreparedQuery:
    """A query with its scans. `frame` is None for an explanation alone."""

    tables: tuple[PlannedTable, ...] = ()
    note: str = ""
    frame: DataFrame | None = field(default=None)


def with_pushed(
    planned: Sequence[PlannedTable],
    aggregates: Iterable[PartialAggregate],
    helper: HelperSession,
    settings: Mapping[str, str],
    *,
    has_kernels: Callable[[], bool],
) -> tuple[PlannedTable, ...]:
    """The tables with those aggregates over them that tasks of ours, or the driver, begin.

    `settings` are those of ours in the user's session.
    """
    found = {each.view: each for each in aggregates}
    if not found:
        return tuple(planned)
    own = bytes_in(settings, MIN_BYTES_SETTING)
    most = bytes_in(settings, DRIVER_BYTES_SETTING)
    least = pushed_aggregates.MIN_BYTES if own is None else own
    here = bytes_here(own, most, helper.own_cores)
    pushed = [
        pushed_aggregate(found[each.view], each.table, each.plan, least=least, here=here)
        if each.view in found
        else None
        for each in planned
    ]
    by_tasks = any(each is not None and not each.here for each in pushed)
    if by_tasks and not has_kernels():
        return tuple(planned)
    return tuple(replace(each, pushed=own) for each, own in zip(planned, pushed, strict=True))


def by_stored_names(use: TableUse, table: TableVersion) -> TableUse:
    """What is read, by the names that the table's files have."""
    paths = tuple((number, table.stored_ref(ref)) for number, ref in use.paths)
    predicate = use.predicate and map_refs(use.predicate, table.stored_ref)
    first = use.first and map_order(use.first, table.stored_ref)
    return replace(use, paths=paths, predicate=predicate, first=first)


def everything(view: str, table: TableVersion) -> TableUse:
    """All columns as they are, of all rows."""
    return TableUse(view, (), frozenset(table.schema.names), None)


def stored_names(columns: Iterable[str], table: TableVersion) -> frozenset[str]:
    """The names that the table's files have for some of its columns."""
    stored = table.stored_names
    return frozenset(stored[name] for name in columns)
