"""Runs queries of classic sessions: their tables become relations that the optimizer rule plans.

Spark parses and analyses the text in the user's session, as it does any other. For each name of a
table `TableNames.java` first calls this module, which answers with a `TableRelation`.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import orjson
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from variantlake.delta.schema.columns_by_path import HIDDEN, WHERE_ROWS_LIE
from variantlake.errors import InvalidQuery, UnsupportedFeature, VariantLakeError
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.quoting import Parts
from variantlake.spark.query.connect_splices import over_views
from variantlake.spark.query.names import (
    CatalogNames,
    Resolve,
    Target,
    catalog_entry,
    delta_name,
    target_of,
    versioned,
)
from variantlake.spark.query.plans.planned import (
    PlannedTable,
    PreparedQuery,
    TableUse,
    everything,
    stored_names,
)
from variantlake.spark.query.read_versions import view_mark
from variantlake.spark.query.session_queries import (
    LEFT_TO_SPARK,
    NO_DELTA,
    NOT_A_SELECT,
    SPARK_ALONE,
    SessionQueries,
    not_a_timestamp,
)
from variantlake.spark.rule.accelerate import planner_of, table_frame
from variantlake.spark.rule.relations import TableRelation
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.janino import java_instance
from variantlake.spark.session.jvm import Java as JavaObject
from variantlake.spark.session.jvm import (
    column_of,
    dataset_of,
    frame_of,
    gateway_of,
    plan_of,
    session_of,
)
from variantlake.spark.session.refusals import REFUSALS, or_invalid, quiet, sentence
from variantlake.spark.session.variant_functions import functions_of_text
from variantlake.spark.session.versions import UNTRIED
from variantlake.sql.splice import splice
from variantlake.sql.token_tables import TableName, qualifier_splices, table_names
from variantlake.sql.tokens import ParsedText

NOT_OVER_RELATIONS = "the query asks for more than rows: Spark runs it as it is"
_WHOLE = re.compile(
    r"\s*SELECT\s+\*\s+FROM\s+(\w+\.__vl_\w+)(?:\s+AS)?(?:\s+\S+)?\s*", re.IGNORECASE
)
_CREATES_VIEW = re.compile(r"\s*CREATE\b[\w\s]*\bVIEW\b", re.IGNORECASE)
NATIVELY = "whole Variants of all files are read"


class ClassicQueries(SessionQueries[PreparedQuery]):
    """Runs the queries of one classic session."""

    def __init__(self, spark: SparkSession, helper: HelperSession, tables: Tables) -> None:
        super().__init__(spark, tables)
        self._helper = helper
        self._names = CatalogNames(spark)
        self._java = java_instance(spark, "TableNames")
        self._published: dict[str, TableVersion] = {}

    def table_behind(self, parts: Parts) -> str | None:
        """Return the location of the table that a temporary view shows unchanged, None for others.

        Only for views that we made without Delta's jar: Delta Spark knows its own.
        """
        known = session_of(self._spark).sessionState().catalog()
        found = known.getRawTempView(parts[-1]) if len(parts) == 1 else None
        if len(parts) == 2 and parts[0].lower() == str(known.globalTempDatabase()).lower():
            found = known.getRawGlobalTempView(parts[1])
        if found is None or found.isEmpty() or found.get().tableMeta().viewText().isEmpty():
            return None
        made = found.get().tableMeta()
        whole = _WHOLE.fullmatch(str(made.viewText().get()))
        table = None if whole is None else self._published.get(whole[1])
        if table is None or list(made.schema().fieldNames()) != _columns(table):
            return None
        return table.location

    def renew_views(self) -> None:
        """Move the views that we made to the newest versions of their tables."""
        for view, shown in self._published.items():
            with contextlib.suppress(VariantLakeError):  # the table is gone
                newest = self.tables.open(shown.location)
                if newest.snapshot.version != shown.snapshot.version:
                    self._helper.publish(self.relation(newest, view).rows(), view)
                    self._published[view] = newest

    def _checked(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> PreparedQuery:
        self.renew_views()
        with functions_of_text(self._spark, text):
            return self._prepare(text, args, resolve, run=run)

    def _prepare(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> PreparedQuery:
        kind = or_invalid(lambda: self._java.kind(session_of(self._spark), text), {})
        if not kind or (kind == "inside" and not run and args is not None):
            return self._statement(text, args, resolve, run=run)
        reading = _Reading(self, resolve)
        try:
            if run or kind == "query":
                frame = self._over_relations(text, args, reading)
            else:
                session = session_of(self._spark)
                frame = reading.run(lambda: self._java.inside(session, text, reading))
        except LEFT_TO_SPARK as error:
            by_spark = self._by_spark(text, args, error, run=run or kind == "query")
            return PreparedQuery(note=str(error), frame=by_spark)
        except InvalidQuery as error:
            if not reading.relations:
                raise
            run = run or kind == "query"
            return self._of_more_than_rows(text, args, resolve, error, reading, run=run)
        if not reading.relations:
            return PreparedQuery(note=SPARK_ALONE, frame=frame if run else None)
        return PreparedQuery(frame=frame) if run else self._explained(frame, reading.relations)

    def _of_more_than_rows(
        self,
        text: str,
        args: Any,
        resolve: Resolve,
        error: InvalidQuery,
        reading: _Reading,
        *,
        run: bool,
    ) -> PreparedQuery:
        """Run a query by Delta Spark, which has the `_metadata` that our relations lack."""
        hidden = HIDDEN in text.lower()
        if not reading.in_spark:
            if not hidden:
                raise error
            text = self._with_short_qualifiers(text, resolve)
            text = _with_names_of_delta(text, self._named(ParsedText.of(text), resolve))
        try:
            by_spark = self._by_spark(text, args, error, run=run)
        except InvalidQuery:
            if hidden and f"`{HIDDEN}`" in error.message:
                raise UnsupportedFeature(
                    f"{HIDDEN} is not read here: it says in which files rows lie",
                    hint=WHERE_ROWS_LIE,
                ) from None
            raise
        return PreparedQuery(note=NOT_OVER_RELATIONS, frame=by_spark)

    def _over_relations(self, text: str, args: Any, reading: _Reading) -> DataFrame:
        def analysed() -> JavaObject:
            columns = self._columns(args)
            return self._java.sql(session_of(self._spark), text, columns, reading)

        return reading.run(analysed)

    def _columns(self, args: Any) -> Any:
        """Return the values of a text's parameters, as PySpark hands them to a session."""
        if isinstance(args, Mapping):
            return {name: column_of(lit(value)) for name, value in args.items()}
        if args is None:
            return None
        utils = gateway_of(self._spark).jvm.PythonUtils
        return utils.toArray([column_of(lit(value)) for value in args])

    def relation(self, table: TableVersion, source: str) -> TableRelation:
        """Return a table as a relation; `source` is how a query names it."""
        return TableRelation(table, self.tables, self._helper, source)

    def frame(self, relation: TableRelation) -> DataFrame:
        """Return a relation as a DataFrame that the rule plans; without the rule, like `read`."""
        frame = table_frame(self._spark, relation)
        return self.read(relation) if frame is None else self._marked(frame, relation)

    def read(self, relation: TableRelation) -> DataFrame:
        """Return a DataFrame of all rows of a relation, which the rule does not plan."""
        return self._marked(frame_of(self._spark, plan_of(relation.rows())), relation)

    def _marked(self, frame: DataFrame, relation: TableRelation) -> DataFrame:
        """Return the DataFrame with an alias that marks in its plan which version it reads."""
        mark = view_mark(relation.table)
        return frame.alias(self._helper.new_view(mark)) if mark else frame

    @property
    def user(self) -> SparkSession:
        """The session."""
        user: SparkSession = self._spark
        return user

    def _statement(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> PreparedQuery:
        """Prepare a statement that does more than read, such as CREATE VIEW or MERGE.

        Spark reads the tables by itself if it can, so that a view follows its table. Without
        Delta's jar it cannot, and gets native views, which stay in the session.
        """
        named = self._named(ParsedText.of(text), resolve)
        if not named:
            return PreparedQuery(note=SPARK_ALONE, frame=self._sql(text, args, {}) if run else None)
        try:
            relations = [
                self.relation(self._load(name, target, args), text[name.start : name.stop])
                for name, target in named
            ]
        except LEFT_TO_SPARK as error:
            return PreparedQuery(note=str(error), frame=self._by_spark(text, args, error, run=run))
        if not run:
            return PreparedQuery(tuple(map(self._natively, relations)), NOT_A_SELECT)
        as_delta = _with_names_of_delta(text, named)
        try:
            with quiet():
                return PreparedQuery(note=SPARK_ALONE, frame=self._spark.sql(as_delta, args))
        except REFUSALS as error:
            if not isinstance(error, PySparkException) or error.getCondition() not in NO_DELTA:
                raise InvalidQuery(sentence(error, {})) from None
        return self._over_views(text, args, resolve, relations)

    def _over_views(
        self, text: str, args: Any, resolve: Resolve, relations: Sequence[TableRelation]
    ) -> PreparedQuery:
        text = self._with_short_qualifiers(text, resolve)
        names = [name for name, _ in self._named(ParsedText.of(text), resolve)]
        views = [self._helper.publish(relation.rows()) for relation in relations]
        sources = {view: each.source for view, each in zip(views, relations, strict=True)}
        for view, each in zip(views, relations, strict=True):
            if not each.table.chosen and _CREATES_VIEW.match(text):
                self._published[view] = each.table
        frame = self._sql(splice(text, over_views(names, views)), args, sources)
        return PreparedQuery(note=NOT_A_SELECT, frame=frame)

    def _with_short_qualifiers(self, text: str, resolve: Resolve) -> str:
        """Return the text with columns qualified only by the last part of our tables' names."""
        parsed = ParsedText.of(text)
        named = [name for name, _ in self._named(parsed, resolve)]
        return splice(text, qualifier_splices(parsed.tokens, named))

    def _named(self, parsed: ParsedText, resolve: Resolve) -> list[tuple[TableName, Target]]:
        """Our tables that the tokens of a text name."""

        @functools.cache
        def find(parts: Parts) -> Target | None:
            return resolve(parts) or target_of(self._names.find(parts))

        found = ((name, find(name.parts)) for name in table_names(parsed))
        return [(name, target) for name, target in found if target is not None]

    def _explained(self, frame: DataFrame, relations: Sequence[TableRelation]) -> PreparedQuery:
        """Return the plans of all tables that a query would read."""
        planner = planner_of(self._spark) if self._is_tried else None
        if planner is None:
            note = f"{NATIVELY}: {UNTRIED}"
            return PreparedQuery(tuple(map(self._natively, relations)), note)
        with planner.explaining() as planned:
            plan = str(dataset_of(frame).queryExecution().optimizedPlan().toString())
        tables: list[PlannedTable] = []
        for relation in relations:
            ours = [each for each in planned if each.relation == relation.number]
            left = relation.is_in(plan)
            tables += ours or [self._natively(relation) if left else self._nothing(relation)]
        tables += (each for each in planned if each.relation is None)
        return PreparedQuery(tuple(tables))

    def _natively(self, relation: TableRelation) -> PlannedTable:
        """Return the plan that reads all columns and rows of a table."""
        use = everything("", relation.table)
        plan = self.tables.plan(
            relation.table,
            use.refs,
            stored_names(use.whole, relation.table),
            None,
            has_kernels=lambda: self._helper.has_kernels,
        )
        return PlannedTable(relation.source, "", relation.table, use, plan)

    def _nothing(self, relation: TableRelation) -> PlannedTable:
        """Return the plan for a table of which the optimized query needs no row."""
        use = TableUse("", (), frozenset(), None, FirstRows(0))
        plan = self.tables.plan(relation.table, (), (), None, use.first, has_kernels=lambda: False)
        return PlannedTable(relation.source, "", relation.table, use, plan)

    def _sql(self, text: str, args: Any, sources: Mapping[str, str]) -> DataFrame:
        found: DataFrame = or_invalid(lambda: self._spark.sql(text, args), sources)
        return found


def _columns(table: TableVersion) -> list[str]:
    return [field.name for field in table.snapshot.schema.fields]


class _Reading:
    """Resolves the names of one text to relations: a `BiFunction` for the JVM.

    `relations` are those that it returned, `in_spark` says whether Spark knows all their names.
    """

    class Java:
        """The Java interfaces of the class; py4j looks for this name."""

        implements: ClassVar = ["java.util.function.BiFunction"]

    def __init__(self, queries: ClassicQueries, resolve: Resolve) -> None:
        self._queries = queries
        self._resolve = resolve
        self._error: BaseException | None = None
        self.relations: list[TableRelation] = []
        self.in_spark = True

    def run(self, analysed: Callable[[], JavaObject]) -> DataFrame:
        """Analyse the text as a DataFrame. Raises InvalidQuery, and errors of opening tables."""

        def of_relations() -> JavaObject:
            try:
                return analysed()
            except REFUSALS:
                if self._error is None:
                    raise
                raise self._error from None

        return DataFrame(or_invalid(of_relations, {}), self._queries.user)

    def apply(self, request: str, moment: JavaObject | None) -> JavaObject | None:
        """Return the DataFrame for a name, None if it is not our table, a text if reading fails."""
        try:
            return self._frame(orjson.loads(request), moment)
        except BaseException as error:  # noqa: BLE001 - py4j cannot take it to the JVM; `run` raises it
            self._error = error
            return "a table cannot be read"

    def _frame(self, asked: Mapping[str, Any], moment: JavaObject | None) -> JavaObject | None:
        parts, entry = tuple(asked["parts"]), asked["entry"]
        target = self._resolve(parts) or target_of(None if entry is None else catalog_entry(entry))
        if target is None:
            return None
        location, version, before = target.location, asked["version"], None
        if version is not None:
            if not version.isdecimal():
                return None
            version = int(version)
        elif moment is not None:
            before = moment.get()
            if before is None:
                raise not_a_timestamp(moment.toString())
        else:
            location, version = versioned(location, parts)
        table = self._queries.tables.open(location, version, before=before)
        relation = self._queries.relation(table, asked["source"])
        self.relations.append(relation)
        self.in_spark = self.in_spark and target.in_spark
        return dataset_of(self._queries.frame(relation))


def _with_names_of_delta(text: str, named: Sequence[tuple[TableName, Target]]) -> str:
    """Return the text with names of the form delta.`path` for tables that Spark does not know."""
    others = [(name, target) for name, target in named if not target.in_spark]
    words = [_as_delta(name, target) for name, target in others]
    return splice(text, over_views([name for name, _ in others], words))


def _as_delta(name: TableName, target: Target) -> str:
    """Return a table and its version in Delta's SQL."""
    location, version = versioned(target.location, name.parts)
    version = version if name.version is None else name.version
    words = delta_name(location)
    if version is not None:
        words += f" VERSION AS OF {version}"
    if name.timestamp is not None:
        words += f" TIMESTAMP AS OF {name.timestamp}"
    return words
