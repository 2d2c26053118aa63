"""Makes Spark DataFrames whose rows our kernels read and hand to the JVM as Arrow batches.

For Variants that Spark's reader cannot read, and for conditions that keep few rows: the kernels
find the rows on typed columns, and rebuild only their Variants (late materialization, see
`scan.scan_task`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from variantlake.spark.session.jobs import map_in_arrow
from variantlake.spark.session.jvm import is_connect

Task = Callable[[int], Iterator[pa.RecordBatch]]
"""A picklable function that a Spark task calls with its number."""


def batches(spark: SparkSession, task: Task, count: int, schema: StructType) -> DataFrame:
    """Return the Arrow batches of `task(0)` … `task(count - 1)`, each run by one Spark task.

    The batches have exactly `arrow_schema(schema)`. The workers need the package.
    """

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in np.asarray(batch.column(0)):
                yield from task(int(number))

    return map_in_arrow(spark.range(0, count, 1, count), run, schema)


def workers_have_package(spark: SparkSession) -> bool:
    """Whether Spark's Python workers can run our tasks; runs a Spark job unless that is certain."""
    if not is_connect(spark):
        context = spark.sparkContext
        local = str(context.master).startswith("local")
        if local and context.pythonExec in ("python3", sys.executable):
            return True
    schema = StructType([StructField("version", StringType())])
    try:
        found = batches(spark, _version, 1, schema).collect()
    except (PySparkException, ImportError):
        return False
    return [row.version for row in found] == [version("variantlake")]


def _version(_: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"version": [version("variantlake")]})
