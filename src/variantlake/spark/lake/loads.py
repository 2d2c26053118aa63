"""Loading data and changing what a table demands of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from pyspark.sql import DataFrame

from variantlake.spark.lake.change_feed import LakeChangeFeed
from variantlake.spark.query.table_locations import Location
from variantlake.spark.session.arguments import (
    check_frame,
    check_sources,
    check_text,
    is_frame,
)

if TYPE_CHECKING:
    import os

    from variantlake.autoloading.autoloader import AutoloadResult
    from variantlake.autoloading.batch import BatchReport
    from variantlake.autoloading.options import Duration
    from variantlake.autoloading.run import AutoloadOptionKeywords
    from variantlake.ingest.commit_load import LoadResult
    from variantlake.ingest.conversion.convert import ConvertResult
    from variantlake.ingest.conversion.request import ConvertKeywords
    from variantlake.ingest.encode.document_options import DocumentKeywords, IngestKeywords
    from variantlake.ingest.load import IngestResult
    from variantlake.ingest.overwrite import Where
    from variantlake.ingest.sources.sources import Documents, SourceSpec
    from variantlake.jobs.progress import LoadProgress
    from variantlake.writing.options import LoadKeywords


class LakeLoads(LakeChangeFeed):
    """The part of `Lake` that loads data."""

    def ingest(
        self,
        sources: Documents | SourceSpec | Iterable[SourceSpec],
        table: Location,
        *,
        progress: Callable[[LoadProgress], None] | None = None,
        **options: Unpack[IngestKeywords],
    ) -> IngestResult:
        """Load JSON documents into a VARIANT column of a table, in one commit.

        Each Spark task reads its own part of the input and writes files itself; no row passes
        through the JVM. Executors must reach sources and table by the same names.

        Args:
            sources: Files, globs or folders of newline-delimited JSON, plain, gzip, zstd or
                bz2, on a disk or in an object store; or `vl.ndjson(...)`, `vl.json_array(...)`,
                `vl.json_files(...)`.
            table: Its name, path or URL, as for `read`; it is made when there is none.
            progress: Called a few times a second while tasks run.
            **options: Each of them may be left out.

                - `format`: how documents stand in files that are given by paths: `"ndjson"` (one a
                  line), `"array"` (one array of them), `"json"` (one document a file).
                - `column`: the VARIANT column that takes the documents, `event` unless it is given.
                  Other columns get NULL.
                - `shredding`: which paths become columns, as DDL (`"kind STRING, n BIGINT"`);
                  `VARIANT` for none. None takes the table's own, or learns it from a sample and
                  keeps it.
                - `properties`: table properties for a table that is made here.
                - `mode`: what becomes of a bad document: `"strict"` fails the load,
                  `"quarantine"` puts it into a file with the reason, `"null"` stores NULL.
                - `max_bad`: with more bad documents, a number or a share (`"5%"`), the load stops,
                  and nothing is committed.
                - `load_id`: a name of this load; a load of the same name does nothing.
                - `order_by`: paths and columns by which the rows of each file are sorted.
                - `partition_by`: partition columns, from folders (`"day DATE"`) or from a path
                  of the documents (`"day=event:at::date"`).
                - `file_column`, `loaded_at_column`: columns for the source's path and for the time
                  of the load.
                - `merge_schema`: add the columns that the table does not have.
                - `skip_empty`: False refuses files without a document.
                - `hints`: paths and types that must be columns, `"user.id BIGINT, a.* DOUBLE"`.
                - `arrays`: whether a schema that is learned has columns of what arrays hold.
                - `target_file_bytes`, `max_rows_per_file`: when the next file is begun.

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
        return ingest(
            self._spark,
            sources,
            self._written_to(table),
            progress=progress,
            **options,
        )

    def autoload(
        self,
        source: str | os.PathLike[str],
        table: Location,
        *,
        name: str | None = None,
        every: Duration | None = None,
        stop: Callable[[], bool] | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        metrics_file: str | os.PathLike[str] | None = None,
        **options: Unpack[AutoloadOptionKeywords],
    ) -> AutoloadResult:
        """Load what is new in a folder or bucket, each file exactly once; see `vl.autoload`.

        Spark's executors run the tasks of batches that are more than one.
        """
        from variantlake.autoloading.run import autoload
        from variantlake.spark.load.ingest import parallelism, runner

        location = self._written_to(table)
        return autoload(
            source,
            location,
            name=name,
            every=every,
            stop=stop,
            on_batch=on_batch,
            metrics_file=metrics_file,
            run=runner(self._spark, location),
            parallelism=parallelism(self._spark),
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
        """Convert Parquet files into a table; `vl.convert` says how, and names the options.

        Spark's executors convert the files, and the driver makes the one commit. `table` is its
        name, path or URL, as for `ingest`. Raises as `vl.convert`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.spark.load.ingest import convert

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
        """Append the rows of a DataFrame in one commit, to a new table if there is none.

        Args:
            frame: Rows with the table's columns by name; VARIANT columns as they are.
            table: Its name, path or URL, as for `read`.
            json_columns: VARIANT columns that the DataFrame gives as JSON text.
            partition_by: Name or names of a new table's partition columns.
            shredding: DDL of what becomes columns, by VARIANT column, or of the only one. None
                takes the table's own, or infers it from a sample.
            properties: Table properties for a table that is made here.
            merge_schema: Add the columns and fields of structs that the table does not have.
            **options: `mode`, `max_bad`, `load_id`, `order_by`, `arrays`, `target_file_bytes` and
                `max_rows_per_file` as for `ingest`; `truncate_timestamps=True` cuts digits of
                timestamps below microseconds, which are an error otherwise.

        Raises:
            InvalidSchema: The data do not fit the table's columns.
            InvalidJson, MalformedVariant, InvalidValue, LimitExceeded: A bad value, with its row.
            UnsupportedFeature: The table needs a feature that we do not write.
            CommitConflict: Another writer changed the table in a way that contradicts this.
            MissingDependency: The executors' Python has no `variantlake`.
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
        snapshot = self._snapshot(table)
        return add_constraint(self.read(table, snapshot.version), snapshot, name, expression)

    def set_not_null(self, table: Location, column: str) -> int:
        """Make a column NOT NULL, once Spark has seen that no row has NULL there; the new version.

        Raises InvalidSchema for a column that is not there, else as `add_constraint`.
        """
        from variantlake.spark.load.constraints import set_not_null

        snapshot = self._snapshot(table)
        return set_not_null(self.read(table, snapshot.version), snapshot, column)
