"""`connect(spark)`: queries with Variant paths over Delta tables, in the user's own session."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from pyspark.sql import DataFrame, SparkSession

from variantlake.errors import InvalidQuery
from variantlake.planning.explain import explain
from variantlake.planning.expressions import Condition, TypedPath
from variantlake.planning.footers import row_groups
from variantlake.spark.explain import QueryExplanation, TableExplanation
from variantlake.spark.query.catalyst_query import QueryRunner
from variantlake.spark.query.connect_query import RemoteQueries, RemoteQuery
from variantlake.spark.query.names import CatalogNames, CatalogTable, CatalogView, find_remote
from variantlake.spark.query.origin import view_mark
from variantlake.spark.query.places import Location, Place, find_place, writable
from variantlake.spark.query.references import (
    VERSION_IN_PATH,
    Resolve,
    Target,
)
from variantlake.spark.scan.dataframe import scan
from variantlake.spark.scan.tables import Tables
from variantlake.spark.session.arguments import (
    check_expressions,
    check_frame,
    check_location,
    check_session,
    check_sources,
    check_table_version,
    check_tables,
    check_text,
    is_frame,
)
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jobs import is_connect
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.session.versions import check_version
from variantlake.sql.names import Parts
from variantlake.sql.splice import quote_string
from variantlake.sql.statements import not_a_query

if TYPE_CHECKING:
    from variantlake.ingest.commit_load import LoadResult
    from variantlake.ingest.convert import ConvertKeywords, ConvertResult
    from variantlake.ingest.encode.document_options import DocumentKeywords
    from variantlake.ingest.load import IngestResult, LoadProgress
    from variantlake.ingest.overwrite import Where
    from variantlake.ingest.sources.sources import Documents, SourceSpec
    from variantlake.ingest.target.options import LoadKeywords


_LACKS_DELTA = (
    "[TABLE_OR_VIEW_NOT_FOUND]",
    "[PARSE_SYNTAX_ERROR]",
    "[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY]",
    "[DATA_SOURCE_NOT_FOUND]",
    "[NOT_SUPPORTED_COMMAND",
    "[UNSUPPORTED_FEATURE.TABLE_OPERATION]",
)
"""How Spark refuses a statement that it supports for Delta tables only."""


class Lake:
    """Delta tables with Variant columns, as one Spark session sees them.

    The session's settings are never changed; nothing of ours is left in its catalog.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables = Tables()
        self._names: dict[str, str] = {}

    @functools.cached_property
    def _helper(self) -> HelperSession:
        return HelperSession(self._spark)

    @functools.cached_property
    def _remote(self) -> RemoteQueries | None:
        """For Spark Connect: its sessions show neither plans nor a JVM."""
        return RemoteQueries(self._spark, self._tables) if is_connect(self._spark) else None

    @functools.cached_property
    def _queries(self) -> QueryRunner:
        return QueryRunner(self._spark, self._helper, self._tables)

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
            if self._remote is not None:
                return self._remote.run(query, _args(args), resolve)
            return self._queries.run(query, _args(args), resolve)
        except InvalidQuery as error:
            # Delta Spark takes such a statement, where it is there.
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

        Args:
            table: Its name, path or URL, as everywhere: a name is one that was registered or that
                a query could use, ``delta.`path` `` as well.
            version: An older version of it; `path@v3` is one too.

        Raises as `sql` does for a table that cannot be read, NotADeltaTable for a name that nobody
        knows.
        """
        place = self._place(table)
        if place.location is None or VERSION_IN_PATH.fullmatch(place.location):
            return LakeTable(self, place.source, version).select()
        found = self._tables.open(place.location, version)
        if self._remote is not None:
            return self._remote.read(found)
        self._helper.follow()
        plan = self._tables.plan_everything(found, has_kernels=lambda: self._helper.has_kernels)
        return self._in_user_session(scan(self._helper, found, plan, {}), view_mark(found))

    def table(
        self, table: Location, version: int | None = None, *, timestamp: str | None = None
    ) -> LakeTable:
        """A table whose paths are asked for as expressions: `where` and `select`.

        `lake.table(t).where(vl.path("event", "$.kind").string() == "x").select("event", "k")` is an
        ordinary DataFrame, planned as `sql` plans: it can be grouped, joined, and used again.

        Args:
            table: Its name, path or URL, as for `read`.
            version: An older version of it.
            timestamp: The version at this time instead, as text in the session's time zone.

        Raises InvalidValue for a version that is no whole number, or one with a time.
        """
        check_table_version(version, timestamp)
        return LakeTable(self, self._place(table).source, version, timestamp)

    def explain(
        self,
        query: str,
        args: Mapping[str, Any] | list[Any] | None = None,
        *,
        tables: Mapping[str, Location] | None = None,
    ) -> QueryExplanation:
        """What `sql` would read and skip, by which predicate, and how each path is read.

        Nothing runs but the reading of logs, footers and small joined sides. Arguments and errors
        as in `sql`.
        """
        check_text(query)
        resolve = self._resolver(tables)
        if self._remote is not None:
            return _explain_remote(self._remote.plan(query, _args(args), resolve))
        prepared = self._queries.plan(query, _args(args), resolve)
        return QueryExplanation(
            tuple(
                TableExplanation(
                    table=planned.source,
                    version=planned.table.snapshot.version,
                    scan=explain(
                        planned.plan,
                        row_groups(
                            planned.table.snapshot, planned.plan, planned.table.partition_types
                        ),
                    ),
                    whole=tuple(sorted(planned.use.whole & planned.table.variants)),
                    note="",
                    joined=tuple(map(str, planned.joined)),
                )
                for planned in prepared.tables
            ),
            prepared.note,
        )

    def ingest(
        self,
        sources: Documents | SourceSpec | Iterable[SourceSpec],
        table: Location,
        *,
        format: str | None = None,  # noqa: A002 - as Spark's reader calls it
        column: str = "event",
        shredding: str | None = None,
        properties: Mapping[str, str] | None = None,
        progress: Callable[[LoadProgress], None] | None = None,
        **options: Unpack[DocumentKeywords],
    ) -> IngestResult:
        """Load JSON documents into a VARIANT column; see `spark.ingest.ingest`."""
        # Loads the kernels, which queries do without.
        from variantlake.spark.load.ingest import ingest

        check_sources(sources)
        return ingest(
            self._spark,
            sources,
            self._written_to(table),
            format=format,
            column=column,
            shredding=shredding,
            properties=properties,
            progress=progress,
            **options,
        )

    def convert(
        self,
        sources: SourceSpec | Iterable[SourceSpec],
        table: Location,
        *,
        progress: Callable[[LoadProgress], None] | None = None,
        **options: Unpack[ConvertKeywords],
    ) -> ConvertResult:
        """Convert Parquet files into a table; `vl.convert` says how, and names the options."""
        # Loads the kernels, which queries do without.
        from variantlake.spark.load.convert import convert

        return convert(self._spark, sources, self._written_to(table), progress=progress, **options)

    def append(
        self,
        frame: DataFrame,
        table: Location,
        *,
        json_columns: Collection[str] = (),
        partition_by: str | Sequence[str] = (),
        shredding: str | Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        **options: Unpack[LoadKeywords],
    ) -> LoadResult:
        """Append the rows of a DataFrame, to a new table where none is; see `spark.append.append`.

        Args:
            frame: As there.
            table: Its name, path or URL, as for `read`.
            json_columns: As there.
            partition_by: Name or names of a new table's partition columns.
            shredding: DDL of what becomes columns, by VARIANT column, or of the only one. None
                takes the table's own, or infers it from a sample.
            properties: Table properties for a table that is made here.
            merge_schema: As there.
            **options: As there.
        """
        from variantlake.spark.load.append import append
        from variantlake.spark.load.append_target import NewTable

        check_frame(frame)
        return append(
            self._spark,
            frame,
            self._written_to(table),
            json_columns=json_columns,
            new=NewTable.of(partition_by, shredding, properties),
            merge_schema=merge_schema,
            **options,
        )

    def overwrite(
        self,
        data: DataFrame | Documents,
        table: Location,
        *,
        where: Where | None = None,
        partitions: bool = False,
        expected_version: int | None = None,
        column: str = "event",
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> LoadResult:
        """Put rows in the place of a table's rows, or of some partitions', in one commit.

        Args:
            data: A DataFrame, as for `append`; `vl.ndjson(...)` or `vl.json_array(...)`, as for
                `ingest`.
            table: Its name, path or URL, as for `read`.
            where: Only these partitions: `{"day": date(2026, 1, 2)}` or `"day >= '2026-01-02'"`,
                a condition over partition columns. All new rows must be in them.
            partitions: Only those partitions are replaced that the new rows are in.
            expected_version: The version of the table that the new rows were made of. Rows that
                another writer added or removed since, among those that are replaced, raise
                CommitConflict. None replaces what the newest version holds, but of a
                DataFrame that this lake's `read`, `table` or `sql` made of the table, at its newest
                version then: that version is expected.
            column: The VARIANT column that takes documents.
            json_columns: As for `append`.
            **options: As for `append`, and for documents as for `ingest`.

        Raises:
            InvalidSchema: The data do not fit the table, or it is not partitioned so.
            InvalidQuery: A condition that does not parse.
            InvalidValue: A row is not in the partitions of `where`, or cannot be stored.
            CommitConflict: Another writer added or removed rows of what is replaced.
            TableReplaced: The DataFrame was read of another table at this location.
            MissingSource: The expected version is not in the log.
            UnsupportedFeature: As for `append`; also an append-only table.
        """
        from variantlake.ingest.overwrite import Overwrite
        from variantlake.spark.load.append import append
        from variantlake.spark.load.ingest import ingest

        overwrite = Overwrite(where, partitions, expected_version)
        location = self._written_to(table)
        if is_frame(data):
            return append(
                self._spark,
                data,
                location,
                json_columns=json_columns,
                overwrite=overwrite,
                merge_schema=options.pop("merge_schema", False),
                # Those of documents are refused there.
                **cast("dict[str, Any]", options),
            )
        documents: Any = data
        return ingest(
            self._spark, documents, location, column=column, overwrite=overwrite, **options
        )

    def add_constraint(self, table: Location, name: str, expression: str) -> int:
        """Add a CHECK constraint, once Spark has seen that every row fulfils it; the new version.

        `lake.add_constraint(t, "kinds", "event:kind::string IN ('a', 'b')")`: paths of Variants
        may stand in it. NULL does not fulfil it. `Table.drop_constraint` takes it away.

        Raises:
            InvalidQuery: Spark does not take the expression.
            InvalidValue: A row breaks it, or the table has one of this name.
            CommitConflict: Another writer added rows in the meantime.
            UnsupportedFeature: As for `append`.
        """
        from variantlake.spark.load.constraints import add_constraint

        check_text(expression, "a constraint")
        check_text(name, "a constraint's name")
        snapshot = self._tables.open(self._written_to(table)).snapshot
        return add_constraint(self.read(table, snapshot.version), snapshot, name, expression)

    def set_not_null(self, table: Location, column: str) -> int:
        """Make a column NOT NULL, once Spark has seen that no row has NULL there; the new version.

        Raises InvalidSchema for a column that is not there, else as `add_constraint`.
        """
        from variantlake.spark.load.constraints import set_not_null

        snapshot = self._tables.open(self._written_to(table)).snapshot
        return set_not_null(self.read(table, snapshot.version), snapshot, column)

    def _place(self, table: Location) -> Place:
        """What a caller named, by the one way that names have here."""
        return find_place(table, self._names, self._find)

    def _written_to(self, table: Location) -> str:
        """The location of a table that is loaded into or changed."""
        return writable(self._place(table), table)

    def _find(self, parts: Parts) -> CatalogTable | CatalogView | None:
        if is_connect(self._spark):
            return find_remote(self._spark, parts)
        return CatalogNames(self._spark).find(parts)

    def _resolver(self, tables: Mapping[str, Location] | None) -> Resolve:
        given = {}
        check_tables(tables)
        for name, table in (tables or {}).items():
            check_location(name, table)
            given[name.lower()] = self._written_to(table)
        return _resolver({**self._names, **given})

    def _in_user_session(self, frame: DataFrame, mark: str) -> DataFrame:
        """A DataFrame of the helper session as one of the user's."""
        view = self._helper.new_view(mark)
        self._helper.publish(frame, view)
        try:
            return self._spark.table(self._helper.qualified(view))
        finally:
            self._helper.drop(view)


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table, perhaps with conditions on its rows; `select` makes a DataFrame of it."""

    lake: Lake
    source: str
    version: int | None = None
    timestamp: str | None = None
    conditions: tuple[str, ...] = ()

    def where(self, *conditions: Condition | str) -> LakeTable:
        """Only rows that fulfil all of these; texts are as they stand after WHERE."""
        check_expressions(conditions, "a condition")
        texts = tuple(f"({condition})" for condition in conditions)
        return replace(self, conditions=(*self.conditions, *texts))

    def select(self, *items: TypedPath | str) -> DataFrame:
        """These columns and paths, all columns without any; texts are as in a SELECT list.

        Raises as `Lake.sql`.
        """
        return self.lake.sql(self._text(items))

    def explain(self, *items: TypedPath | str) -> QueryExplanation:
        """What `select` of these would read and skip."""
        return self.lake.explain(self._text(items))

    def _text(self, items: Sequence[TypedPath | str]) -> str:
        check_expressions(items, "what is selected")
        version = "" if self.version is None else f" VERSION AS OF {self.version}"
        if self.timestamp is not None:
            version += f" TIMESTAMP AS OF {quote_string(self.timestamp)}"
        # In parentheses of its own: Spark reads `t WHERE (x)` as an alias of t with a column x.
        where = f" WHERE ({' AND '.join(self.conditions)})" if self.conditions else ""
        columns = ", ".join(map(str, items)) or "*"
        return f"SELECT {columns} FROM {self.source}{version}{where}"  # noqa: S608 - the user's own query


def _explain_remote(query: RemoteQuery) -> QueryExplanation:
    return QueryExplanation(
        tuple(
            TableExplanation(
                table=found.source,
                version=found.table.snapshot.version,
                scan=explain(
                    found.plan,
                    row_groups(found.table.snapshot, found.plan, found.table.partition_types),
                ),
                whole=found.whole,
                note=found.note,
            )
            for found in query.tables
        ),
        query.note,
    )


def connect(spark: SparkSession) -> Lake:
    """Query and load Delta tables with Variant columns through this session.

    Its settings for S3 (`fs.s3a.access.key`, `fs.s3a.endpoint`, …) serve for all that is read,
    unless the environment or `set_storage_options` says how stores are reached.

    Raises InvalidValue for what is no session, UnsupportedFeature for a Spark before 4.1.
    """
    check_session(spark)
    check_version(spark)
    follow_spark(spark)
    return Lake(spark)


def _args(args: Mapping[str, Any] | list[Any] | None) -> Any:
    return dict(args) if isinstance(args, Mapping) else args


def _resolver(named: Mapping[str, str]) -> Resolve:
    """Locations by names in lower case, of one or several parts with dots between them."""

    def resolve(parts: Parts) -> Target | None:
        location = named.get(".".join(parts).lower())
        if location is not None:
            return Target(location, parts, in_spark=False)
        if len(parts) == 2 and parts[0].lower() == "delta":
            return Target(parts[1], parts, in_spark=True)
        return None

    return resolve
