"""One query of a user: its tables become relations, which the rule in Spark's optimizer plans.

Names of our tables in the text become names of views (`references`), each of a `TableRelation`.
Spark runs that text in the user's session, as it runs any other.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from variantlake.errors import InvalidQuery, UnsupportedFeature
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.quoting import Parts
from variantlake.spark.query.names import CatalogNames, CatalogTable
from variantlake.spark.query.plans.catalyst import Catalyst, Node, has_inside
from variantlake.spark.query.plans.planned import (
    PlannedTable,
    PreparedQuery,
    TableUse,
    everything,
    stored_names,
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
from variantlake.spark.rule.accelerate import planner_of, table_frame
from variantlake.spark.rule.relations import TableRelation
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jvm import dataset_of
from variantlake.spark.session.refusals import REFUSALS, or_invalid, quiet, sentence
from variantlake.spark.session.settings import is_case_sensitive
from variantlake.spark.session.variant_functions import functions_of_text
from variantlake.spark.session.versions import UNTRIED
from variantlake.sql.splice import splice

NOT_OVER_VIEWS = "the query asks for more than rows: Spark runs it as it is"
NATIVELY = "whole Variants of all files are read"


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
        if not query.relations:
            return PreparedQuery(note=SPARK_ALONE, frame=self._sql(text, args, {}) if run else None)
        try:
            if not is_query(parsed) and not query.inside:
                return self._statement(query, run=run)
            if not run:
                return self._explained(query)
            return PreparedQuery(frame=self._sql(query.text, args, query.sources))
        except (InvalidQuery, UnsupportedFeature) as error:
            # Spark may take what our views lack, such as `_metadata`.
            if not query.in_spark:
                raise
            frame = self._by_spark(text, args, error, run=run or is_query(parsed))
            return PreparedQuery(note=NOT_OVER_VIEWS, frame=frame)
        finally:
            self._drop(query)

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
                frame = self._sql(query.text, None, {})
            except InvalidQuery:
                return None
            finally:
                self._drop(query)
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
        query = _ClassicQuery(
            text=splice(text, changes),
            args=args,
            relations={
                view: TableRelation(
                    tables[each], self._tables, self._helper, text[each.start : each.stop]
                )
                for each, view in views.items()
            },
            sources={
                self._helper.qualified(view): text[each.start : each.stop]
                for each, view in views.items()
            },
            inside=args is None and has_inside(parsed) and is_query(parsed.children[-1]),
            in_spark=all(reference.target.in_spark for reference in references),
            as_delta=splice(text, as_delta),
        )
        for view, relation in query.relations.items():
            frame = table_frame(self._spark, relation)
            if frame is None:
                frame = relation.rows()
            self._helper.publish(frame, view)
        return query

    def _drop(self, query: _ClassicQuery) -> None:
        """Forget views. A DataFrame is analysed when it is made, and needs them no longer."""
        if not query.is_kept:
            for view in query.relations:
                self._helper.drop(view)

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
        if not run:
            return PreparedQuery(tuple(map(self._natively, query.relations.items())), NOT_A_SELECT)
        query.is_kept = True
        return PreparedQuery(
            note=NOT_A_SELECT, frame=self._sql(query.text, query.args, query.sources)
        )

    def _explained(self, query: _ClassicQuery) -> PreparedQuery:
        """What the query, or the one inside of the statement, would read."""
        frame = or_invalid(lambda: self._analysed(query), query.sources)
        planner = planner_of(self._spark) if self._is_tried else None
        if planner is None:
            note = f"{NATIVELY}: {UNTRIED}"
            return PreparedQuery(tuple(map(self._natively, query.relations.items())), note)
        with planner.explaining() as planned:
            plan = str(dataset_of(frame).queryExecution().optimizedPlan().toString())
        tables: list[PlannedTable] = []
        for view, relation in query.relations.items():
            ours = [each for each in planned if each.relation == relation.number]
            left = relation.is_in(plan)
            tables += ours or [
                self._natively((view, relation)) if left else self._nothing(relation)
            ]
        tables += (each for each in planned if each.relation is None)
        return PreparedQuery(tuple(tables))

    def _analysed(self, query: _ClassicQuery) -> DataFrame:
        """The query, or the one inside of the statement, which is not run."""
        if query.inside:
            return self._catalyst.inside(query.text)
        return self._catalyst.sql(query.text, query.args)

    def _natively(self, named: tuple[str, TableRelation]) -> PlannedTable:
        """A table that is read as it is."""
        view, relation = named
        use = everything(view, relation.table)
        plan = self._tables.plan(
            relation.table,
            use.refs,
            stored_names(use.whole, relation.table),
            None,
            has_kernels=lambda: self._helper.has_kernels,
        )
        return PlannedTable(relation.source, view, relation.table, use, plan)

    def _nothing(self, relation: TableRelation) -> PlannedTable:
        """A table of which Spark has seen that no row is needed."""
        use = TableUse("", (), frozenset(), None, FirstRows(0))
        plan = self._tables.plan(relation.table, (), (), None, use.first, has_kernels=lambda: False)
        return PlannedTable(relation.source, "", relation.table, use, plan)

    def _load(self, reference: Reference, args: Any) -> TableVersion:
        target = reference.target
        return self.opened(target.location, reference.version, reference.timestamp, args)

    def _parse(self, text: str) -> Node:
        return or_invalid(lambda: self._catalyst.parse(text), {})

    def _sql(self, text: str, args: Any, sources: Mapping[str, str]) -> DataFrame:
        return or_invalid(lambda: self._catalyst.sql(text, args), sources)


@dataclass(slots=True)
class _ClassicQuery:
    """The user's text with views in the place of tables.

    `relations` are what the views are of, by their names without a database; `sources` maps the
    views, as the text writes them, to what the user wrote there. `inside` tells that the query
    stands inside a statement such as INSERT. `in_spark` tells that Spark knows all names of tables;
    `as_delta` is the text in which it knows them, if Delta Spark is there. `is_kept` tells that
    what the statement makes goes on reading the views.
    """

    text: str
    args: Any
    relations: Mapping[str, TableRelation]
    sources: Mapping[str, str]
    inside: bool
    in_spark: bool
    as_delta: str
    is_kept: bool = False
