"""The Spark session of the tests."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path

from examples.kafka_broker import SPARK_PACKAGE as KAFKA_PACKAGE
from pyspark.sql import SparkSession

from tests.jvm import ROOM, SHORT_LIVED

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
_AWS = "2.35.4"
S3A_PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    *(
        f"software.amazon.awssdk:{part}:{_AWS}"
        for part in ("s3", "s3-transfer-manager", "sts", "netty-nio-client", "apache-client")
    ),
)
"""Hadoop's file system for S3, and the parts of Amazon's SDK that it needs: the bundle of all, on
which it depends, has 690 MB."""

EXCLUDED = (
    "software.amazon.awssdk:bundle",
    # PySpark has its own.
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
)


def delta_session(scratch: Path, java: str = SHORT_LIVED) -> SparkSession:
    """A local Spark with Delta Spark's package, as a user would start one.

    UTC, two cores, few shuffle partitions; `java` are options of its JVM. Raises
    PySparkRuntimeError if it does not start.
    """
    options = f"{ROOM} {java}"
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("variantlake tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch} {options}")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.pyspark.driver.python", sys.executable)
        .config("spark.jars.packages", ",".join((DELTA_PACKAGE, *S3A_PACKAGES, KAFKA_PACKAGE)))
        .config("spark.jars.excludes", ",".join(EXCLUDED))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.databricks.delta.snapshotPartitions", "1")
        # Delta Spark's VACUUM lists with ten thousand tasks otherwise.
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    )
    # Workers of `mapInArrow` take their interpreter from here as well.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with (Path(tempfile.gettempdir()) / "variantlake-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # packages are fetched into a cache that takes one writer
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
