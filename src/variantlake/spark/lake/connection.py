"""`connect(spark)`: what most programs begin with, so that it loads little itself.

The JVM compiles our classes while Python loads the modules of a lake, on another core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyspark.sql import SparkSession

from variantlake.loading import load
from variantlake.spark.session.arguments import check_session
from variantlake.spark.session.janino import compile_ahead
from variantlake.spark.session.jvm import is_connect
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.session.versions import check_version

if TYPE_CHECKING:
    from variantlake.spark.lake.lake import Lake


def connect(spark: SparkSession, *, accelerate: bool = False) -> Lake:
    """Query and load Delta tables with Variant columns through this session.

    Its settings for S3 (`fs.s3a.access.key`, `fs.s3a.endpoint`, …) serve for all that is read,
    unless the environment or `set_storage_options` says how stores are reached. With `accelerate`
    all other queries of the session are made fast as well: see `variantlake.spark.accelerate`.

    Raises InvalidValue for what is not a session, UnsupportedFeature for a Spark before 4.1.
    """
    check_session(spark)
    check_version(spark)
    if not is_connect(spark):
        compile_ahead(spark)
    lake = load("variantlake.spark.lake.lake").Lake(spark)
    follow_spark(spark)
    if accelerate:
        load("variantlake.spark.lake.accelerate").accelerate(spark)
    return cast("Lake", lake)
