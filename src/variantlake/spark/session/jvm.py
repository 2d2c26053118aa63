"""Access to the JVM behind classic sessions and DataFrames, by private names of PySpark.

PySpark has no public ones. Spark Connect has no JVM on this side.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from pyspark.sql import Column, DataFrame, SparkSession

Java: TypeAlias = Any
"""An object in the JVM, which py4j gives no static type."""


def is_connect(given: object) -> bool:
    """Whether a session, a DataFrame or a column belongs to Spark Connect."""
    return type(given).__module__.startswith("pyspark.sql.connect")


def session_of(spark: SparkSession) -> Java:
    """Return the session's Java object (`classic.SparkSession`)."""
    return cast("Java", spark)._jsparkSession  # noqa: SLF001


@contextlib.contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make this session Spark's active session in this thread while the block runs."""
    sessions = classes_of(spark).SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session_of(spark))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def classes_of(spark: SparkSession) -> Java:
    """Return the package `org.apache.spark.sql.classic`."""
    return cast("Java", spark)._jvm.org.apache.spark.sql.classic  # noqa: SLF001


def gateway_of(spark: SparkSession) -> Java:
    """Return the py4j gateway, one for each JVM."""
    return cast("Java", spark.sparkContext)._gateway  # noqa: SLF001


def dataset_of(frame: DataFrame) -> Java:
    """Return the DataFrame's Java object (`classic.Dataset`)."""
    return cast("Java", frame)._jdf  # noqa: SLF001


def column_of(column: Column) -> Java:
    """Return the column's Java object."""
    return cast("Java", column)._jc  # noqa: SLF001


def plan_of(frame: DataFrame) -> Java:
    """Return the analysed plan of a DataFrame."""
    return dataset_of(frame).queryExecution().analyzed()


def frame_of(spark: SparkSession, plan: Java) -> DataFrame:
    """Make a DataFrame of a plan, which the session analyses. Raises Spark's errors of analysis."""
    return DataFrame(classes_of(spark).Dataset.ofRows(session_of(spark), plan), spark)


def clone_of(spark: SparkSession) -> SparkSession:
    """Return a new session that starts with the settings and views of another one."""
    return SparkSession(spark.sparkContext, session_of(spark).cloneSession())
