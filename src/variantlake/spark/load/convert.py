"""Convert many Parquet files with Spark: its executors convert them, the driver commits once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Unpack

from pyspark.sql import SparkSession

from variantlake.ingest.conversion.convert import ConvertResult, run_convert
from variantlake.ingest.conversion.request import ConvertKeywords, Request
from variantlake.ingest.load import LoadProgress
from variantlake.ingest.sources.sources import SourceSpec
from variantlake.spark.load.ingest import parallelism, runner
from variantlake.storage.store import location_text


def convert(
    spark: SparkSession,
    sources: SourceSpec | Iterable[SourceSpec],
    table: str | os.PathLike[str],
    *,
    progress: Callable[[LoadProgress], None] | None = None,
    **options: Unpack[ConvertKeywords],
) -> ConvertResult:
    """`arrow.convert.convert` on Spark's executors; no row passes through the JVM.

    Sources and table must be reachable from the executors by the same names. Raises as it does, and
    MissingDependency when the executors' Python has no `variantlake`.
    """
    return run_convert(
        sources,
        location_text(table),
        runner(spark, table),
        Request.of(**options),
        progress=progress,
        parallelism=parallelism(spark),
    )
