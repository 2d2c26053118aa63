"""Registers `format("variantlake")` with a session, for tables and for streams."""

from __future__ import annotations

import logging
import os

from pyspark.sql import SparkSession

from variantlake.delta.log.files.file_paths import AbsolutePaths
from variantlake.spark.scan.data_source import FORMAT, FilteringSource, VariantlakeSource
from variantlake.spark.session.jobs import own_python
from variantlake.spark.session.jvm import active, is_connect, session_of
from variantlake.spark.session.settings import TIME_ZONE, is_case_sensitive, is_on
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.session.versions import check_version
from variantlake.spark.streaming.data_source import TableSource
from variantlake.storage.options import options_to_send

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register `format("variantlake")` with a session, classic or Connect.

    `spark.read` and `spark.readStream` read a table with it, `df.writeStream` writes one. If the
    session pushes filters to data sources in Python
    (`spark.sql.python.filterPushdown.enabled`), conditions on ordinary columns skip files and rows.
    The workers need the package. Raises UnsupportedFeature for a Spark before 4.1.
    """
    check_version(spark)
    pushes = is_on(spark, PUSHDOWN)
    follow_spark(spark)
    sensitive = is_case_sensitive(spark)
    time_zone = str(spark.conf.get(TIME_ZONE, "UTC"))
    source = FilteringSource if pushes else VariantlakeSource
    reaching = _reaching(source, time_zone, case_sensitive_names=sensitive)
    if is_connect(spark):
        spark.dataSource.register(reaching)
        return
    # Spark looks for a registered source of this name in the active session.
    with active(spark), own_python(spark.sparkContext):
        spark.dataSource.register(reaching)


def is_registered(spark: SparkSession) -> bool:
    """Whether a classic session knows the format."""
    sources = session_of(spark).sessionState().dataSourceManager()
    return bool(sources.dataSourceExists(FORMAT))


def _reaching(
    source: type[VariantlakeSource], time_zone: str, *, case_sensitive_names: bool
) -> type[VariantlakeSource]:
    """Return the source class for Spark's Python processes, with the settings of this process."""

    class Reaching(TableSource, source):  # type: ignore[misc, valid-type]  # pickled whole, with its settings
        stores = options_to_send()
        absolute_paths = AbsolutePaths.setting()
        case_sensitive = case_sensitive_names
        zone = time_zone
        log_level = logging.getLogger("variantlake").getEffectiveLevel()
        registered_by = os.getpid()

    return Reaching
