"""The façade of a Delta table without Spark: open, read, load, change and maintain it.

Each method is a docstring and a call into the package that does the work.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import pyarrow as pa

from variantlake.batches import first_rows
from variantlake.delta.actions.actions import Protocol
from variantlake.delta.actions.commit_properties import (
    CommitProperties,
    takes_commit_properties,
)
from variantlake.delta.log.identity import check_before_read, check_same_table
from variantlake.delta.log.log_segment import has_log
from variantlake.delta.log.snapshot import HistoryEntry, Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import names_paths, split_paths
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.delta.protocol.known_properties import SCHEMA_PREFIX, check_properties
from variantlake.delta.protocol.named_versions import NamedVersion, named_versions
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.engine.prepared import PreparedQueries
from variantlake.errors import (
    CommitConflict,
    InvalidSchema,
    InvalidValue,
    TableReplaced,
    UnsupportedFeature,
    describe_type,
    in_memory,
)
from variantlake.export.keywords import ExportKeywords
from variantlake.familiar_names import says_its_keywords
from variantlake.loading import load
from variantlake.progress import OnProgress
from variantlake.quoting import identifier
from variantlake.scan.decoded_log import DecodedLog
from variantlake.shown import CommitResult, counted, html_table
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.storage.opening import open_store
from variantlake.storage.options import reach_with
from variantlake.table.all_rows import AllRows
from variantlake.units import Duration, Size, Time, check_limit, milliseconds
from variantlake.writing.options.file_sizes import CLUSTERED_FILE_BYTES, TARGET_FILE_BYTES

if TYPE_CHECKING:
    from variantlake.autoloading.autoloader import AutoloadResult
    from variantlake.autoloading.batch import BatchReport
    from variantlake.autoloading.loads import RetryResult
    from variantlake.autoloading.run import AutoloadOptionKeywords
    from variantlake.contracts.contract import Contract, ContractLike
    from variantlake.delta.transaction.analyze import AnalyzeResult
    from variantlake.delta.transaction.conflicts import Changes
    from variantlake.dml.merge.builder import MergeBuilder
    from variantlake.dml.result import ChangeResult
    from variantlake.engine.duckdb_query import DuckQuery
    from variantlake.engine.run import LocalQuery
    from variantlake.erase.erase import EraseResult
    from variantlake.export.export import ExportResult
    from variantlake.expressions.from_python import Expr
    from variantlake.feed.scan import ChangeScan
    from variantlake.ingest.commit_load import LoadResult
    from variantlake.ingest.encode.document_options import DocumentKeywords
    from variantlake.ingest.inputs import Rows
    from variantlake.ingest.overwrite import Overwrite, Where
    from variantlake.ingest.stage import Stage
    from variantlake.kernels.digest.rows import Digest
    from variantlake.maintenance.cloning.clone import CloneResult
    from variantlake.maintenance.clustering.cluster import ClusterResult
    from variantlake.maintenance.compare_versions import VersionComparison
    from variantlake.maintenance.contract_check import ContractReport
    from variantlake.maintenance.health_findings import Health
    from variantlake.maintenance.optimize import OptimizeResult
    from variantlake.maintenance.reshredding.drift import Drift
    from variantlake.maintenance.reshredding.reshred import ReshredResult
    from variantlake.maintenance.restore import Missing, RestoreResult
    from variantlake.maintenance.vacuuming.listing import UnneededFile
    from variantlake.maintenance.vacuuming.vacuum import VacuumResult
    from variantlake.report.table_report import TableReport
    from variantlake.scan.table_scan import Scan
    from variantlake.sql.alter import Alteration
    from variantlake.writing.options.load_options import LoadKeywords
    from variantlake.writing.staged_files import Staging

P = ParamSpec("P")
R = TypeVar("R")

_LESS_AT_ONCE = (
    (
        "give rows in pieces, as a pyarrow.RecordBatchReader or an iterator of batches; choose "
        "fewer by a condition; or do it where there is more memory"
    ),
    "do it on fewer rows or files at a time, or where there is more memory",
)


def _writes(method: Callable[Concatenate[Table, P], R]) -> Callable[Concatenate[Table, P], R]:
    """Decorate a method that writes: its handle ends at the newest version, even on errors."""
    verb = says_its_keywords(takes_commit_properties(method))

    @functools.wraps(method)
    def call(self: Table, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._check_moves()
        try:
            with in_memory(f"what `{method.__name__}` works on does", *_LESS_AT_ONCE):
                result = verb(self, *args, **kwargs)
        except TableReplaced:  # the handle stays at its version of the old table
            raise
        except BaseException:
            self._has_written = True
            raise
        self._has_written = True
        return result

    return call


class Table(AllRows):
    """A Delta table at one version, which all methods read.

    The handle follows its own writes: a change starts from the newest version, and afterwards the
    handle is at the newest version. `refresh` moves it to the newest version of other writers.
    `Table.open(location, version=3)` is fixed at its version, and refuses to write.

    A table that was removed and made again is another one: scans and writes through a handle of the
    old one raise TableReplaced. Threads may share a handle; a pickled one stays at its version.
    Every function that takes a table's path also takes a Table.
    """

    __slots__ = ("_has_written", "_is_fixed", "_state")

    def __init__(self, snapshot: Snapshot, *, is_fixed: bool = False) -> None:
        if not isinstance(snapshot, Snapshot):
            raise InvalidValue(
                f"vl.Table is not called with {describe_type(snapshot)}",
                hint="vl.Table.open(location) opens a table, vl.Table.create makes one",
            )
        self._is_fixed = is_fixed
        self._has_written = False
        self._state = _Version(snapshot)

    @property
    def snapshot(self) -> Snapshot:
        """The state of the version, as read from the log."""
        return self._current().snapshot

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.snapshot == other.snapshot

    def __hash__(self) -> int:
        return hash(self.uri)

    def __fspath__(self) -> str:
        """Return the table's location; for a fixed version, with a suffix that names it."""
        return f"{self.uri}@v{self.version}" if self._is_fixed else self.uri

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_again, (type(self), self.snapshot, self._is_fixed)

    @classmethod
    @says_its_keywords
    @takes_commit_properties
    def create(
        cls,
        location: str | os.PathLike[str],
        schema: str | StructType | pa.Schema | Mapping[str, str] = "event VARIANT",
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
    ) -> Self:
        """Create an empty table.

        `Table.create("events", "event VARIANT, day DATE", partition_by="day", exist_ok=True)`.

        Args:
            location: A path or URL; no table may be there.
            schema: Columns as DDL, `event VARIANT, day DATE NOT NULL`, or as an Arrow schema. By
                default one column of documents.
            exist_ok: Open an existing table unchanged. It may have more columns than `schema`, and
                other properties.
            replace: Replace an existing table, in one commit of its log. Its older versions stay
                readable, and it keeps its features and row tracking.
            partition_by: Name or names of partition columns, never VARIANT ones; None for none.
            cluster_by: Columns and typed paths to cluster by, as a list or as one text with commas:
                `"day, event:kind::string"`. With a path among them they become the property
                `variantlake.clusterBy`, see `set_clustering`. Columns alone become Delta's own
                clustering, instead of `partition_by`.
            properties: Table properties.
            shredding: DDL of the paths that become columns, by VARIANT column, or for the only one.
                For an omitted column, a schema is inferred from the first data.
            name: The table's name in its metadata.
            description: The table's description.
            commit_properties: As for `append`.
            storage_options: As for `open`.

        Raises:
            CommitConflict: There is a table already, without `exist_ok` and `replace`; or another
                writer changed the table to be replaced.
            InvalidValue: The schema has none of these types.
            InvalidSchema: A DDL does not parse, or Delta cannot hold the columns; with `exist_ok`,
                the existing table lacks a column, or has one of another type, or is not
                partitioned by `partition_by`.
            InvalidQuery: A default is no constant, or a generated column uses an unknown name.
            UnsupportedFeature: A property of a feature that we do not write.

        Examples:
            >>> vl.Table.create("new", "event VARIANT, day DATE", partition_by="day").version
            0
        """
        from variantlake.delta.transaction.creation import (
            Creation,
            check_is_like,
            commit_creation,
            replace_table,
        )

        reach_with(location, storage_options)
        for what, words in (("name", name), ("description", description)):
            if not isinstance(words, str | None):
                raise InvalidValue(f"the table's {what} is text, not {words!r:.60}")
        columns = _columns(schema)
        configuration = {**check_properties(properties or {}), **_schemas(shredding, columns)}
        clustering = _clustering(cluster_by, columns)
        if names_paths(clustering):
            configuration[CLUSTER_BY] = ", ".join(clustering)
            clustering = ()
        if exist_ok and replace:
            raise InvalidValue("exist_ok keeps the table that is there, replace does not")
        if any(each.default or each.generation for each in columns.fields):
            from variantlake.ddl.alter_table import check_expressions
            from variantlake.ddl.local_checks import LocalChecks

            check_expressions(columns, LocalChecks(lenient=True))
        store = open_store(location)
        there = Snapshot.read(location, store=store) if replace and has_log(store) else None
        made = Creation.of(
            there,
            columns,
            _names(partition_by),
            configuration,
            cluster_columns=clustering,
            name=name,
            description=description,
            operation="CREATE OR REPLACE TABLE" if replace else "CREATE TABLE",
        )
        if there is not None:
            replace_table(there, made)
            return cls.open(location)
        try:
            commit_creation(store, made)
        except CommitConflict:
            if not exist_ok:
                raise
            found = cls.open(location)
            check_is_like(found.snapshot, made.metadata, is_partitioned=partition_by is not None)
            return found
        return cls.open(location)

    @classmethod
    @says_its_keywords
    def open(
        cls,
        location: str | os.PathLike[str],
        version: int | str | None = None,
        *,
        timestamp: Time | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Open a table at its newest version, or fix it at `version` or at a time.

        A table opened at a `version` or `timestamp` is read-only. As in Delta Spark, the time must
        not be after the newest version, compared in whole milliseconds.

        Args:
            location: A path or URL.
            version: A version's number, or a name that `tag` gave it.
            timestamp: A time instead; without a zone, it is in UTC.
            storage_options: Settings to access the table's bucket, by names of environment
                variables (`AWS_ACCESS_KEY_ID`, …). They apply to all later reads and writes of this
                process there, and override the environment and `set_storage_options`.

        Raises:
            NotADeltaTable: There is no Delta log.
            MissingSource: There is no such version.
            InvalidQuery: No version is as old as `timestamp`, or all are older.
            MalformedLog: The log breaks the protocol; the file is named.
            UnsupportedFeature: The table needs a feature that we cannot read, by name.

        Examples:
            >>> vl.Table.open("t").version
            1
            >>> vl.Table.open("t", version=0).scan().count()
            0
        """
        reach_with(location, storage_options)
        time = None if timestamp is None else milliseconds("timestamp", timestamp)
        snapshot = Snapshot.read(location, version, timestamp=time, applies=SCAN_FEATURES)
        return cls(snapshot, is_fixed=version is not None or timestamp is not None)

    @classmethod
    def of(cls, table: Table | str | os.PathLike[str]) -> Table:
        """Open a table at its newest version, or return a handle unchanged. Raises as `open`.

        `Table.of("events")` opens it; `Table.of(handle)` is the handle.

        Examples:
            >>> vl.Table.of("t") == t
            True
        """
        return table if isinstance(table, Table) else cls.open(table)

    if not TYPE_CHECKING:  # else a checker would take any name

        def __getattr__(self, name: str) -> Any:
            from variantlake.familiar_names import no_such_attribute

            raise no_such_attribute(self, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r}, version={self.version})"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the location and the columns, without reading rows."""
        import html

        columns = ((item.name, item.type) for item in self.schema.fields)
        return (
            f"<p><b>{html.escape(self.uri)}</b>, version {self.version:,}, "
            f"{counted(self.snapshot.files.num_rows, 'file')}</p>"
            + html_table(("column", "type"), columns)
        )

    @property
    def uri(self) -> str:
        """The table's location: an absolute path or a URL."""
        return self._state.snapshot.store.uri

    @property
    def version(self) -> int:
        """The number of this version; a table's first version is 0."""
        return self.snapshot.version

    @property
    def schema(self) -> StructType:
        """The columns, with the partition columns, in the table's order.

        `schema.to_arrow()` converts them to Arrow, where VARIANT is struct<metadata: binary, value:
        binary>. Spec: Delta protocol, "Schema Serialization Format".
        """
        return self.snapshot.schema

    @property
    def protocol(self) -> Protocol:
        """Versions and features that readers and writers need.

        Spec: Delta protocol, "Protocol Evolution", "Table Features".
        """
        return self.snapshot.protocol

    @property
    def properties(self) -> dict[str, str]:
        """The table properties, as texts by name: Delta's, ours (`variantlake.…`) and the user's.

        It has only properties that somebody has set. Spec: Delta protocol, "Change Metadata".
        """
        return self.snapshot.properties

    def files(self) -> pa.Table:
        """Return one row for each data file of this version, from its `add` action in the log.

        Columns are the action's fields (Delta protocol, "Add File and Remove File"), named in
        snake_case, among them:

        - `path`: as the log has it: relative to the table, or a URL.
        - `size` in bytes, `modification_time` in milliseconds since 1970 in UTC.
        - `partition_values`: texts by column; NULL is NULL.
        - `stats`: the statistics as JSON text.
        - `tags`, `deletion_vector`, `base_row_id`: NULL if the action has none.

        Examples:
            >>> t.files().num_rows
            1
        """
        return self.snapshot.files.whole()

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """List the commits up to this version that the log still has, newest first.

        `limit` is the most commits to return, None for all. Times are in milliseconds since 1970 in
        UTC. Spec: Delta protocol, "Commit Provenance Information".

        Raises TableReplaced if another table is at the location now, InvalidValue for a limit
        below 0.

        Examples:
            >>> [each.version for each in t.history()]
            [1, 0]
        """
        check_limit(limit)
        check_before_read(self.snapshot)
        return self.snapshot.history(limit)

    def refresh(self) -> Self:
        """Move to the newest version of the table at the location; returns this handle.

        If the table was removed and made again, this is a version of the new table.

        Raises InvalidValue for a handle that is fixed at a version, NotADeltaTable if the table was
        removed, MalformedLog and UnsupportedFeature for a log that cannot be read, StoreFailed.

        Examples:
            >>> t.refresh().version
            1
        """
        self._check_moves()
        self._state = _Version(self._state.snapshot.refresh())
        return self

    def report(self, *, examples: bool = True) -> TableReport:
        """Report on files, paths, types, what filters skip, drift, and advice, as a page or JSON.

        Most of it comes from the log, the rest from a sample of 10,000 rows of each VARIANT column
        and the footers of eight files.

        Args:
            examples: False leaves out values of the data: examples and bounds.

        `save("report.html")` writes the page, `to_dict()` returns the data; a notebook shows it.

        Raises as `scan` for a file that cannot be read.

        Examples:
            >>> t.report(examples=False).to_dict()["format"]
            1
        """
        from variantlake.report.table_report import report_table

        return report_table(self.snapshot, examples=examples)

    @says_its_keywords
    def scan(
        self,
        select: str | Expr | Sequence[str | Expr] = "*",
        where: str | Expr | None = None,
        *,
        limit: int | None = None,
    ) -> Scan:
        """Read rows without Spark, from typed columns where that is exact; skips files.

        Args:
            select: Columns and paths, as in a SELECT list: `event:kind::string AS kind`, `event`,
                `try_variant_get(event, '$.n', 'int') AS n`, `*`; or `vl.path(...)` with a type.
            where: A condition, as text or of `vl.path(...)`: comparisons with constants, BETWEEN,
                IN, IS [NOT] NULL, `LIKE 'prefix%'`, startswith, AND, OR and NOT.
            limit: At most this many rows.

        The result is an Arrow stream (`to_arrow`, `to_batches`, or straight into DuckDB and
        Polars). Its values are those of Spark's `variant_get`.

        Raises:
            InvalidQuery: The text does not parse, or names an unknown column.
            InvalidValue: A limit below 0, or a `select` that is not text, path or list.
            UnsupportedFeature: An expression that needs Spark; the message names it.

        Examples:
            >>> t.scan(["id", "event:kind::string AS kind"], where="event:n::int > 1").to_pylist()
            [{'id': 2, 'kind': 'b'}]
        """
        load("variantlake.scan.table_scan")
        from variantlake.scan.table_scan import scan_of

        version = self._current()
        return scan_of(version.snapshot, select, where, limit, version.decoded)

    @says_its_keywords
    def export(
        self,
        path: str | os.PathLike[str],
        format: Literal["parquet", "csv", "jsonl"] | None = None,  # noqa: A002 - as in loads
        *,
        select: str | Expr | Sequence[str | Expr] = "*",
        where: str | Expr | None = None,
        **options: Unpack[ExportKeywords],
    ) -> ExportResult:
        """Write rows of this version into one file of Parquet, CSV or JSON lines.

        `table.export("clicks.csv.gz", where="event:kind::string = 'click'")`; for a query, use
        `table.sql(...).export(path)`. `select` and `where` are as for `scan`, all else as for
        `Scan.export`.
        """
        return self.scan(select, where).export(path, format, **options)

    @overload
    def sql(self, query: str) -> LocalQuery: ...

    @overload
    def sql(
        self,
        query: str,
        *,
        engine: Literal["duckdb"],
        tables: Mapping[str, Table] | None = None,
    ) -> DuckQuery: ...

    def sql(
        self,
        query: str,
        *,
        engine: Literal["local", "duckdb"] = "local",
        tables: Mapping[str, Table] | None = None,
    ) -> LocalQuery | DuckQuery:
        """Run a query of this table without Spark; the query names it `t`, or by its own name.

        `Table.open("/lake/events").sql("SELECT event:kind::string, count(*) FROM events GROUP BY
        1")`. Its own name is the last part of the location.

        Args:
            query: A SELECT in Spark SQL: columns, paths and expressions, WHERE as in `scan`, GROUP
                BY, HAVING, DISTINCT, ORDER BY, LIMIT, OFFSET; `count`, `count(DISTINCT x)`, `min`,
                `max`, `sum`, `avg`, `count_if`; in FROM, or in WITH, another SELECT that selects
                and filters rows; in expressions, scalar subqueries, which are run at once.
                Timestamps are in UTC.
            engine: `"duckdb"` runs any query in DuckDB over the columns and paths that it names:
                windows, joins, sums of doubles. Our scan skips files and rows by the conditions
                that it supports; all else follows DuckDB's own rules, and may differ from Spark.
            tables: For `"duckdb"`, other tables by their names in the query.

        The result is an Arrow stream (`to_arrow`, `to_reader`, or straight into DuckDB and Polars);
        `explain` tells what the log alone answers, what is read and what is skipped. The local
        engine returns the result of Spark in ANSI mode, its default.

        Raises:
            InvalidQuery: The text does not parse, or names an unknown table or column.
            UnsupportedFeature: The query needs another engine. May be raised only while rows are
                read.
            MissingDependency: DuckDB is not installed.
        """
        load("variantlake.engine.text", "variantlake.engine.run")
        from variantlake.engine.text import names_of_table

        if not isinstance(query, str):
            raise InvalidValue(f"a query is text, not {query!r:.60}")
        for name, each in (tables or {}).items():
            if not isinstance(each, Table):
                raise InvalidValue(
                    f"the table {name!r} is of the type {type(each).__name__}, not a vl.Table",
                    hint="vl.Table.open(location) opens one; vl.duckdb.attach joins with frames",
                    cli_hint="",
                )
        if engine == "duckdb":
            from variantlake.engine.duckdb_query import duckdb_query  # loads more of sqlglot

            every = dict.fromkeys(names_of_table(self.uri), self) | dict(tables or {})
            return duckdb_query(
                query, {name.lower(): each.snapshot for name, each in every.items()}
            )
        if engine != "local":
            raise InvalidValue(f"engine is {engine!r}", hint='"local" or "duckdb"')
        if tables:
            raise UnsupportedFeature(
                "the local engine runs queries of one table", hint='engine="duckdb" runs joins'
            )
        try:
            version = self._current()
            return version.prepared.of(query, version.snapshot, version.decoded)
        except UnsupportedFeature as error:
            from variantlake.sql.statements import not_a_query

            if not_a_query(query) is None and "Spark" in (error.hint or ""):
                error.hint = f'engine="duckdb" may run it, by DuckDB\'s own rules. {error.hint}'
            raise

    @says_its_keywords
    def changes(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        *,
        starting_timestamp: Time | None = None,
        ending_timestamp: Time | None = None,
        select: str | Expr | Sequence[str | Expr] = "*",
        where: str | Expr | None = None,
    ) -> ChangeScan:
        """Read the rows that versions inserted, deleted and updated: the change data feed.

        Each row has `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
        `_commit_version` and `_commit_timestamp` after the table's columns. Files are skipped by
        bounds and paths are read from columns, as in `scan`.

        Args:
            starting_version: The first version; 0 if there is no starting timestamp either.
            ending_version: The last version; None is this handle's.
            starting_timestamp: A time instead: starts with the first version at or after it. A
                time without a zone is in UTC.
            ending_timestamp: A time instead: ends with the last version at or before it.
            select: Columns and paths, as in `scan`; the three columns as well.
            where: A condition, as in `scan`; over the three columns as well.

        Raises:
            InvalidQuery: No range, or an empty one; text as in `scan`.
            MissingSource: A version that does not exist, or is no longer in the log; while rows
                are read, a file that vacuum has removed.
            UnsupportedFeature: A version of the range recorded no changes
                (`delta.enableChangeDataFeed`), or its schema cannot be read as the last one.
        """
        from variantlake.expressions.from_python import condition_text
        from variantlake.feed.commits import version_range
        from variantlake.feed.scan import ChangeScan
        from variantlake.feed.snapshots import change_snapshots
        from variantlake.scan.table_scan import Scan
        from variantlake.sql.select import QueryText

        check_before_read(self.snapshot)
        versions = version_range(
            self.snapshot,
            starting_version,
            ending_version,
            # Times of versions are whole milliseconds, so round the start up.
            since=None
            if starting_timestamp is None
            else milliseconds("starting_timestamp", starting_timestamp, up=True),
            until=None
            if ending_timestamp is None
            else milliseconds("ending_timestamp", ending_timestamp),
        )
        snapshots = change_snapshots(self.snapshot, versions)
        text = QueryText(snapshots[0].schema)
        items = text.items(select)
        asked = condition_text(where)
        condition = None if asked is None else text.condition(asked)
        return ChangeScan(tuple(Scan(each, items, condition) for each in snapshots))

    @_writes
    def append(
        self,
        data: Rows,
        *,
        column: str | None = None,
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> LoadResult:
        """Append rows to the newest version in one commit, without Spark.

        Args:
            data: Any of these. Columns are matched by name; omitted columns are NULL.

                - Files: a path, glob, URL or folder, or several: newline-delimited JSON; Parquet,
                  CSV, Avro, MessagePack and BSON by the name's ending, or by `format="csv"`;
                  `vl.ndjson(...)`, `vl.json_array(...)`, `vl.json_files(...)`.
                - `bytes` or a file object of newline-delimited JSON.
                - Python rows: dicts, dataclasses, named tuples and Pydantic models, one or any
                  iterable of them. Rows with none of the table's columns are documents of its
                  only VARIANT column.
                - Tables: Arrow, pandas, Polars, DuckDB's relations, a scan, another `vl.Table`.
                  A VARIANT column takes Variants, text as JSON, structs, lists and numbers.
            column: The VARIANT column for documents, also for those given as rows; the only one if
                None.
            json_columns: VARIANT columns that the data have as JSON text; needed for bytes and
                for Python rows, whose text is otherwise a string.
            **options: Each of them is optional.

                - `mode`: how to handle a bad document: `"strict"` fails the load,
                  `"quarantine"` puts it into a file with the reason, `"null"` stores NULL. The
                  default is `"strict"`, and `"quarantine"` if there is a contract.
                - `contract`: a JSON Schema that documents must fulfil and that the table keeps; see
                  `set_contract`.
                - `max_bad`: with more bad documents, a number or a share (`"5%"`), the load stops,
                  and nothing is committed.
                - `load_id`: a name of this load; a second load of the same name does nothing.
                - `unique_by`, `on_duplicate`: a key that no two rows share, and which of them stays
                  (`"replace"`, `"skip"`); see `LoadOptions`.
                - `order_by`: paths and columns by which the rows of each file are sorted.
                - `merge_schema`: add the columns that the table does not have.
                - `arrays`: whether a learned schema has columns for the contents of arrays.
                - `target_file_size`, `max_rows_per_file`: when to start the next file.
                - `commit_properties`: facts for the history of the commit, `{"job": "nightly"}`;
                  all verbs that write take them.
                - `storage_options`: settings to access the buckets of files, as for `open`.
                - `truncate_timestamps`: for Arrow data; cuts nanoseconds.

                For documents also:

                - `format`: the form of documents in files given by paths: `"ndjson"` (one in each
                  line), `"array"` (one array of them), `"json"` (one document in each file).
                - `partition_by`: partition columns, from folders (`"day DATE"`) or from a path
                  of the documents (`"day=event:at::date"`).
                - `file_column`, `loaded_at_column`: columns for the source's path and for the time
                  of the load.
                - `skip_empty`: False refuses files without a document.
                - `hints`: paths and types that must be columns, `"user.id BIGINT, a.* DOUBLE"`.

        If the table has the load id already, the result's version is that of the first load.

        Raises:
            InvalidSchema: The data do not fit the table's columns.
            InvalidJson, MalformedVariant, InvalidValue, LimitExceeded: A bad value, with its
                position: file, line and column, or the row of the data.
            UnsupportedFeature: The table needs something that only Spark can do, such as
                constraints.
            CommitConflict: Another writer changed the table in a way that conflicts with this.

        Examples:
            >>> t.append([{"id": 3, "event": {"kind": "c"}}]).rows_written
            1
        """
        return self._load(data, column, json_columns, None, options)

    def stage(
        self,
        data: Rows,
        *,
        column: str | None = None,
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> Stage:
        """Write rows as `append` does, but commit nothing: they are invisible until published.

        Check them (`Stage.scan`, `Stage.check`), then `Stage.publish` or `Stage.drop` them. The log
        does not name them meanwhile. Our vacuum keeps the files until the load is published or
        dropped; that of other engines only for the table's retention, a week by default. The first
        one to publish adds the rows; a load id (`load_id`) makes a repeat do nothing.

        Args:
            data: As for `append`.
            column: As for `append`.
            json_columns: As for `append`.
            **options: As for `append`, but for `merge_schema` and `unique_by`.

        Raises:
            InvalidValue: A load of this id is staged or published already, or there are no rows.
            InvalidSchema, InvalidJson, MalformedVariant, LimitExceeded, UnsupportedFeature: As
                `append`.
        """
        from variantlake.ingest.stage import stage_load

        self._check_moves()
        return stage_load(
            self.uri,
            lambda staging: self._load(data, column, json_columns, staging, options),
            options,
        )

    def stages(self) -> list[Stage]:
        """List the staged loads that are neither published nor dropped, oldest first."""
        from variantlake.ingest.stage import stages_of

        return stages_of(self.uri)

    @_writes
    def overwrite(
        self,
        data: Rows,
        *,
        where: Where | None = None,
        partitions: bool = False,
        expected_version: int | None = None,
        column: str | None = None,
        json_columns: Collection[str] = (),
        **options: Unpack[DocumentKeywords],
    ) -> LoadResult:
        """Replace rows of the table in one commit. Older versions stay readable.

        Args:
            data: As for `append`. Without any rows, the table or the partitions become empty.
            where: Replace only these partitions: `{"day": date(2026, 1, 2)}`, or a condition over
                partition columns as text or of `vl.path(...)`, `"day >= '2026-01-02'"`. All new
                rows must be in them. None replaces everything.
            partitions: Replace only the partitions that the new rows are in.
            expected_version: The version of the table that the new rows were made from. If another
                writer has added or removed rows since, among those to replace, CommitConflict is
                raised. None replaces rows of the newest version: give `version` of the scanned
                table if the new rows come from it.
            column: As for `append`.
            json_columns: As for `append`.
            **options: As for `append`.

        Raises:
            InvalidSchema: The data do not fit the table, or it is not partitioned this way.
            InvalidQuery: A condition that does not parse.
            InvalidValue: A row is not in the partitions of `where`, or cannot be stored.
            CommitConflict: Another writer added or removed rows among those to replace.
            MissingSource: The expected version is not in the log.
            UnsupportedFeature: As for `append`; also an append-only table, and a condition that
                only Spark supports.

        Examples:
            >>> t.overwrite([{"id": 9, "event": {}}]).version
            2
        """
        from variantlake.ingest.overwrite import Overwrite

        overwrite = Overwrite(where, partitions, expected_version)
        return self._load(data, column, json_columns, overwrite, options)

    @_writes
    def autoload(
        self,
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

        `column` is the VARIANT column for the documents, by default the only one. `storage_options`
        are settings to access the source.
        """
        from variantlake.autoloading.run import autoload

        reach_with(source, options.pop("storage_options", None))
        if options.get("column") is None:
            options["column"] = self._only_variant()
        return autoload(
            self._newest().store.uri,
            source,
            name=name,
            every=every,
            stop=stop,
            on_batch=on_batch,
            metrics_file=metrics_file,
            **options,
        )

    def loads(
        self,
        name: str | None = None,
        *,
        file: str | None = None,
        state: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """List what the autoloads of the table did with each file, up to this version.

        The columns are name, file, state, rows, bad_rows, version, time, size and error, sorted by
        the names of autoload and file. The state is one of "loaded", "empty", "failed", "retry" and
        "skipped" (too old).

        Args:
            name: The name of one autoload; None for all.
            file: A glob pattern of the file's path from the source's root: `**/*.gz`.
            state: Only files in this state.
            limit: At most this many rows.

        Raises InvalidValue for an autoload that the table does not know, an unknown state or a
        limit below 0, MalformedLog if a state file that the log names is missing or damaged.
        """
        from variantlake.autoloading.loads import LOADS, list_loads

        check_limit(limit)
        pieces = list_loads(self.snapshot, name=name, file=file, state=state)
        if limit is not None:
            pieces = first_rows(pieces, limit)
        return pa.concat_tables([LOADS.empty_table(), *pieces])

    @_writes
    def retry_loads(
        self,
        name: str | None = None,
        *,
        file: str | None = None,
        commit_properties: CommitProperties = None,
    ) -> RetryResult:
        """Let the next round of autoloads retry files that could not be read.

        Args:
            name: The name of one autoload; None for all.
            file: A glob pattern of the file's path from the source's root.
            commit_properties: As for `append`.

        Raises CommitConflict if the autoload committed a batch meanwhile, otherwise as `loads`.
        """
        from variantlake.autoloading.loads import retry_failed

        return retry_failed(self._newest(), name=name, file=file)

    @_writes
    def delete(
        self,
        where: str | Expr | None = None,
        *,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
    ) -> ChangeResult:
        """Delete rows of the newest version in one commit, without Spark.

        It skips files by bounds, and finds rows by typed columns. If the table has deletion vectors
        (`delta.enableDeletionVectors`), a file is rewritten only if it would be almost empty.

        Args:
            where: A condition, as for `scan`; rows for which it is NULL stay. None deletes all.
            dry_run: Change nothing; the result tells what would be done.
            commit_properties: As for `append`.

        Raises:
            InvalidQuery: The text does not parse, or names an unknown column.
            InvalidValue: A value that a cast in the condition fails at.
            UnsupportedFeature: An expression that only Spark supports, an append-only table, a
                feature that we do not write, or rows that would lose their ids, by name.
            CommitConflict: Another writer changed the same rows, or added rows that `where` finds.

        Examples:
            >>> t.delete("event:kind::string = 'a'").rows_deleted
            1
        """
        from variantlake.dml.delete import delete
        from variantlake.expressions.from_python import condition_text

        text = condition_text(where)
        return delete(self._newest(), text, dry_run=dry_run)

    @_writes
    def update(
        self,
        set: Mapping[str, Any],  # noqa: A002 - as SQL calls it
        where: str | Expr | None = None,
        *,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
    ) -> ChangeResult:
        """Set columns of some rows to new values in one commit, without Spark.

        `table.update({"kind": "late", "n": vl.expr("n + 1"), "who": vl.path("event:user").string(),
        "event:checked": True}, where="event:late::boolean")`. All values are computed from the old
        row.

        Args:
            set: The new values by column, or by path in a VARIANT column. Each is a Python value,
                or an expression (`vl.expr` for SQL, `vl.col`, `vl.path`). A VARIANT column and a
                path also take dicts, lists and a `vl.Variant`.
            where: As for `delete`.
            dry_run: As for `delete`.
            commit_properties: As for `append`.

        Raises:
            InvalidQuery: The text does not parse, or names an unknown column.
            InvalidValue: A value that cannot be cast, or that the column cannot hold.
            UnsupportedFeature: As for `delete`; also a table with constraints or generated columns,
                which `lake.update` supports.
            CommitConflict: As for `delete`.

        Examples:
            >>> t.update({"id": vl.col("id") + 10}, where="id = 1").rows_updated
            1
        """
        from variantlake.dml.update import update
        from variantlake.expressions.from_python import condition_text

        text = condition_text(where)
        return update(self._newest(), set, text, dry_run=dry_run)

    @_writes
    def merge(
        self,
        source: Rows,
        on: str | Expr,
        *clauses: str,
        target_alias: str = "t",
        source_alias: str = "s",
        json_columns: Collection[str] = (),
        merge_schema: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> ChangeResult:
        """Merge rows into the newest version in one commit, as Spark's MERGE does, without Spark.

        `table.merge(rows, "t.id = s.id")` updates existing rows and inserts the others. It finds
        files by bounds of the source's keys, and rows by the key columns alone.

        Args:
            source: Rows as `append` takes them: dicts, dataclasses, Arrow data, a DataFrame, a
                scan, Parquet files; not JSON files. They are read into memory.
            on: The condition under which a row of the table and one of the source match.
            *clauses: As in MERGE: `"WHEN MATCHED AND s.gone THEN DELETE"`, in their order. Without
                any, rows that match are updated and the others inserted.
            target_alias: The table's name in `on` and the clauses.
            source_alias: The source's name there.
            json_columns: Columns of the source that are JSON text, and become Variants.
            merge_schema: Add the columns that clauses write and the table does not have.
            dry_run: As for `delete`.
            commit_properties: As for `append`.
            storage_options: Settings to access the buckets of files, as for `open`.

        Raises:
            InvalidQuery: Text that does not parse or uses an unknown name; several rows of the
                source match one row of the table.
            InvalidSchema: The source has columns that no table can have.
            InvalidValue: A value that a cast fails at, or that a column cannot hold.
            UnsupportedFeature: As for `update`.
            CommitConflict: As for `delete`.

        Examples:
            >>> rows = [{"id": 2, "event": {"n": 7}}, {"id": 3, "event": {}}]
            >>> done = t.merge(rows, "t.id = s.id")
            >>> done.rows_updated, done.rows_inserted
            (1, 1)
        """
        from variantlake.dml.merge.run import merge  # loads the kernels
        from variantlake.expressions.from_python import Expr

        reach_with(source, storage_options)
        return merge(
            self._newest(),
            source,
            str(on) if isinstance(on, Expr) else on,
            clauses,
            names=(target_alias, source_alias),
            json_columns=json_columns,
            merge_schema=merge_schema,
            dry_run=dry_run,
        )

    def merge_builder(
        self,
        source: Rows,
        on: str | Expr,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
        json_columns: Collection[str] = (),
        merge_schema: bool = False,
        commit_properties: CommitProperties = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> MergeBuilder:
        """Build a MERGE whose clauses are methods, as in Delta Spark; `execute` runs it.

        `table.merge_builder(rows, "t.id = s.id").when_matched_delete("s.gone")
        .when_matched_update_all().when_not_matched_insert_all().execute()`.

        Arguments and errors as for `merge`.
        """
        from variantlake.dml.merge.builder import MergeBuilder

        def run(clauses: tuple[str, ...], dry_run: bool) -> ChangeResult:
            return self.merge(
                source,
                on,
                *clauses,
                target_alias=target_alias,
                source_alias=source_alias,
                json_columns=json_columns,
                merge_schema=merge_schema,
                dry_run=dry_run,
                commit_properties=commit_properties,
                storage_options=storage_options,
            )

        return MergeBuilder(run)

    @_writes
    def upsert(
        self,
        rows: Rows,
        key: str | Sequence[str],
        *,
        json_columns: Collection[str] = (),
        merge_schema: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> ChangeResult:
        """Replace rows that have the same key, and insert the others, in one commit.

        `table.upsert([{"id": "a", "n": 2}], key="event:id::string")`. A row whose key is NULL is
        always inserted.

        Args:
            rows: As the source of `merge`, with all columns of the table. Dicts with none of the
                table's columns are documents of its only VARIANT column. As in `append`, VARIANT
                columns also take text, structs and lists of Arrow data.
            key: Columns and paths with their types, as in `scan`; several in one text or in a list.
            json_columns: As for `append`.
            merge_schema: As for `merge`; columns that the rows lack keep their values.
            dry_run: As for `delete`.
            commit_properties: As for `append`.
            storage_options: As for `merge`.

        Raises as `merge`; InvalidQuery for two rows with one key.

        Examples:
            >>> t.upsert([{"id": 2, "event": {"n": 7}}], "id").rows_updated
            1
        """
        from variantlake.dml.merge.run import upsert  # loads the kernels

        reach_with(rows, storage_options)
        return upsert(
            self._newest(),
            rows,
            key,
            json_columns=json_columns,
            merge_schema=merge_schema,
            dry_run=dry_run,
        )

    @_writes
    def erase(
        self,
        where: str | Expr,
        *,
        purge: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties = None,
    ) -> EraseResult:
        """Erase rows so that in the end nothing below the table's folder contains them.

        It deletes the rows in one commit. It rewrites every file that has such a row, even if a
        deletion vector hides the row already, and every file that has a key which no remaining row
        of the table uses. The commit contains neither the condition nor bounds of the old files.
        Older versions still have the rows: the result tells after which time `vacuum` removes their
        files, and until when the log has bounds of them.

        Args:
            where: A condition, as for `scan`.
            purge: Do not wait: remove every other version now, its files, change files and
                quarantine files, and all of the log before the newest version. Use it only if
                nothing else uses the table: readers of older versions, readers of changes and
                running writers lose what they need, and the history starts anew.
            dry_run: Change nothing; the result tells how many rows and files there are.
            commit_properties: As for `append`.

        Raises:
            InvalidQuery: The text does not parse, or names an unknown column.
            InvalidValue: A value that a cast in the condition fails at.
            UnsupportedFeature: An expression that only Spark supports; an append-only table; a
                VARIANT inside another column; a table with row tracking, if files would be
                rewritten; with `purge` a table whose log must not be cut.
            CommitConflict: Other writers committed first in every attempt.

        Examples:
            >>> t.erase("id = 1", dry_run=True).rows_erased
            1
        """
        from variantlake.erase.erase import erase
        from variantlake.expressions.from_python import condition_text

        text = condition_text(where)
        return erase(self._newest(), text, purges=purge, dry_run=dry_run)

    @_writes
    def set_properties(
        self, properties: Mapping[str, str], *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Set table properties and add the features that they need; returns the new version.

        `{"delta.enableVariantShredding": "true"}` shreds new files, `"false"` does not.
        `{"delta.enableRowTracking": "true"}` first gives row ids to the existing files, in separate
        commits. `{"delta.columnMapping.mode": "none"}` rewrites all files with the table's current
        column names.

        Raises:
            InvalidValue: A value that the property cannot have.
            InvalidSchema: A property that does not fit the columns.
            UnsupportedFeature: A property of a feature that we do not write, or for which existing
                rows would have to be checked or rewritten.
            CommitConflict: Another writer changed the table in a way that conflicts with this.

        Examples:
            >>> t.set_properties({"owner": "me"}).version
            2
        """
        from variantlake.ddl.alter_table import set_properties

        return CommitResult(version=set_properties(self._newest(), properties))

    @_writes
    def analyze(
        self, *, dry_run: bool = False, commit_properties: CommitProperties = None
    ) -> AnalyzeResult:
        """Add missing statistics to files of other writers, from their footers.

        It adds the files again under the same paths; no row changes. With `dry_run` it commits
        nothing, and the result tells what would be done.

        Raises:
            MalformedFile, MissingSource: A file that cannot be read, by name.
            CommitConflict: Another writer changed one of the files.
            UnsupportedFeature: The table needs a feature that we do not write.

        Examples:
            >>> t.analyze(dry_run=True).dry_run
            True
        """
        from variantlake.delta.transaction.analyze import analyze

        return analyze(self._newest(), dry_run=dry_run)

    @_writes
    def unset_properties(
        self, *names: str, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Remove table properties, so that their defaults apply; returns the new version.

        Raises InvalidValue for a property that files depend on, otherwise as `set_properties`.

        Examples:
            >>> t.unset_properties("owner").version >= 1
            True
        """
        from variantlake.delta.transaction import alter

        if not names:
            raise InvalidValue("no property to remove is named")
        snapshot = self._newest()
        return _committed(snapshot, alter.unset_properties(snapshot, names))

    @property
    def contract(self) -> Contract | None:
        """The contract that new documents of the table's only VARIANT column must fulfil.

        None if it has none. Raises InvalidSchema if there are several columns: see `contracts`.

        Examples:
            >>> t.contract is None
            True
        """
        return self.contracts.get(self._only_variant())

    @property
    def contracts(self) -> dict[str, Contract]:
        """The contracts of the table's VARIANT columns, by column name."""
        from variantlake.contracts.contract import contracts

        known = contracts(self.snapshot.properties)
        fields = [(each.name, known.get(each.physical_name)) for each in self.schema.fields]
        return {name: contract for name, contract in fields if contract is not None}

    @_writes
    def set_contract(
        self,
        contract: ContractLike | None,
        *,
        column: str | None = None,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Set the contract that new documents must fulfil; returns the new version.

        Each change increases the contract's version, and the history shows it. Loads then treat
        documents that break it as bad ones. Existing rows are not checked (`check_contract` checks
        them), nor are changes of rows (`update`, `merge`).

        Args:
            contract: A JSON Schema as a dict, as JSON text, or a file with it; see `vl.Contract`.
                None removes the contract.
            column: The VARIANT column; the only one if None.
            commit_properties: As for `append`.

        Raises:
            InvalidSchema: It is no schema, has a keyword that is not checked, or the table has no
                such column.
            CommitConflict: As `set_properties`.

        Examples:
            >>> t.set_contract({"required": ["kind"]}).version >= 1
            True
        """
        from variantlake.contracts.contract import Contract
        from variantlake.ddl.alter_table import set_contract
        from variantlake.writing.table_write import TableWrite

        newest = self._newest()
        target = TableWrite.of(newest, evaluated=True, kept=True, numbered=True)
        name = target.variant_name(column)
        parsed = None if contract is None else Contract.of(contract)
        return CommitResult(version=set_contract(newest, name, parsed))

    def check_contract(
        self,
        contract: ContractLike | None = None,
        *,
        column: str | None = None,
        progress: OnProgress | None = None,
    ) -> ContractReport:
        """Check whether the rows of this version fulfil a contract; reads the whole column.

        Args:
            contract: As for `set_contract`; None is the table's own.
            column: The VARIANT column; the only one if None.
            progress: Called with the number of files read so far.

        Raises:
            InvalidSchema: As `set_contract`.
            InvalidValue: No contract is given, and the column has none.

        Examples:
            >>> t.check_contract({"type": "object"}).broken
            0
        """
        from variantlake.contracts.contract import Contract
        from variantlake.maintenance.contract_check import check_contract
        from variantlake.report.profile import variant_column

        name = variant_column(self.schema, column, self.uri)
        chosen = self.contracts.get(name) if contract is None else Contract.of(contract)
        if chosen is None:
            raise InvalidValue(
                f"the column {name!r} has no contract",
                file=self.uri,
                hint="give one: check_contract(schema)",
                cli_hint="give one: --contract FILE",
            )
        return check_contract(self.snapshot, name, chosen, progress)

    def set_clustering(
        self, *paths: str, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Set the table's clustering paths; returns the new version.

        Loads then sort each file by them, and `cluster` orders the files. This rewrites nothing.

        Args:
            paths: Paths that are typed columns (`event:kind::string`, `$.kind` if there is one
                VARIANT column) and ordinary columns, at most 4; none removes the clustering.
            commit_properties: As for `append`.

        Raises:
            InvalidSchema: Rows cannot be ordered by a path: it is not a typed column, or it is a
                partition column, a Variant, or a column that does not exist.
            InvalidPath, InvalidValue: A path that does not parse, or too many.
            CommitConflict: As `set_properties`.
        """
        if not paths:
            return self.unset_properties(CLUSTER_BY, commit_properties=commit_properties)
        for path in paths:
            if not isinstance(path, str):
                raise InvalidValue(
                    f"a clustering path is {path!r}", hint="text such as 'event:kind::string'"
                )
        return self.set_properties(
            {CLUSTER_BY: ", ".join(paths)}, commit_properties=commit_properties
        )

    @_writes
    def alter(self, change: str, *, commit_properties: CommitProperties = None) -> CommitResult:
        """Run an ALTER TABLE, given by the SQL after the table's name; returns the new version.

        `table.alter("RENAME COLUMN a TO b")`, `table.alter("ALTER COLUMN n TYPE BIGINT")`. It can
        rename, drop, add, move, describe and widen columns, make them NOT NULL or nullable, set
        their defaults, and add or remove constraints and properties. For each of these there is
        also a method. It turns on no feature that readers must support.

        Raises:
            InvalidQuery: A text of another form.
            What the method of the same name raises.

        Examples:
            >>> t.alter("ADD COLUMN note STRING").version
            2
        """
        from variantlake.sql.alter import parse_alteration

        if not isinstance(change, str):
            raise InvalidValue(f"a change of a table is {change!r}", hint="text: 'DROP COLUMN a'")
        return self._altered(parse_alteration(change))

    @_writes
    def rename_column(
        self,
        column: str,
        name: str,
        *,
        enable_column_mapping: bool = False,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Rename a column, or a field of a struct; returns the new version. No file is rewritten.

        `table.rename_column("s.x", "y")`. Partitioning, clustering, statistics, and the schema and
        hints of a VARIANT column go with the column.

        Args:
            column: Its name, or names with dots between them; in backticks if they contain dots. A
                path goes through `element` of an array, and `key` and `value` of a map.
            name: The new name alone.
            enable_column_mapping: Turn on column mapping by name in the same commit, if the table
                has none. Readers without this feature refuse the table from then on.
            commit_properties: As for `append`.

        Raises:
            InvalidSchema: The table does not have the column, or has one of the new name.
            UnsupportedFeature: The table has no column mapping, or a constraint or generated column
                uses the column.
            CommitConflict: As `set_properties`.
        """
        from variantlake.delta.transaction import alter_columns

        snapshot = self._newest()
        changes = alter_columns.rename_column(
            snapshot, column, name, enable_column_mapping=enable_column_mapping
        )
        return _committed(snapshot, changes)

    @_writes
    def drop_columns(
        self,
        *columns: str | Sequence[str],
        missing_ok: bool = False,
        enable_column_mapping: bool = False,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Drop columns, or fields of structs; returns the new version. No file is rewritten.

        The values stay in the files until `optimize` or another writer rewrites them, and older
        versions still have the columns.

        Args:
            *columns: As for `rename_column`; each may also be a list of them.
            missing_ok: Ignore columns that the table does not have.
            enable_column_mapping: As for `rename_column`.
            commit_properties: As for `append`.

        Raises:
            InvalidSchema: The table does not have the column, is partitioned or clustered by it, or
                would have no column left.
            UnsupportedFeature, CommitConflict: As `rename_column`.
        """
        from variantlake.delta.transaction import alter_columns
        from variantlake.delta.transaction.commit import commit

        snapshot = self._newest()
        changes = alter_columns.drop_columns(
            snapshot,
            [name for each in columns for name in _names(each)],
            missing_ok=missing_ok,
            enable_column_mapping=enable_column_mapping,
        )
        return CommitResult(
            version=snapshot.version if changes is None else commit(snapshot, changes)
        )

    @_writes
    def set_comment(
        self,
        comment: str | None,
        column: str | None = None,
        *,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Describe the table, or one column; returns the new version. None removes the comment.

        Raises InvalidSchema for a column that does not exist, CommitConflict.

        Examples:
            >>> t.set_comment("what people did").version
            2
        """
        from variantlake.delta.transaction import alter_columns

        snapshot = self._newest()
        if comment is not None and not isinstance(comment, str):
            raise InvalidValue(f"a comment is {comment!r}", hint="text, or None to take it away")
        if column is None:
            return _committed(snapshot, alter_columns.set_table_comment(snapshot, comment))
        return _committed(snapshot, alter_columns.set_column_comment(snapshot, column, comment))

    @_writes
    def move_column(
        self, column: str, *, after: str | None = None, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Move a column after another one, or first; returns the new version.

        A field moves within its struct. Raises InvalidSchema for a column that does not exist,
        CommitConflict.
        """
        from variantlake.delta.transaction import alter_columns

        snapshot = self._newest()
        return _committed(snapshot, alter_columns.move_column(snapshot, column, after=after))

    @_writes
    def change_type(
        self,
        column: str,
        type: str,  # noqa: A002 - as SQL calls it
        *,
        enable_type_widening: bool = False,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Give a column a wider type; returns the new version. No file is rewritten.

        `table.change_type("n", "BIGINT")`. TINYINT, SMALLINT and INT widen to longer integers,
        DOUBLE, and decimals with 10 digits before the point; BIGINT to decimals with 20; FLOAT to
        DOUBLE; DATE to TIMESTAMP_NTZ; decimals to longer ones; VARCHAR and CHAR to longer VARCHAR
        and STRING.

        Args:
            column: As for `rename_column`; the element of an array and the parts of a map too.
            type: The type as DDL.
            enable_type_widening: Turn on type widening in the same commit, if it is off. Readers
                without this feature refuse the table from then on.
            commit_properties: As for `append`.

        Raises:
            InvalidSchema: The table does not have the column, or its type does not widen to this.
            UnsupportedFeature: The table has no type widening, or a constraint or generated column
                uses the column.
            CommitConflict: As `set_properties`.
        """
        from variantlake.delta.transaction.commit import commit
        from variantlake.delta.transaction.widen import change_type

        _check_texts("a type", type)
        snapshot = self._newest()
        changes = change_type(snapshot, column, type, enable_type_widening=enable_type_widening)
        return CommitResult(
            version=snapshot.version if changes is None else commit(snapshot, changes)
        )

    @_writes
    def set_default(
        self, column: str, expression: str | None, *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Set a column's default for new rows without a value; returns the new version.

        `expression` is constant SQL (`"'unknown'"`, `"2 + 3"`), None for no default. The local
        engine must support it; through `lake.sql`, Spark must. Existing rows do not change.

        Raises:
            InvalidSchema: The column does not exist, or cannot have a default.
            InvalidQuery, InvalidValue: The expression is no constant of the column's type.
            UnsupportedFeature, CommitConflict: As `set_properties`.
        """
        from variantlake.sql.alter import Default

        _check_texts("a default", expression or "")
        return self._altered(Default(column, expression))

    @_writes
    def add_constraint(
        self, name: str, expression: str, *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Add a CHECK constraint that every row must fulfil; returns the new version.

        The local engine must support it; for `lake.add_constraint`, Spark must. NULL does not
        fulfil it. From then on, writing rows to the table needs Spark.

        Raises:
            InvalidQuery: The expression is no condition.
            InvalidValue: A row breaks it, or the table has one of this name.
            UnsupportedFeature, CommitConflict: As `set_properties`.
        """
        from variantlake.sql.alter import AddConstraint

        _check_texts("a constraint", name, expression)
        return self._altered(AddConstraint(name, expression))

    @_writes
    def drop_constraint(
        self, name: str, *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Remove a CHECK constraint; returns the new version.

        Raises InvalidValue for one that does not exist, otherwise as `set_properties`.
        """
        from variantlake.delta.transaction import alter

        snapshot = self._newest()
        return _committed(snapshot, alter.drop_constraint(snapshot, name))

    @_writes
    def set_not_null(
        self, column: str, *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Make a column without NULLs NOT NULL; returns the new version.

        Raises InvalidSchema for a column that does not exist, InvalidValue if a row has NULL there,
        UnsupportedFeature for a field of a struct, CommitConflict.
        """
        from variantlake.sql.alter import NotNull

        return self._altered(NotNull(column, True))

    @_writes
    def drop_not_null(
        self, column: str, *, commit_properties: CommitProperties = None
    ) -> CommitResult:
        """Allow NULL in a column or a field of a struct; returns the new version.

        Raises InvalidSchema for a column that does not exist, otherwise as `set_properties`.
        """
        from variantlake.sql.alter import NotNull

        return self._altered(NotNull(column, False))

    @_writes
    def add_column(
        self,
        column: str,
        type: str | None = None,  # noqa: A002 - as SQL calls it
        *,
        commit_properties: CommitProperties = None,
    ) -> CommitResult:
        """Add columns at the end, NULL in existing rows; returns the new version.

        Args:
            column: DDL of one or more columns, `note STRING`. A VARIANT column adds its features.
            type: The type, if `column` is only the name of one column.
            commit_properties: As for `append`.

        Raises:
            InvalidSchema: The DDL does not parse, the column exists already or is NOT NULL.
            UnsupportedFeature, CommitConflict: As `set_properties`.

        Examples:
            >>> t.add_column("note STRING").version
            2
        """
        from variantlake.delta.transaction import alter

        snapshot = self._newest()
        ddl = column if type is None else f"{identifier(column)} {type}"
        changes = alter.add_columns(snapshot, parse_table_ddl(ddl))
        return _committed(snapshot, changes)

    def drift(self, column: str | None = None, *, progress: OnProgress | None = None) -> Drift:
        """Report how much is in residuals, by version, and which paths would be worth a column.

        Reads the footers of at most a few hundred files and a sample of rows; writes nothing.

        Args:
            column: One VARIANT column; None for all.
            progress: Called now and then with the progress.

        Raises:
            InvalidSchema: There is no such VARIANT column.
            MalformedFile, MissingSource: A file that cannot be read, by name.

        Examples:
            >>> len(t.drift().versions)
            1
        """
        from variantlake.maintenance.reshredding.drift import drift

        return drift(self.snapshot, column, progress=progress)

    @_writes
    def cluster(
        self,
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

        A run rewrites the files whose bounds in the log overlap most into files that do not
        overlap. It stops at the budget, or when a rewrite would save queries less than a fifth of
        what they read. So a second run finds nothing to do.

        Args:
            where: Only files that may have a match: a condition over partition columns and paths.
            budget: The most bytes of files to rewrite; None is twice the bytes that no run has
                ordered yet.
            target_file_size: The approximate size of the new files.
            dry_run: Do nothing; the result tells what would be done.
            digest: Compare digests of the rows read and written; a difference raises before
                anything is committed.
            progress: Called a few times a second while files are rewritten.
            commit_properties: As for `append`.

        Raises:
            InvalidValue: The table has no clustering; see `set_clustering`.
            InvalidSchema: A clustering path is not a typed column.
            UnsupportedFeature: The table needs a feature that we do not write, by name.
            InvalidQuery, InvalidPath: A condition that does not parse, or uses an unknown name.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
            CommitConflict: Other writers changed the same files first in every attempt.
        """
        # Loads the kernels, which a table does without.
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.clustering.cluster import ClusterOptions, cluster

        options = ClusterOptions.of(where, budget, target_file_size, digest=digest)
        return cluster(self._newest(), run_in_threads, options, dry_run=dry_run, progress=progress)

    @_writes
    def reshred(
        self,
        shredding: str | Mapping[str, str] | None = None,
        where: str | Expr | None = None,
        *,
        dry_run: bool = False,
        digest: bool = True,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> ReshredResult:
        """Change which paths are typed columns, and rewrite the files in which a value moves.

        The table's shredding schema changes first, in a separate commit. A file is rewritten if a
        value in it moves into a column or out of one; the other files stay. No row changes.

        Args:
            shredding: DDL, or DDL by VARIANT column; None learns it from a sample of the table.
            where: Only files that may have a match: a condition over partition columns and paths.
            dry_run: Do nothing; the result tells what would be done.
            digest: Compare digests of the rows read and written; a difference raises before
                anything is committed.
            progress: Called a few times a second while files are rewritten.
            commit_properties: As for `append`.

        Raises:
            InvalidSchema: DDL that does not parse or must not be written, a column that is no
                VARIANT column, or a schema without a clustering path of the table.
            UnsupportedFeature: The table forbids shredding, or needs a feature that we do not
                write.
            InvalidQuery, InvalidPath: A condition that does not parse, or uses an unknown name.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
            CommitConflict: Other writers changed the same files first in every attempt.

        Examples:
            >>> t.reshred("n BIGINT", dry_run=True).dry_run
            True
        """
        from variantlake.expressions.from_python import condition_text

        # Loads the kernels, which a table does without.
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.reshredding.reshred import ReshredOptions, reshred

        condition = condition_text(where)
        options = ReshredOptions(shredding, condition, digest=digest)
        return reshred(self._newest(), run_in_threads, options, dry_run=dry_run, progress=progress)

    @_writes
    def unshred(
        self,
        *,
        dry_run: bool = False,
        digest: bool = True,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> ReshredResult:
        """Store all Variants whole, for readers without shredding; no row changes.

        This turns shredding off (`delta.enableVariantShredding`), so rows can no longer be ordered
        by paths of Variants. `drop_feature` removes the feature itself.

        Raises as `reshred`.

        Examples:
            >>> t.unshred(dry_run=True).dry_run
            True
        """
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.reshredding.reshred import ReshredOptions, reshred

        options = ReshredOptions(unshred=True, digest=digest)
        return reshred(self._newest(), run_in_threads, options, dry_run=dry_run, progress=progress)

    @_writes
    def drop_feature(
        self,
        name: str = "variantShredding",
        *,
        truncate_history: bool = False,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> ReshredResult:
        """Remove a feature from the table's protocol, for readers and writers that lack it.

        First the table stops using the feature. For `variantShredding`, the files are unshredded,
        see `unshred`. For `deletionVectors`, files with deleted rows are rewritten; for
        `typeWidening`, files with values of older types; for `columnMapping`, all files, with the
        table's current column names. For `rowTracking`, row ids are removed. For
        `inCommitTimestamp` and `v2Checkpoint`, their properties are turned off. For
        `checkConstraints`, the constraints must be dropped before. `vacuumProtocolCheck`,
        `materializePartitionColumns` and `domainMetadata` can be dropped as well.

        If readers must support the feature, older versions still need it. The feature
        `checkpointProtection`, which only writers must support, replaces it and keeps their
        checkpoints. Other writers must wait: a concurrent append makes this fail.

        Args:
            name: The feature's name in the table's protocol.
            truncate_history: Remove the versions that use a reader feature from the log, instead of
                protecting them. The first call ends the use, and raises CommitConflict. A call
                after `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours) does the rest.
                Only this removes `checkpointProtection`.
            dry_run: Do nothing; the result tells what would be rewritten.
            progress: Called a few times a second while files are rewritten.
            commit_properties: As for `append`.

        Raises:
            InvalidValue: The table does not have the feature.
            UnsupportedFeature: A feature that cannot be dropped, or that the table still needs.
            CommitConflict: Another writer changed the table meanwhile; repeat. Also while versions
                that use the feature must stay.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
        """
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.drop_feature import drop_feature

        return drop_feature(
            self._newest(),
            name,
            run_in_threads,
            truncate_history=truncate_history,
            dry_run=dry_run,
            progress=progress,
        )

    def digest(
        self,
        where: str | Expr | None = None,
        *,
        progress: OnProgress | None = None,
    ) -> Digest:
        """Compute a hash of the table's rows that does not depend on their order, files or layout.

        Two tables whose columns have the same names (physical names with column mapping) and whose
        rows have the same values have the same digest: `digest.hex`, 32 hexadecimal digits, and
        `digest.rows`. Numbers in Variants are hashed by value, so 7 and 7.00 are equal; all other
        types differ. It finds accidents, but does not resist someone who looks for collisions.

        Args:
            where: Only rows that fulfil this condition, as for `scan`.
            progress: Called now and then with the progress.

        Raises:
            MalformedFile, MalformedVariant: A file that breaks a specification, with its row.
            MissingSource: A file that does not exist.
            InvalidQuery, UnsupportedFeature: As `scan`.

        Examples:
            >>> t.digest().rows
            2
        """
        from variantlake.expressions.from_python import condition_text
        from variantlake.maintenance.compare_versions import digest_rows

        return digest_rows(self.snapshot, condition_text(where), progress)

    def check_rewrite(
        self,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        progress: OnProgress | None = None,
    ) -> VersionComparison:
        """Check whether two versions have the same rows, and report rows that differ.

        It reads only files that one of the two versions lacks. Without arguments, it compares the
        last commit that rewrote files without changing rows (`OPTIMIZE` and the like, of any
        engine) with the version before it. With `from_version` alone, it compares that with this
        handle's version; with `to_version` alone, that with the version before it.

        Returns:
            `equal`, the digests `before` and `after` of the rows in these files, and in
            `differences` up to ten rows (`version`, `file`, `row`) that have no partner.

        Raises:
            InvalidQuery: No commit in the log only rewrote files.
            InvalidValue: `from_version` is after `to_version`.
            MissingSource: There is no such version, or vacuum has removed a file of it.
            MalformedFile, MalformedVariant: As `digest`.
        """
        from variantlake.maintenance.compare_versions import check_rewrite

        return check_rewrite(self.snapshot, from_version, to_version, progress)

    @_writes
    def optimize(
        self,
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
        """Join small files, and rewrite files with many deleted rows; no row changes.

        Readers of older versions still find their files. Concurrent appends never conflict with it.
        If another writer removes a file meanwhile, or deletes rows of it, the remaining files are
        planned again.

        Args:
            where: Only files that may have a match: a condition over partition columns and paths.
            target_file_size: Files below three quarters of it are joined up to about this size.
            max_deleted_share: The share of deleted rows above which a file is rewritten.
            purge: Only remove deleted data: rewrite files with deleted rows or dropped columns.
                Reads the footer of every file.
            dry_run: Do nothing; the result tells what would be done.
            digest: Compare digests of the rows read and written; a difference raises before
                anything is committed.
            progress: Called a few times a second while files are rewritten.
            commit_properties: As for `append`.

        Raises:
            UnsupportedFeature: The table needs a feature that we do not write, by name.
            InvalidQuery, InvalidPath: A condition that does not parse, or uses an unknown name.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
            CommitConflict: Other writers changed the same files first in every attempt.

        Examples:
            >>> t.optimize().files_written  # one file is not joined
            0
        """
        from variantlake.expressions.from_python import condition_text

        # Loads the kernels, which a table does without.
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.optimize import optimize
        from variantlake.maintenance.plan_compaction import CompactionOptions

        return optimize(
            self._newest(),
            run_in_threads,
            where=condition_text(where),
            options=CompactionOptions.of(target_file_size, max_deleted_share, purge=purge),
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )

    @_writes
    def vacuum(
        self,
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
        """Remove files below the table's folder that no version within the retention needs.

        It removes data files, deletion vectors and change files that left the table, files that
        killed loads and rewrites left behind, and folders that are empty then. It removes only
        files that are older than the retention, and none of the log. Older versions cannot be read
        afterwards.

        Args:
            retention: Hours, or a timedelta; None is the table's own
                (`delta.deletedFileRetentionDuration`, a week if it is not set).
            dry_run: Remove nothing; the result tells what would go.
            force: Allow a retention that is shorter than the table's own. Use it only if nothing
                else uses the table: readers of older versions and running writers lose their files.
            quarantine: Also remove old quarantine files of committed loads.
            lite: Use the log alone and list no folder, as Delta's VACUUM LITE: remove files that
                left the table, and keep files that never were in the log. For large tables that are
                vacuumed often. The log must reach back to version 0 or to an earlier vacuum.
            on_file: Called with each file (`path`, `size`, `kind`) before any is removed.
            progress: Called now and then with the progress.
            commit_properties: As for `append`.

        Raises:
            InvalidValue: A retention that is invalid or too short; with `lite`, a log that does not
                reach back far enough.
            StoreFailed: Files could not be deleted, by name; the others are gone.
            CommitConflict: Another writer changed the protocol or the properties meanwhile; nothing
                is gone.
            UnsupportedFeature: The table needs a feature that we do not write.

        Examples:
            >>> t.vacuum(dry_run=True).files_unneeded
            0
        """
        from variantlake.maintenance.vacuuming.vacuum import vacuum

        return vacuum(
            self._newest(),
            retention,
            dry_run=dry_run,
            force=force,
            quarantine=quarantine,
            lite=lite,
            on_file=on_file,
            progress=progress,
        )

    @_writes
    def restore(
        self,
        version: int | str | None = None,
        *,
        timestamp: Time | None = None,
        dry_run: bool = False,
        missing: Missing = "refuse",
        progress: OnProgress | None = None,
        commit_properties: CommitProperties = None,
    ) -> RestoreResult:
        """Make an older version the newest one, in one commit: rows, schema, properties.

        Files of both versions stay as they are. Newer features, the progress of
        applications and the history stay. The versions in between can still be read.

        Args:
            version: The version to go back to, by number or name.
            timestamp: The version of this time instead; without a zone, it is in UTC.
            dry_run: Commit nothing; the result tells what would be done, and which files are gone.
            missing: What to do if files of the version are gone: "refuse", or "skip" to leave out
                the rows of these files.
            progress: Called now and then with the progress.
            commit_properties: As for `append`.

        Raises:
            MissingSource: There is no such version, or files of it are gone, by name.
            InvalidQuery: No version is as old as `timestamp`, or all are older.
            InvalidValue: Neither a version nor a time is given, or both.
            CommitConflict: Another writer changed the table meanwhile, or a vacuum may be removing
                files of the version; nothing was committed.
            UnsupportedFeature: The version needs a feature that we do not write, or the table is
                append-only.

        Examples:
            >>> t.restore(0).version
            2
        """
        from variantlake.maintenance.restore import restore

        return restore(
            self._newest(),
            version,
            timestamp=timestamp,
            dry_run=dry_run,
            missing=missing,
            progress=progress,
        )

    @_writes
    def tag(
        self,
        name: str,
        version: int | None = None,
        *,
        move: bool = False,
        commit_properties: CommitProperties = None,
    ) -> NamedVersion:
        """Give a version a name: `table.tag("audit-2026")`, `Table.open(uri, "audit-2026")`.

        The version stays readable until its name is removed: our vacuum keeps its files, and our
        log cleanup keeps the log from there on. Vacuums of other engines ignore names, so keep
        `delta.deletedFileRetentionDuration` long if they vacuum. The table gets the writer feature
        `domainMetadata` if it lacks it.

        Args:
            name: Letters, digits, dots, dashes and underscores; not a number.
            version: The version; None is that of this handle.
            move: Move the name to this version if another one has it.
            commit_properties: As for `append`.

        Raises:
            InvalidValue: The name is invalid, or another version has it.
            MissingSource: There is no such version, or a vacuum has removed files of it.
            CommitConflict: Another writer gave the name meanwhile, or a vacuum may be removing
                files of the version.
            UnsupportedFeature: The table needs a feature that we do not write.

        Examples:
            >>> t.tag("audit").version
            1
        """
        from variantlake.maintenance.name_versions import name_version

        number = self.version if version is None else version
        return name_version(self._newest(), name, number, move=move)

    @_writes
    def untag(self, name: str, *, commit_properties: CommitProperties = None) -> NamedVersion:
        """Remove a version's name, so that it may be vacuumed like others; returns what it named.

        Raises MissingSource if no version has the name, otherwise as `tag`.
        """
        from variantlake.maintenance.name_versions import remove_name

        return remove_name(self._newest(), name)

    def tags(self) -> list[NamedVersion]:
        """List the names that versions have, as of this version, oldest version first.

        Each has `name`, `version`, and `time`, when the version got the name.

        Examples:
            >>> t.tags()
            []
        """
        return named_versions(self.snapshot.domains.values())

    @takes_commit_properties
    def clone(
        self,
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
        """Make another table with the rows, schema and properties of a version of this one.

        A shallow clone refers to this table's files where they are. It takes hardly any time or
        space, and changes of the clone change nothing here, but a vacuum of this table may break
        it. A deep clone copies the files. Another deep clone to the same place copies only missing
        files, also after an interruption. The clone's history starts anew. Tags and the progress of
        applications are not cloned, and rows get new ids.

        Args:
            target: The clone's location; only an earlier deep clone of this table may be there.
            deep: Copy the files.
            version: The version to clone, by number or name; None is that of this handle.
            timestamp: The version of this time instead; without a zone, it is in UTC.
            dry_run: Do nothing; the result tells what would be done.
            progress: Called now and then with the progress.
            commit_properties: As for `append`.
            storage_options: Settings to access the target's bucket, as for `open`.

        Raises:
            InvalidValue: Another table is there, or the clone was changed since.
            MissingSource: There is no such version, or a file of it is gone.
            UnsupportedFeature: The table needs a feature that we do not write.
            CommitConflict: A table was made there meanwhile.

        Examples:
            >>> t.clone("copy", deep=True).files_copied
            1
        """
        from variantlake.maintenance.cloning.clone import clone
        from variantlake.maintenance.restore import version_of

        if not isinstance(target, str | os.PathLike):
            raise InvalidValue(f"a clone's place is a path or URL, not {target!r:.60}")
        reach_with(target, storage_options)
        source = self.snapshot
        if version is not None or timestamp is not None:
            source = version_of(source, version, timestamp)
        return clone(source, os.fspath(target), deep=deep, dry_run=dry_run, progress=progress)

    def health(self, *, orphans: bool = False) -> Health:
        """Find what makes this version of the table slow or large, each finding with a remedy.

        It checks small files, overlap along clustering paths, deleted rows, values in residuals,
        files without statistics, the log and its checkpoints. All of it comes from the log; it
        reads no data file. `orphans` also lists the folder for files that a vacuum would remove.

        Raises:
            MalformedLog, StoreFailed: A log that cannot be read.

        Examples:
            >>> t.health().version
            1
        """
        from variantlake.maintenance.health import health

        return health(self.snapshot, orphans=orphans)

    @_writes
    def checkpoint(self) -> CommitResult:
        """Write a checkpoint of the newest version, from which readers then start.

        Commits write one every `delta.checkpointInterval` versions; this is for a log whose writers
        write none. Raises as `open` for a log that cannot be read, StoreFailed.

        Examples:
            >>> t.checkpoint().version
            1
        """
        from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint

        return CommitResult(version=write_checkpoint(self._newest().store))

    def _altered(self, change: Alteration) -> CommitResult:

        from variantlake.ddl.alter_table import alter_table
        from variantlake.ddl.local_checks import LocalChecks
        from variantlake.sql.alter import DropFeature

        if isinstance(change, DropFeature):
            done = self.drop_feature(change.name, truncate_history=change.truncates)
            return CommitResult(version=done.version or self.version)
        version = alter_table(self._newest(), change, LocalChecks(), always_commits=False)
        return CommitResult(version=version)

    def _current(self) -> _Version:
        """Return the handle's version; after a write, the newest. Raises TableReplaced."""
        if self._has_written:
            # Reset it first, because a write of another thread may end meanwhile.
            self._has_written = False
            self._newest()
        return self._state

    def _newest(self) -> Snapshot:
        """Move to the newest version, on which a write is based. Raises TableReplaced."""
        last = self._state.snapshot
        newest = last.refresh()
        check_same_table(last, newest)
        if newest is not last:
            self._state = _Version(newest)
        return newest

    def _check_moves(self) -> None:
        if self._is_fixed:
            raise InvalidValue(
                f"this handle is fixed at version {self.version}, for reading",
                file=self.uri,
                hint="vl.Table.open(location) without a version writes; restore brings it back",
            )

    def _load(
        self,
        data: Rows,
        column: str | None,
        json_columns: Collection[str],
        overwrite: Overwrite | Staging | None,
        options: DocumentKeywords,
    ) -> LoadResult:

        from variantlake.ingest.append import append_arrow
        from variantlake.ingest.inputs import read_input, table_names
        from variantlake.ingest.local_run import ingest_here
        from variantlake.ingest.sources.sources import Documents
        from variantlake.writing.options.keywords import names_of
        from variantlake.writing.options.load_options import LoadOptions

        newest = self._newest()
        given = data.scan() if isinstance(data, Table) else data
        reach_with(given, options.pop("storage_options", None))
        form = options.pop("format", None)
        json_columns = table_names(names_of("json_columns", json_columns), newest.schema)
        with read_input(
            given, newest.schema, column, json_columns=json_columns, format=form
        ) as rows:
            if isinstance(rows, Documents):
                return ingest_here(
                    rows,
                    self.uri,
                    column=column or self._only_variant(),
                    overwrite=overwrite,
                    snapshot=newest,
                    **options,
                )
            return append_arrow(
                rows,
                newest,
                json_columns=json_columns,
                merge_schema=options.pop("merge_schema", False),
                overwrite=overwrite,
                options=LoadOptions.of(**cast("LoadKeywords", options)),
            )

    def _only_variant(self) -> str:
        names = [f.name for f in self.schema.fields if isinstance(f.type, VariantType)]
        if len(names) != 1:
            raise InvalidSchema(
                f"the table has {len(names)} VARIANT columns",
                file=self.uri,
                hint="name the one for the documents with column=",
            )
        return names[0]


@dataclass(frozen=True, slots=True)
class _Version:
    """The version of a handle, with caches of what its reads have decoded and planned."""

    snapshot: Snapshot
    decoded: DecodedLog = field(default_factory=DecodedLog)
    prepared: PreparedQueries = field(default_factory=PreparedQueries)


def _check_texts(what: str, *given: object) -> None:
    for each in given:
        if not isinstance(each, str):
            raise InvalidValue(f"{what} is text, not {each!r:.60}")


def _committed(snapshot: Snapshot, changes: Changes) -> CommitResult:

    from variantlake.ddl.alter_table import commit_if_changed

    return CommitResult(version=commit_if_changed(snapshot, changes))


def _opened_again(cls: type[Table], snapshot: Snapshot, is_fixed: bool) -> Table:
    return cls(snapshot, is_fixed=is_fixed)


def _columns(schema: object) -> StructType:

    from variantlake.ingest.encode.rows import given_schema

    if isinstance(schema, str):
        return parse_table_ddl(schema)
    if isinstance(schema, pa.Schema):
        return given_schema(schema, ())
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, Mapping) and all(isinstance(each, str) for each in schema.values()):
        return parse_table_ddl(", ".join(f"{identifier(str(k))} {v}" for k, v in schema.items()))
    raise InvalidValue(
        f"{describe_type(schema)} is not a schema",
        hint="give columns as text, 'event VARIANT, day DATE', or as an Arrow schema",
    )


def _schemas(shredding: object, columns: StructType) -> dict[str, str]:
    """Return the properties for a user's shredding schemas, by column or for the only one."""
    variants = {each.name: each for each in columns.fields if isinstance(each.type, VariantType)}
    if isinstance(shredding, str):
        if len(variants) != 1:
            raise InvalidSchema(
                f"the table has {len(variants)} VARIANT columns",
                hint="give DDL by column: {'event': 'kind STRING'}",
                cli_hint="put the name of the column and = before each DDL",
            )
        shredding = dict.fromkeys(variants, shredding)
    if not isinstance(shredding, Mapping | None):
        raise InvalidValue(f"shredding is {shredding!r:.60}", hint="DDL, or DDL by VARIANT column")
    if unknown := [name for name in shredding or {} if name not in variants]:
        raise InvalidSchema(f"{unknown[0]!r} is not a VARIANT column of the table")
    return {
        SCHEMA_PREFIX + variants[name].physical_name: format_ddl(parse_ddl(text))
        for name, text in (shredding or {}).items()
    }


def _clustering(given: str | Sequence[str] | None, schema: StructType) -> Sequence[str]:
    """Return a user's clustering columns and paths, given as names or one text with commas."""
    if isinstance(given, str) and schema.get(given) is None:
        return split_paths(given)
    return _names(given)


def _names(given: str | Sequence[str] | None) -> Sequence[str]:
    """Return a user's column names: one, several or none."""
    names = (given,) if isinstance(given, str) else given or ()
    if isinstance(names, Sequence) and all(isinstance(name, str) for name in names):
        return names
    raise InvalidValue(f"columns are named by text or a list of it, not {given!r:.60}")
