"""Data classes for what a query reads of its tables, before and after planning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from variantlake.expressions.tree import Predicate, Ref, map_refs
from variantlake.planning.exact.readings import Native
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

    `paths` are paths into columns that the query reads only by paths, with the numbers of their
    expressions. `whole` are the columns of any type that it needs as they are. `predicate` is the
    condition for skipping; `first` is a LIMIT on the rows that meet it.
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
    """One read of a table in the query; `source` is the table's name in the text.

    `joined` are the conjuncts of the plan that come from join values. `pushed` is an aggregate over
    the table that our tasks or the driver begin. `relation` is the number of a `TableRelation`;
    None for a table that the query reads in another way.
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
        """The Variants that the query needs as they are."""
        return tuple(sorted(self.use.whole & self.table.variants))

    @property
    def reads_less(self) -> bool:
        """Whether the plan reads less than Spark would."""
        return self.plan.read_files < self.plan.total_files or any(
            group.by_kernels or any(not isinstance(each, Native) for _, each in group.readings)
            for group in self.plan.groups
        )


@dataclass(slots=True)
class PreparedQuery:
    """A query with its scans. `frame` is None if the query is only explained."""

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
    """Return the tables, each with its aggregate that our tasks or the driver begin, if any.

    `settings` are our settings in the user's session.
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
    """Return the same use, with columns by the names that they have in the table's files."""
    paths = tuple((number, table.stored_ref(ref)) for number, ref in use.paths)
    predicate = use.predicate and map_refs(use.predicate, table.stored_ref)
    first = use.first and map_order(use.first, table.stored_ref)
    return replace(use, paths=paths, predicate=predicate, first=first)


def everything(view: str, table: TableVersion) -> TableUse:
    """Return the use of a table that reads all columns of all rows."""
    return TableUse(view, (), frozenset(table.schema.names), None)


def stored_names(columns: Iterable[str], table: TableVersion) -> frozenset[str]:
    """Return the names that `columns` have in the table's files."""
    stored = table.stored_names
    return frozenset(stored[name] for name in columns)
