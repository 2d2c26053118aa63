"""One query of a user: analysed, planned, and written anew where that makes it faster.

The steps, each of which may end in a plainer form that gives the same answer:

1. Names of our tables in the text become names of views (`references`).
2. Spark analyses the text over empty views, which tells what is read of each table (`analysis`).
3. Each table is planned: files skipped, paths read as columns where that is exact (`planning`).
4. The views get their scans, and the paths in the text become fields of them (`scan`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from variantlake.errors import InvalidQuery, UnsupportedFeature, VariantLakeError
from variantlake.expressions.tree import In
from variantlake.quoting import Parts
from variantlake.spark.query.names import CatalogNames, CatalogTable
from variantlake.spark.query.plans.analysis import Analysis, TableUse, analyse
from variantlake.spark.query.plans.catalyst import Catalyst, Node, has_inside
from variantlake.spark.query.plans.join_values import (
    MIN_FILES,
    SmallSide,
    condition,
    is_cheap,
    values_of,
)
from variantlake.spark.query.plans.planned import (
    PlannedTable,
    PreparedQuery,
    by_stored_names,
    everything,
    merged,
    stored_names,
    with_pushed,
)
from variantlake.spark.query.read_versions import view_mark
from variantlake.spark.query.references import (
    Reference,
    Resolve,
    Target,
    find_references,
    is_query,
    qualifier_splices,
)
from variantlake.spark.query.session_queries import (
    LEFT_TO_SPARK,
    NO_DELTA,
    NOT_A_SELECT,
    SPARK_ALONE,
    SessionQueries,
)
from variantlake.spark.query.views import Views
from variantlake.spark.scan.dataframe import scan
from variantlake.spark.scan.path_columns import PathColumn, field_splice, path_columns
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jvm import frame_of, plan_of
from variantlake.spark.session.refusals import REFUSALS, or_invalid, quiet, sentence
from variantlake.spark.session.schemas import same_columns
from variantlake.spark.session.settings import is_case_sensitive
from variantlake.spark.session.variant_functions import functions_of_text
from variantlake.spark.session.versions import UNTRIED
from variantlake.sql.splice import Splice, splice

NOT_REWRITTEN = "Spark did not take the rewritten text: paths are read natively"
NOT_OVER_VIEWS = "the query asks for more than rows: Spark runs it as it is"


class ClassicQueries(SessionQueries[PreparedQuery]):
    """Runs the queries of one classic session."""

    def __init__(self, spark: SparkSession, helper: HelperSession, tables: Tables) -> None:
        super().__init__(spark, tables)
        self._helper = helper
        self._catalyst = Catalyst(spark)
        self._names = CatalogNames(spark)

    def _checked(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> PreparedQuery:
        with functions_of_text(self._spark, text):
            return self._prepare(text, args, resolve, run=run)

    def _prepare(self, text: str, args: Any, resolve: Resolve, *, run: bool) -> PreparedQuery:
        find = self._finder(resolve)
        parsed = self._parse(text)
        expanded = self._views(find).expand(text, parsed)
        if expanded != text:
            parsed = self._parse(expanded)
        try:
            query = self._over_views(expanded, parsed, args, find)
        except LEFT_TO_SPARK as error:
            frame = self._by_spark(text, args, error, run=run or is_query(parsed))
            return PreparedQuery(note=str(error), frame=frame)
        if not query.tables:
            return PreparedQuery(note=SPARK_ALONE, frame=self._sql(text, args, {}) if run else None)
        self._helper.follow()
        if not is_query(parsed) and not query.inside:
            return self._statement(query, run=run)
        try:
            return self._select(query, run=run)
        except (InvalidQuery, UnsupportedFeature) as error:
            # Spark may take what our views lack, such as `_metadata`.
            if not query.in_spark:
                raise
            frame = self._by_spark(text, args, error, run=run or is_query(parsed))
            return PreparedQuery(note=NOT_OVER_VIEWS, frame=frame)
        finally:
            # A DataFrame is analysed when it is made and needs its views no longer.
            for view in query.tables:
                self._helper.drop(view)

    def _finder(self, resolve: Resolve) -> Resolve:
        """Names of the user for tables of ours, then those of Spark's catalogs."""

        @functools.cache
        def find(parts: Parts) -> Target | None:
            target = resolve(parts)
            if target is not None:
                return target
            found = self._names.find(parts)
            if isinstance(found, CatalogTable) and found.is_delta:
                return Target(found.location, found.name, in_spark=True)
            return None

        return find

    def _views(self, find: Resolve) -> Views:
        def types(text: str) -> list[DataType] | None:
            query = self._over_views(text, self._parse(text), None, find)
            try:
                frame = self._empty(query)
            except InvalidQuery:
                return None
            finally:
                for view in query.tables:
                    self._helper.drop(view)
            return [field.dataType for field in frame.schema]

        sensitive = is_case_sensitive(self._spark)
        return Views(self._names, self._parse, find, types, case_sensitive=sensitive)

    def _over_views(self, text: str, parsed: Node, args: Any, find: Resolve) -> _ClassicQuery:
        """The text with names of views for our tables. Raises what reading their logs raises."""
        sensitive = is_case_sensitive(self._spark)
        references = find_references(parsed, text, find, case_sensitive=sensitive)
        tables = {reference: self._load(reference, args) for reference in references}
        views = {each: self._helper.new_view(view_mark(tables[each])) for each in references}
        changes = qualifier_splices(
            parsed, text, [reference.target.name for reference in references if reference.alias]
        )
        as_delta = []
        for reference, view in views.items():
            changes += reference.splices(self._helper.qualified(view))
            if not reference.target.in_spark:
                as_delta += reference.splices(reference.as_delta)
        return _ClassicQuery(
            text=splice(text, changes),
            args=args,
            sources={
                self._helper.qualified(view): text[reference.start : reference.stop]
                for reference, view in views.items()
            },
            tables={view: tables[reference] for reference, view in views.items()},
            inside=args is None and has_inside(parsed) and is_query(parsed.children[-1]),
            in_spark=all(reference.target.in_spark for reference in references),
            as_delta=splice(text, as_delta),
        )

    def _statement(self, query: _ClassicQuery, *, run: bool) -> PreparedQuery:
        """A statement that does more than read, such as CREATE VIEW or MERGE.

        Spark takes the tables by itself if it can, so that a view follows its table. Without
        Delta's jar it cannot: then it gets native views, which are kept.
        """
        if run:
            try:
                with quiet():
                    frame = self._spark.sql(query.as_delta, query.args)
                return PreparedQuery(note=SPARK_ALONE, frame=frame)
            except REFUSALS as error:
                if not isinstance(error, PySparkException) or error.getCondition() not in NO_DELTA:
                    raise InvalidQuery(sentence(error, query.sources)) from None
        prepared = PreparedQuery(
            tuple(
                self._planned(query, view, everything(view, table))
                for view, table in query.tables.items()
            ),
            NOT_A_SELECT,
        )
        if run:
            for planned in prepared.tables:
                self._publish(planned, {})
            prepared.frame = self._sql(query.text, query.args, query.sources)
        return prepared

    def _empty(self, query: _ClassicQuery) -> DataFrame:
        """The query over tables without rows. Raises InvalidQuery."""
        for view, table in query.tables.items():
            self._helper.publish_empty(table.declared, view)
        return or_invalid(lambda: self._analysed(query, query.text), query.sources)

    def _analysed(self, query: _ClassicQuery, text: str) -> DataFrame:
        """The query, or the one inside of the statement, which is not run."""
        if query.inside:
            return self._catalyst.inside(text)
        return self._catalyst.sql(text, query.args)

    def _select(self, query: _ClassicQuery, *, run: bool) -> PreparedQuery:
        original = self._empty(query)
        analysis = self._analyse(query, original)
        prepared = PreparedQuery(
            tuple(self._planned(query, view, use) for view, use in analysis.tables.items()),
            note="" if self._is_tried else f"tables are read natively and in full: {UNTRIED}",
        )
        prepared.tables = self._with_joined(query, analysis, prepared.tables)
        # A statement has run by the time that there is a plan to change.
        if not query.inside:
            found, helper = analysis.aggregates, self._helper
            prepared.tables = with_pushed(
                prepared.tables, found, helper, has_kernels=lambda: helper.has_kernels
            )
        if not run:
            return prepared
        pushed = [planned.pushed is not None for planned in prepared.tables]
        if any(pushed):
            # Where partial rows take the place of all tables, a scan would be of none.
            frame = original
            if not all(pushed):
                frame = self._scanned(query, prepared, analysis, original)
            prepared.frame = merged(frame, prepared.tables, self._helper)
            if prepared.frame is not None:
                return prepared
            prepared.tables = tuple(replace(each, pushed=None) for each in prepared.tables)
        prepared.frame = self._scanned(query, prepared, analysis, original)
        return prepared

    def _scanned(
        self, query: _ClassicQuery, prepared: PreparedQuery, analysis: Analysis, original: DataFrame
    ) -> DataFrame:
        """The query over scans of its tables, with paths as fields where Spark takes that."""
        columns = {
            planned.view: path_columns(planned.plan, (path.ref for path in planned.use.paths))
            for planned in prepared.tables
        }
        if any(columns.values()):
            for planned in prepared.tables:
                self._publish(planned, columns[planned.view])
            frame = self._rewritten(query, prepared, analysis.names, columns, original)
            if frame is not None:
                return frame
            prepared.note = NOT_REWRITTEN
        for planned in prepared.tables:
            self._publish(planned, {})
        return self._sql(query.text, query.args, query.sources)

    def _with_joined(
        self, query: _ClassicQuery, analysis: Analysis, planned: tuple[PlannedTable, ...]
    ) -> tuple[PlannedTable, ...]:
        """The tables planned anew with the values of small joined sides, if that pays."""
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
        self, query: _ClassicQuery, side: SmallSide, plans: Mapping[str, PlannedTable]
    ) -> list[str] | None:
        """The values of a joined side; None if they are many, or not worth their price."""
        if not is_cheap(side, {view: each.plan for view, each in plans.items()}):
            return None
        try:
            with quiet():
                for view in side.views:
                    self._publish(plans[view], {})
                frame = or_invalid(lambda: self._analysed(query, query.text), {})
                plan = plan_of(frame)
                for at in side.steps:
                    plan = plan.children().apply(at)
                return values_of(frame_of(self._spark, plan), side)
        except (*REFUSALS, VariantLakeError):
            return None  # an error of the query itself comes when the query runs

    def _analyse(self, query: _ClassicQuery, original: DataFrame) -> Analysis:
        whole = {view: everything(view, table) for view, table in query.tables.items()}
        if not self._is_tried:
            return Analysis(whole, ())
        views = {self._helper.qualified(view): view for view in query.tables}
        try:
            parsed, analysed = self._catalyst.plans(original, query.text)
            if query.args is not None:
                parsed = self._parse(query.text)  # the one before has the arguments in it
            return analyse(parsed, analysed, views, query.text)
        except RecursionError:
            # A condition of thousands of terms: too deep to look through, but Spark takes it.
            return Analysis(whole, ())

    def _planned(self, query: _ClassicQuery, view: str, use: TableUse) -> PlannedTable:
        table = query.tables[view]
        use = by_stored_names(use, table)
        plan = self._tables.plan(
            table,
            [path.ref for path in use.paths],
            stored_names(use.whole, table),
            use.predicate,
            use.first,
            has_kernels=lambda: self._helper.has_kernels,
        )
        return PlannedTable(query.sources[self._helper.qualified(view)], view, table, use, plan)

    def _publish(self, planned: PlannedTable, columns: Mapping[str, PathColumn]) -> None:
        plan = planned.plan
        needed = stored_names(planned.use.whole, planned.table)
        needed |= {path.ref.column[0] for path in planned.use.paths}
        if planned.pushed is not None:
            plan = replace(plan, groups=())  # partial rows come in their place
        frame = scan(self._helper, planned.table, plan, columns, planned.joined, needed=needed)
        self._helper.publish(frame, planned.view)

    def _rewritten(
        self,
        query: _ClassicQuery,
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
                cast = path.ref.type if path.implicit_cast else ""
                changes.append(
                    field_splice(query.text, column, path.ref, path.span, path.column, cast=cast)
                )
        text = splice(query.text, changes)
        try:
            with quiet():
                frame = self._analysed(query, text)
        except REFUSALS:
            return None
        if not same_columns(frame, original):
            return None
        return self._sql(text, query.args, query.sources) if query.inside else frame

    def _load(self, reference: Reference, args: Any) -> TableVersion:
        target = reference.target
        return self.opened(target.location, reference.version, reference.timestamp, args)

    def _parse(self, text: str) -> Node:
        return or_invalid(lambda: self._catalyst.parse(text), {})

    def _sql(self, text: str, args: Any, sources: Mapping[str, str]) -> DataFrame:
        return or_invalid(lambda: self._catalyst.sql(text, args), sources)


@dataclass(frozen=True, slots=True)
class _ClassicQuery:
    """The user's text with views in the place of tables.

    `sources` maps the views, as the text writes them, to what the user wrote there; `tables` maps
    them to tables, without their database. `inside` tells that the query stands inside a statement
    such as INSERT. `in_spark` tells that Spark knows all names of tables; `as_delta` is the text in
    which it knows them, if Delta Spark is there.
    """

    text: str
    args: Any
    sources: Mapping[str, str]
    tables: Mapping[str, TableVersion]
    inside: bool
    in_spark: bool
    as_delta: str
