"""Queries: text, whole tables, paths as expressions, and what they would read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from variantlake.errors import InvalidQuery
from variantlake.planning.explain import explain
from variantlake.quoting import quote_string
from variantlake.scan.footers import row_groups
from variantlake.spark.lake.base import LakeSession
from variantlake.spark.lake.explain import QueryExplanation, TableExplanation
from variantlake.spark.query.connect_query import ConnectQueries
from variantlake.spark.query.connect_splices import ConnectTable
from variantlake.spark.query.plans.planned import PlannedTable
from variantlake.spark.query.read_versions import view_mark
from variantlake.spark.query.table_locations import Location
from variantlake.spark.rule.accelerate import planner_of, table_frame
from variantlake.spark.scan.dataframe import scan
from variantlake.spark.scan.source_options import VERSION_IN_PATH
from variantlake.spark.scan.tables import TableVersion
from variantlake.spark.session.arguments import (
    check_location,
    check_table_version,
    check_text,
    is_frame,
)
from variantlake.spark.session.jvm import dataset_of, frame_of, plan_of
from variantlake.sql.statements import not_a_query

_LACKS_DELTA = (
    "[TABLE_OR_VIEW_NOT_FOUND]",
    "[PARSE_SYNTAX_ERROR]",
    "[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY]",
    "[DATA_SOURCE_NOT_FOUND]",
    "[NOT_SUPPORTED_COMMAND",
    "[UNSUPPORTED_FEATURE.TABLE_OPERATION]",
)
"""How Spark refuses a statement that it supports for Delta tables only."""

NOT_ACCELERATED = "the session reads tables as Spark does: see vl.spark.accelerate"
LEFT_AS_IT_IS = "no Variant is read in another way than Spark reads it"


class LakeQueries(LakeSession):
    """The part of `Lake` that reads."""

    def sql(
        self,
        query: str,
        args: Mapping[str, Any] | list[Any] | None = None,
        *,
        tables: Mapping[str, Location] | None = None,
    ) -> DataFrame:
        """Run Spark SQL in which ``delta.`path` `` names a table.

        Paths of Variant columns are read from typed columns where that is exact, and files that
        cannot match are skipped; the answer is what Spark gives on the unshredded data.

        Args:
            query: The text, in Spark's own dialect.
            args: Parameters, as in `SparkSession.sql`.
            tables: Names that the text may use for tables, with their locations.

        Raises:
            InvalidQuery: Spark does not take the text; the message is Spark's.
            NotADeltaTable: A location without a log.
            MalformedLog, UnsupportedFeature: A table that cannot be read.
        """
        check_text(query)
        resolve = self._resolver(tables)
        try:
            return self._runner.run(query, _args(args), resolve)
        except InvalidQuery as error:
            # Delta Spark takes such a statement, if it is there.
            if any(sign in error.message for sign in _LACKS_DELTA):
                raise not_a_query(query) or error from None
            raise

    def register(self, name: str, table: Location) -> None:
        """Let queries of this Lake call a table `name`, in which dots part a database from it.

        For Spark without Delta's jar, whose catalog holds no Delta tables. A name given here goes
        before the same one in Spark's catalog; `tables` of a query go before both.

        Raises NotADeltaTable, UnsupportedFeature for a table that is named and not there.
        """
        check_location(name, table)
        self._names[name.lower()] = self._written_to(table)

    def read(self, table: Location, version: int | None = None) -> DataFrame:
        """The whole table as a DataFrame, its VARIANT columns as they are.

        Columns that are NOT NULL in the table are not nullable, as in Delta Spark (of a session of
        Connect all are). If a file has a NULL there, a query that needs the column fails.

        Args:
            table: Its name, path or URL, as everywhere: a name is one that was registered or that
                a query could use, ``delta.`path` `` as well.
            version: An older version of it; `path@v3` is one too.

        Raises as `sql` does for a table that cannot be read, NotADeltaTable for a name that nobody
        knows.
        """
        place = self._place(table)
        if place.location is None or VERSION_IN_PATH.fullmatch(place.location):
            return self.table(table, version)
        found = self._tables.open(place.location, version)
        if isinstance(self._runner, ConnectQueries):
            return self._runner.read(found)
        return self._in_user_session(self._rows(found), view_mark(found))

    def table(
        self, table: Location, version: int | None = None, *, timestamp: str | None = None
    ) -> DataFrame:
        """A table as a DataFrame whose queries are planned as `sql` plans them.

        `lake.table("events").where("event:kind::string = 'x'").groupBy("day").count()` skips files,
        reads paths from typed columns, and groups rows before Spark sees them. For that a rule goes
        into the session's optimizer, which leaves all other tables to Spark until
        `vl.spark.accelerate`. On Spark Connect it is what `read` gives.

        Args:
            table: Its name, path or URL, as for `read`.
            version: An older version of it.
            timestamp: The version at this time instead, as text in the session's time zone.

        Raises InvalidValue for a version that is no whole number, or one with a time; as `read`.
        """
        check_table_version(version, timestamp)
        place = self._place(table)
        moment = None if timestamp is None else quote_string(timestamp)
        if place.location is None or VERSION_IN_PATH.fullmatch(place.location):
            at = "" if version is None else f" VERSION AS OF {version}"
            at += "" if moment is None else f" TIMESTAMP AS OF {moment}"
            return self.sql(f"SELECT * FROM {place.source}{at}")  # noqa: S608 - quoted
        found = self._runner.opened(place.location, version, moment, None)
        if isinstance(self._runner, ConnectQueries):
            return self._runner.read(found)
        rows = self._rows(found)
        frame = table_frame(self._spark, rows, found)
        return self._in_user_session(rows if frame is None else frame, view_mark(found))

    def _rows(self, table: TableVersion) -> DataFrame:
        """All columns as they are, in the helper session."""
        self._helper.follow()
        plan = self._tables.plan_everything(table, has_kernels=lambda: self._helper.has_kernels)
        return scan(self._helper, table, plan, {})

    def create_view(
        self, name: str, table: Location, *, column: str | None = None, sample_rows: int = 10_000
    ) -> DataFrame:
        """Make a temporary view with the frequent paths of a VARIANT column as typed columns.

        `vl.profile(table).as_view(name)` gives its text instead, to keep or to change. The view is
        of the table's newest version now; in the user's session, until the session ends.

        Args:
            name: The view's name, of one part.
            table: Its name, path or URL, as for `read`.
            column: The VARIANT column; None for the only one.
            sample_rows: The rows of the sample that decides which paths are frequent.

        Returns the DataFrame of the view. Raises as `vl.profile`, and as `sql`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.report.profile import profile

        place = self._place(table)
        if place.location is None:
            raise InvalidQuery("a view of a view is Spark's own: CREATE VIEW makes it")
        found = profile(place.location, column, sample_rows=sample_rows, examples=False)
        frame = self.sql(f"SELECT {found.select()} FROM {place.source}")  # noqa: S608 - quoted
        frame.createOrReplaceTempView(name)
        return frame

    def explain(
        self,
        query: str | DataFrame,
        args: Mapping[str, Any] | list[Any] | None = None,
        *,
        tables: Mapping[str, Location] | None = None,
    ) -> QueryExplanation:
        """What `sql` would read and skip, by which predicate, and how each path is read.

        Or what a DataFrame would, in a session with `vl.spark.accelerate`: then it lists the tables
        that are read in another way than Spark would read them.

        Nothing runs but the reading of logs, footers, small joined sides, and the first rows of a
        file that is to be grouped. Arguments and errors as in `sql`.
        """
        if not isinstance(query, str):
            return self._explain_frame(query)
        resolve = self._resolver(tables)
        prepared = self._runner.plan(query, _args(args), resolve)
        return QueryExplanation(tuple(map(_explained, prepared.tables)), prepared.note)

    def _explain_frame(self, frame: DataFrame) -> QueryExplanation:
        if not is_frame(frame):
            check_text(frame)
        planner = planner_of(self._spark)
        if planner is None:
            return QueryExplanation((), NOT_ACCELERATED)
        with planner.explaining() as tables:
            # Made anew: one that ran is optimized already.
            dataset_of(frame_of(self._spark, plan_of(frame))).queryExecution().optimizedPlan()
        note = "" if tables else LEFT_AS_IT_IS
        return QueryExplanation(tuple(map(_explained, tables)), note)


def _explained(planned: PlannedTable | ConnectTable) -> TableExplanation:
    plan, table = planned.plan, planned.table
    groups = row_groups(table.snapshot, plan, table.partition_types)
    found = TableExplanation(
        table=planned.source,
        version=table.snapshot.version,
        scan=explain(plan, row_groups=groups, properties=table.snapshot.properties),
        whole=planned.whole,
        note=planned.note if isinstance(planned, ConnectTable) else "",
    )
    if isinstance(planned, ConnectTable):
        return found
    joined, pushed = tuple(map(str, planned.joined)), planned.pushed
    found = replace(found, joined=joined, aggregated=pushed is not None)
    if pushed is None or not pushed.answered:
        return found
    scan = replace(
        found.scan,
        answered=pushed.answered,
        read_files=len(pushed.files),
        read_bytes=pushed.files.size,
        row_groups=None,
    )
    return replace(found, scan=scan)


def _args(args: Mapping[str, Any] | list[Any] | None) -> Any:
    return dict(args) if isinstance(args, Mapping) else args
