"""Random queries over random tables: `lake.sql`, the local engine and our kernels against Spark.

The seeds are fixed, `make test-queries` tries others; what such a run finds becomes an example.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from tests.spark.layouts import changed
from tests.spark.random_aggregates import aggregates_agree, first_rows_agree, pushed_agree
from tests.spark.random_expressions import Queries
from tests.spark.random_queries import (
    BRANCHES,
    CONDITIONS,
    SETTINGS,
    VALUES,
    Trial,
    begun_by_tasks,
    evaluated,
    found_first,
)
from tests.spark.random_tables import make
from tests.strategies import MORE
from variantlake.spark.lake import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROUNDS = 1 * MORE
"""Texts of each kind; `make test-long` asks more of them."""

LOCAL = 20 * MORE
"""Conditions for the local engine, which Spark judges one by one: `make test-queries` asks more."""

TABLES = (0, 1)
"""Seeds of tables; the second is partitioned, and has deleted rows and mapped columns."""

CASES = [
    (seed, settings)
    for seed in TABLES
    for at, settings in enumerate(SETTINGS)
    if MORE > 1 or at // 2 == seed
]
"""Each table is asked with ANSI and without it; `make test-long` has all."""


@pytest.fixture(scope="module")
def trials(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Trial]:
    lake, folder = connect(spark), tmp_path_factory.mktemp("random")
    return {seed: Trial(spark, lake, make(spark, folder / str(seed), seed)) for seed in TABLES}


def ids(value: int | Mapping[str, str]) -> str:
    if isinstance(value, int):
        return str(value)
    ansi, zone = value.values()
    return f"{'ansi' if ansi == 'true' else 'no-ansi'}-{zone.rsplit('/')[-1]}"


@pytest.mark.rule(1)
@pytest.mark.parametrize(("seed", "settings"), CASES, ids=ids)
def test_values_are_those_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int, settings: Mapping[str, str]
) -> None:
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"values {seed} {settings}"))
    with changed(spark, evaluated(settings)):
        cases = sum(trial.values_agree(queries.values(VALUES, CONDITIONS)) for _ in range(ROUNDS))
        assert cases > 50 * ROUNDS
        assert trial.errors_agree(queries, 5) > 0


@pytest.mark.rule(1)
@pytest.mark.parametrize(("seed", "settings"), CASES, ids=ids)
def test_rows_under_a_condition_are_those_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int, settings: Mapping[str, str]
) -> None:
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"conditions {seed} {settings}"))
    with changed(spark, evaluated(settings)):
        for _ in range(ROUNDS):
            trial.agree([queries.branch() for _ in range(BRANCHES)])


@pytest.mark.parametrize("seed", TABLES)
def test_such_queries_skip_files_and_read_columns(trials: Mapping[int, Trial], seed: int) -> None:
    """Else the other tests would show nothing."""
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"saved {seed}"))
    skipped, physical = trial.saved([queries.branch() for _ in range(BRANCHES)])
    assert skipped > BRANCHES
    assert physical > 0


@pytest.mark.rule(14)
@pytest.mark.parametrize("seed", TABLES)
def test_rows_that_kernels_find_first_are_those_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int
) -> None:
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"kernels {seed}"))
    with changed(spark, evaluated(SETTINGS[seed])), found_first():
        trial.agree([queries.whole() for _ in range(BRANCHES // 2)])


@pytest.mark.parametrize("seed", TABLES)
def test_groups_that_tasks_begin_are_those_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int
) -> None:
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"pushed {seed}"))
    with changed(spark, evaluated(SETTINGS[seed])), begun_by_tasks(spark):
        pushed = pushed_agree(trial, queries, 10 * ROUNDS, seed)
    assert pushed > 0


@pytest.mark.parametrize("seed", TABLES)
def test_first_rows_are_those_on_unshredded_data(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int
) -> None:
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"first rows {seed}"))
    with changed(spark, evaluated(SETTINGS[seed])):
        assert first_rows_agree(trial, queries, 6 * ROUNDS, seed) > 0


@pytest.mark.rule(1)
@pytest.mark.parametrize("seed", TABLES)
def test_the_local_engine_answers_as_spark(
    spark: SparkSession, trials: Mapping[int, Trial], seed: int
) -> None:
    trial = trials[seed]
    queries = Queries(trial.table, random.Random(f"local {seed}"))
    with changed(spark, SETTINGS[0]):
        assert trial.local_agree(queries, LOCAL) > LOCAL // 2
        assert aggregates_agree(trial, queries, LOCAL // 10, seed) == LOCAL // 10
