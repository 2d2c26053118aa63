"""Jobs as others write them, with the rule on and off in one session: the same answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import pandas_udf

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.rule.door import accelerated
from tests.spark.rule.test_rule import OFF, make, rows
from variantlake.spark.rule.accelerate import planner_of

if TYPE_CHECKING:
    from variantlake.spark.query.plans.planned import PlannedTable

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "rule", "tables")]

KIND = "event:kind::string"


@pytest.fixture(scope="module")
def rule(spark: SparkSession) -> Iterator[None]:
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`jobs_ev`; `jobs_odd` with partitions and mapped columns; views of them."""
    folder = tmp_path_factory.mktemp("jobs")
    make(folder / "ev")
    make(folder / "odd", partition_by=["part"], properties={"delta.columnMapping.mode": "name"})
    for name in ("ev", "odd"):
        spark.sql(f"CREATE TABLE jobs_{name} USING delta LOCATION '{folder / name}'")
    spark.sql(f"CREATE VIEW jobs_view (i, k) AS SELECT id, {KIND} FROM jobs_ev WHERE id > 12")
    spark.table("jobs_odd").createOrReplaceTempView("jobs_temporary")
    yield
    spark.sql("DROP VIEW jobs_view")
    for name in ("ev", "odd"):
        spark.sql(f"DROP TABLE jobs_{name}")


TEXTS = {
    # How many of the four files of each table are read; None if Spark reads them.
    f"SELECT k, count(*) FROM (SELECT {KIND} k FROM jobs_ev UNION ALL SELECT k FROM jobs_view) "
    "WHERE k = 'k2' GROUP BY ROLLUP (k)": 2,
    "SELECT event:o:a::int, event:o['a']::string FROM jobs_ev WHERE event:n::int > 31": 1,
    "WITH o AS (SELECT id, event:o e FROM jobs_ev WHERE event:n::int > 31) SELECT e:a::int FROM o "
    "WHERE e:a::int < 5": 1,
    "SELECT o.id FROM jobs_ev o WHERE NOT EXISTS (SELECT 1 FROM jobs_temporary i WHERE "
    f"i.event:n::bigint = o.event:n::bigint AND i.event:n::int < 9) AND {KIND} = 'k0'": 2,
    f"SELECT id, (SELECT max(event:n::int) FROM jobs_odd i WHERE i.part = o.part) FROM jobs_ev o "
    f"WHERE {KIND} = 'k2'": 5,
    f"SELECT {KIND} FROM jobs_ev INTERSECT SELECT {KIND} FROM jobs_odd WHERE event:n::int > 35": 5,
    "SELECT part, event:kind::string, max(event:n::int), grouping_id() FROM jobs_ev "
    "GROUP BY GROUPING SETS ((part), (event:kind::string), ())": 4,
    f"SELECT * FROM (SELECT part, {KIND} k, event:n::int n FROM jobs_ev) "
    "PIVOT (max(n) FOR k IN ('k0', 'k1'))": 4,
    f"SELECT count(*) FILTER (WHERE {KIND} = 'k1'), max_by(id, event:n::int) FROM jobs_ev": 4,
    f"SELECT id, sum(event:n::int) OVER (ORDER BY id) s FROM jobs_ev WHERE {KIND} > 'k1' "
    "QUALIFY s > 20": 2,
    "SELECT schema_of_variant(event), is_variant_null(event:kind) FROM jobs_ev "
    f"WHERE {KIND} = 'k1'": 1,
    f"FROM jobs_ev |> WHERE {KIND} = 'k1' |> AGGREGATE count(*) c GROUP BY part": 1,
    f"SELECT {KIND}::int FROM jobs_ev WHERE event:n::int = 12": 1,
    f"SELECT event:n::int / 0 FROM jobs_ev WHERE {KIND} = 'k1'": 1,
    f"SELECT id, _metadata.file_size > 0 FROM jobs_ev WHERE {KIND} = 'k1'": None,
    "SELECT evnt:n::int FROM jobs_ev": None,
}  # fmt: skip


def frames(ev: DataFrame, odd: DataFrame) -> dict[str, Callable[[], Any]]:
    kind, n = F.expr(KIND), F.variant_get("event", "$.n", "bigint")
    kept = ev.where(kind == "k2")
    double = cast("Any", pandas_udf)(lambda values: values * 2, "bigint")

    def observed() -> dict[str, Any]:
        seen = Observation()
        kept.observe(seen, F.count(F.lit(1)).alias("rows")).collect()
        return seen.get

    return {
        "cube": lambda: ev.cube("part", kind.alias("k")).agg(F.sum(n), F.count("*")),
        "rollup of conditions": lambda: ev.where(n > 35).rollup("part").agg(F.max(kind)),
        "below a path": lambda: ev.withColumn("o", F.expr("event:o")).where(n > 35)
        .selectExpr("id", "o:a::int"),
        "pandas": lambda: kept.select(double(n).alias("n")),
        "grouped pandas": lambda: kept.select("part", n.alias("n"))
        .groupBy("part").applyInPandas(lambda part: part.tail(1)[["n"]], "n bigint"),
        "union": lambda: kept.drop("part").unionByName(odd, allowMissingColumns=True).where(n > 9),
        "exists": lambda: ev.where(odd.where("event:kind::string = 'k1'").exists()).select(n),
        "struct": lambda: ev.select(F.struct("event").alias("s")).where("s.event:n::int = 12"),
        "count": kept.count,
        "empty": ev.where(kind == "none").isEmpty,
        "iterated": lambda: sorted(row[0] for row in kept.select(n).toLocalIterator()),
        "rdd": lambda: sorted(row[0] for row in kept.select(n).rdd.collect()),
        "checkpoint": lambda: kept.select(n).localCheckpoint().count(),
        "observed": observed,
    }  # fmt: skip


def answer(job: Callable[[], Any]) -> Any:
    """Rows, column names, types and nullability; or the error."""
    try:
        found = job()
        return (found.schema.json(), rows(found)) if isinstance(found, DataFrame) else found
    except PySparkException as error:
        return error.getCondition(), type(error)


@contextlib.contextmanager
def planned(spark: SparkSession) -> Iterator[list[PlannedTable]]:
    planner = planner_of(spark)
    assert planner is not None
    assert not planner.warnings
    with planner.explaining() as tables:
        yield tables
    assert not planner.warnings


@pytest.mark.rule(42)
def test_texts(spark: SparkSession) -> None:
    counts = {}
    for text in TEXTS:
        with planned(spark) as read:
            ours = answer(lambda: spark.sql(text))  # noqa: B023 - called at once
        with changed(spark, OFF):
            assert ours == answer(lambda: spark.sql(text)), text  # noqa: B023
        counts[text] = sum(each.plan.read_files for each in read) if read else None
    assert counts == TEXTS


@pytest.mark.rule(42)
def test_dataframes(spark: SparkSession) -> None:
    unread = []
    for name, job in frames(spark.table("jobs_ev"), spark.table("jobs_odd")).items():
        with planned(spark) as read:
            ours = answer(job)
        with changed(spark, OFF):
            assert ours == answer(job), name
        if not read:
            unread.append(name)
    assert not unread


def test_what_is_cached_stays_and_streams_see_all(spark: SparkSession, tmp_path: Path) -> None:
    location = make(tmp_path / "t")
    table = spark.read.format("delta").load(location)
    cached = table.where("event:n::int > 30").select("id").cache()
    assert cached.count() == 8
    seen: list[int] = []

    def take(batch: DataFrame, number: int) -> None:
        del number
        kept = batch.join(spark.table("jobs_ev").where(f"{KIND} = 'k1'").select("id"), "id")
        seen.extend(row.id for row in kept.collect())

    stream = spark.readStream.format("delta").load(location).writeStream.foreachBatch(take)
    stream.option("checkpointLocation", str(tmp_path / "c")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert sorted(seen) == [10, 11, 12, 13, 14, 15, 16, 19]
    vl.Table.open(location).delete("id = 31")
    assert cached.count() == 8
    cached.unpersist()
    assert spark.read.format("delta").load(location).where("event:n::int > 30").count() == 7
