"""`Lake`, which `connect(spark)` returns; its methods call functions of other packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

from pyspark.sql import DataFrame, SparkSession

from variantlake.ddl.alter_table import set_properties
from variantlake.delta.actions.commit_properties import (
    CommitProperties,
    takes_commit_properties,
)
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.snapshot import HistoryEntry
from variantlake.delta.protocol.named_versions import NamedVersion, named_versions
from variantlake.delta.transaction.analyze import AnalyzeResult, analyze
from variantlake.dml.merge.builder import MergeBuilder
from variantlake.encoding.variant import Variant
from variantlake.erase.erase import EraseResult, erase
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
)
from variantlake.expressions.from_python import Expr, VariantPath, constant
from variantlake.maintenance.cloning.clone import CloneResult, clone
from variantlake.maintenance.health import health
from variantlake.maintenance.health_findings import Health
from variantlake.maintenance.name_versions import name_version, remove_name
from variantlake.maintenance.reshredding.drift import Drift, drift
from variantlake.maintenance.restore import Missing, RestoreResult, restore, version_of
from variantlake.maintenance.vacuuming.listing import UnneededFile
from variantlake.maintenance.vacuuming.vacuum import VacuumResult, vacuum
from variantlake.progress import OnProgress
from variantlake.quoting import quote_string
from variantlake.scan.table_scan import Scan, scan_of
from variantlake.shown import CommitResult, Shown
from variantlake.spark.lake.change_feed import read_changes
from variantlake.spark.lake.explain import (
    QueryExplanation,
    explain_frame,
    explain_text,
)
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.lake.statements import LakeStatements
from variantlake.spark.query.connect_query import ConnectQueries
from variantlake.spark.query.names import delta_name
from variantlake.spark.query.table_locations import (
    Location,
)
from variantlake.spark.scan.source_options import VERSION_IN_PATH
from variantlake.spark.session.arguments import (
    check_expressions,
    check_frame,
    check_location,
    check_sources,
    check_table_version,
    check_text,
    is_frame,
)
from variantlake.spark.session.jvm import is_connect
from variantlake.sql.alter import AddConstraint, NotNull, parse_alteration
from variantlake.sql.changes import (
    DeleteText,
    MergeText,
    Named,
    UpdateText,
    merge_clauses,
)
from variantlake.storage.options import reach_with
from variantlake.units import Duration, Size, Time, check_limit, milliseconds
from variantlake.units import moment as moment_of
from variantlake.writing.options.file_sizes import CLUSTERED_FILE_BYTES, TARGET_FILE_BYTES
from variantlake.writing.options.keywords import check_options

if TYPE_CHECKING:
    import pyarrow as pa

    from variantlake.autoloading.autoloader import AutoloadResult
    from variantlake.autoloading.batch import BatchReport
    from variantlake.autoloading.run import AutoloadOptionKeywords
    from variantlake.dml.result import ChangeResult
    from variantlake.ingest.commit_load import LoadResult
    from variantlake.ingest.conversion.request import ConvertKeywords
    from variantlake.ingest.conversion.result import ConvertResult
    from variantlake.ingest.encode.document_options import DocumentKeywords, IngestKeywords
    from variantlake.ingest.inputs import Rows
    from variantlake.ingest.overwrite import Where
    from variantlake.ingest.sources.sources import Documents, SourceSpec
    from variantlake.ingest.stage import Stage
    from variantlake.kernels.digest.rows import Digest
    from variantlake.maintenance.clustering.cluster import ClusterResult
    from variantlake.maintenance.compare_versions import VersionComparison
    from variantlake.maintenance.optimize import OptimizeResult
    from variantlake.maintenance.reshredding.reshred import ReshredOptions, ReshredResult
    from variantlake.table.table import Table
    from variantlake.writing.options.load_options import LoadKeywords
    from variantlake.writing.staged_files import Staging


class Lake(Shown):
    """Delta tables with Variant columns, as one Spark session sees them.

    It leaves the session's settings as they are, and only `create_view` adds to its catalog.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._session = LakeSession(spark)
        self._statements = LakeStatements(self._session)

    if not TYPE_CHECKING:  # else a checker would take any name

        def __getattr__(self, name: str) -> Any:
            from variantlake.familiar_names import no_such_attribute
            from variantlake.table.table import Table

            hint = f"lake.open(table).{name} has it" if hasattr(Table, name) else ""
            raise no_such_attribute(self, name, hint)

    def __repr__(self) -> str:
        kind = "Spark Connect" if is_connect(self._session.spark) else "Spark"
        return f"<{type(self).__name__} on {kind}, {len(self._session.names)} names registered>"

    @takes_commit_properties
    def sql(
        self,
        query: str,
        args: Mapping[str, Any] | list[Any] | None = None,
        *,
        tables: Mapping[str, Location] | None = None,
        commit_properties: CommitProperties = None,
    ) -> DataFrame:
        """Run Spark SQL in which ``delta.`path` `` names a table.

        Paths of Variant columns are read from typed columns if that is exact, and files that
        cannot match are skipped. The result is the same as Spark's on the unshredded data.

        DELETE, UPDATE and MERGE run at once, and return the row of counts that Delta Spark returns.
        ALTER TABLE and COMMENT ON TABLE change the table; CREATE TABLE, also with LIKE and AS
        SELECT, and REPLACE TABLE make one at its path. These return no rows. If the session lacks
        Delta Spark, or Delta Spark does not know the table, INSERT, OPTIMIZE, VACUUM, RESTORE,
        CLONE, TRUNCATE and DESCRIBE run here as well.

        Args:
            query: The text, in Spark's own dialect.
            args: Parameters, as in `SparkSession.sql`.
            tables: Names that the text may use for tables, with their locations.
            commit_properties: As for `ingest`.

        Raises:
            InvalidQuery: Spark refuses the text; the message is Spark's.
            NotADeltaTable: A location without a log.
            MalformedLog, UnsupportedFeature: A table that cannot be read.
            What `delete`, `update`, `merge` and `alter` raise.
        """
        check_text(query)
        return self._statements.sql(self._statements.with_numbers(query, tables), args, tables)

    def explain(
        self,
        query: str | DataFrame,
        args: Mapping[str, Any] | list[Any] | None = None,
        *,
        tables: Mapping[str, Location] | None = None,
    ) -> QueryExplanation:
        """Explain what `sql` would read and skip, by which predicate, and how it reads each path.

        In a session with `vl.spark.accelerate`, `query` may also be a DataFrame: then it lists the
        tables that the rule reads in another way than Spark.

        It reads only logs, footers, small joined sides, and the first rows of a file whose rows the
        query groups. Arguments and errors as in `sql`.
        """
        if not isinstance(query, str):
            return explain_frame(self._session.spark, query)
        query = self._statements.with_numbers(query, tables)
        return explain_text(self._session, query, args, tables)

    def open(
        self,
        table: Location,
        version: int | str | None = None,
        *,
        timestamp: Time | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Table:
        """Open a table as a `vl.Table`, by a registered name, a catalog's name, a path or a URL.

        Use it for what needs no Spark: `lake.open("events").properties`. Writes through it run in
        this process. `table` is as for `read`; otherwise as `Table.open`.
        """
        from variantlake.table.table import Table

        location = self._session.written_to(table)
        return Table.open(location, version, timestamp=timestamp, storage_options=storage_options)

    def read(
        self, table: Location, version: int | str | None = None, *, timestamp: Time | None = None
    ) -> DataFrame:
        """Return the whole table as a DataFrame, with its VARIANT columns unchanged.

        NOT NULL columns of the table are not nullable, as in Delta Spark; on Spark Connect all
        columns are nullable. If a file has a NULL in such a column, a query that needs it fails.

        Args:
            table: Its name, path or URL. A name is registered, or one that a query could use,
                including ``delta.`path` ``.
            version: An older version of it, or its tag; `path@v3` names one, too.
            timestamp: The version at this time instead; in UTC unless it has a zone.

        Raises as `sql` for a table that cannot be read, NotADeltaTable for an unknown name,
        MissingSource for an unknown tag, InvalidValue for a version that is neither a whole number
        nor a tag, or for both a version and a time.
        """
        check_table_version(version, timestamp)
        place = self._session.place(table)
        if place.location is None or VERSION_IN_PATH.fullmatch(place.location):
            return self.table(table, version, timestamp=timestamp)
        before = None if timestamp is None else milliseconds("timestamp", timestamp)
        number = self._session.number_of(place.location, version)
        found = self._session.tables.open(place.location, number, before=before)
        return self._session.frame(found, place.source)

    def table(
        self, table: Location, version: int | str | None = None, *, timestamp: Time | None = None
    ) -> DataFrame:
        """Return a table as a DataFrame, and plan queries over it as `sql` does.

        `lake.table("events").where("event:kind::string = 'x'").groupBy("day").count()` skips files,
        reads paths from typed columns, and groups rows before Spark sees them. For this it puts a
        rule into the session's optimizer, which leaves all other tables to Spark until
        `vl.spark.accelerate`. On Spark Connect it returns the same as `read`.

        Args:
            table: Its name, path or URL, as for `read`.
            version: An older version of it, or its tag.
            timestamp: The version at this time instead; in UTC unless it has a zone.

        Raises as `read`.
        """
        check_table_version(version, timestamp)
        place = self._session.place(table)
        moment = None
        if timestamp is not None:
            moment = quote_string(moment_of("timestamp", timestamp).isoformat(" "))
        if place.location is None or VERSION_IN_PATH.fullmatch(place.location):
            said = quote_string(version) if isinstance(version, str) else version
            at = "" if version is None else f" VERSION AS OF {said}"
            at += "" if moment is None else f" TIMESTAMP AS OF {moment}"
            return self.sql(f"SELECT * FROM {place.source}{at}")  # noqa: S608 - quoted
        runner = self._session.runner
        number = self._session.number_of(place.location, version)
        found = runner.opened(place.location, number, moment, None)
        if isinstance(runner, ConnectQueries):
            return runner.read(found)
        return runner.frame(runner.relation(found, place.source))

    def create_view(
        self, name: str, table: Location, *, column: str | None = None, sample_rows: int = 10_000
    ) -> DataFrame:
        """Make a temporary view with the frequent paths of a VARIANT column as typed columns.

        `vl.profile(table).as_view(name)` returns its text instead, to keep or to change. The view
        shows the version that is the newest now, and lasts until the user's session ends.

        Args:
            name: The view's name, without dots.
            table: Its name, path or URL, as for `read`.
            column: The VARIANT column; None for the only one.
            sample_rows: The rows of the sample that decides which paths are frequent.

        Returns the DataFrame of the view. Raises as `vl.profile`, and as `sql`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.report.profile import profile

        place = self._session.place(table)
        if place.location is None:
            raise InvalidQuery("a view of a view is Spark's own: CREATE VIEW makes it")
        found = profile(place.location, column, sample_rows=sample_rows, examples=False)
        frame = self.sql(f"SELECT {found.select()} FROM {place.source}")  # noqa: S608 - quoted
        frame.createOrReplaceTempView(name)
        return frame

    def register(
        self, name: str, table: Location, *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        """Let queries of this Lake call a table `name`; a dot separates a database from the table.

        Use it for Spark without Delta's jar, whose catalog holds no Delta tables. A registered name
        takes precedence over the same name in Spark's catalog, and `tables` of a query over both.
        `storage_options` are for the table's bucket, as for `Table.open`, in our tasks too.

        Raises NotADeltaTable, UnsupportedFeature if `table` names a table that does not exist.
        """
        check_location(name, table)
        reach_with(table, storage_options)
        self._session.names[name.lower()] = self._session.written_to(table)

    def changes(
        self,
        table: Location,
        starting_version: int | None = None,
        ending_version: int | None = None,
        *,
        starting_timestamp: Time | None = None,
        ending_timestamp: Time | None = None,
        select: str | Expr | Sequence[str | Expr] = "*",
        where: str | Expr | None = None,
    ) -> DataFrame:
        """Return the change data feed: rows that versions inserted, deleted and updated.

        Each row has `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
        `_commit_version` and `_commit_timestamp` after the table's columns. It needs no Delta
        Spark.

        Args:
            table: Its name, path or URL, as for `read`.
            starting_version: The first version to return changes of; 0 without any start.
            ending_version: The last one; the newest if None.
            starting_timestamp: Instead of a first version: start at the first one that is not
                older. A time without a zone is in UTC.
            ending_timestamp: Instead of a last version: end at the last one that is not newer.
            select: Columns and paths, as in a SELECT list of Spark; also the three columns.
            where: A condition, as after WHERE. It skips files, unlike a `filter` on the result.

        Raises:
            InvalidQuery: No range, or an empty one; text that Spark refuses.
            MissingSource: A version that does not exist, or is no longer in the log.
            UnsupportedFeature: A version of the range recorded no changes
                (`delta.enableChangeDataFeed`), or its schema cannot be read as the last one.
        """
        return read_changes(
            self._session,
            self._session.snapshot(table),
            versions=(starting_version, ending_version),
            times=(starting_timestamp, ending_timestamp),
            items=[select] if isinstance(select, str | Expr) else list(select),
            where=where,
        )

    @takes_commit_properties
    def ingest(
        self,
        table: Location,
        sources: Documents | SourceSpec | Iterable[SourceSpec],
        *,
        progress: OnProgress | None = None,
        **options: Unpack[IngestKeywords],
    ) -> LoadResult:
        """Load JSON documents into a VARIANT column of a table, in one commit.

        Each Spark task reads a part of the input and writes files itself, so that no row passes
        through the JVM. Executors must reach sources and table by the same names.

        Args:
            table: Its name, path or URL, as for `read`; created if it does not exist.
            sources: Files, globs or folders of newline-delimited JSON, plain, gzip, zstd or
                bz2, on a disk or in an object store; or `vl.ndjson(...)`, `vl.json_array(...)`,
                `vl.json_files(...)`.
            progress: Called a few times a second while tasks run.
            **options: As for `Table.append`, and these.

                - `column`: the VARIANT column for the documents. The default is the table's only
                  one, or `event` in a new table. Other columns get NULL.
                - `shredding`: the paths that become columns, as DDL (`"kind STRING, n BIGINT"`);
                  `VARIANT` for none. None uses the table's shredding, or infers it from a sample
                  and stores it in the table.
                - `properties`: properties of a new table.

        Raises:
            MissingSource, InvalidJson, LimitExceeded, MalformedFile: A source that is missing or
                bad, with file, line and column. Nothing is committed and no file is left.
            InvalidSchema: The table has no such VARIANT column, or the DDL does not parse.
            InvalidValue: An invalid option.
            NotADeltaTable: The location holds files but no log.
            UnsupportedFeature: The table needs a feature that we do not write.
            CommitConflict: Another writer changed the table in a way that contradicts this load.
            MissingDependency: The executors' Python has no `variantlake`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.spark.load.ingest import ingest

        check_sources(sources)
        reach_with(sources, options.pop("storage_options", None))
        return ingest(
            self._session.spark,
            sources,
            self._session.written_to(table),
            progress=progress,
            **options,
        )

    @takes_commit_properties
    def autoload(
        self,
        table: Location,
        source: str | os.PathLike[str],
        *,
        name: str | None = None,
        every: Duration | None = None,
        stop: Callable[[], bool] | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        metrics_file: str | os.PathLike[str] | None = None,
        **options: Unpack[AutoloadOptionKeywords],
    ) -> AutoloadResult:
        """Load new files of a folder or bucket, each exactly once; see `vl.autoload`.

        Spark's executors run the tasks of a batch that has several. `storage_options` are for the
        source.
        """
        from variantlake.autoloading.run import run_autoload
        from variantlake.spark.load.ingest import parallelism, runner

        reach_with(source, options.pop("storage_options", None))
        location = self._session.written_to(table)
        return run_autoload(
            location,
            source,
            options,
            name=name,
            every=every,
            stop=stop,
            on_batch=on_batch,
            metrics_file=metrics_file,
            run=runner(self._session.spark, location),
            parallelism=parallelism(self._session.spark),
        )

    @takes_commit_properties
    def convert(
        self,
        table: Location,
        sources: SourceSpec | Iterable[SourceSpec],
        *,
        progress: OnProgress | None = None,
        storage_options: Mapping[str, str] | None = None,
        **options: Unpack[ConvertKeywords],
    ) -> ConvertResult:
        """Convert Parquet files into a table; `vl.convert` describes how, and its options.

        Spark's executors convert the files, and the driver makes the one commit. `table` is its
        name, path or URL, as for `ingest`. Raises as `vl.convert`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.ingest.sources.sources import specs
        from variantlake.spark.load.ingest import convert

        reach_with([table, *specs(sources)], storage_options)
        return convert(
            self._session.spark,
            sources,
            self._session.written_to(table),
            progress=progress,
            **options,
        )

    def create(
        self,
        table: Location,
        schema: str | pa.Schema,
        *,
        exist_ok: bool = False,
        replace: bool = False,
        partition_by: str | Sequence[str] | None = None,
        cluster_by: str | Sequence[str] | None = None,
        properties: Mapping[str, str] | None = None,
        shredding: str | Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        commit_properties: CommitProperties = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Table:
        """Create an empty table, and open it; arguments and errors are those of `Table.create`.

        `table` is a path, a URL, or a registered name. `lake.sql("CREATE TABLE ...")` creates one
        with SQL.
        """
        from variantlake.table.table import Table

        return Table.create(
            self._session.written_to(table),
            schema,
            exist_ok=exist_ok,
            replace=replace,
            partition_by=partition_by,
            cluster_by=cluster_by,
            properties=properties,
            shredding=shredding,
            name=name,
            description=description,
            commit_properties=commit_properties,
            storage_options=storage_options,
        )

    @takes_commit_properties
    def append(
        self,
        table: Location,
        data: DataFrame | Rows,
        *,
        column: str | None = None,
        json_columns: Collection[str] = (),
        shredding: str | Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        **options: Unpack[DocumentKeywords],
    ) -> LoadResult:
        """Append rows in one commit.

        Spark's tasks write DataFrames and files of documents, to a new table if there is none. This
        process writes any other data that `Table.append` takes, to an existing table.

        Args:
            table: Its name, path or URL, as for `read`.
            data: A DataFrame with the table's columns by name, VARIANT columns as they are; paths
                of files, as for `ingest`; dicts and other Python rows, or Arrow, pandas and Polars
                tables, as for `Table.append`.
            column: The VARIANT column for documents; by default the only one.
            json_columns: VARIANT columns for which the rows have JSON text.
            shredding: DDL of the paths that become columns, by VARIANT column, or of the only one.
                None uses the table's shredding, or infers it from a sample.
            properties: Properties of a new table.
            **options: `mode`, `max_bad`, `load_id`, `unique_by`, `on_duplicate`, `order_by`,
                `arrays`, `target_file_size` and `max_rows_per_file` as for `ingest`;
                `merge_schema=True` adds the columns and fields of structs that the table does not
                have; `partition_by` names a new table's partition columns;
                `truncate_timestamps=True` truncates timestamps to microseconds, instead of raising
                an error.

        Raises:
            InvalidSchema: The data do not fit the table's columns.
            InvalidJson, MalformedVariant, InvalidValue, LimitExceeded: A bad value, with its row.
            NotADeltaTable: There is no table, and such rows cannot create one.
            UnsupportedFeature: The table needs a feature that we do not write.
            CommitConflict: Another writer changed the table in a way that contradicts this.
            MissingDependency: The executors' Python has no `variantlake`.
        """
        from variantlake.spark.lake.loads import load

        return load(
            self._session,
            table,
            data,
            options,
            column=column,
            json_columns=json_columns,
            shredding=shredding,
            properties=properties,
        )

    def stage(
        self,
        table: Location,
        data: DataFrame | Rows,
        *,
        column: str | None = None,
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> Stage:
        """Write rows as `append` does, but commit nothing; see `Table.stage`.

        Spark's executors write the data that they write for `append`, and Spark checks the table's
        constraints on rows of DataFrames and documents. `Stage.scan`, `Stage.check`,
        `Stage.publish` and `Stage.drop` need no Spark.

        Args:
            table: Its name, path or URL, as for `read`.
            data: As for `append`.
            column: The VARIANT column for documents; by default the only one.
            json_columns: As for `append`.
            **options: As for `append`, and for documents as for `ingest`, except `merge_schema`
                and `unique_by`.

        Raises:
            NotADeltaTable: There is no table.
            InvalidValue: A load of this id is staged or published already, or there are no rows.
            InvalidSchema, InvalidJson, MalformedVariant, LimitExceeded, UnsupportedFeature: As
                `append`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.ingest.inputs import names_documents
        from variantlake.ingest.stage import stage_load
        from variantlake.spark.load.append import append
        from variantlake.spark.load.ingest import ingest
        from variantlake.table.table import Table

        location = self._session.snapshot(table).store.uri
        spark = self._session.spark
        if not is_frame(data) and not names_documents(data, options.get("format")):
            here = Table.open(location)
            return here.stage(data, column=column, json_columns=json_columns, **options)
        if not is_frame(data):
            reach_with(data, options.pop("storage_options", None))

        def load(staging: Staging) -> LoadResult:
            if is_frame(data):
                # `append` refuses options of documents.
                given = cast("dict[str, Any]", {"json_columns": json_columns, **options})
                return append(spark, data, location, overwrite=staging, **given)
            documents: Any = data
            return ingest(spark, documents, location, column=column, overwrite=staging, **options)

        return stage_load(location, load, options)

    def stages(self, table: Location) -> list[Stage]:
        """List the table's staged loads, neither published nor dropped, oldest first.

        `table` is its name, path or URL, as for `read`.
        """
        from variantlake.ingest.stage import stages_of

        return stages_of(self._session.snapshot(table).store.uri)

    @takes_commit_properties
    def overwrite(
        self,
        table: Location,
        data: DataFrame | Rows,
        *,
        where: Where | None = None,
        partitions: bool = False,
        expected_version: int | None = None,
        column: str | None = None,
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> LoadResult:
        """Replace the rows of a table, or of some of its partitions, in one commit.

        Args:
            table: Its name, path or URL, as for `read`.
            data: As for `append`.
            where: Replace only these partitions: `{"day": date(2026, 1, 2)}` or
                `"day >= '2026-01-02'"`, a condition over partition columns. All new rows must be in
                them.
            partitions: Replace only the partitions that have new rows.
            expected_version: The version of the table from which the new rows were computed. If
                another writer has since added or removed rows among those to replace, this raises
                CommitConflict. None replaces the rows of the newest version. But for a DataFrame
                that this lake's `read`, `table` or `sql` made of the table's newest version, None
                expects that version.
            column: The VARIANT column for documents; by default the only one.
            json_columns: As for `append`.
            **options: As for `append`, and for documents as for `ingest`.

        Raises:
            InvalidSchema: The data do not fit the table, or it lacks these partition columns.
            InvalidQuery: A condition that does not parse.
            InvalidValue: A row is not in the partitions of `where`, or cannot be stored.
            CommitConflict: Another writer added or removed rows among those to replace.
            TableReplaced: The DataFrame was read from an earlier table at this location.
            MissingSource: The expected version is not in the log.
            UnsupportedFeature: As for `append`; also an append-only table.
        """
        from variantlake.ingest.overwrite import Overwrite
        from variantlake.spark.lake.loads import load

        overwrite = Overwrite(where, partitions, expected_version)
        return load(
            self._session,
            table,
            data,
            options,
            column=column,
            json_columns=json_columns,
            overwrite=overwrite,
        )

    @takes_commit_properties
    def write_batch(
        self,
        table: Location,
        data: DataFrame,
        batch_id: int,
        *,
        query: str | None = None,
        json_columns: Collection[str] = (),
        partition_by: str | Sequence[str] = (),
        shredding: str | Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        auto_compact: bool | None = None,
        metrics_file: str | os.PathLike[str] | None = None,
        **options: Unpack[LoadKeywords],
    ) -> LoadResult:
        """Append a batch from `foreachBatch` exactly once, even if Spark repeats it.

        The commit records `query` and `batch_id` in a `txn` action. If the table has the batch
        already, nothing is written, and `already_loaded` in the result is true.

        Args:
            table: Its name, path or URL, as for `read`.
            data: The batch.
            batch_id: Its number.
            query: The stream's name in the table's log. None uses the id in the stream's
                checkpoint, which Spark Connect does not expose.
            json_columns: As for `append`.
            partition_by: As for `append`.
            shredding: As for `append`.
            properties: As for `append`.
            merge_schema: As for `append`.
            auto_compact: Whether to compact small files after the commit if a partition has many of
                them. None uses the table property `delta.autoOptimize.autoCompact`.
            metrics_file: A file for the metrics of this stream, in Prometheus' text format. Use one
                file for each query.
            **options: As for `append`.

        Raises:
            LostCheckpoint: The table has later batches of this query, or this batch from another
                checkpoint: the checkpoint was lost, or is an old one.
            InvalidValue: `query` is None outside of a stream.
        """
        # Loads the kernels, which queries do without.
        from variantlake.spark.load.append_target import NewTable
        from variantlake.spark.streaming.foreach_batch import write_batch

        check_frame(data)
        return write_batch(
            self._session.spark,
            data,
            batch_id,
            self._session.written_to(table),
            query=query,
            json_columns=json_columns,
            new=NewTable.of(partition_by, shredding, properties),
            merge_schema=merge_schema,
            auto_compact=auto_compact,
            metrics_file=metrics_file,
            **options,
        )

    @takes_commit_properties
    def alter(
        self, table: Location, change: str, *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Change a table with the rest of an ALTER TABLE statement; returns the new version.

        `lake.alter(t, "RENAME COLUMN a TO b")` is `lake.sql("ALTER TABLE ...")`. Spark checks
        constraints on rows. `table` is its name, path or URL, as for `read`; otherwise as
        `Table.alter`.
        """
        check_text(change, "a change of a table")
        version = self._statements.alter(self._session.written_to(table), parse_alteration(change))
        return CommitResult(version=version)

    @takes_commit_properties
    def add_constraint(
        self,
        table: Location,
        name: str,
        expression: str,
        *,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Add a CHECK constraint if every row fulfils it, as Spark checks; returns the new version.

        `lake.add_constraint(t, "kinds", "event:kind::string IN ('a', 'b')")`: it may use paths of
        Variants. NULL does not fulfil it. `Table.drop_constraint` removes it.

        Raises:
            InvalidQuery: Spark refuses the expression.
            InvalidValue: A row breaks it, or the table has one of this name.
            CommitConflict: Another writer added rows in the meantime.
            UnsupportedFeature: As for `append`.
        """
        check_text(expression, "a constraint")
        check_text(name, "a constraint's name")
        location = self._session.written_to(table)
        version = self._statements.alter(location, AddConstraint(name, expression))
        return CommitResult(version=version)

    @takes_commit_properties
    def set_not_null(
        self, table: Location, column: str, *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Make a column NOT NULL if no row has a NULL there, as Spark checks.

        Raises InvalidSchema for a column that does not exist, otherwise as `add_constraint`.
        """
        version = self._statements.alter(self._session.written_to(table), NotNull(column, True))
        return CommitResult(version=version)

    @takes_commit_properties
    def set_properties(
        self,
        table: Location,
        properties: Mapping[str, str],
        *,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Set properties of a table, and add the features that they need; returns the new version.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.set_properties`.
        """
        snapshot = self._session.snapshot(table)
        run = self._session.rewriter(snapshot)
        return CommitResult(version=set_properties(snapshot, properties, run=run))

    @takes_commit_properties
    def analyze(
        self, table: Location, *, dry_run: bool = False, commit_properties: CommitProperties = None
    ) -> AnalyzeResult:
        """Add missing statistics of files by other writers; the driver reads their footers.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.analyze`.
        """
        return analyze(self._session.snapshot(table), dry_run=dry_run)

    def history(self, table: Location, limit: int | None = None) -> list[HistoryEntry]:
        """List the commits that a table's log still holds, newest first.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.history`.
        """
        check_limit(limit)
        return self._session.snapshot(table).history(limit)

    def files(self, table: Location) -> pa.Table:
        """Return one row for each data file of a table's newest version, as Arrow.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.files`.
        """
        return self._session.snapshot(table).files.whole()

    def scan(
        self,
        table: Location,
        select: str | Expr | Sequence[str | Expr] = "*",
        where: str | Expr | None = None,
        *,
        limit: int | None = None,
    ) -> Scan:
        """Read rows of a table in the driver, without a Spark job; `lake.table` reads with Spark.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.scan`.
        """
        return scan_of(self._session.snapshot(table), select, where, limit)

    @takes_commit_properties
    def delete(
        self,
        table: Location,
        where: str | Expr | None = None,
        *,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
    ) -> ChangeResult:
        """Delete rows in one commit; returns what was done.

        If the local engine supports the condition, it finds the rows without a Spark job, by bounds
        and typed columns. Otherwise Spark finds them.

        Args:
            table: Its name, path or URL, as for `read`.
            where: A condition, as after WHERE. Rows for which it is NULL stay. None deletes all
                rows.
            dry_run: Change nothing, and return what would be done.
            commit_properties: As for `ingest`.

        Raises:
            InvalidQuery: Spark refuses the condition.
            InvalidValue: A cast in the condition fails for a value.
            UnsupportedFeature: An append-only table, or a feature that we do not write, by name,
                if Delta Spark is not configured to do it.
            CommitConflict: Another writer changed the same rows, or added some that `where` finds.
        """
        text = self._condition(where)
        location = self._session.written_to(table)
        return self._statements.run(location, DeleteText(_named(location), text), dry_run=dry_run)

    @takes_commit_properties
    def update(
        self,
        table: Location,
        set: Mapping[str, Any],  # noqa: A002 - as SQL calls it
        where: str | Expr | None = None,
        *,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
    ) -> ChangeResult:
        """Set columns in some rows, in one commit; returns what was done.

        `lake.update(t, {"n": vl.expr("n + 1"), "kind": "new"}, "event:kind::string = 'x'")`.

        Args:
            table: Its name, path or URL, as for `read`.
            set: The new values, as for `Table.update`, by column, field of a struct
                (`{"address.city": "Rome"}`) or path of a Variant (`{"event:user.name": "Ada"}`).
                SQL may be any expression that Spark supports.
            where: As for `delete`.
            dry_run: Change nothing, and return what would be done. It computes the new rows to
                check that the table accepts them.
            commit_properties: As for `ingest`.

        Raises as `delete`; InvalidValue for a row that a constraint of the table refuses.
        """
        if not isinstance(set, Mapping) or not set:
            raise InvalidValue(
                "update takes a mapping of columns to their new values",
                hint="lake.update(table, {'kind': 'new'}, where=\"id = 7\")",
                cli_hint="",
            )
        location = self._session.written_to(table)
        pairs = tuple((name, _expression(value)) for name, value in set.items())
        made = [value for value in set.values() if isinstance(value, Expr)]
        check_expressions(made, "a new value", self._session.spark)
        text = self._condition(where)
        return self._statements.run(
            location, UpdateText(_named(location), pairs, text), dry_run=dry_run
        )

    @takes_commit_properties
    def merge(
        self,
        table: Location,
        source: DataFrame | str,
        on: str | Expr,
        *clauses: str,
        target_alias: str = "t",
        source_alias: str = "s",
        tables: Mapping[str, Location] | None = None,
        merge_schema: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
    ) -> ChangeResult:
        """Merge rows into a table, in one commit; returns what was done.

        `lake.merge(t, df, "t.id = s.id")` updates rows that match and inserts the others.

        Args:
            table: Its name, path or URL, as for `read`.
            source: A DataFrame, or SQL as after USING: a table's name, or a query in parentheses.
            on: The condition under which a row of the table matches one of the source.
            *clauses: As in MERGE: `"WHEN MATCHED AND s.gone THEN DELETE"`, in order. Without any,
                rows that match are updated and the others inserted.
            target_alias: The name of the table in `on` and the clauses.
            source_alias: The name of the source.
            tables: As for `sql`.
            merge_schema: Add the columns that clauses write and the table does not have, as
                MERGE WITH SCHEMA EVOLUTION does.
            dry_run: As for `update`.
            commit_properties: As for `ingest`.

        Raises as `update`; InvalidQuery if several source rows match one row of the table.
        """
        on = str(on) if isinstance(on, Expr) else on
        check_text(on, "the condition of a merge")
        check_options(merge_schema=merge_schema)
        found = merge_clauses(clauses)
        location = self._session.written_to(table)
        with self._statements.named_source(source) as named:
            own = Named(delta_name(location), target_alias)
            merge = MergeText(own, Named(named, source_alias), on, found, merge_schema)
            return self._statements.run(location, merge, tables=tables, dry_run=dry_run)

    def merge_builder(
        self,
        table: Location,
        source: DataFrame | str,
        on: str | Expr,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
        tables: Mapping[str, Location] | None = None,
        merge_schema: bool = False,
        commit_properties: CommitProperties = None,
    ) -> MergeBuilder:
        """Build a MERGE with methods for its clauses, as `Table.merge_builder`."""

        def run(clauses: tuple[str, ...], dry_run: bool) -> ChangeResult:
            return self.merge(
                table,
                source,
                on,
                *clauses,
                target_alias=target_alias,
                source_alias=source_alias,
                tables=tables,
                merge_schema=merge_schema,
                dry_run=dry_run,
                commit_properties=commit_properties,
            )

        return MergeBuilder(run)

    def upsert(
        self,
        table: Location,
        rows: DataFrame | Rows,
        key: str | Sequence[str],
        *,
        json_columns: Collection[str] = (),
        merge_schema: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> ChangeResult:
        """Replace rows that have the same key, and insert the others, in one commit.

        `lake.upsert("events", df, key="event:id::string")`. A row whose key is NULL is always
        inserted. Spark merges a DataFrame, and this process merges other rows.

        Args:
            table: Its name, path or URL, as for `read`.
            rows: A DataFrame, or rows as for `Table.upsert`, with all columns of the table.
            key: Columns and paths with their types, as in `scan`, in one text or in a list.
            json_columns: As for `Table.upsert`.
            merge_schema: As for `merge`; columns that the rows do not have keep their values.
            dry_run: As for `update`.
            commit_properties: As for `ingest`.
            storage_options: As for `Table.upsert`.

        Raises as `merge`; InvalidQuery for two rows with one key.
        """
        from variantlake.spark.lake.upserts import upsert

        reach_with(rows, storage_options)
        options: dict[str, Any] = {"merge_schema": merge_schema, "dry_run": dry_run}
        options["commit_properties"] = commit_properties
        return upsert(
            self.open(table),
            rows,
            key,
            json_columns=json_columns,
            merge=partial(self.merge, table, **options),
            **options,
        )

    def drift(
        self, table: Location, column: str | None = None, *, progress: OnProgress | None = None
    ) -> Drift:
        """Measure how far a table's layout has drifted from its data; the driver reads footers.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.drift`.
        """
        snapshot = self._session.snapshot(table)
        return drift(snapshot, column, progress=progress)

    @takes_commit_properties
    def cluster(
        self,
        table: Location,
        where: str | Expr | None = None,
        *,
        budget: Size | None = None,
        target_file_size: Size = CLUSTERED_FILE_BYTES,
        dry_run: bool = False,
        digest: bool = True,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> ClusterResult:
        """Order rows across files by the table's clustering paths; no row changes.

        The driver plans and commits, and Spark's executors rewrite the files: one task for each
        group of files that overlap. `table` is its name, path or URL, as for `read`; otherwise as
        `Table.cluster`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.maintenance.clustering.cluster import ClusterOptions, cluster

        snapshot = self._session.snapshot(table)
        return cluster(
            snapshot,
            self._session.rewriter(snapshot),
            ClusterOptions.of(where, budget, target_file_size, digest=digest),
            dry_run=dry_run,
            progress=progress,
        )

    @takes_commit_properties
    def reshred(
        self,
        table: Location,
        shredding: str | Mapping[str, str] | None = None,
        where: str | Expr | None = None,
        *,
        dry_run: bool = False,
        digest: bool = True,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> ReshredResult:
        """Change the shredding of VARIANT columns, and rewrite files that profit; no row changes.

        The driver plans and commits, and Spark's executors rewrite the files, one for each task.
        `table` is its name, path or URL, as for `read`; otherwise as `Table.reshred`.
        """
        from variantlake.maintenance.reshredding.reshred import ReshredOptions

        condition = None if where is None else str(where)
        options = ReshredOptions(shredding, condition, digest=digest)
        return self._reshred(table, options, dry_run=dry_run, progress=progress)

    @takes_commit_properties
    def unshred(
        self,
        table: Location,
        *,
        dry_run: bool = False,
        digest: bool = True,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> ReshredResult:
        """Store all Variants whole, and forbid shredding; Spark's executors rewrite the files.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.unshred`.
        """
        from variantlake.maintenance.reshredding.reshred import ReshredOptions

        options = ReshredOptions(unshred=True, digest=digest)
        return self._reshred(table, options, dry_run=dry_run, progress=progress)

    @takes_commit_properties
    def drop_feature(
        self,
        table: Location,
        name: str = "variantShredding",
        *,
        truncate_history: bool = False,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> ReshredResult:
        """Remove a feature from a table's protocol, for readers and writers that lack it.

        Spark's executors first rewrite the files that need it. `table` is its name, path or URL,
        as for `read`; otherwise as `Table.drop_feature`.
        """
        from variantlake.maintenance.drop_feature import drop_feature

        snapshot = self._session.snapshot(table)
        runner = self._session.rewriter(snapshot)
        return drop_feature(
            snapshot,
            name,
            runner,
            truncate_history=truncate_history,
            dry_run=dry_run,
            progress=progress,
        )

    def digest(
        self,
        table: Location,
        where: str | Expr | None = None,
        *,
        progress: OnProgress | None = None,
    ) -> Digest:
        """Hash a table's rows, whatever their order, files and layout; the driver reads them.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.digest`.
        """
        from variantlake.maintenance.compare_versions import digest_rows

        snapshot = self._session.snapshot(table)
        return digest_rows(snapshot, None if where is None else str(where), progress)

    def check_rewrite(
        self,
        table: Location,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        progress: OnProgress | None = None,
    ) -> VersionComparison:
        """Compare the rows of two versions of a table, and name those that differ.

        The driver reads the files that only one of the two has. `table` is its name, path or URL,
        as for `read`; otherwise as `Table.check_rewrite`.
        """
        from variantlake.maintenance.compare_versions import check_rewrite

        snapshot = self._session.snapshot(table)
        return check_rewrite(snapshot, from_version, to_version, progress)

    @takes_commit_properties
    def optimize(
        self,
        table: Location,
        where: str | Expr | None = None,
        *,
        target_file_size: Size = TARGET_FILE_BYTES,
        max_deleted_share: float = 0.05,
        purge: bool = False,
        dry_run: bool = False,
        digest: bool = True,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> OptimizeResult:
        """Compact small files, and rewrite files with many deleted rows; no row changes.

        Spark's executors rewrite the files, one group for each task, and the driver commits.
        `table` is its name, path or URL, as for `read`; otherwise as `Table.optimize`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.maintenance.optimize import optimize
        from variantlake.maintenance.plan_compaction import CompactionOptions

        snapshot = self._session.snapshot(table)
        return optimize(
            snapshot,
            self._session.rewriter(snapshot),
            where=None if where is None else str(where),
            options=CompactionOptions.of(target_file_size, max_deleted_share, purge=purge),
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )

    @takes_commit_properties
    def vacuum(
        self,
        table: Location,
        retention: Duration | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
        quarantine: bool = False,
        lite: bool = False,
        on_file: Callable[[UnneededFile], None] | None = None,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> VacuumResult:
        """Delete files below a table's folder that no version within the retention needs.

        The driver lists and deletes the files without a Spark job. `table` is its name, path or
        URL, as for `read`; otherwise as `Table.vacuum`.
        """
        return vacuum(
            self._session.snapshot(table),
            retention,
            dry_run=dry_run,
            force=force,
            quarantine=quarantine,
            lite=lite,
            on_file=on_file,
            progress=progress,
        )

    @takes_commit_properties
    def restore(
        self,
        table: Location,
        version: int | str | None = None,
        *,
        timestamp: Time | None = None,
        dry_run: bool = False,
        missing: Missing = "refuse",
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> RestoreResult:
        """Make an older version of a table the newest one, in one commit, without a Spark job.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.restore`.
        """
        return restore(
            self._session.snapshot(table),
            version,
            timestamp=timestamp,
            dry_run=dry_run,
            missing=missing,
            progress=progress,
        )

    @takes_commit_properties
    def tag(
        self,
        table: Location,
        name: str,
        version: int | None = None,
        *,
        move: bool = False,
        commit_properties: CommitProperties = None,
    ) -> NamedVersion:
        """Give a version of a table a name. `table` is as for `read`; otherwise as `Table.tag`."""
        newest = self._session.snapshot(table)
        number = newest.version if version is None else version
        return name_version(newest, name, number, move=move)

    @takes_commit_properties
    def untag(
        self, table: Location, name: str, *, commit_properties: CommitProperties = None
    ) -> NamedVersion:
        """Remove a version's name. `table` is as for `read`; otherwise as `Table.untag`."""
        return remove_name(self._session.snapshot(table), name)

    def tags(self, table: Location) -> list[NamedVersion]:
        """List the named versions of a table. `table` is as for `read`; see `Table.tags`."""
        return named_versions(self._session.snapshot(table).domains.values())

    @takes_commit_properties
    def clone(
        self,
        table: Location,
        target: str | os.PathLike[str],
        *,
        deep: bool = False,
        version: int | str | None = None,
        timestamp: Time | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> CloneResult:
        """Make a table at a path or URL with the rows of a version, without a Spark job.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.clone`.
        """
        reach_with(target, storage_options)
        source = self._session.snapshot(table)
        if version is not None or timestamp is not None:
            source = version_of(source, version, timestamp)
        return clone(source, os.fspath(target), deep=deep, dry_run=dry_run, progress=progress)

    def health(self, table: Location, *, orphans: bool = False) -> Health:
        """List what makes a table slow or large, and what helps; the driver reads.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.health`.
        """
        return health(self._session.snapshot(table), orphans=orphans)

    def checkpoint(self, table: Location) -> CommitResult:
        """Write a checkpoint of a table's newest version.

        `table` is its name, path or URL, as for `read`; otherwise as `Table.checkpoint`.
        """
        version = write_checkpoint(self._session.snapshot(table).store)
        return CommitResult(version=version)

    @takes_commit_properties
    def erase(
        self,
        table: Location,
        where: str | Expr,
        *,
        purge: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
    ) -> EraseResult:
        """Erase rows so that in the end no file below the table's folder holds them.

        The driver finds and rewrites them without a Spark job; the condition is as for
        `Table.scan`. `table` is its name, path or URL, as for `read`; otherwise as `Table.erase`.
        """
        text = None if where is None else str(where)
        return erase(self._session.snapshot(table), text, purges=purge, dry_run=dry_run)

    def _reshred(
        self,
        table: Location,
        options: ReshredOptions,
        *,
        dry_run: bool,
        progress: OnProgress | None,
    ) -> ReshredResult:
        from variantlake.maintenance.reshredding.reshred import reshred

        snapshot = self._session.snapshot(table)
        runner = self._session.rewriter(snapshot)
        return reshred(snapshot, runner, options, dry_run=dry_run, progress=progress)

    def _condition(self, where: str | Expr | None) -> str | None:
        check_expressions([] if where is None else [where], "a condition", self._session.spark)
        return None if where is None else str(where)


def _named(location: str) -> Named:
    """Return a statement's target by its location, since the user named it outside the text."""
    return Named(delta_name(location), location)


def _expression(value: Any) -> str:
    if isinstance(value, VariantPath):
        value = value.variant()
    if isinstance(value, Expr):
        return value.text
    if isinstance(value, Mapping | list | tuple | Variant):
        return f"parse_json({quote_string(Variant.of(value).to_json())})"
    return constant(value)
