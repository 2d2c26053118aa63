"""`connect(spark)`. Most programs call it first, so this module imports little.

The JVM compiles our classes on another core while Python loads the modules of a lake.
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

    The lake uses the session's settings for S3 (`fs.s3a.access.key`, `fs.s3a.endpoint`, …), unless
    the environment or `set_storage_options` has some. With `accelerate` all other queries of the
    session get faster, too; see `variantlake.spark.accelerate`.

    Raises InvalidValue if `spark` is not a session, UnsupportedFeature for a Spark before 4.1.
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
