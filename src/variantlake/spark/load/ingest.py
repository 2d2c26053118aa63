"""Load files with Spark: executors run the tasks, the driver commits once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Unpack

from pyspark.sql import SparkSession

from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.conversion.convert import run_convert
from variantlake.ingest.conversion.request import ConvertKeywords, Request
from variantlake.ingest.conversion.result import ConvertResult
from variantlake.ingest.encode.document_options import DocumentOptions, IngestKeywords
from variantlake.ingest.load import run_load
from variantlake.ingest.overwrite import Overwrite
from variantlake.ingest.sources.sources import Documents, SourceSpec
from variantlake.jobs.tasks import Runner
from variantlake.progress import OnProgress
from variantlake.spark.session.jobs import task_runner
from variantlake.spark.session.jvm import is_connect
from variantlake.storage.store import location_text
from variantlake.writing.staged_files import Staging

_CONNECT_PARALLELISM = 8
"""How many tasks a Connect session is assumed to run at once if its settings do not say."""


def ingest(
    spark: SparkSession,
    sources: Documents | SourceSpec | Iterable[SourceSpec],
    table: str | os.PathLike[str],
    *,
    progress: OnProgress | None = None,
    overwrite: Overwrite | Staging | None = None,
    **options: Unpack[IngestKeywords],
) -> LoadResult:
    """Load JSON documents into a VARIANT column of a table, as `Lake.ingest` does.

    `overwrite` names the rows to replace, or stages the documents; None only adds them.
    """
    return run_load(
        sources,
        location_text(table),
        runner(spark, table),
        DocumentOptions.of(**options),
        progress=progress,
        overwrite=overwrite,
        parallelism=parallelism(spark),
    )


def convert(
    spark: SparkSession,
    sources: SourceSpec | Iterable[SourceSpec],
    table: str | os.PathLike[str],
    *,
    progress: OnProgress | None = None,
    **options: Unpack[ConvertKeywords],
) -> ConvertResult:
    """Convert Parquet files into a table, as `Lake.convert` does."""
    return run_convert(
        sources,
        location_text(table),
        runner(spark, table),
        Request.of(**options),
        progress=progress,
        parallelism=parallelism(spark),
    )


def runner(spark: SparkSession, table: str | os.PathLike[str]) -> Runner:
    """Return the runner of a load's tasks on Spark's executors."""
    return task_runner(spark, f"load into {location_text(table)}")


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks the session runs at once."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    text = spark.conf.get("spark.default.parallelism", None)
    return int(text) if text and text.isdecimal() else _CONNECT_PARALLELISM
