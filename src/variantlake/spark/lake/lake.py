"""`connect(spark)`: the whole of a lake; each method is a docstring and a call into a room."""

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

    The session's settings are never changed; nothing of ours is left in its catalog.
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
        cannot match are skipped; the answer is what Spark gives on the unshredded data.

        DELETE, UPDATE and MERGE change rows of our tables when they are given; their result is the
        row of counts that Delta Spark gives. ALTER TABLE and COMMENT ON TABLE change the table;
        CREATE TABLE, also with LIKE and AS SELECT, and REPLACE TABLE make one at its path. These
        give no rows. If Spark has no Delta, or does not know the table, INSERT, OPTIMIZE, VACUUM,
        RESTORE, CLONE, TRUNCATE and DESCRIBE are run here as well.

        Args:
            query: The text, in Spark's own dialect.
            args: Parameters, as in `SparkSession.sql`.
            tables: Names that the text may use for tables, with their locations.
            commit_properties: As for `ingest`.

        Raises:
            InvalidQuery: Spark does not take the text; the message is Spark's.
            NotADeltaTable: A location without a log.
            MalformedLog, UnsupportedFeature: A table that cannot be read.
            What `delete`, `update`, `merge` and `alter` raise.
        """
        check_text(query)
        return self._statements.sql(query, args, tables)

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
            return explain_frame(self._session.spark, query)
        return explain_text(self._session, query, args, tables)

    def open(
        self,
        table: Location,
        version: int | str | None = None,
        *,
        timestamp: Time | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Table:
        """A table as a `vl.Table`, by any name that this lake knows, a catalog's too.

        For what needs no Spark: `lake.open("events").properties`. Writes through it run in this
        process. `table` is its name, path or URL, as for `read`; else as `Table.open`.
        """
        from variantlake.table.table import Table

        location = self._session.written_to(table)
        return Table.open(location, version, timestamp=timestamp, storage_options=storage_options)

    def read(
        self, table: Location, version: int | None = None, *, timestamp: Time | None = None
    ) -> DataFrame:
        """The whole table as a DataFrame, its VARIANT columns as they are.

        Columns that are NOT NULL in the table are not nullable, as in Delta Spark (of a session of
        Connect all are). If a file has a NULL there, a query that needs the column fails.

        Args:
            table: Its name, path or URL, as everywhere: a name is one that was registered or that
                a query could use, ``delta.`path` `` as well.
            version: An older version of it; `path@v3` is one too.
            timestamp: The version at this time instead; in UTC unless it says a zone.

        Raises as `sql` does for a table that cannot be read, NotADeltaTable for a name that nobody
        knows, InvalidValue for a version that is not a whole number, or one with a time.
        """
        check_table_version(version, timestamp)
        place = self._session.place(table)
        if place.location is None or VERSION_IN_PATH.fullmatch(place.location):
            return self.table(table, version, timestamp=timestamp)
        before = None if timestamp is None else milliseconds("timestamp", timestamp)
        found = self._session.tables.open(place.location, version, before=before)
        return self._session.frame(found, place.source)

    def table(
        self, table: Location, version: int | None = None, *, timestamp: Time | None = None
    ) -> DataFrame:
        """A table as a DataFrame whose queries are planned as `sql` plans them.

        `lake.table("events").where("event:kind::string = 'x'").groupBy("day").count()` skips files,
        reads paths from typed columns, and groups rows before Spark sees them. For that a rule goes
        into the session's optimizer, which leaves all other tables to Spark until
        `vl.spark.accelerate`. On Spark Connect it is what `read` gives.

        Args:
            table: Its name, path or URL, as for `read`.
            version: An older version of it.
            timestamp: The version at this time instead; in UTC unless it says a zone.

        Raises InvalidValue for a version that is not a whole number, or one with a time; as `read`.
        """
        check_table_version(version, timestamp)
        place = self._session.place(table)
        moment = None
        if timestamp is not None:
            moment = quote_string(moment_of("timestamp", timestamp).isoformat(" "))
        if place.location is None or VERSION_IN_PATH.fullmatch(place.location):
            at = "" if version is None else f" VERSION AS OF {version}"
            at += "" if moment is None else f" TIMESTAMP AS OF {moment}"
            return self.sql(f"SELECT * FROM {place.source}{at}")  # noqa: S608 - quoted
        runner = self._session.runner
        found = runner.opened(place.location, version, moment, None)
        if isinstance(runner, ConnectQueries):
            return runner.read(found)
        return runner.frame(runner.relation(found, place.source))

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
        """Let queries of this Lake call a table `name`, in which dots part a database from it.

        For Spark without Delta's jar, whose catalog holds no Delta tables. A name given here goes
        before the same one in Spark's catalog; `tables` of a query go before both.
        `storage_options` say how we and our tasks reach its bucket, as for `Table.open`.

        Raises NotADeltaTable, UnsupportedFeature for a table that is named and not there.
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
        """The rows that versions of a table brought, took and changed: the change data feed.

        Each row has `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
        `_commit_version` and `_commit_timestamp` after the table's columns. Delta Spark's jar is
        not needed.

        Args:
            table: Its name, path or URL, as for `read`.
            starting_version: The first version whose changes are wanted; 0 if no start is given.
            ending_version: The last one; the newest if None.
            starting_timestamp: Instead of a first version: the first one that is not older. A time
                without a zone is in UTC.
            ending_timestamp: Instead of a last version: the last one that is not newer.
            select: Columns and paths, as in a SELECT list of Spark; the three columns as well.
            where: A condition, as after WHERE. Files are skipped by it here, and not by a `filter`
                on the result.

        Raises:
            InvalidQuery: No range, or an empty one; text that Spark does not take.
            MissingSource: A version that does not exist, or is not in the log any more.
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

        Each Spark task reads its own part of the input and writes files itself; no row passes
        through the JVM. Executors must reach sources and table by the same names.

        Args:
            table: Its name, path or URL, as for `read`; it is made if there is none.
            sources: Files, globs or folders of newline-delimited JSON, plain, gzip, zstd or
                bz2, on a disk or in an object store; or `vl.ndjson(...)`, `vl.json_array(...)`,
                `vl.json_files(...)`.
            progress: Called a few times a second while tasks run.
            **options: As for `Table.append`, and these.

                - `column`: the VARIANT column that takes the documents; the table's only one unless
                  it is given, `event` in a new table. Other columns get NULL.
                - `shredding`: which paths become columns, as DDL (`"kind STRING, n BIGINT"`);
                  `VARIANT` for none. None takes the table's own, or learns it from a sample and
                  keeps it.
                - `properties`: table properties for a table that is made here.

        Raises:
            MissingSource, InvalidJson, LimitExceeded, MalformedFile: A source that is missing or
                bad, with file, line and column. Nothing is committed and no file is left.
            InvalidSchema: The table has no such VARIANT column, or the DDL does not parse.
            InvalidValue: An option that cannot be.
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
        """Load what is new in a folder or bucket, each file exactly once; see `vl.autoload`.

        Spark's executors run the tasks of batches that are more than one. `storage_options` say how
        the source is reached.
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
        """Convert Parquet files into a table; `vl.convert` says how, and names the options.

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

        `table` is a path, a URL, or a name that was registered. `lake.sql("CREATE TABLE ...")`
        makes one by its text.
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

        A DataFrame and files of documents are written by Spark's tasks, to a new table if there is
        none. All else that `Table.append` takes goes into a table that is there, in this process.

        Args:
            table: Its name, path or URL, as for `read`.
            data: A DataFrame with the table's columns by name, VARIANT columns as they are; paths
                of files, as for `ingest`; dicts and other rows of Python, or tables of Arrow,
                pandas and Polars, as for `Table.append`.
            column: The VARIANT column that takes documents; the only one unless it is given.
            json_columns: VARIANT columns that the rows give as JSON text.
            shredding: DDL of what becomes columns, by VARIANT column, or of the only one. None
                takes the table's own, or infers it from a sample.
            properties: Table properties for a table that is made here.
            **options: `mode`, `max_bad`, `load_id`, `unique_by`, `on_duplicate`, `order_by`,
                `arrays`, `target_file_size` and `max_rows_per_file` as for `ingest`;
                `merge_schema=True` adds the columns and fields of structs that the table does not
                have; `partition_by` names a new table's partition columns;
                `truncate_timestamps=True` cuts digits of timestamps below microseconds, which are
                an error otherwise.

        Raises:
            InvalidSchema: The data do not fit the table's columns.
            InvalidJson, MalformedVariant, InvalidValue, LimitExceeded: A bad value, with its row.
            NotADeltaTable: There is no table, and such rows make none.
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

        Spark's executors write what they append, and Spark checks what rows of a DataFrame and of
        documents have to fulfil. `Stage.scan`,
        `Stage.check`, `Stage.publish` and `Stage.drop` need no Spark.

        Args:
            table: Its name, path or URL, as for `read`.
            data: As for `append`.
            column: The VARIANT column that takes documents; the only one unless it is given.
            json_columns: As for `append`.
            **options: As for `append`, and for documents as for `ingest`, but for `merge_schema`
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
                # Those of documents are refused there.
                given = cast("dict[str, Any]", {"json_columns": json_columns, **options})
                return append(spark, data, location, overwrite=staging, **given)
            documents: Any = data
            return ingest(spark, documents, location, column=column, overwrite=staging, **options)

        return stage_load(location, load, options)

    def stages(self, table: Location) -> list[Stage]:
        """The loads of a table that are staged and neither published nor dropped, oldest first.

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
        """Put rows in the place of a table's rows, or of some partitions', in one commit.

        Args:
            table: Its name, path or URL, as for `read`.
            data: As for `append`.
            where: Only these partitions: `{"day": date(2026, 1, 2)}` or `"day >= '2026-01-02'"`,
                a condition over partition columns. All new rows must be in them.
            partitions: Only those partitions are replaced that the new rows are in.
            expected_version: The version of the table that the new rows were made of. Rows that
                another writer added or removed since, among those that are replaced, raise
                CommitConflict. None replaces what the newest version holds, but of a
                DataFrame that this lake's `read`, `table` or `sql` made of the table, at its newest
                version then: that version is expected.
            column: The VARIANT column that takes documents; the only one unless it is given.
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
        """Append a batch that `foreachBatch` gives, once however often it comes.

        The commit carries `query` and `batch_id` (a `txn` action). A batch that the table has
        already is not written again: `already_loaded` in the result says so.

        Args:
            table: Its name, path or URL, as for `read`.
            data: The batch.
            batch_id: Its number.
            query: The name by which the table knows the stream. None takes the id that Spark keeps
                in its checkpoint; Spark Connect does not tell that one.
            json_columns: As for `append`.
            partition_by: As for `append`.
            shredding: As for `append`.
            properties: As for `append`.
            merge_schema: As for `append`.
            auto_compact: Whether small files are joined after the commit if a partition has
                many of them. None asks the table's property `delta.autoOptimize.autoCompact`.
            metrics_file: A file in which the figures of this stream are kept, in the text form of
                Prometheus; of one query alone.
            **options: As for `append`.

        Raises:
            LostCheckpoint: The table has later batches of this query, or this batch of another
                checkpoint: the checkpoint was lost, or is an old one.
            InvalidValue: No query is named, outside of a stream.
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
        """Change a table by what SQL has after ALTER TABLE and its name; the new version.

        `lake.alter(t, "RENAME COLUMN a TO b")`, as `lake.sql("ALTER TABLE ...")`; Spark checks what
        rows have to fulfil. `table` is its name, path or URL, as for `read`; else as `Table.alter`.
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
        """Add a CHECK constraint, once Spark has seen that every row fulfils it; the new version.

        `lake.add_constraint(t, "kinds", "event:kind::string IN ('a', 'b')")`: paths of Variants
        may stand in it. NULL does not fulfil it. `Table.drop_constraint` removes it.

        Raises:
            InvalidQuery: Spark does not take the expression.
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
        """Make a column NOT NULL, once Spark has seen that no row has NULL there.

        Raises InvalidSchema for a column that is not there, else as `add_constraint`.
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
        """Set properties of a table, and add the features that they need; the new version.

        `table` is its name, path or URL, as for `read`; else as `Table.set_properties`.
        """
        snapshot = self._session.snapshot(table)
        run = self._session.rewriter(snapshot)
        return CommitResult(version=set_properties(snapshot, properties, run=run))

    @takes_commit_properties
    def analyze(
        self, table: Location, *, dry_run: bool = False, commit_properties: CommitProperties = None
    ) -> AnalyzeResult:
        """Add missing statistics to files of other writers; the driver reads their footers.

        `table` is its name, path or URL, as for `read`; else as `Table.analyze`.
        """
        return analyze(self._session.snapshot(table), dry_run=dry_run)

    def history(self, table: Location, limit: int | None = None) -> list[HistoryEntry]:
        """The commits that a table's log still holds, newest first.

        `table` is its name, path or URL, as for `read`; else as `Table.history`.
        """
        check_limit(limit)
        return self._session.snapshot(table).history(limit)

    def files(self, table: Location) -> pa.Table:
        """One row for each data file of a table's newest version, as Arrow.

        `table` is its name, path or URL, as for `read`; else as `Table.files`.
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

        `table` is its name, path or URL, as for `read`; else as `Table.scan`.
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
        """Delete rows in one commit; gives what was done.

        If the local engine takes the condition the rows are found without a job of Spark, on
        bounds and typed columns; else Spark finds them by any condition that it takes.

        Args:
            table: Its name, path or URL, as for `read`.
            where: A condition as it stands after WHERE; rows for which it is NULL stay. None
                deletes all rows.
            dry_run: Change nothing, and tell what would be done.
            commit_properties: As for `ingest`.

        Raises:
            InvalidQuery: Spark does not take the condition.
            InvalidValue: A value that a cast in the condition fails at.
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
        """Give columns new values in some rows, in one commit; gives what was done.

        `lake.update(t, {"n": vl.expr("n + 1"), "kind": "new"}, "event:kind::string = 'x'")`.

        Args:
            table: Its name, path or URL, as for `read`.
            set: By column, field of a struct (`{"address.city": "Rome"}`) or path of a Variant
                (`{"event:user.name": "Ada"}`) the new value, as for `Table.update`; of SQL any
                expression that Spark takes.
            where: As for `delete`.
            dry_run: Change nothing, and tell what would be done. The new rows are computed, to see
                whether the table takes them.
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
        """Merge rows into a table, in one commit; gives what was done.

        `lake.merge(t, df, "t.id = s.id")` updates the rows that are there and inserts the others.

        Args:
            table: Its name, path or URL, as for `read`.
            source: A DataFrame, or what may stand after USING: a table's name, or a query in
                parentheses.
            on: The condition that a row of the table and one of the source match by.
            *clauses: As in MERGE: `"WHEN MATCHED AND s.gone THEN DELETE"`, in their order; without
                any UPSERT.
            target_alias: What `on` and the clauses call the table.
            source_alias: What they call the source.
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
        """A MERGE whose clauses are methods, as `Table.merge_builder`."""

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
        """Put rows in the place of those with the same key, and insert the others, in one commit.

        `lake.upsert("events", df, key="event:id::string")`. A row whose key is NULL is always
        inserted. Rows of a DataFrame are merged by Spark, all others in this process.

        Args:
            table: Its name, path or URL, as for `read`.
            rows: A DataFrame, or rows as for `Table.upsert`, with all columns of the table.
            key: Columns and paths with their types, as in `scan`; several in one text or in a list.
            json_columns: As for `Table.upsert`.
            merge_schema: As for `merge`; columns that the rows do not have stay as they are.
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
        """How far a table's layout has drifted from its data; the driver reads files' footers.

        `table` is its name, path or URL, as for `read`; else as `Table.drift`.
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
        """Order rows across files by the paths that the table is clustered by; no row changes.

        The driver plans and commits, and Spark's executors rewrite the files: a task a group of
        files that overlap. `table` is its name, path or URL, as for `read`; else as
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
        """Shred a table's VARIANT columns anew, and the files that gain by it; no row changes.

        The driver plans and commits, and Spark's executors rewrite the files, one a task. `table`
        is its name, path or URL, as for `read`; else as `Table.reshred`.
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

        `table` is its name, path or URL, as for `read`; else as `Table.unshred`.
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
        """Take a feature out of a table's protocol, for readers and writers that lack it.

        Spark's executors rewrite the files that need it first. `table` is its name, path or URL,
        as for `read`; else as `Table.drop_feature`.
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
        """A hash of a table's rows, whatever their order, files and layout; the driver reads.

        `table` is its name, path or URL, as for `read`; else as `Table.digest`.
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
        """Whether two versions of a table have the same rows; names those that differ.

        The driver reads the files that one of the two has. `table` is its name, path or URL, as
        for `read`; else as `Table.check_rewrite`.
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
        """Join small files, and rewrite files of which many rows are deleted; no row changes.

        Spark's executors rewrite the files, a group a task, and the driver commits. `table` is its
        name, path or URL, as for `read`; else as `Table.optimize`.
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
        """Remove files below a table's folder that no version within the retention needs.

        The driver lists and deletes, by its own store; no Spark job runs. `table` is its name, path
        or URL, as for `read`; else as `Table.vacuum`.
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
        """Make an older version of a table the newest one, in one commit; the driver does it.

        `table` is its name, path or URL, as for `read`; else as `Table.restore`.
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
        """Give a version of a table a name. `table` is as for `read`; else as `Table.tag`."""
        newest = self._session.snapshot(table)
        number = newest.version if version is None else version
        return name_version(newest, name, number, move=move)

    @takes_commit_properties
    def untag(
        self, table: Location, name: str, *, commit_properties: CommitProperties = None
    ) -> NamedVersion:
        """Take a name from its version. `table` is as for `read`; else as `Table.untag`."""
        return remove_name(self._session.snapshot(table), name)

    def tags(self, table: Location) -> list[NamedVersion]:
        """The versions of a table that have names. `table` is as for `read`; see `Table.tags`."""
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
        """Make another table with the rows of a version, at a path or URL; the driver does it.

        `table` is its name, path or URL, as for `read`; else as `Table.clone`.
        """
        reach_with(target, storage_options)
        source = self._session.snapshot(table)
        if version is not None or timestamp is not None:
            source = version_of(source, version, timestamp)
        return clone(source, os.fspath(target), deep=deep, dry_run=dry_run, progress=progress)

    def health(self, table: Location, *, orphans: bool = False) -> Health:
        """What makes a table slow or large, each finding with what helps; the driver reads.

        `table` is its name, path or URL, as for `read`; else as `Table.health`.
        """
        return health(self._session.snapshot(table), orphans=orphans)

    def checkpoint(self, table: Location) -> CommitResult:
        """Write a checkpoint of a table's newest version.

        `table` is its name, path or URL, as for `read`; else as `Table.checkpoint`.
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
        """Erase rows so that in the end nothing below the table's folder holds them.

        The driver finds and rewrites, without a Spark job; the condition is one that `Table.scan`
        takes. `table` is its name, path or URL, as for `read`; else as `Table.erase`.
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
    """A table of which the user wrote no name: by its location, as a query would name it."""
    return Named(delta_name(location), location)


def _expression(value: Any) -> str:
    if isinstance(value, VariantPath):
        value = value.variant()
    if isinstance(value, Expr):
        return value.text
    if isinstance(value, Mapping | list | tuple | Variant):
        return f"parse_json({quote_string(Variant.of(value).to_json())})"
    return constant(value)
