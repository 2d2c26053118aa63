"""Load JSON documents with Spark: its executors run the tasks, the driver commits once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Unpack

from pyspark.sql import SparkSession

from variantlake.ingest.encode.document_options import DocumentKeywords, DocumentOptions
from variantlake.ingest.load import (
    DEFAULT_COLUMN,
    IngestResult,
    LoadProgress,
    Runner,
    Tasks,
    run_load,
)
from variantlake.ingest.overwrite import Overwrite
from variantlake.ingest.sources.sources import Documents, SourceSpec
from variantlake.spark.session.jobs import is_connect, run_tasks
from variantlake.storage.store import location_text

_CONNECT_PARALLELISM = 8
"""How many tasks a Connect session runs at once when its settings do not say."""


def ingest(
    spark: SparkSession,
    sources: Documents | SourceSpec | Iterable[SourceSpec],
    table: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the name that users know
    column: str = DEFAULT_COLUMN,
    shredding: str | None = None,
    properties: Mapping[str, str] | None = None,
    progress: Callable[[LoadProgress], None] | None = None,
    overwrite: Overwrite | None = None,
    **options: Unpack[DocumentKeywords],
) -> IngestResult:
    """Load JSON documents into a VARIANT column of a table, in one commit.

    Each Spark task reads its own part of the input, runs the kernels and writes Parquet files
    itself; no row passes through the JVM. Sources and table must be reachable from the executors
    by the same names.

    Args:
        spark: The session, classic or Connect.
        sources: Files, globs or directories of newline-delimited JSON, plain, gzip, zstd or bz2,
            on a disk or in an object store; or `ndjson(...)`, `json_array(...)`, `json_files(...)`.
        table: The table's location; it is made when there is none.
        format: How documents stand in files that are given by paths: `"ndjson"` (one a line),
            `"array"` (one array of them), `"json"` (one document a file, over many lines).
        column: The VARIANT column that takes the documents. Other columns of the table get NULL.
        shredding: Which paths become columns, as DDL; `VARIANT` for none. None takes the table's
            own schema, or infers one from a sample and keeps it with the table.
        properties: Table properties for a table that is made here.
        progress: Called a few times a second while tasks run.
        overwrite: The documents take the place of these rows; None adds them.
        **options: What becomes of bad documents and empty files, a load id, partitions and other
            columns, the order and size of files: see `DocumentOptions` and `LoadOptions`.

    Raises:
        MissingSource, InvalidJson, LimitExceeded, MalformedFile: A source that is missing or bad,
            with file, line and column. Nothing is committed and no file is left.
        InvalidSchema: The table has no such VARIANT column, or the DDL does not parse.
        InvalidValue: An option that cannot be.
        NotADeltaTable: The location holds files but no log.
        UnsupportedFeature: The table needs a feature that we do not write.
        CommitConflict: Another writer changed the table in a way that contradicts this load.
        MissingDependency: The executors' Python has no `variantlake`.
    """
    return run_load(
        sources,
        location_text(table),
        runner(spark, table),
        format=format,
        column=column,
        shredding=shredding,
        properties=properties,
        options=DocumentOptions.of(**options),
        progress=progress,
        overwrite=overwrite,
        parallelism=parallelism(spark),
    )


def runner(spark: SparkSession, table: str | os.PathLike[str]) -> Runner:
    """What runs the tasks of a load on Spark's executors."""

    def run(task: Tasks, watch: Callable[[int], None]) -> Iterable[bytes]:
        return run_tasks(
            spark,
            task,
            len(task.groups),
            description=f"variantlake: load into {location_text(table)}",
            watch=watch,
        )

    return run


def parallelism(spark: SparkSession) -> int:
    """How many tasks the session runs at once."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    text = spark.conf.get("spark.default.parallelism", None)
    return int(text) if text and text.isdecimal() else _CONNECT_PARALLELISM
