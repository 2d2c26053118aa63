"""Random queries by `spark.sql` in a session with the rule, against Spark on unshredded rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.random_aggregates import first_rows_agree, pushed_agree
from tests.spark.random_expressions import Queries
from tests.spark.random_joins import Joins
from tests.spark.random_queries import (
    BRANCHES,
    SETTINGS,
    Trial,
    begun_by_tasks,
    evaluated,
    found_first,
)
from tests.spark.random_tables import make
from tests.spark.rule.door import accelerated, lake_of
from tests.strategies import MORE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROUNDS = 1 * MORE
"""Texts of each kind: the tests of `lake.sql` ask more of what both have in common."""

TABLES = (0, 1) if MORE > 1 else (1,)
"""Seeds of tables; the second is partitioned, and has deleted rows and mapped columns."""


@pytest.fixture(scope="module")
def trials(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[int, Trial]]:
    folder = tmp_path_factory.mktemp("rule")
    # Queries that stay Spark's are judged as it evaluates them without a scan that casts.
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield {
            seed: Trial(spark, lake_of(spark), make(spark, folder / str(seed), seed))
            for seed in TABLES
        }


@pytest.mark.parametrize("seed", TABLES)
def test_rows_are_those_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int
) -> None:
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"rule {seed}"))
    for settings in SETTINGS if MORE > 1 else SETTINGS[1 + seed : 2 + seed]:
        with changed(spark, evaluated(settings)):
            for _ in range(ROUNDS):
                trial.agree([queries.branch() for _ in range(BRANCHES // 2)])
            assert trial.values_agree(queries.values(4, 12)) > 0
            assert trial.errors_agree(queries, 3) > 0
            with found_first():
                trial.agree([queries.whole()])
            first_rows_agree(trial, queries, ROUNDS, f"rule {seed}")
            with begun_by_tasks(spark):
                pushed_agree(trial, queries, ROUNDS, f"rule {seed}")


@pytest.mark.parametrize("seed", TABLES)
def test_rows_of_several_selects_are_those_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int
) -> None:
    trial = trials[seed]
    joins = Joins(
        Queries(trial.table, random.Random(f"rule {seed}")), random.Random(f"rule {seed}")
    )
    for number in range(ROUNDS):
        with changed(spark, evaluated(SETTINGS[(seed + number) % 4])):
            trial.agree(joins.branches())


@pytest.mark.parametrize("seed", TABLES)
def test_dataframes_give_the_rows_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int
) -> None:
    trial = trials[seed]
    chance = random.Random(f"frames {seed}")
    queries = Queries(trial.table, chance)
    for number in range(ROUNDS):
        with changed(spark, evaluated(SETTINGS[(seed + number + 2) % 4])):
            trial.frames_agree([queries.branch() for _ in range(BRANCHES)], chance)


@pytest.mark.parametrize("seed", TABLES)
def test_such_queries_skip_files_and_read_columns(trials: Mapping[int, Trial], seed: int) -> None:
    """Else the other tests would show nothing."""
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"saved {seed}"))
    skipped, physical = trial.saved([queries.branch() for _ in range(BRANCHES)])
    assert skipped > BRANCHES // 2
    assert physical > 0
