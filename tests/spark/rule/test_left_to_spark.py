"""What the rule leaves to Spark, so that nobody gets other rows, or misses a conflict."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.rule.door import accelerated
from tests.spark.rule.test_rule import OFF, files_read, make, plan_text
from variantlake.spark.lake import Lake, connect
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.rule.planner import RulePlanner
from variantlake.spark.session import versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "rule")]

K1 = "event:kind::string = 'k1'"


@pytest.fixture(scope="module")
def rule(spark: SparkSession) -> Iterator[None]:
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


@pytest.fixture(scope="module")
def ev(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make(tmp_path_factory.mktemp("left") / "ev")


def load(spark: SparkSession, location: str) -> DataFrame:
    return spark.read.format("delta").load(location)


def said_of(spark: SparkSession) -> list[str]:
    planner = planner_of(spark)
    assert planner is not None
    return planner.warnings


@pytest.mark.rule(41)
def test_a_transaction_of_delta_notices_rows_that_come_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What a statement reads of its own table decides about conflicts: Delta has to see it."""
    properties = {"delta.isolationLevel": "Serializable"}
    location = make(tmp_path / "t", properties=properties)
    done = tmp_path / "done"

    def append(number: int) -> int:
        if not done.exists():
            done.touch()
            rows = pa.table({"id": [99], "part": ["p"], "event": ['{"kind": "k1", "n": 99}']})
            vl.Table.open(location).append(rows, json_columns=["event"])
        return number

    meanwhile = F.udf(append, "bigint", useArrow=False)
    kept = load(spark, location).where(K1).select(meanwhile("id").alias("id"), "part", "event")
    with pytest.raises(Py4JJavaError, match="DELTA_CONCURRENT_APPEND"):
        kept.write.format("delta").mode("append").save(location)
    assert load(spark, location).count() == 41
    assert files_read(connect(spark), load(spark, location).where(K1)) == 2
    assert not said_of(spark)


def test_a_partition_that_is_named_by_its_path_is_no_more_than_that(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    location = make(tmp_path / "t", partition_by=["part"])
    kept = load(spark, f"{location}/part=p1").where("event:n::int > 5")
    assert kept.count() == 18
    assert files_read(lake, kept) == 2


def test_a_stream_is_explained_as_spark_reads_it(spark: SparkSession, lake: Lake, ev: str) -> None:
    stream = spark.readStream.format("delta").load(ev).where(K1)
    assert lake.explain(stream).to_dict() == {
        "tables": [],
        "note": "all Variants are read as Spark reads them",
    }


@pytest.mark.rule(41)
def test_a_table_that_was_altered_meanwhile_is_read_as_spark_reads_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = make(tmp_path / "t")
    wider, narrower = (load(spark, location).where(K1).selectExpr("*") for _ in range(2))
    spark.sql(f"ALTER TABLE delta.`{location}` ADD COLUMN more INT FIRST")
    assert wider.count() == 8
    spark.sql(f"INSERT INTO delta.`{location}` (id, event) SELECT 50, event FROM "
              f"delta.`{location}` WHERE {K1} AND event:n::int = 12")  # fmt: skip
    found = sorted(row.id for row in narrower.collect())
    with changed(spark, OFF):
        assert found == sorted(row.id for row in narrower.select("*").collect())
    assert found[-1] == 50
    assert not said_of(spark)


@pytest.mark.rule(41)
def test_another_table_at_the_location_is_sparks(
    spark: SparkSession, ev: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = RulePlanner._open
    table = vl.Table.open(ev)
    there = {"location": ev, "version": table.version, "id": "of another"}

    def opened(own: RulePlanner, relation: Mapping[str, Any]) -> Any:
        return usual(own, {**relation, **there})

    frame = load(spark, ev).where(K1)
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        patch.setattr(RulePlanner, "_open", opened)
        for _ in range(2):
            assert frame.select("id").count() == 8
    ours = [str(each.message) for each in said if "left as Spark runs it" in str(each.message)]
    assert len(ours) == 1
    assert "another table is at the location now" in ours[0]
    planner = planner_of(spark)
    assert planner is not None
    planner._warned.clear()


@pytest.mark.rule(41)
def test_cached_rows_are_those_of_their_version_and_table(lake: Lake, tmp_path: Path) -> None:
    location = make(tmp_path / "t")
    other = make(tmp_path / "o")
    older = lake.table(location, 2).select("id").cache()
    try:
        assert older.count() == 20
        assert lake.table(location).select("id").count() == 40
        assert lake.table(other, 2).where("id < 5").select("id").count() == 5
        assert "InMemoryRelation" in plan_text(lake.table(location, 2).select("id"))
        for table in (lake.table(location, 1), lake.table(other, 2)):
            assert "InMemoryRelation" not in plan_text(table.select("id"))
    finally:
        older.unpersist()


def test_the_switch_is_of_one_session(spark: SparkSession, lake: Lake, ev: str) -> None:
    other = spark.newSession()
    for session in (spark, other):
        assert files_read(lake, load(session, ev).where(K1)) == 1
    other.conf.set("spark.variantlake.enabled", "false")
    assert "typed_value" not in plan_text(load(other, ev).where(K1).selectExpr("event:n::int"))
    assert files_read(lake, load(spark, ev).where(K1)) == 1
    spark.sql("SET spark.variantlake.enabled = false")
    try:
        assert files_read(lake, load(spark, ev).where(K1)) is None
    finally:
        spark.conf.unset("spark.variantlake.enabled")


def test_an_untried_spark_keeps_its_queries_and_says_so_once(
    spark: SparkSession, ev: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vl.spark.decelerate(spark)
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        patch.setattr(versions, "NEWEST", (4, 0))
        patch.setattr(versions, "_warned", set())
        for _ in range(2):
            vl.spark.accelerate(spark)
            assert planner_of(spark) is None
            assert load(spark, ev).where(K1).count() == 8
    assert [str(each.message)[:6] for each in said if "is newer than" in str(each.message)] == [
        "Spark "
    ]
    vl.spark.accelerate(spark)
    assert planner_of(spark) is not None
