"""Run statements about a whole table without Delta Spark, but with its result columns."""

from __future__ import annotations

import datetime as dt
import functools
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegralType, StringType, StructType, TimestampType

from variantlake.delta.log.files.logical_files import bytes_of
from variantlake.delta.log.log_segment import has_log
from variantlake.delta.log.snapshot import HistoryEntry, Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.clustering import clustering_columns, clustering_names
from variantlake.delta.schema.columns_by_path import field_path
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.transaction.alter import set_properties
from variantlake.delta.transaction.alter_columns import after
from variantlake.delta.transaction.analyze import analyze
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.manifests import MODE as MANIFESTS
from variantlake.delta.transaction.manifests import write_manifests
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.dml.row_change import check_not_append_only
from variantlake.errors import (
    CommitConflict,
    InvalidQuery,
    InvalidSchema,
    NotADeltaTable,
    UnsupportedFeature,
)
from variantlake.maintenance.cloning.clone import CloneResult, clone
from variantlake.maintenance.restore import restore, version_of
from variantlake.maintenance.vacuuming.vacuum import vacuum
from variantlake.quoting import quote_identifier, quote_string
from variantlake.scan.table_names import files_matching
from variantlake.spark.lake.optimize_metrics import OPTIMIZE, optimize_metrics
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.query.names import delta_name
from variantlake.spark.query.session_queries import not_a_timestamp
from variantlake.spark.session.refusals import or_invalid
from variantlake.spark.session.settings import vacuums_young_files
from variantlake.sql import upkeep as parts
from variantlake.storage.opening import open_store
from variantlake.storage.store import as_hadoop
from variantlake.units import EPOCH
from variantlake.writing.options.file_sizes import CLUSTERED_FILE_BYTES, TARGET_FILE_BYTES

if TYPE_CHECKING:
    from variantlake.maintenance.rewrite.run import RewriteResult

_HISTORY = (
    "version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING,"
    " operationParameters MAP<STRING, STRING>, job STRUCT<jobId: STRING, jobName: STRING,"
    " jobRunId: STRING, runId: STRING, jobOwnerId: STRING, triggerType: STRING>,"
    " notebook STRUCT<notebookId: STRING>, clusterId STRING, readVersion BIGINT,"
    " isolationLevel STRING, isBlindAppend BOOLEAN, operationMetrics MAP<STRING, STRING>,"
    " userMetadata STRING, engineInfo STRING"
)
_DETAIL = (
    "format STRING, id STRING, name STRING, description STRING, location STRING,"
    " createdAt TIMESTAMP, lastModified TIMESTAMP, partitionColumns ARRAY<STRING>,"
    " clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT,"
    " properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT,"
    " tableFeatures ARRAY<STRING>"
)
_RESTORE = (
    "table_size_after_restore BIGINT, num_of_files_after_restore BIGINT, num_removed_files BIGINT,"
    " num_restored_files BIGINT, removed_files_size BIGINT, restored_files_size BIGINT"
)
_CLONE = (
    "source_table_size BIGINT, source_num_of_files BIGINT, num_removed_files BIGINT,"
    " num_copied_files BIGINT, removed_files_size BIGINT, copied_files_size BIGINT"
)
_COLUMNS = (
    "col_name STRING NOT NULL COMMENT 'name of the column',"
    " data_type STRING NOT NULL COMMENT 'data type of the column',"
    " comment STRING COMMENT 'comment of the column'"
)
_FACTS = (
    "info_name STRING NOT NULL COMMENT 'name of the column info',"
    " info_value STRING NOT NULL COMMENT 'value of the column info'"
)
_KEYS = "key STRING NOT NULL, value STRING NOT NULL"


class TableStatements:
    """Runs such statements over the tables of one session."""

    def __init__(self, session: LakeSession) -> None:
        self._session = session

    def run(self, location: str, text: parts.Upkeep, source: str | None) -> DataFrame:
        """Run a statement, and return Delta Spark's rows. `source` is the table to clone."""
        match text:
            case parts.CloneTable():
                return self._clone(location, text, source or "")
            case parts.VacuumTable():
                return self._vacuum(location, text)
            case parts.OptimizeTable():
                return self._optimize(location, text)
            case parts.TruncateTable():
                _truncate(self._snapshot(location))
                return self._rows([], "")
            case parts.ShowPartitions(_, where):
                return self._partitions(self._snapshot(location), where)
            case parts.RefreshTable():
                return self._rows([], "")  # each query reads the newest version
            case parts.RestoreTable():
                return self._restore(location, text)
            case parts.AnalyzeTable():
                analyze(self._snapshot(location))
                return self._rows([], "")
            case parts.GenerateManifest(_, mode):
                _generate(self._snapshot(location), mode)
                return self._rows([], "")
            case parts.ConvertToDelta(_, partitions):
                self._convert(location, partitions)
                return self._rows([], "")
            case parts.DropTable(table, missing_ok):
                # As in Delta Spark, a table named by its path is in no catalog: nothing to drop.
                if not missing_ok and not has_log(open_store(location)):
                    raise NotADeltaTable(f"there is no table {table}")
                return self._rows([], "")
        return self._described(self._snapshot(location), text)

    def _described(self, snapshot: Snapshot, text: parts.Upkeep) -> DataFrame:
        match text:
            case parts.DescribeHistory(_, limit):
                return self._rows(list(map(_history_row, snapshot.history(limit))), _HISTORY)
            case parts.DescribeDetail():
                return self._rows([_detail_row(snapshot)], _DETAIL)
            case parts.DescribeColumns(_, extended):
                return self._rows(_column_rows(snapshot, extended=extended), _COLUMNS)
            case parts.DescribeColumn(_, column):
                return self._rows(_column_facts(snapshot, column), _FACTS)
            case parts.ShowColumns():
                names = [(field.name,) for field in snapshot.schema.fields]
                return self._rows(names, "col_name STRING")
            case parts.ShowProperties(_, key):
                return self._rows(_property_rows(snapshot, key), _KEYS)
        raise AssertionError(text)

    def _snapshot(self, location: str) -> Snapshot:
        return self._session.tables.open(location).snapshot

    def _rows(self, rows: Sequence[Any], ddl: str) -> DataFrame:
        schema: Any = ddl or StructType([])
        return self._session.spark.createDataFrame(rows, schema)

    def _at(self, location: str, moment: parts.Moment) -> Snapshot:
        """Return the version at a moment; without one, the newest."""
        newest = self._snapshot(location)
        if moment == parts.Moment():
            return newest
        return version_of(newest, moment.version, self.time_of(moment.timestamp))

    def time_of(self, text: str | None) -> dt.datetime | None:
        """Evaluate a timestamp expression in the session's time zone; None for None."""
        return None if text is None else self._time_in(text)

    def end_of_range(self, text: str | None) -> tuple[int | None, dt.datetime | None]:
        """Evaluate one end of a range of versions or times; returns the one or the other.

        Raises InvalidQuery for an expression that is no constant, and for one of another type.
        """
        if text is None or text.isdecimal():
            return (None if text is None else int(text)), None
        given = or_invalid(lambda: self._session.spark.sql(f"SELECT ({text}) AS at"), {})
        type_ = given.schema[0].dataType
        if isinstance(type_, StringType | TimestampType):
            return None, self._time_in(text)
        (row,) = given.collect()
        if not isinstance(type_, IntegralType) or row.at is None:
            raise InvalidQuery(
                f"{text} is {type_.simpleString()}, not a version or a time",
                hint="a version is a whole number, a time a TIMESTAMP or a text",
            )
        return row.at, None

    def _time_in(self, text: str) -> dt.datetime:
        query = f"SELECT unix_micros(try_cast(({text}) AS TIMESTAMP)) AS at"
        (row,) = self._session.spark.sql(query).collect()
        if row.at is None:
            raise not_a_timestamp(text)
        return EPOCH + dt.timedelta(microseconds=row.at)

    def _vacuum(self, location: str, text: parts.VacuumTable) -> DataFrame:
        snapshot, paths = self._snapshot(location), list[str]()
        store = snapshot.store
        vacuum(
            snapshot,
            text.hours,
            dry_run=text.dry_run,
            lite=text.lite,
            force=vacuums_young_files(self._session.spark),
            on_file=(lambda file: paths.append(store.join(file.path))) if text.dry_run else None,
        )
        found = paths if text.dry_run else [as_hadoop(store.uri)]
        return self._rows([(path,) for path in found], "path STRING")

    def _optimize(self, location: str, text: parts.OptimizeTable) -> DataFrame:
        # Loads the kernels, which queries do without.
        from variantlake.maintenance.clustering.cluster import ClusterOptions, cluster
        from variantlake.maintenance.optimize import optimize
        from variantlake.maintenance.plan_compaction import MAX_DELETED_SHARE, CompactionOptions

        started = time.time_ns() // 1_000_000
        snapshot = self._snapshot(location)
        chosen = files_matching(snapshot, text.where)(snapshot)
        considered = snapshot.files.num_rows if chosen is None else len(chosen)
        run = self._session.rewriter(snapshot)
        done: RewriteResult
        clustered = False
        if text.full and not _is_clustered(snapshot):
            raise InvalidQuery(
                "OPTIMIZE ... FULL is for clustered tables, and this one is not clustered",
                hint="OPTIMIZE alone joins its small files; ALTER TABLE ... CLUSTER BY clusters it",
            )
        if text.z_order and _is_clustered(snapshot):
            raise UnsupportedFeature(
                "the table is clustered, and has its order by that",
                hint="OPTIMIZE without ZORDER BY orders its rows; ALTER TABLE ... CLUSTER BY NONE"
                " ends that",
            )
        if text.z_order or (_is_clustered(snapshot) and not text.purges):
            options = ClusterOptions.of(text.where, None, CLUSTERED_FILE_BYTES, digest=True)
            done = cluster(snapshot, run, replace(options, by=text.z_order))
            clustered = bool(done.versions)
        if not clustered:  # clustering may leave small files
            compaction = CompactionOptions.of(
                TARGET_FILE_BYTES, MAX_DELETED_SHARE, purge=text.purges
            )
            done = optimize(
                snapshot, run, where=text.where, options=compaction, z_order=text.z_order
            )
        ended = time.time_ns() // 1_000_000
        metrics = optimize_metrics(snapshot, done, considered, started, ended)
        return self._rows([{"path": as_hadoop(snapshot.store.uri), "metrics": metrics}], OPTIMIZE)

    def _restore(self, location: str, text: parts.RestoreTable) -> DataFrame:
        moment = text.moment
        time = self.time_of(moment.timestamp)
        newest = self._snapshot(location)
        done = restore(newest, moment.version, timestamp=time)
        if done.restored_version == newest.version:
            return self._rows([], _RESTORE)
        row = (
            done.table_bytes,
            done.table_files,
            done.files_removed,
            done.files_restored,
            done.bytes_removed,
            done.bytes_restored,
        )
        return self._rows([row], _RESTORE)

    def _convert(self, location: str, partitions: str) -> None:
        """Convert a folder of Parquet files in place; does nothing if it is a table already."""
        from variantlake.ingest.conversion.folders import convert_folder
        from variantlake.spark.load.ingest import convert

        if has_log(open_store(location)):
            return
        if partitions:

            @functools.cache
            def moment(text: str) -> dt.datetime:
                return self._time_in(quote_string(text))

            convert_folder(location, parse_table_ddl(partitions), moment)
        else:
            convert(self._session.spark, [location], location)

    def _clone(self, location: str, text: parts.CloneTable, source: str) -> DataFrame:
        there = has_log(open_store(location))
        if there and not text.replaces:
            if text.exist_ok:
                return self._rows([], _CLONE)
            raise CommitConflict(
                "there is a table already", file=location, hint="CREATE OR REPLACE TABLE renews it"
            )
        at = self._at(source, text.moment)
        if text.properties:
            at = after(at, set_properties(at, text.properties))
        done = clone(at, location, deep=text.deep)
        return self._rows([_clone_row(done)], _CLONE)

    def _partitions(self, snapshot: Snapshot, where: str | None) -> DataFrame:
        names = snapshot.partition_columns
        if not names:
            raise InvalidSchema("the table is not partitioned", file=snapshot.store.uri)
        columns = ", ".join(map(quote_identifier, names))
        source = delta_name(snapshot.store.uri)
        chosen = f" WHERE {where}" if where else ""
        return self._session.query(f"SELECT DISTINCT {columns} FROM {source}{chosen}")  # noqa: S608


def _generate(snapshot: Snapshot, mode: str) -> None:
    if mode.lower() != MANIFESTS:
        raise InvalidQuery(f"GENERATE has no mode {mode!r}", hint=f"it generates {MANIFESTS}")
    write_manifests(snapshot.store, snapshot.metadata, snapshot.files)


def _truncate(snapshot: Snapshot) -> None:
    """Remove all files from the table."""
    snapshot.check_writable(evaluated=True, kept=True)
    check_not_append_only(snapshot)
    started = time.perf_counter()
    removes = removes_of(snapshot.add_files())
    if removes:
        metrics = {
            "numRemovedFiles": str(len(removes)),
            "executionTimeMs": str(round((time.perf_counter() - started) * 1000)),
        }
        changes = Changes(
            "TRUNCATE", removes=removes, reads=whole_table, metrics=metrics, file_metrics=False
        )
        commit(snapshot, changes)


def _history_row(entry: HistoryEntry) -> tuple[Any, ...]:
    info = entry.info
    parameters = info.get("operationParameters") or {}
    return (
        entry.version,
        entry.time,
        info.get("userId"),
        info.get("userName"),
        entry.operation,
        {key: _text(value) for key, value in parameters.items()},
        None,
        None,
        info.get("clusterId"),
        info.get("readVersion"),
        info.get("isolationLevel"),
        info.get("isBlindAppend"),
        {key: _text(value) for key, value in (info.get("operationMetrics") or {}).items()},
        entry.user_metadata,
        info.get("engineInfo"),
    )


def _text(value: Any) -> str | None:
    """Format a value of the history as Delta Spark does."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _detail_row(snapshot: Snapshot) -> tuple[Any, ...]:
    table, protocol = snapshot.metadata, snapshot.protocol
    created = table.created_time
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    (newest,) = snapshot.history(1)
    return (
        "delta",
        table.id,
        table.name,
        table.description,
        as_hadoop(snapshot.store.uri),
        None if created is None else EPOCH + dt.timedelta(milliseconds=created),
        newest.time,
        list(table.partition_columns),
        list(map(".".join, clustering_names(snapshot.schema, snapshot.domains))),
        snapshot.files.num_rows,
        bytes_of(snapshot.files),
        dict(table.configuration),
        protocol.min_reader_version,
        protocol.min_writer_version,
        sorted(features),
    )


def _is_clustered(snapshot: Snapshot) -> bool:
    return bool(clustering_columns(snapshot.domains)) or CLUSTER_BY in snapshot.properties


def _column_rows(snapshot: Snapshot, *, extended: bool) -> list[tuple[str, str, str | None]]:
    columns = StructType.fromJson(orjson.loads(snapshot.schema.to_json()))
    listed = {
        each.name: (each.name, each.dataType.simpleString(), each.metadata.get("comment"))
        for each in columns.fields
    }
    rows: list[tuple[str, str, str | None]] = [*listed.values()]
    if snapshot.partition_columns:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [listed[name] for name in snapshot.partition_columns]
    if extended:
        shown = ",".join(f"{key}={value}" for key, value in _property_rows(snapshot, None))
        rows += [
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Name", delta_name(snapshot.store.uri), ""),
            *([("Comment", said, "")] if (said := snapshot.metadata.description) else []),
            ("Location", snapshot.store.uri, ""),
            ("Provider", "delta", ""),
            ("Table Properties", f"[{shown}]", ""),
        ]
    return rows


def _column_facts(snapshot: Snapshot, column: str) -> list[tuple[str, str]]:
    """Return Spark's rows of DESCRIBE for a column. Raises InvalidSchema if there is none."""
    (name, *_) = field_path(snapshot.schema, quote_identifier(column))
    columns = StructType.fromJson(orjson.loads(snapshot.schema.to_json()))
    field = columns[name]
    comment = (field.metadata or {}).get("comment", "NULL")
    kind = field.dataType.simpleString()
    return [("col_name", column), ("data_type", kind), ("comment", comment)]


def _property_rows(snapshot: Snapshot, key: str | None) -> list[tuple[str, str]]:
    protocol, table = snapshot.protocol, snapshot.metadata
    found = {
        **table.configuration,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
    }
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    found |= {f"delta.feature.{name}": "supported" for name in listed}
    if key is None:
        return sorted(found.items())
    return [(key, found.get(key, f"Table {snapshot.store.uri} does not have property: {key}"))]


def _clone_row(done: CloneResult) -> tuple[int | None, ...]:
    removed = None if done.files_removed else 0
    return (
        done.table_bytes,
        done.table_files,
        done.files_removed,
        done.files_copied,
        removed,
        done.bytes_copied,
    )
