"""Random queries as DataFrames, composed in the ways in which people write them."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tests.spark.random_expressions import Branch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frames_together(
    spark: SparkSession, branches: Sequence[Branch], location: str, chance: random.Random
) -> DataFrame:
    """The branches over the Delta table at a location, as one DataFrame."""
    table = spark.read.format("delta").load(location)
    named = [_named(each, location) for each in branches]
    frames = [_frame_of(spark, each, at, table, chance) for at, each in enumerate(named)]
    return functools.reduce(lambda one, other: one.union(other), frames)


def _named(branch: Branch, location: str) -> Branch:
    """The branch, whose subqueries in the condition name the table by where it is."""
    return replace(branch, where=branch.where.replace("{t}", f"delta.`{location}`"))


def _frame_of(
    spark: SparkSession, branch: Branch, number: int, table: DataFrame, chance: random.Random
) -> DataFrame:
    if branch.source not in ("{t}", "{t} a") or branch.key not in ("k", "a.k"):
        return spark.sql(branch.text(number).replace("{t}", "{table}"), table=table)
    rows = table.alias("a")
    kinds = 2 if branch.source == "{t} a" or "EXISTS" in branch.where else 5
    match chance.randrange(kinds):
        case 1:
            rows = rows.repartition(2, "k").alias("a")
        case 2:
            rows = table.withColumnRenamed("event", "renamed").withColumnRenamed("renamed", "event")
        case 3:
            rows = table.select("*", F.struct("k", "event").alias("row")).withColumn(
                "event", F.col("row.event")
            )
        case 4:
            rows = table.dropDuplicates(["k"])  # which all rows have for themselves
    values = [F.expr(value).alias(f"v{at}") for at, value in enumerate(branch.values)]
    number_ = F.lit(number).alias("b")
    key = F.expr(branch.key).alias("k")
    got = F.array(*(f"v{at}" for at in range(len(values)))).alias("got")
    return rows.where(branch.where).select(number_, key, *values).select("b", "k", got)
