"""Append a Spark DataFrame to a table: tasks shred and write their own rows, the driver commits."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from variantlake.delta.schema.table_schema import StructField, VariantType
from variantlake.errors import MalformedFile
from variantlake.ingest.commit_load import (
    LoadResult,
    commit_load,
    find_committed_load,
    load_attributes,
)
from variantlake.ingest.encode.encode import VariantColumn
from variantlake.ingest.encode.parquet_rows import (
    SAMPLE_BYTES,
    SAMPLE_ROWS,
    LeftToSpark,
    part_rows,
    sample_rows,
)
from variantlake.ingest.encode.rows import check_columns
from variantlake.ingest.learning.relearn import relearned
from variantlake.ingest.sources.blocks import bytes_at_once
from variantlake.jobs.tasks import collect, run_task
from variantlake.kernels.variant.profile_limits import ProfileLimits
from variantlake.kernels.variant.profiler import Profiler
from variantlake.quoting import quote_identifier
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.inference.infer import infer
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.schema import ShreddingSchema
from variantlake.spark.load.append_target import (
    NewTable,
    check_texts,
    columns_of,
    in_schema,
    target_of,
    text_columns,
)
from variantlake.spark.load.append_task import AppendTask
from variantlake.spark.load.constraints import evaluated, numbered, refusals
from variantlake.spark.load.file_scan import FileScan, file_scan
from variantlake.spark.query.read_versions import version_read
from variantlake.spark.session.jobs import run_over, run_tasks
from variantlake.storage.store import location_text
from variantlake.telemetry.lineage import reported
from variantlake.telemetry.tracing import traced
from variantlake.writing.files import new_load_id
from variantlake.writing.options.keywords import check_options, names_of
from variantlake.writing.options.load_options import LoadKeywords, LoadOptions
from variantlake.writing.staged_files import Staging
from variantlake.writing.stream_batch import StreamBatch
from variantlake.writing.table_write import UNSHREDDED, TableWrite

if TYPE_CHECKING:
    from variantlake.ingest.overwrite import Overwrite  # parses SQL

_FIRST_ROWS = 256
"""Rows of a first sample, taken to the driver to measure their size."""


@reported("append", lambda _, __, table, **___: location_text(table))
@traced(
    "load",
    lambda _, __, table, **___: {"table": location_text(table)},
    load_attributes,
)
def append(
    spark: SparkSession,
    frame: DataFrame,
    table: str | os.PathLike[str],
    *,
    json_columns: Collection[str] = (),
    new: NewTable | None = None,
    merge_schema: bool = False,
    overwrite: Overwrite | Staging | None = None,
    batch: StreamBatch | None = None,
    **options: Unpack[LoadKeywords],
) -> LoadResult:
    """Append the rows of a DataFrame to a table, in one commit.

    Each Spark task takes its partition's rows in Arrow, shreds the VARIANT columns and writes
    Parquet files itself. Columns are matched by name; omitted ones are generated, or get their
    default or NULL. Spark checks the table's constraints, on paths of Variants too.

    Args:
        spark: The session, classic or Connect.
        frame: The rows. VARIANT columns are taken as they are.
        table: The table's location.
        json_columns: VARIANT columns of the table that the frame has as JSON text (STRING, or
            BINARY in UTF-8).
        new: How to make the table, with the frame's columns, if there is none; None makes none.
        merge_schema: Add columns of the frame, and fields of its structs, that the table lacks.
        overwrite: The rows to replace, or staging of the new ones; None only adds rows. If the
            frame was read from the table's newest version, that is the expected version.
        batch: The stream's batch of these rows; the table never gets it twice.
        **options: Handling of bad documents, a load id, order and size of files: see
            `LoadOptions`. If a VARIANT column has no shredding schema yet, one is inferred from
            a sample, for which Spark runs the frame's plan once more.

    Raises:
        InvalidSchema: The frame does not fit the table's columns.
        InvalidJson, MalformedVariant, InvalidValue, LimitExceeded: A bad value, with its row in the
            task's part of the frame. Nothing is committed and no file is left.
        NotADeltaTable: There is no table, and `new` is None.
        LostCheckpoint: The table has later batches of the query.
        UnsupportedFeature: The table needs a feature that we do not write.
        CommitConflict: Another writer changed the table in a way that conflicts with this load.
        MissingDependency: The executors' Python has no `variantlake`.
    """
    started = time.perf_counter()
    chosen = LoadOptions.of(**options)
    check_options(merge_schema=merge_schema)
    json_columns = names_of("json_columns", json_columns)
    target = target_of(frame.schema, table, json_columns, new, numbered=True)
    # First of all: a repeated load or batch must not be checked against the table that it made.
    if (known := find_committed_load(target, chosen, batch)) is not None:
        return known
    if (snapshot := target.snapshot) is not None and target.creation is None:
        of_version = version_read(frame, snapshot) if batch is None else None
        if overwrite is not None:
            if not isinstance(overwrite, Staging) and overwrite.expected_version is None:
                overwrite = replace(overwrite, expected_version=of_version)
            target = overwrite.applied(target)
        target = replace(target, reads_itself=of_version is not None)
        frame = _with_names_of(target, frame)
        json_columns = text_columns(frame.schema, target.schema, json_columns)
        frame = numbered(frame, snapshot)
        frame, json_columns = evaluated(frame, snapshot, json_columns)
        if merge_schema:
            target = target.with_columns(columns_of(frame.schema, json_columns))
            said = {**target.parameters, "canMergeSchema": True}
            target = replace(target, parameters=said)
    else:
        frame, json_columns = evaluated(frame, target, json_columns)
    target = target.with_contract(chosen.contract)
    check_columns(frame.columns, target.schema.fields, json_columns, target.store.uri)
    check_texts(frame.schema, target, json_columns)
    target = target if target.creation is not None else relearned(target)
    load = _Load(spark, frame, target, frozenset(json_columns), chosen, batch)
    # Our tasks read a frame that is a plain scan of files; if they refuse, Spark reads its rows.
    scan = file_scan(spark, frame)
    try:
        return load.run(scan, started)
    except (LeftToSpark, MalformedFile):
        if scan is None:
            raise
        return load.run(None, started)


@dataclass(frozen=True, slots=True)
class _Load:
    """One append."""

    spark: SparkSession
    frame: DataFrame
    target: TableWrite
    json_columns: frozenset[str]
    options: LoadOptions
    batch: StreamBatch | None = None

    def run(self, scan: FileScan | None, started: float) -> LoadResult:
        """Load the frame's rows, from Spark or, if `scan` is not None, from its files."""
        target = self.target
        shreddings = target.shreddings()
        unknown = [
            field
            for field in target.schema.fields
            if isinstance(field.type, VariantType)
            and field.physical_name not in shreddings
            and field.name in self.frame.columns
        ]
        if unknown:
            with refusals():
                shreddings |= self._inferred(unknown, scan)
        task = AppendTask(
            plan=target.load_plan(new_load_id(), self.options),
            shreddings=shreddings,
            json_columns=self.json_columns,
            inference=self.options.inference,
        )
        with refusals():
            results = collect(task.plan, target, lambda: self._payloads(task, scan))
        nothing = not any(each.adds or each.bad_rows for each in results)
        adds_rows = target.replacing is None and not target.is_staged
        if nothing and adds_rows and target.snapshot is not None:
            return LoadResult(version=target.snapshot.version)
        landed = target.with_shreddings(shreddings)
        record = None if self.batch is None else self.batch.record()
        return commit_load(landed, task.plan, results, self.options, started, record=record)

    def _payloads(self, task: AppendTask, scan: FileScan | None) -> list[bytes]:
        description = f"variantlake: append to {self.target.store.uri}"
        if scan is None:
            return run_over(self.spark, self.frame, task, description=description)
        files = FilesTask(task, scan)
        return run_tasks(self.spark, files, len(scan.groups), description=description)

    def _inferred(
        self, fields: Sequence[StructField], scan: FileScan | None
    ) -> dict[str, ShreddingSchema]:
        """Infer schemas for VARIANT columns that have none, from a sample of the rows."""
        names = [field.name for field in fields]
        if scan is None:
            batches = _sample(self.frame.select(*map(quote_identifier, names)))
        else:
            columns = [each for each in scan.columns if each.name in names]
            batches = sample_rows(scan.groups, columns)
        wanted = {
            field.physical_name: self.target.inference(field.physical_name, self.options.inference)
            for field in fields
        }
        profilers = {name: Profiler(ProfileLimits.of(each)) for name, each in wanted.items()}
        encoders: dict[str, VariantColumn] = {}
        for batch in batches:
            for field in fields:
                column = batch.column(field.name)
                if field.name not in encoders:
                    from_json = field.name in self.json_columns
                    encoders[field.name] = VariantColumn(
                        field, column.type, lambda _: UNSHREDDED, from_json=from_json
                    )
                # Bad values are left out here; the append itself reports them.
                profilers[field.physical_name].add(encoders[field.name].tape(column))
        return {name: infer(each.result(), wanted[name]).schema for name, each in profilers.items()}


@dataclass(frozen=True, slots=True)
class FilesTask:
    """An append whose tasks read files themselves; pickles."""

    append: AppendTask
    scan: FileScan

    def __call__(self, number: int) -> Iterable[bytes]:
        """Write the rows of one task's parts."""
        size = bytes_at_once(self.append.shreddings.values())
        rows = part_rows(self.scan.groups[number], self.scan.columns, size)
        return run_task(
            self.append.plan, number, lambda check: self.append.write(number, rows, check)
        )


def _with_names_of(target: TableWrite, frame: DataFrame) -> DataFrame:
    """Rename columns to the table's case, because Spark's names ignore case."""
    names = in_schema(frame.columns, target.schema)
    return frame if list(names) == frame.columns else frame.toDF(*names)


_TEXTS = {"string": pa.string(), "binary": pa.binary()}


def _sample(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield a bounded sample of JSON texts and Variants."""
    sample = _first_rows(frame, _FIRST_ROWS)
    if sample.num_rows == _FIRST_ROWS:
        rows = min(SAMPLE_ROWS, SAMPLE_BYTES * _FIRST_ROWS // max(sample.nbytes, 1))
        if rows > 2 * _FIRST_ROWS:
            sample = _first_rows(frame, rows)
    yield sample


def _first_rows(frame: DataFrame, count: int) -> pa.RecordBatch:
    """Collect the first rows on the driver; Spark computes only the partitions that it needs."""
    rows = frame.limit(count).collect()
    columns: list[AnyArray] = []
    for at, field in enumerate(frame.schema.fields):
        given = [row[at] for row in rows]
        if (kind := field.dataType.simpleString()) in _TEXTS:
            columns.append(pa.array(given, _TEXTS[kind]))
        else:
            pairs = [each and {"metadata": each.metadata, "value": each.value} for each in given]
            columns.append(pa.array(pairs, VARIANT_TYPE))
    return pa.record_batch(columns, names=frame.columns)
