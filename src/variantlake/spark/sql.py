"""One query of a user: analysed, planned, and written anew where that makes it faster.

The steps, each of which may end in a plainer form that gives the same answer:

1. Names of our tables in the text become names of views (`references`).
2. Spark analyses the text over empty views, which tells what is read of each table (`analysis`).
3. Each table is planned: files skipped, paths read as columns where that is exact (`planning`).
4. The views get their scans, and the paths in the text become fields of them (`scan`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from variantlake.delta.store import is_local
from variantlake.errors import InvalidQuery, VariantLakeError
from variantlake.paths import Path
from variantlake.planning.late import find_rows_first
from variantlake.planning.plan import ScanPlan, plan_scan
from variantlake.planning.predicates import In, Predicate, Ref, map_refs, refs
from variantlake.spark.analysis import Analysis, PathUse, TableUse, analyse
from variantlake.spark.catalyst import Catalyst, Node
from variantlake.spark.joined import (
    MAX_SMALL_BYTES,
    MIN_FILES,
    SMALL_SHARE,
    WORTH_BYTES,
    SmallSide,
    condition,
    values_of,
)
from variantlake.spark.lineage import VARIANT
from variantlake.spark.references import (
    Reference,
    Resolve,
    find_references,
    is_query,
    qualifier_splices,
)
from variantlake.spark.scan import VARIANT_FIELD, PathColumn, path_columns, scan
from variantlake.spark.session import HelperSession
from variantlake.spark.tables import Tables, TableVersion
from variantlake.spark.text import Splice, splice

SPARK_ALONE = "the statement is not a query over a table of ours: Spark runs it as it is"
NOT_A_SELECT = "the statement does more than read: its tables are read natively and in full"
NOT_REWRITTEN = "Spark did not take the rewritten text: paths are read natively"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One place where the query reads a table: `source` is how the text writes it.

    `joined` are those of the plan's conjuncts that come from values of a joined side.
    """

    source: str
    view: str
    table: TableVersion
    use: TableUse
    plan: ScanPlan
    joined: tuple[Predicate, ...] = ()


@dataclass(slots=True)
class PreparedQuery:
    """A query with its scans. `frame` is None for an explanation alone."""

    tables: tuple[PlannedTable, ...] = ()
    note: str = ""
    frame: DataFrame | None = field(default=None)


class QueryRunner:
    """Runs the queries of one user session."""

    def __init__(self, spark: SparkSession, helper: HelperSession, tables: Tables) -> None:
        self._spark = spark
        self._helper = helper
        self._tables = tables
        self._catalyst = Catalyst(spark)

    def run(self, text: str, args: Any, resolve: Resolve) -> DataFrame:
        """The query's DataFrame. Raises InvalidQuery with Spark's sentence."""
        prepared = self._prepare(text, args, resolve, run=True)
        if prepared.frame is None:
            raise InvalidQuery("the query has no result")
        return prepared.frame

    def plan(self, text: str, args: Any, resolve: Resolve) -> PreparedQuery:
        """What the query would read; nothing runs. Raises InvalidQuery with Spark's sentence."""
        return self._prepare(text, args, resolve, run=False)

    def _prepare(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> PreparedQuery:
        parsed = self._parse(text)
        references = find_references(parsed, resolve)
        if not references:
            return PreparedQuery(note=SPARK_ALONE, frame=self._sql(text, args, {}) if run else None)
        tables = {reference: self._load(reference) for reference in references}
        views = {reference: self._helper.new_view() for reference in references}
        self._helper.follow()
        changes = qualifier_splices(parsed, text, {r.location for r in references})
        for reference, view in views.items():
            changes += reference.splices(self._helper.qualified(view))
        over_views = splice(text, changes)
        sources = {
            self._helper.qualified(view): text[reference.start : reference.stop]
            for reference, view in views.items()
        }
        query = _Query(
            text=over_views,
            args=args,
            sources=sources,
            tables={view: tables[reference] for reference, view in views.items()},
        )
        if not is_query(parsed):
            return self._statement(query, run=run)
        try:
            return self._select(query, run=run)
        finally:
            # A DataFrame is analysed when it is made and needs its views no longer.
            for view in query.tables:
                self._helper.drop(view)

    def _statement(self, query: _Query, *, run: bool) -> PreparedQuery:
        """CREATE VIEW, INSERT … SELECT and the like: over native views, which are kept."""
        prepared = PreparedQuery(
            tuple(
                self._planned(query, view, _everything(view, table))
                for view, table in query.tables.items()
            ),
            NOT_A_SELECT,
        )
        if run:
            for planned in prepared.tables:
                self._publish(planned, {})
            prepared.frame = self._sql(query.text, query.args, query.sources)
        return prepared

    def _select(self, query: _Query, *, run: bool) -> PreparedQuery:
        for view, table in query.tables.items():
            self._helper.publish(self._helper.empty(table.schema), view)
        original = self._sql(query.text, query.args, query.sources)
        analysis = self._analyse(query, original)
        prepared = PreparedQuery(
            tuple(self._planned(query, view, use) for view, use in analysis.tables.items())
        )
        prepared.tables = self._with_joined(query, analysis, prepared.tables)
        if not run:
            return prepared
        columns = {
            planned.view: path_columns(planned.plan, (path.ref for path in planned.use.paths))
            for planned in prepared.tables
        }
        if any(columns.values()):
            for planned in prepared.tables:
                self._publish(planned, columns[planned.view])
            prepared.frame = self._rewritten(query, prepared, analysis.names, columns, original)
            if prepared.frame is not None:
                return prepared
            prepared.note = NOT_REWRITTEN
        for planned in prepared.tables:
            self._publish(planned, {})
        prepared.frame = self._sql(query.text, query.args, query.sources)
        return prepared

    def _with_joined(
        self, query: _Query, analysis: Analysis, planned: tuple[PlannedTable, ...]
    ) -> tuple[PlannedTable, ...]:
        """The tables planned anew with the values of small joined sides, where that pays."""
        plans = {table.view: table for table in planned}
        if not any(table.plan.read_files >= MIN_FILES for table in planned):
            return planned
        extra: dict[tuple[Node, int], list[Node]] = {}
        for side in analysis.small_sides:
            values = self._values(query, side, plans)
            if values is not None:
                extra.setdefault((side.join, side.large), []).append(condition(side, values))
        if not extra:
            return planned
        predicates = analysis.predicates(extra)
        found = []
        for table in planned:
            use = replace(analysis.tables[table.view], predicate=predicates.get(table.view))
            again = self._planned(query, table.view, use)
            known = set(table.plan.conjuncts)
            new = (part for part in again.plan.conjuncts if part not in known)
            joined = tuple(part for part in new if isinstance(part, In))
            found.append(replace(again, joined=joined) if joined else table)
        return tuple(found)

    def _values(
        self, query: _Query, side: SmallSide, plans: Mapping[str, PlannedTable]
    ) -> list[str] | None:
        """The values of a joined side; None where they are many, or not worth their price."""
        price = sum(plans[view].plan.read_bytes for view in side.views)
        whole = sum(table.plan.read_bytes for table in plans.values())
        if side.views and whole - price < WORTH_BYTES:
            return None
        if price > min(MAX_SMALL_BYTES, (whole - price) // SMALL_SHARE):
            return None
        try:
            with _quiet():
                for view in side.views:
                    self._publish(plans[view], {})
                return values_of(self._spark, self._sql(query.text, query.args, {}), side)
        except (*_REFUSALS, VariantLakeError):
            return None  # an error of the query itself comes when the query runs

    def _analyse(self, query: _Query, original: DataFrame) -> Analysis:
        views = {self._helper.qualified(view): view for view in query.tables}
        try:
            parsed = self._parse(query.text)
            analysed = self._catalyst.analysed(original, query.text)
            return analyse(parsed, analysed, views, query.text)
        except RecursionError:
            # A condition of thousands of terms: too deep to look through, but Spark takes it.
            whole = {view: _everything(view, table) for view, table in query.tables.items()}
            return Analysis(whole, ())

    def _planned(self, query: _Query, view: str, use: TableUse) -> PlannedTable:
        table = query.tables[view]
        use = _by_stored_names(use, table)
        requests: list[Ref] = [path.ref for path in use.paths]
        asked = [*requests, *refs(use.predicate)]
        if use.predicate is not None and table.is_by_id:
            # What tells that the files have the schema's names, so that conditions are pushed.
            asked += [Ref(column, Path(()), VARIANT) for column in table.stored_variants]
        whole = table.whole_variants(_stored_names(use.whole, table))
        plan = plan_scan(
            self._tables.with_facts(table, asked),
            [*requests, *whole],
            use.predicate,
            partition_types=table.partition_types,
        )
        if is_local(table.snapshot.store.uri) and self._helper.has_kernels:
            plan = find_rows_first(plan, table.partition_types)
        return PlannedTable(query.sources[self._helper.qualified(view)], view, table, use, plan)

    def _publish(self, planned: PlannedTable, columns: Mapping[str, PathColumn]) -> None:
        plan = planned.plan
        needed = _stored_names(planned.use.whole, planned.table)
        needed |= {path.ref.column[0] for path in planned.use.paths}
        frame = scan(self._helper, planned.table, plan, columns, planned.joined, needed=needed)
        self._helper.publish(frame, planned.view)

    def _rewritten(
        self,
        query: _Query,
        prepared: PreparedQuery,
        names: Iterable[tuple[Splice, object]],
        columns: Mapping[str, Mapping[str, PathColumn]],
        original: DataFrame,
    ) -> DataFrame | None:
        """The query with paths as fields; None when Spark makes something else of it."""
        changes = [name for name, _ in names]
        for planned in prepared.tables:
            for path in planned.use.paths:
                column = columns[planned.view][path.ref.column[0]]
                changes.append(_field_splice(query.text, path, column))
        text = splice(query.text, changes)
        try:
            with _quiet():
                frame = self._spark.sql(text, query.args)
        except _REFUSALS:
            return None
        return frame if _same_columns(frame, original) else None

    def _load(self, reference: Reference) -> TableVersion:
        before = None
        if reference.timestamp is not None:
            before = self._milliseconds(reference.timestamp)
        return self._tables.load(reference.location, reference.version, before=before)

    def _milliseconds(self, timestamp: str) -> int:
        """A time travel's time, by the user's time zone."""
        # Not by a parameter: with Delta Spark's parser in the session, Spark 4.2 binds none.
        moment = sf.unix_millis(sf.lit(timestamp).try_cast("timestamp"))
        found: int | None = self._spark.range(1).select(moment).collect()[0][0]
        if found is None:
            raise InvalidQuery(f"{timestamp!r} is not a timestamp")
        return found

    def _parse(self, text: str) -> Node:
        return _spark_errors(lambda: self._catalyst.parse(text), {})

    def _sql(self, text: str, args: Any, sources: Mapping[str, str]) -> DataFrame:
        return _spark_errors(lambda: self._spark.sql(text, args), sources)


@dataclass(frozen=True, slots=True)
class _Query:
    """The user's text with views in the place of tables.

    `sources` maps the views, as the text writes them, to what the user wrote there; `tables` maps
    them to tables, without their database.
    """

    text: str
    args: Any
    sources: Mapping[str, str]
    tables: Mapping[str, TableVersion]


def _field_splice(text: str, use: PathUse, column: PathColumn) -> Splice:
    """The change of one path's expression into the field of its column's struct.

    Where some files are read natively the expression itself stays, over the Variant inside the
    struct: evaluated only in rows whose field is NULL, and only where the query itself comes to
    evaluate it.
    """
    name = text[use.column[0] : use.column[1]]
    path = f"{name}.{column.field(use.ref)}"
    if not column.native:
        return Splice(*use.span, path)
    before, after = text[use.span[0] : use.column[0]], text[use.column[1] : use.span[1]]
    native = f"{before}{name}.{VARIANT_FIELD}{after}"
    if use.implicit_cast:
        native = f"CAST({native} AS {use.ref.type})"
    return Splice(*use.span, f"coalesce({path}, {native})")


def _by_stored_names(use: TableUse, table: TableVersion) -> TableUse:
    """What is read, by the names that the table's files have."""
    paths = tuple(replace(path, ref=table.stored_ref(path.ref)) for path in use.paths)
    predicate = use.predicate and map_refs(use.predicate, table.stored_ref)
    return replace(use, paths=paths, predicate=predicate)


def _everything(view: str, table: TableVersion) -> TableUse:
    """All columns as they are, of all rows."""
    return TableUse(view, (), frozenset(table.schema.names), None)


def _stored_names(columns: Iterable[str], table: TableVersion) -> frozenset[str]:
    """The names that the table's files have for some of its columns."""
    stored = dict(zip(table.schema.names, table.stored.names, strict=True))
    return frozenset(stored[name] for name in columns)


def _same_columns(frame: DataFrame, original: DataFrame) -> bool:
    ours, theirs = frame.schema.fields, original.schema.fields
    return [(item.name, item.dataType) for item in ours] == [
        (item.name, item.dataType) for item in theirs
    ]


def _spark_errors(run: Callable[[], T], sources: Mapping[str, str]) -> T:
    """Run Spark's parser or analyser; its errors become one sentence about the user's text."""
    try:
        with _quiet():
            return run()
    except _REFUSALS as error:
        raise InvalidQuery(_sentence(error, sources)) from None


_REFUSALS = (PySparkException, Py4JJavaError)
"""What parsing and analysis raise; Py4JJavaError where Spark fails to word its own error."""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep PySpark from writing the JVM's trace of a refusal to stderr before anyone handles it."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def _sentence(error: Exception, sources: Mapping[str, str]) -> str:
    message = str(error)
    if isinstance(error, Py4JJavaError):
        message = str(error.java_exception.getMessage())
    lines = [line.strip() for line in message.splitlines()]
    text = next((line for line in lines if line), "Spark refused the query")
    for view, source in sources.items():
        text = text.replace(view, source).replace(_quoted_parts(view), source)
    return text.rstrip(";")


def _quoted_parts(view: str) -> str:
    return ".".join(f"`{part}`" for part in view.split("."))
