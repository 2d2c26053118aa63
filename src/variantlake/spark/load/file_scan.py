"""Find DataFrames that are plain columns of Parquet files, whose rows need not cross the JVM."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from variantlake.ingest.encode.parquet_rows import VARIANT, FileColumn, RowGroupRange, file_parts
from variantlake.spark.session.janino import java_instance
from variantlake.spark.session.jvm import dataset_of, is_connect
from variantlake.spark.session.settings import is_on
from variantlake.spark.session.versions import is_tried

_ARROW = {
    "variant": VARIANT,
    "string": "string",
    "binary": "binary",
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float",
    "double": "double",
    "date": "date32[day]",
    "timestamp": "timestamp[us, tz=UTC]",
    "timestamp_ntz": "timestamp[us]",
}
"""Arrow types of file columns by Spark's type; columns of other types are left to Spark."""

_OFF = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
"""Settings under which Spark reads files in ways that we do not support."""


@dataclass(frozen=True, slots=True)
class FileScan:
    """The columns of a DataFrame and, for each task, its parts of the files; pickles."""

    columns: tuple[FileColumn, ...]
    groups: tuple[tuple[RowGroupRange, ...], ...]


def file_scan(spark: SparkSession, frame: DataFrame) -> FileScan | None:
    """Return the scan if a DataFrame is unchanged rows of Parquet files, else None.

    The files must be on a local disk, or on one that all executors see under the same paths.
    """
    if is_connect(spark) or not is_tried(spark):  # no access to plans, or to unknown ones
        return None
    types = {field.name: _ARROW.get(field.dataType.simpleString()) for field in frame.schema.fields}
    if None in types.values() or any(is_on(spark, name) for name in _OFF):
        return None
    text = java_instance(spark, "FileScan").apply(dataset_of(frame))
    if text is None:
        return None
    found = json.loads(text)
    columns = tuple(
        FileColumn(name, stored, kind)
        for name, stored in found["columns"]
        if (kind := types[name]) is not None
    )
    files = list(zip(found["paths"], found["sizes"], strict=True))
    groups = file_parts(files, spark.sparkContext.defaultParallelism)
    return FileScan(columns, groups) if groups else None
