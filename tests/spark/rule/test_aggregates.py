"""Aggregates of a session with the rule: begun by tasks, the driver or the log, as `lake.sql`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.query.test_pushed_aggregates import (
    DRIVER,
    EITHER,
    LEFT,
    OTHERS,
    PUSHED,
    SETTING,
    Pushed,
    made_table,
)
from tests.spark.rule.door import accelerated, lake_of
from tests.strategies import MORE
from variantlake.spark.lake import connect
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.scan import pushed_aggregates
from variantlake.spark.scan.pushed_aggregates import PushedAggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("interpreted", "rule")]

EVERY = 1 if MORE > 1 else 8
"""All queries are asked of `lake.sql`, which shares what plans and merges them."""


@pytest.fixture(scope="module")
def rule(spark: SparkSession) -> Iterator[None]:
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rule: None) -> Pushed:
    del rule
    made = made_table(spark, tmp_path_factory.mktemp("rule"), "odd")
    return Pushed(spark, lake_of(spark), made.location, made.judge)


@pytest.fixture
def forced(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small tables too, whatever their keys; by the driver."""
    monkeypatch.setattr(pushed_aggregates, "REPEATED", 0)
    with changed(spark, {SETTING: "0", DRIVER: "1000000000"}):
        yield


def is_begun(frame: DataFrame) -> bool:
    """Whether all rows of tables are grouped before Spark sees them."""
    java: Any = frame
    plan = str(java._jdf.queryExecution().optimizedPlan().toString())
    if "parquet" in plan or "variantlake " in plan:
        return False
    tables = connect(frame.sparkSession).explain(frame).to_dict()["tables"]
    return bool(tables) and all(table["aggregated"] for table in tables)


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.usefixtures("forced")
def test_what_is_proven_is_begun(spark: SparkSession, table: Pushed) -> None:
    for at, (name, query) in enumerate(list(PUSHED.items())[::EVERY]):
        judged, right = table.right(query)
        with changed(spark, EITHER[at % 8 != 0]):  # tasks start processes
            ours = table.found(query, right)
        assert ours is not None, name
        assert judged is not None, name
        assert ours.dtypes == judged.dtypes, name
        assert is_begun(ours) or name in OTHERS, name


@pytest.mark.usefixtures("forced")
def test_what_is_not_proven_is_left_to_spark(table: Pushed) -> None:
    for name, query in list(LEFT.items())[::EVERY]:
        ours = table.found(query, table.right(query)[1])
        assert ours is None or not is_begun(ours), name


def frames(table: DataFrame) -> dict[str, DataFrame]:
    """DataFrames of which all aggregates are begun."""
    text = F.expr("event:s::string")
    return {
        "count": table.where(text >= "a").groupBy("k").count(),
        "functions": table.groupBy(text.alias("x")).agg(F.max("w"), F.avg("k"), F.sum("d")),
        "condition": table.where("event:i::bigint > 2 AND s <> 'a'").agg(F.count("*")),
        "distinct": table.select(text).distinct(),
        "no duplicates": table.select("k", text.alias("x")).dropDuplicates(),
        "ordered": table.groupBy("k").agg(F.min(text).alias("m")).orderBy("k").limit(3),
        "joined": table.groupBy("k").count().join(table.groupBy("k").agg(F.max("f")), "k"),
        "written": table.groupBy("s").agg(F.count_distinct("k"), F.countDistinct(text, "k")),
    }


@pytest.mark.usefixtures("forced")
def test_dataframes_are_grouped(spark: SparkSession, table: Pushed) -> None:
    judged = frames(spark.table(table.judge))
    ours = frames(spark.read.format("delta").load(table.location))
    for name, frame in ours.items():
        assert rows_of(frame) == rows_of(judged[name]), name
        assert is_begun(frame), name


@pytest.mark.rule(42)
@pytest.mark.usefixtures("forced")
def test_one_dataframe_read_twice_is_read_as_rows(spark: SparkSession, table: Pushed) -> None:
    """Spark tells the relations of a union apart; those of what it decorrelates it does not."""
    a_union = (
        "WITH g AS (SELECT k, count(*) FROM {t} GROUP BY k) "
        "SELECT * FROM g UNION ALL SELECT * FROM g UNION ALL SELECT k, event:i::bigint FROM {t}"
    )
    subqueries = (
        "SELECT k, (SELECT count(*) FROM {t} i WHERE i.w < a.k), "
        "(SELECT count(*) FROM {t} i WHERE i.k < a.w) FROM {t} a"
    )
    planner = planner_of(spark)
    assert planner is not None
    before = planner.warnings
    for text in (a_union, subqueries):
        judged = spark.sql(text.format(t=table.judge))
        ours = spark.sql(text.format(t=f"delta.`{table.location}`"))
        assert rows_of(ours) == rows_of(judged)
        assert not is_begun(ours)
    assert planner.warnings == before


@pytest.mark.usefixtures("forced")
def test_the_zone_of_a_query_counts(spark: SparkSession, table: Pushed) -> None:
    query = "SELECT hour(timestamp_micros(w)), count(*) FROM {t} WHERE w = 7 GROUP BY 1"
    assert is_begun(table.ours(query))
    with changed(spark, {"spark.sql.session.timeZone": "Asia/Kathmandu"}):
        ours = table.found(query, table.right(query)[1])
        assert ours is not None
        assert not is_begun(ours)
        assert is_begun(table.ours("SELECT hour(at), count(*) FROM {t} GROUP BY 1"))


def test_small_tables_are_sparks_and_the_log_answers(spark: SparkSession, table: Pushed) -> None:
    ours = spark.read.format("delta").load(table.location)
    assert not is_begun(ours.groupBy("k").agg(F.max("w")))
    query = "SELECT p, count(*), min(p) FROM {t} GROUP BY p"
    found = table.found(query, table.right(query)[1])
    assert found is not None
    (scan,) = table.explained(query)
    assert scan["aggregated"] == is_begun(found)


def test_an_explanation_groups_nothing(
    spark: SparkSession, table: Pushed, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT k, max(w) FROM {t} GROUP BY k"
    with changed(spark, {SETTING: "0", DRIVER: "1000000000"}):
        monkeypatch.setattr(pushed_aggregates, "REPEATED", 0)
        monkeypatch.setattr(PushedAggregate, "rows", lambda *_: pytest.fail("it does"))
        (scan,) = table.explained(query)
    assert scan["aggregated"]


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("fault", ["rows", "given up", "told"])
def test_whatever_fails_leaves_the_query_as_it_is(
    table: Pushed, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    query = "SELECT event:s::string, max(w), avg(k) FROM {t} WHERE event:i::bigint > 1 GROUP BY 1"
    usual = pushed_aggregates.PartialAggregate.to_dict

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("made to fail")

    def other(own: Any, *, done: bool) -> dict[str, Any]:
        return {**usual(own, done=done), "merges": []}

    faults: dict[str, Callable[[], None]] = {
        "rows": lambda: monkeypatch.setattr(PushedAggregate, "rows", fail),
        "given up": lambda: monkeypatch.setattr(PushedAggregate, "rows", lambda *_: None),
        "told": lambda: monkeypatch.setattr(pushed_aggregates.PartialAggregate, "to_dict", other),
    }
    faults[fault]()
    ours = table.found(query, table.right(query)[1])
    assert ours is not None
    assert not is_begun(ours)
