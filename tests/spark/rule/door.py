"""Queries by `spark.sql` in a session with the rule, where other tests ask `lake.sql`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import variantlake as vl
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Door:
    """As far as the tests of queries know a Lake."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lake = connect(spark)

    def sql(self, text: str) -> DataFrame:
        return self._spark.sql(text)

    def explain(self, text: str) -> Any:
        return self._lake.explain(self._spark.sql(text))


def lake_of(spark: SparkSession) -> Lake:
    return cast("Lake", Door(spark))


@contextlib.contextmanager
def accelerated(spark: SparkSession) -> Iterator[None]:
    """The session has the rule, and gives nothing but the wrong answer reason to leave a query."""
    vl.spark.accelerate(spark)
    try:
        yield
    finally:
        vl.spark.decelerate(spark)
