"""What the rule in Spark's optimizer asks: which tables of a plan are read in another way, and how.

The rule calls this from the thread that runs a query, or from any other of the JVM. Whatever fails
here leaves the query as it is, and warns once.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
from pyspark.sql import DataFrame, SparkSession

from variantlake.errors import TableReplaced
from variantlake.expressions.tree import Predicate, refs
from variantlake.planning.exact.readings import Native
from variantlake.planning.plan import ScanPlan
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.spark.query.plans.analysis import PathUse, TableUse
from variantlake.spark.query.plans.catalyst import Node, node_of
from variantlake.spark.query.plans.limits import first_rows
from variantlake.spark.query.plans.lineage import Lineage
from variantlake.spark.query.plans.planned import PlannedTable, by_stored_names, stored_names
from variantlake.spark.query.plans.predicates import table_predicates
from variantlake.spark.rule.uses import PlanUses, read_uses
from variantlake.spark.scan.dataframe import scan
from variantlake.spark.scan.path_columns import PathColumn, path_columns
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jvm import Java as JavaObject
from variantlake.spark.session.jvm import dataset_of, gateway_of

WAIT_SECONDS = 30.0
"""How long a query waits for others to be planned before it runs as it is."""

_MOST_SESSIONS = 8
_MOST_WARNINGS = 100


class RulePlanner:
    """Plans the queries of all sessions that share a rule: a `BiFunction` of the JVM."""

    class Java:
        """What py4j, which knows it by this name, is to know of a class that the JVM calls."""

        implements: ClassVar = ["java.util.function.BiFunction"]

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables = Tables()
        self._helpers: OrderedDict[str, HelperSession] = OrderedDict()
        self._lock = threading.Lock()
        self._explained: dict[int, list[PlannedTable]] = {}
        self._warned: dict[str, None] = {}
        # Asked for now: on a cluster that is a job, which must not start while Spark optimizes.
        self._has_kernels = self._helper(None).has_kernels

    def apply(self, request: str, session: JavaObject | None) -> JavaObject | None:
        """The answer to the rule: None if the query stays as it is.

        `request` without a session is what the rule itself failed at.
        """
        if session is None:
            self._warn(request)
            return None
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            return None
        try:
            return self._answer(orjson.loads(request), session)
        except Exception as error:  # noqa: BLE001 - no failure of ours may fail a query
            self._warn(f"{type(error).__name__}: {error}")
            return None
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def explaining(self) -> Iterator[list[PlannedTable]]:
        """The tables that queries of this thread are planned to read, as long as this is open."""
        found: list[PlannedTable] = []
        # The rule may call back into another thread of Python, but runs in the one of the JVM.
        thread = gateway_of(self._spark).jvm.java.lang.Thread.currentThread().getId()
        self._explained[thread] = found
        try:
            yield found
        finally:
            del self._explained[thread]

    @property
    def warnings(self) -> list[str]:
        """Why queries were left as they are, the oldest reason first."""
        return list(self._warned)

    def _warn(self, reason: str) -> None:
        if reason in self._warned or len(self._warned) > _MOST_WARNINGS:
            return
        self._warned[reason] = None
        with contextlib.suppress(Warning):  # where warnings are errors
            warnings.warn(f"a query is left as Spark runs it: {reason}", stacklevel=2)

    def _helper(self, session: JavaObject | None, identity: str = "") -> HelperSession:
        """The helper of a session, the settings of its time taken over."""
        helper = self._helpers.get(identity)
        if helper is None:
            user = self._spark
            if session is not None:
                user = SparkSession(self._spark.sparkContext, session)
            helper = HelperSession(user)
            self._helpers[identity] = helper
            while len(self._helpers) > _MOST_SESSIONS:
                self._helpers.popitem(last=False)
        self._helpers.move_to_end(identity)
        helper.follow()
        return helper

    def _answer(self, request: Mapping[str, Any], session: JavaObject) -> JavaObject | None:
        relations = {each["name"]: each for each in request["relations"]}
        try:
            plan = node_of(request["plan"])
            query = _RuleQuery.of(plan, tuple(relations))
        except RecursionError:
            return None  # a condition of thousands of terms
        tables = {name: self._open(each) for name, each in relations.items()}
        if not any(query.asks(table) for table in tables.items()):
            return None
        planned = [self._planned(query, name, tables[name]) for name in tables]
        # All reads of a table are of one version: ours, or Delta Spark's.
        worth = {each.table.location for each in planned if _is_worth(each.plan)}
        planned = [each for each in planned if each.table.location in worth]
        if not planned:
            return None
        helper = self._helper(session, request["session"])
        if helper.zone != request["zone"]:
            return None  # settings of a part of a query alone
        self._explained.get(request["thread"], []).extend(planned)
        return self._to_java(planned, query, helper)

    def _open(self, relation: Mapping[str, Any]) -> TableVersion:
        """The version that Delta Spark has found. Raises TableReplaced for one of another table."""
        location, version = relation["location"], relation["version"]
        table = self._tables.open(location)
        if table.snapshot.version != version:
            table = self._tables.open(location, version)
        if table.snapshot.metadata.id != relation["id"]:
            raise TableReplaced("another table is at the location now", file=location)
        return table

    def _planned(self, query: _RuleQuery, name: str, table: TableVersion) -> PlannedTable:
        use = by_stored_names(query.table_use(name), table)
        plan = self._tables.plan(
            table,
            [path.ref for path in use.paths],
            stored_names(use.whole, table),
            use.predicate,
            use.first,
            has_kernels=lambda: self._has_kernels,
        )
        return PlannedTable(f"delta.`{table.location}`", name, table, use, plan)

    def _to_java(
        self, planned: Sequence[PlannedTable], query: _RuleQuery, helper: HelperSession
    ) -> JavaObject:
        answer: JavaObject = gateway_of(self._spark).jvm.java.util.ArrayList()
        relations, uses, frames = [], [], []
        for each in planned:
            columns = path_columns(each.plan, (path.ref for path in each.use.paths))
            frames.append(_scan(helper, each, columns))
            relations.append({"name": each.view, "columns": _columns(each, columns)})
            for path in each.use.paths:
                column = columns[path.ref.column[0]]
                uses.append([path.span[0], column.paths.index(path.ref)])
        views = {each.view for each in planned}
        told = {"relations": relations, "uses": uses, "implied": query.implied(views)}
        answer.add(orjson.dumps(told).decode())
        for frame in frames:
            answer.add(dataset_of(frame))
        return answer


@dataclass(frozen=True, slots=True)
class _RuleQuery:
    """A plan of the optimizer, read."""

    uses: PlanUses
    predicates: Mapping[str, Predicate | None]
    limits: Mapping[str, FirstRows]

    @classmethod
    def of(cls, plan: Node, names: Sequence[str]) -> _RuleQuery:
        lineage = Lineage({name: name for name in names})
        lineage.learn(plan)
        return cls(
            read_uses(plan, lineage),
            table_predicates(plan, lineage, ""),
            first_rows(plan, lineage, ""),
        )

    def asks(self, named: tuple[str, TableVersion]) -> bool:
        """Whether a Variant of a table is looked at, as it is, by a path, or by a condition."""
        name, table = named
        columns = {source.column for source in self.uses.sources if source.view == name}
        conditions = refs(self.predicates.get(name))
        return bool(columns & table.variants) or any(ref.path is not None for ref in conditions)

    def table_use(self, name: str) -> TableUse:
        """What is read of a table; a path's place is its expression's number."""
        paths = (
            PathUse(ref, (number, number), (number, number), implicit_cast=False)
            for number, ref in self.uses.of(name)
        )
        whole = frozenset(each.column for each in self.uses.whole if each.view == name)
        first = self.limits.get(name)
        return TableUse(name, tuple(paths), whole, self.predicates.get(name), first)

    def implied(self, names: Collection[str]) -> list[int]:
        """The conditions that may go, of tables that are read by us."""
        return [
            number
            for number, source in self.uses.implied.items()
            if source.view in names and source not in self.uses.whole
        ]


def _is_worth(plan: ScanPlan) -> bool:
    """Whether it reads less than Spark would."""
    return plan.read_files < plan.total_files or any(
        group.by_kernels or any(not isinstance(reading, Native) for _, reading in group.readings)
        for group in plan.groups
    )


def _scan(
    helper: HelperSession, planned: PlannedTable, columns: Mapping[str, PathColumn]
) -> DataFrame:
    needed = stored_names(planned.use.whole, planned.table)
    return scan(helper, planned.table, planned.plan, columns, needed={*needed, *columns})


def _columns(planned: PlannedTable, columns: Mapping[str, PathColumn]) -> dict[str, dict[str, Any]]:
    """How the columns of a scan are to be taken, by their names; the rest is not looked at."""
    found: dict[str, dict[str, Any]] = {}
    for name, stored in planned.table.stored_names.items():
        column = columns.get(stored)
        if column is not None:
            found[name] = {"paths": len(column.paths), "native": column.native}
        elif name in planned.use.whole:
            found[name] = {}
    return found
