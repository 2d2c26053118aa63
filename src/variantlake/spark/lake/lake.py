"""`connect(spark)`: the whole of a lake."""

from __future__ import annotations

from pyspark.sql import SparkSession

from variantlake.spark.lake.changes import LakeChanges
from variantlake.spark.rule.accelerate import accelerate as put_rule
from variantlake.spark.session.arguments import (
    check_session,
)
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.session.versions import check_version


class Lake(LakeChanges):
    """Delta tables with Variant columns, as one Spark session sees them.

    The session's settings are never changed; nothing of ours is left in its catalog.
    """


def connect(spark: SparkSession, *, accelerate: bool = False) -> Lake:
    """Query and load Delta tables with Variant columns through this session.

    Its settings for S3 (`fs.s3a.access.key`, `fs.s3a.endpoint`, …) serve for all that is read,
    unless the environment or `set_storage_options` says how stores are reached. With `accelerate`
    all other queries of the session are made fast as well: see `variantlake.spark.accelerate`.

    Raises InvalidValue for what is not a session, UnsupportedFeature for a Spark before 4.1.
    """
    check_session(spark)
    check_version(spark)
    follow_spark(spark)
    if accelerate:
        put_rule(spark)
    return Lake(spark)
