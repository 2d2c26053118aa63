"""Fixtures that more than one part's tests use."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import corpora

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A slow moment of the machine is not a failure; what takes time is measured in benchmarks/.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Spark run in one process of `pytest -n`: a JVM is started once."""
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark with Delta Spark's package, as a user would start one.

    The judge of what we write: UTC, two cores, few shuffle partitions. Tests that change a setting
    put it back. Without Java or PySpark, or when the package cannot be resolved, the test says so.
    """
    if importlib.util.find_spec("pyspark") is None:
        corpora.missing("PySpark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        corpora.missing("Java")
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("variantlake tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={scratch}")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.pyspark.driver.python", sys.executable)
        .config("spark.jars.packages", DELTA_PACKAGE)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.databricks.delta.snapshotPartitions", "2")
    )
    # Workers of `mapInArrow` take their interpreter from here as well.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        corpora.missing(f"a Spark session with {DELTA_PACKAGE} ({error})")
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark(delta_spark: SparkSession) -> SparkSession:
    """The same session: one JVM holds one SparkContext."""
    return delta_spark
