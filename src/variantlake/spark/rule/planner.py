"""Tells the rule in Spark's optimizer which tables of a plan to read in another way, and how.

The rule calls the planner from the thread that runs a query, or from any other thread of the JVM.
A failure here leaves the query unchanged, and warns once.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import orjson
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from variantlake.errors import TableReplaced, VariantLakeError
from variantlake.expressions.tree import In
from variantlake.quoting import quote_identifier
from variantlake.spark.query.plans.catalyst import Node, node_of
from variantlake.spark.query.plans.join_values import (
    MIN_FILES,
    SmallSide,
    condition,
    is_cheap,
    small_sides,
    values_of,
)
from variantlake.spark.query.plans.planned import (
    PlannedTable,
    by_stored_names,
    stored_names,
    with_pushed,
)
from variantlake.spark.rule.answers import Answer, Answers, is_lasting
from variantlake.spark.rule.callbacks import interrupt_again
from variantlake.spark.rule.relations import relation_of
from variantlake.spark.rule.row_groups import count_row_groups
from variantlake.spark.rule.rule_query import RuleQuery
from variantlake.spark.scan.dataframe import scan
from variantlake.spark.scan.path_columns import PathColumn, path_columns
from variantlake.spark.scan.source_options import SourceOptions
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jobs import planning_job
from variantlake.spark.session.jvm import Java as JavaObject
from variantlake.spark.session.jvm import dataset_of, gateway_of
from variantlake.spark.session.refusals import REFUSALS

WAIT_SECONDS = 30.0
"""How long a query waits while others are planned, before it runs unchanged."""

_MOST_SESSIONS = 8
_MOST_WARNINGS = 100
_MOST_AT_ONCE = 10
"""The most items that `List.of` takes."""


_Begun = tuple[DataFrame, bool]
"""The partial rows of an aggregate, and whether they need no merging."""


class RulePlanner:
    """Plans the queries of all sessions that share a rule: a `BiFunction` for the JVM."""

    class Java:
        """The Java interfaces of the class; py4j looks for this name."""

        implements: ClassVar = ["java.util.function.BiFunction"]

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables = Tables(planning_job(spark))
        self._helpers: OrderedDict[str, HelperSession] = OrderedDict()
        self._lock = threading.Lock()
        self._answers = Answers()
        self._explained: dict[int, list[PlannedTable]] = {}
        self._warned: dict[str, None] = {}
        # Looking up a class takes four calls of the JVM.
        java_util = gateway_of(spark).jvm.java.util
        self._list_of: JavaObject = java_util.List.of
        self._array_list: JavaObject = java_util.ArrayList
        # Checked now: on a cluster this runs a job, which must not start while Spark optimizes.
        self._has_kernels = self._helper(None).has_kernels

    def apply(self, request: str, given: JavaObject | None) -> JavaObject | None:
        """Return the answer to the rule: None if the query stays unchanged.

        `given` holds the session, and a function that runs operators of the plan. A request begins
        with the id of its thread. Without `given`, the request is the reason why the rule itself
        failed, or empty if the rule only checks that Python answers.
        """
        if given is None:
            if request:
                self._warn(request)
            return None
        try:
            return self._known_or_new(request, given)
        except BaseException as error:  # noqa: BLE001 - no failure of ours may fail a query
            # py4j takes only an Exception to the JVM; for any other the JVM would wait for ever.
            in_main = threading.current_thread() is threading.main_thread()
            if in_main and isinstance(error, KeyboardInterrupt | SystemExit):
                # A signal raised it. Spark stops the query if the signal comes while Python waits.
                interrupt_again()
            else:
                self._warn(_reason(error))
            return None

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Plan one query at a time. Raises TimeoutError if others take longer than WAIT_SECONDS."""
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise TimeoutError(f"other queries were planned for {WAIT_SECONDS:.0f} s")
        try:
            yield
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def explaining(self) -> Iterator[list[PlannedTable]]:
        """Collect the tables as planned for the queries of this thread, while the block runs."""
        found: list[PlannedTable] = []
        # Requests carry the id of the JVM's thread; the callback may run in any Python thread.
        thread = gateway_of(self._spark).jvm.java.lang.Thread.currentThread().getId()
        self._explained[thread] = found
        try:
            yield found
        finally:
            del self._explained[thread]

    @property
    def is_stopped(self) -> bool:
        """Whether the SparkContext of the planner's sessions was stopped: no query comes again."""
        return self._spark.sparkContext._jsc is None  # noqa: SLF001

    @property
    def warnings(self) -> list[str]:
        """The reasons why queries were left unchanged, oldest first."""
        return list(self._warned)

    def _warn(self, reason: str) -> None:
        if reason in self._warned or len(self._warned) > _MOST_WARNINGS:
            return
        self._warned[reason] = None
        with contextlib.suppress(BaseException):  # if warnings are errors, or cannot be shown
            warnings.warn(f"a query is left as Spark runs it: {reason}", stacklevel=2)

    def _helper(
        self, given: JavaObject | None, identity: str = "", zone: str | None = None
    ) -> HelperSession:
        """Return the helper of the given session, with the time zone `zone` unless that is None."""
        helper = self._helpers.get(identity)
        if helper is None:
            user = self._spark
            if given is not None:
                user = SparkSession(self._spark.sparkContext, given[0])
            helper = HelperSession(user)
            self._helpers[identity] = helper
            while len(self._helpers) > _MOST_SESSIONS:
                self._helpers.popitem(last=False)
        self._helpers.move_to_end(identity)
        if zone is not None:
            helper.follow_zone(zone)
        return helper

    def _known_or_new(self, request: str, given: JavaObject) -> JavaObject | None:
        thread, _, asked = request.partition(" ")
        explained = self._explained.get(int(thread))
        answer = self._answers.get(asked) if explained is None else None
        if answer is None:
            answer = self._answer(orjson.loads(asked), given, explained)
            if answer.lasts:
                self._answers.put(asked, answer)
        elif answer.helper is not None:
            with self._turn():
                answer.helper.follow_zone(answer.zone)
        return answer.java_list if answer.again is None else answer.again()

    def _answer(
        self,
        request: Mapping[str, Any],
        given: JavaObject,
        explained: list[PlannedTable] | None,
    ) -> Answer:
        try:
            plan = node_of(request["plan"])
            names = [each["name"] for each in request["relations"]]
            query = RuleQuery.of(plan, names, request["text"])
        except RecursionError:
            return Answer(None)  # a condition of thousands of terms
        ours = {each["name"] for each in request["relations"] if not each["delta"]}
        with self._turn():
            helper = self._helper(given, request["session"], request["zone"])
            tables = self._opened(query, request["relations"], ours)
            plain = {
                name: _planned(query, name, tables[name], self._session_has_kernels)
                for name in tables
            }
        query, plain = self._with_joined(query, tables, plain, helper, given)
        with self._turn():
            pushed = with_pushed(
                list(plain.values()),
                query.aggregates,
                helper,
                request["settings"],
                has_kernels=self._session_has_kernels,
            )
        planned = _worth(pushed, ours)
        if explained is not None:
            explained.extend(planned)  # an explanation groups no rows
            return Answer(
                self._listing([replace(each, pushed=None) for each in planned], query, helper, ours)
            )
        lasts = is_lasting(query, request["relations"], planned)
        again = functools.partial(self._listing, planned, query, helper, ours)
        if any(each.pushed and not each.pushed.is_constant for each in planned):
            return Answer(None, again, lasts=lasts, helper=helper, zone=request["zone"])
        return Answer(again(), lasts=lasts, helper=helper, zone=request["zone"])

    def _listing(
        self,
        planned: Sequence[PlannedTable],
        query: RuleQuery,
        helper: HelperSession,
        ours: Collection[str],
    ) -> JavaObject | None:
        """Return the answer to the rule, with partial rows of pushed aggregates, or None."""
        # Outside the turn: other queries need not wait while this process groups rows.
        made = {each.view: each.pushed.rows(helper) for each in planned if each.pushed}
        begun = {view: rows for view, rows in made.items() if rows is not None}
        kept = [each if each.view in begun else replace(each, pushed=None) for each in planned]
        kept = _worth(kept, ours)
        if not kept:
            return None
        with self._turn():
            return self._to_java(kept, query, helper, begun)

    def _opened(
        self, query: RuleQuery, relations: Sequence[Mapping[str, Any]], ours: Collection[str]
    ) -> dict[str, _OpenTable]:
        """Return the tables that we may read, none if none is `ours` and no Variant is read."""
        opened = ((each["name"], self._open(each)) for each in relations)
        tables = {name: table for name, table in opened if table is not None}
        asked = any(name in ours or query.asks(name, tables[name].table) for name in tables)
        return tables if asked else {}

    def _session_has_kernels(self) -> bool:
        return self._has_kernels

    def _with_joined(
        self,
        query: RuleQuery,
        tables: Mapping[str, _OpenTable],
        planned: dict[str, PlannedTable],
        helper: HelperSession,
        given: JavaObject,
    ) -> tuple[RuleQuery, dict[str, PlannedTable]]:
        """Plan the tables again with the values of small join sides, where that pays."""
        if not any(each.plan.read_files >= MIN_FILES for each in planned.values()):
            return query, planned
        extra: dict[tuple[Node, int], list[Node]] = {}
        for side in small_sides(query.plan, {name: name for name in planned}):
            values = self._values(side, query, planned, helper, given)
            if values is not None:
                extra.setdefault((side.join, side.large), []).append(condition(side, values))
        if not extra:
            return query, planned
        query = query.with_conditions(extra)
        with self._turn():
            return query, {
                name: _joined(each, _planned(query, name, tables[name], self._session_has_kernels))
                for name, each in planned.items()
            }

    def _values(
        self,
        side: SmallSide,
        query: RuleQuery,
        planned: Mapping[str, PlannedTable],
        helper: HelperSession,
        given: JavaObject,
    ) -> list[str] | None:
        """Return the values of a small join side, None if too many or too costly to read."""
        if not is_cheap(side, {view: each.plan for view, each in planned.items()}):
            return None
        try:
            with self._turn():
                answer = self._to_java([planned[view] for view in side.views], query, helper, {})
            # Outside the turn: other queries need not wait for a job of this one.
            rows = given[1].apply(orjson.dumps(side.steps).decode(), answer)
            return values_of(DataFrame(rows, helper.user), side)
        except (*REFUSALS, VariantLakeError):
            return None  # an error of the query itself comes when the query runs

    def _open(self, relation: Mapping[str, Any]) -> _OpenTable | None:
        """Return the table version to read, None if options of the source name columns or a time.

        Raises TableReplaced if another table is at the location now, MalformedLog if the checkpoint
        that Delta Spark reads is damaged: without the rule the query fails.
        """
        if "relation" in relation:
            found = relation_of(relation["relation"])
            return _OpenTable(found.table, found.tables, found.source, found.number)
        if "options" in relation:
            options = SourceOptions.of(relation["options"], "UTC")
            if options.columns is not None or options.timestamp is not None:
                return None
            table = self._tables.open(options.location, options.version)
            return _OpenTable(table, self._tables, _delta_name(table.location))
        location, version = relation["location"], relation["version"]
        table = self._tables.open(location)
        if table.snapshot.version != version:
            table = self._tables.open(location, version)
        if table.snapshot.metadata.id != relation["id"]:
            raise TableReplaced("another table is at the location now", file=location)
        self._tables.check_checkpoint(table, relation["checkpoint"])
        return _OpenTable(table, self._tables, _delta_name(location))

    def _to_java(
        self,
        planned: Sequence[PlannedTable],
        query: RuleQuery,
        helper: HelperSession,
        begun: Mapping[str, _Begun],
    ) -> JavaObject:
        aggregates, relations, uses = [], [], []
        rows, scans = [], []
        scanned: list[PlannedTable] = []
        for each in planned:
            if each.pushed is not None:
                partial, done = begun[each.view]
                aggregates.append(each.pushed.partial.to_dict(done=done))
                rows.append(partial)
                continue
            columns = path_columns(each.plan, each.use.refs)
            scans.append(_scan(helper, each, columns))
            scanned.append(each)
            relations.append({"name": each.view, "columns": _columns(each, columns)})
            for number, ref in each.use.paths:
                uses.append([number, columns[ref.column[0]].paths.index(ref)])
        told = {
            "aggregates": aggregates,
            "relations": relations,
            "uses": uses,
            "implied": query.implied({each.view for each in planned if each.pushed is None}),
        }
        frames = [dataset_of(frame) for frame in (*rows, *scans)]
        answer = self._listed(orjson.dumps(told).decode(), *frames)
        for each, frame in zip(scanned, scans, strict=True):
            count_row_groups(helper, each, frame)
        return answer

    def _listed(self, *items: str | JavaObject) -> JavaObject:
        """Make a Java list, in one call for up to ten items, else with one call for each item."""
        if len(items) <= _MOST_AT_ONCE:
            return self._list_of(*items)
        found = self._array_list()
        for item in items:
            found.add(item)
        return found


def _reason(error: BaseException) -> str:
    """Return the error as text; one from the JVM as its first line, without trace and object id."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString()).partition("\n")[0]
    text = type(error).__name__
    with contextlib.suppress(Exception):  # from the error's own __str__
        text += f": {error}"
    return text


@dataclass(frozen=True, slots=True)
class _OpenTable:
    """A table that a plan reads, the Tables that plan it, and its name in the query."""

    table: TableVersion
    tables: Tables
    source: str
    relation: int | None = None


def _planned(
    query: RuleQuery, name: str, opened: _OpenTable, has_kernels: Callable[[], bool]
) -> PlannedTable:
    table = opened.table
    use = by_stored_names(query.table_use(name), table)
    plan = opened.tables.plan(
        table,
        use.refs,
        stored_names(use.whole, table),
        use.predicate,
        use.first,
        has_kernels=has_kernels,
    )
    return PlannedTable(opened.source, name, table, use, plan, relation=opened.relation)


def _delta_name(location: str) -> str:
    return f"delta.{quote_identifier(location)}"


def _joined(before: PlannedTable, again: PlannedTable) -> PlannedTable:
    """Return the second plan of a table if join values add a condition to it, else the first."""
    new = (part for part in again.plan.conjuncts if part not in set(before.plan.conjuncts))
    joined = tuple(part for part in new if isinstance(part, In))
    return replace(again, joined=joined) if joined else before


def _worth(planned: Iterable[PlannedTable], ours: Collection[str]) -> list[PlannedTable]:
    """Return the tables to read: `ours`, and those that we read better than Delta Spark.

    If one read of a location qualifies, all do, so that all are of one version.
    """
    planned = list(planned)
    worth = {
        each.table.location
        for each in planned
        if each.view in ours or each.pushed or each.reads_less
    }
    return [each for each in planned if each.table.location in worth]


def _scan(
    helper: HelperSession, planned: PlannedTable, columns: Mapping[str, PathColumn]
) -> DataFrame:
    needed = {*stored_names(planned.use.whole, planned.table), *columns}
    return scan(helper, planned.table, planned.plan, columns, planned.joined, needed=needed)


def _columns(planned: PlannedTable, columns: Mapping[str, PathColumn]) -> dict[str, dict[str, Any]]:
    """How the rule takes each column of a scan, by name; columns that nobody reads are left out."""
    found: dict[str, dict[str, Any]] = {}
    for name, stored in planned.table.stored_names.items():
        column = columns.get(stored)
        if column is not None:
            found[name] = {"paths": len(column.paths), "native": column.native}
        elif name in planned.use.whole:
            found[name] = {}
    return found
