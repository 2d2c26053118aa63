"""The façade of a Delta table in this process: open, look, append."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Self, Unpack, cast

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.time_travel import epoch_milliseconds
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import names_paths, split_paths
from variantlake.delta.protocol.known_properties import SCHEMA_PREFIX, check_properties
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.delta.transaction.commit import create_table
from variantlake.engine.run import LocalQuery
from variantlake.errors import InvalidSchema
from variantlake.expressions.from_python import Condition, TypedPath
from variantlake.ingest.append import append_arrow
from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.encode.document_options import DocumentKeywords
from variantlake.ingest.local_run import ingest_here
from variantlake.ingest.overwrite import Overwrite, Where
from variantlake.ingest.sources.sources import Documents
from variantlake.scan.table_scan import Scan
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.sql.select import QueryText
from variantlake.storage.opening import open_store
from variantlake.table.handle import check_limit
from variantlake.table.loads import TableLoads
from variantlake.writing.options import LoadKeywords, LoadOptions
from variantlake.writing.table_write import READER_FEATURES


class Table(TableLoads):
    """A Delta table at one version; it never changes, `refresh` and `append` lead to newer ones.

    A table that was removed and made again is another one: what writes by a handle of the old one
    raises TableReplaced, and so does a scan.
    """

    __slots__ = ()

    @classmethod
    def create(
        cls,
        location: str | os.PathLike[str],
        schema: str | StructType,
        *,
        partition_by: str | Sequence[str] | None = None,
        cluster_by: str | Sequence[str] | None = None,
        properties: Mapping[str, str] | None = None,
        shredding: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> Self:
        """Create an empty table.

        Args:
            location: A path or URL; no table may be there.
            schema: Columns as DDL, `event VARIANT, day DATE NOT NULL`.
            partition_by: Name or names of partition columns, never VARIANT ones; None for none.
            cluster_by: What the rows of the table shall lie in the order of: paths of VARIANT
                columns, `event:kind::string`, and columns; a text may name several, with commas.
                With a path among them they become `variantlake.clusterBy`, see `set_clustering`.
                Columns alone are Delta's own clustering, instead of `partition_by`.
            properties: Table properties.
            shredding: For VARIANT columns the DDL of what becomes columns. A column that is left
                out gets its schema inferred from the first data.
            name: The table's name in its metadata.
            description: What it is for.

        Raises:
            CommitConflict: There is a table already.
            InvalidSchema: A DDL does not parse, or Delta cannot hold the columns.
            UnsupportedFeature: A property of a feature that we do not write.
        """
        columns = parse_table_ddl(schema) if isinstance(schema, str) else schema
        configuration = check_properties(properties or {})
        for column, text in (shredding or {}).items():
            field = columns.get(column)
            if field is None or not isinstance(field.type, VariantType):
                raise InvalidSchema(f"{column!r} is not a VARIANT column of the table")
            configuration[SCHEMA_PREFIX + field.physical_name] = format_ddl(parse_ddl(text))
        clustering = _clustering(cluster_by, columns)
        if names_paths(clustering):
            configuration[CLUSTER_BY] = ", ".join(clustering)
            clustering = ()
        create_table(
            open_store(location),
            columns,
            partition_columns=_names(partition_by),
            cluster_columns=clustering,
            properties=configuration,
            name=name,
            description=description,
        )
        return cls.open(location)

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        version: int | None = None,
        *,
        timestamp: dt.datetime | None = None,
    ) -> Self:
        """The table at `location`: at its newest version, at `version`, or as it was at a time.

        A `timestamp` without a time zone is in UTC. As in Delta Spark it must not be after the
        newest version, whose part of a millisecond does not count.

        Raises:
            NotADeltaTable: There is no Delta log.
            MissingSource: There is no such version.
            InvalidQuery: No version is as old as `timestamp`, or all are older.
            MalformedLog: The log breaks the protocol; the file is named.
            UnsupportedFeature: The table needs what we cannot read, by name.
        """
        milliseconds = None if timestamp is None else epoch_milliseconds(timestamp)
        return cls(
            Snapshot.read(location, version, timestamp=milliseconds, applies=READER_FEATURES)
        )

    def scan(
        self,
        select: str | TypedPath | Sequence[str | TypedPath] = "*",
        where: str | Condition | None = None,
        *,
        limit: int | None = None,
    ) -> Scan:
        """Read rows without Spark; paths are columns where that is exact, files are skipped.

        Args:
            select: Columns and paths, as in a SELECT list: `event:kind::string AS kind`, `event`,
                `try_variant_get(event, '$.n', 'int') AS n`, `*`; or `vl.path(...)` with a type.
            where: A condition, as text or of `vl.path(...)`: comparisons with constants, BETWEEN,
                IN, IS [NOT] NULL, `LIKE 'prefix%'`, startswith, AND, OR and NOT.
            limit: At most this many rows.

        The result is an Arrow stream (`to_arrow`, `to_batches`, or straight into DuckDB and
        Polars). Its values are those of Spark's `variant_get`.

        Raises:
            InvalidQuery: Text that does not parse, or names what the table does not have.
            InvalidValue: A limit below 0, or a `select` that is no text, path or list.
            UnsupportedFeature: An expression that only Spark takes, by name.
        """
        check_limit(limit)
        text = QueryText(self.schema)
        condition = None if where is None else text.condition(str(where))
        return Scan(self.snapshot, text.items(select), condition, limit, self._decoded)

    def sql(self, query: str) -> LocalQuery:
        """Run a query of this table without Spark; the text calls the table `t`.

        Args:
            query: A SELECT as Spark SQL: columns, paths and expressions, WHERE as in `scan`, GROUP
                BY, HAVING, DISTINCT, ORDER BY, LIMIT; `count`, `count(DISTINCT x)`, `min`, `max`,
                `sum`, `avg`, `count_if`. Timestamps are in UTC.

        The result is an Arrow stream (`to_arrow`, `to_reader`, or straight into DuckDB and Polars);
        `explain` says what the log alone answers, what is read and what is skipped. It is what
        Spark gives in ANSI mode, its default.

        Raises:
            InvalidQuery: Text that does not parse, or names what the table does not have.
            UnsupportedFeature: What only Spark runs, by name; some of it while rows are read.
        """
        return self._prepared.of(query, self.snapshot, self._decoded)

    def overwrite(
        self,
        data: Documents | pa.Table | pa.RecordBatch | pa.RecordBatchReader,
        *,
        where: Where | None = None,
        partitions: bool = False,
        expected_version: int | None = None,
        column: str | None = None,
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> LoadResult:
        """Put rows in the place of the table's rows in one commit; gives what was done.

        Older versions can be read as before.

        Args:
            data: As for `append`. No rows leave the table, or the partitions, empty.
            where: Only these partitions are replaced: `{"day": date(2026, 1, 2)}`, or a condition
                over partition columns as text or of `vl.path(...)`, `"day >= '2026-01-02'"`. All
                new rows must be in them. None replaces everything.
            partitions: Only those partitions are replaced that the new rows are in.
            expected_version: The version of the table that the new rows were made of. Rows that
                another writer added or removed since, among those that are replaced, raise
                CommitConflict. None replaces what the newest version holds: give
                `version` of the table that was scanned where the new rows come from there.
            column: As for `append`.
            json_columns: As for `append`.
            **options: As for `append`.

        Raises:
            InvalidSchema: The data do not fit the table, or it is not partitioned so.
            InvalidQuery: A condition that does not parse.
            InvalidValue: A row is not in the partitions of `where`, or cannot be stored.
            CommitConflict: Another writer added or removed rows of what is replaced.
            MissingSource: The expected version is not in the log.
            UnsupportedFeature: As for `append`; also an append-only table, and a condition that
                only Spark takes.
        """
        overwrite = Overwrite(where, partitions, expected_version)
        return self._load(data, column, json_columns, overwrite, options)

    def append(
        self,
        data: Documents | pa.Table | pa.RecordBatch | pa.RecordBatchReader,
        *,
        column: str | None = None,
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> LoadResult:
        """Append rows to the newest version in one commit, without Spark; gives what was done.

        Args:
            data: `variantlake.ndjson(...)` or `json_array(...)`, or Arrow data (also whatever has
                the Arrow stream interface) with the table's columns by name; those that are left
                out are NULL. A VARIANT column is struct<metadata: binary, value: binary>.
            column: The VARIANT column that takes the documents; the only one if None.
            json_columns: VARIANT columns that the Arrow data give as JSON text.
            **options: `merge_schema=True` adds columns of the data that the table does not have.
                `mode` (`"strict"`, `"quarantine"`, `"null"`) says what becomes of a bad document,
                `max_bad` how many there may be (100, `"5%"`) before nothing is loaded, `load_id`
                names the load, so that it is done once, `order_by` sorts the rows of each file,
                `arrays` lets a schema that is learned have columns of what arrays hold,
                `target_file_bytes` and `max_rows_per_file` end a file. Of documents also
                `partition_by`, `file_column`, `loaded_at_column` and `skip_empty`: see
                `Lake.ingest`; of Arrow data `truncate_timestamps`, which cuts nanoseconds.

        The result is a number, too: the new version. With a load id that the table has already it
        is that of the first load.

        Raises:
            InvalidSchema: The data do not fit the table's columns.
            InvalidJson, MalformedVariant, InvalidValue, LimitExceeded: A bad value, with its
                position: file, line and column, or the row of the data.
            UnsupportedFeature: The table needs what only Spark can do (constraints, say).
            CommitConflict: Another writer changed the table in a way that contradicts this.
        """
        return self._load(data, column, json_columns, None, options)

    def _load(
        self,
        data: Documents | pa.Table | pa.RecordBatch | pa.RecordBatchReader,
        column: str | None,
        json_columns: Collection[str],
        overwrite: Overwrite | None,
        options: DocumentKeywords,
    ) -> LoadResult:
        if isinstance(data, Documents):
            return ingest_here(
                data,
                self.uri,
                column=column or self._only_variant(),
                overwrite=overwrite,
                snapshot=self._newest(),
                **options,
            )
        return append_arrow(
            data,
            self._newest(),
            json_columns=json_columns,
            merge_schema=options.pop("merge_schema", False),
            overwrite=overwrite,
            options=LoadOptions.of(**cast("LoadKeywords", options)),
        )


def _clustering(given: str | Sequence[str] | None, schema: StructType) -> Sequence[str]:
    """What to cluster by as users give it: names, or one text with commas."""
    if isinstance(given, str) and schema.get(given) is None:
        return split_paths(given)
    return _names(given)


def _names(given: str | Sequence[str] | None) -> Sequence[str]:
    """Column names as users give them: one, several or none."""
    return (given,) if isinstance(given, str) else given or ()
