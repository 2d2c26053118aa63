"""Jobs as others write them, with the rule on and off in one session: the same answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import pandas_udf

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, UNADAPTED, changed
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
    spark.sql("CREATE VIEW jobs_upper AS SELECT i + 1 AS j, k FROM jobs_view WHERE k > 'k1'")
    spark.table("jobs_odd").createOrReplaceTempView("jobs_temporary")
    yield
    for view in ("jobs_upper", "jobs_view"):
        spark.sql(f"DROP VIEW {view}")
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
    # A condition that reads more of a subquery than paths.
    "SELECT o.id FROM jobs_ev o WHERE NOT EXISTS (SELECT * FROM jobs_ev i WHERE "
    "i.event:n::int = o.event:n::int + 1 OR i.id = 3 AND o.id = 5)": 8,
    "SELECT (SELECT event:n::int FROM jobs_ev)": 4,
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
    "SELECT j, k FROM jobs_upper WHERE k = 'k2'": 1,
    f"SELECT id, {KIND} FROM jobs_ev WHERE event IS NOT NULL AND id < 10": 1,
    "SELECT id, t.key, t.value::string FROM jobs_ev, LATERAL variant_explode_outer(event:o) t "
    f"WHERE {KIND} = 'k1'": 1,
    f"SELECT id FROM jobs_ev WHERE ({KIND}, part) IN (SELECT {KIND}, part FROM jobs_odd "
    "WHERE event:n::int < 15)": 6,
    f"SELECT * FROM (SELECT id, {KIND} k, event:n::string n FROM jobs_ev WHERE event:n::int < 12) "
    "UNPIVOT (v FOR c IN (k, n))": 2,
    f"SELECT TRANSFORM ({KIND}) USING 'cat' AS (k) FROM jobs_ev WHERE {KIND} = 'k1'": 1,
    f"SELECT {KIND} COLLATE UTF8_LCASE AS k, count(*) FROM jobs_ev WHERE event:n::int > 25 "
    "GROUP BY k": 2,
    f"SELECT session_window.start, count(*) FROM jobs_ev WHERE {KIND} = 'k1' "
    "GROUP BY session_window(event:at::timestamp, '3 seconds')": 1,
    f"SELECT {KIND}, id FROM jobs_ev EXCEPT ALL SELECT {KIND}, id FROM jobs_odd "
    "WHERE event:n::int > 12": 7,
    f"SELECT raise_error({KIND}) FROM jobs_ev WHERE event:n::int = 12": 1,
    "SELECT event:n::int * 2000000000 FROM jobs_ev WHERE event:n::int = 12": 1,
    "SELECT cast(event:o AS map<string, int>), cast(event AS struct<kind: string>).kind "
    f"FROM jobs_ev WHERE {KIND} = 'k1'": 1,
    "SELECT EVENT:kind::STRING, event:Kind::string, `event`:['kind']::string FROM jobs_ev "
    "WHERE Event:kind::string = 'k1'": 1,
    f"SELECT s.e:n::int FROM (SELECT named_struct('e', event, 'k', {KIND}) s FROM jobs_ev) "
    "WHERE s.k = 'k1'": 1,
    f"SELECT event FROM jobs_ev WHERE {KIND} = 'k1' UNION ALL SELECT event:o FROM jobs_odd "
    f"WHERE {KIND} = 'k2'": 2,
    "SELECT variant_get(event, '$.' || 'kind', 'string'), variant_get(event, '$.' || part, 'int') "
    f"FROM jobs_ev WHERE {KIND} = 'k1'": 1,
    "SELECT a.id, b.id FROM jobs_ev VERSION AS OF 2 a FULL JOIN jobs_ev b ON a.id = b.id "
    f"AND a.{KIND} = b.{KIND} WHERE a.{KIND} = 'k1' OR b.{KIND} = 'k2'": 6,
    f"SELECT count(*) FROM jobs_ev TABLESAMPLE (100 PERCENT) WHERE {KIND} = 'k1'": None,
    f"SELECT id, _metadata.file_size > 0 FROM jobs_ev WHERE {KIND} = 'k1'": None,
    "SELECT evnt:n::int FROM jobs_ev": None,
    f"SELECT id FROM jobs_ev WHERE {KIND} > 'k1' AND event:n::int > (SELECT avg(event:n::int) "
    f"FROM jobs_odd WHERE {KIND} = 'k2')": 3,
    " UNION ALL ".join([f"SELECT id FROM jobs_ev WHERE {KIND} = 'k1'"] * 11): 11,
}  # fmt: skip


def frames(ev: DataFrame, odd: DataFrame) -> dict[str, Callable[[], Any]]:
    kind, n = F.expr(KIND), F.variant_get("event", "$.n", "bigint")
    kept = ev.where(kind == "k2")
    double = cast("Any", pandas_udf)(lambda values: values * 2, "bigint")

    shown = F.udf(lambda v: None if v is None else v.toJson(), "string", useArrow=False)

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
        "udf of a Variant": lambda: kept.select(shown("event"), shown(F.expr("event:o"))),
        "cogrouped": lambda: kept.select("part", n.alias("n")).groupBy("part")
        .cogroup(odd.select("part", kind.alias("k")).groupBy("part"))
        .applyInPandas(lambda one, two: one.head(1)[["n"]].assign(m=len(two)), "n bigint, m int"),
        "lateral": lambda: kept.alias("t").lateralJoin(
            ev.sparkSession.tvf.variant_explode(F.col("t.event").outer())
        ).where("key = 'kind'").select("id", "key"),
        "renamed and replaced": lambda: kept.withColumn("event", F.expr("event:o"))
        .withColumnRenamed("event", "Odd name.x").select(F.expr("`Odd name.x`:a::int")),
        "mapped": lambda: kept.select("id", kind.alias("k"))
        .mapInArrow(lambda batches: batches, "id long, k string"),
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
    except Py4JJavaError as error:
        return str(error.java_exception.getMessage())


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
        with changed(spark, OFF | UNADAPTED):
            assert ours == answer(lambda: spark.sql(text)), text  # noqa: B023
        counts[text] = sum(each.plan.read_files for each in read) if read else None
    assert counts == TEXTS


@pytest.mark.rule(42)
def test_dataframes(spark: SparkSession) -> None:
    unread = []
    for name, job in frames(spark.table("jobs_ev"), spark.table("jobs_odd")).items():
        with planned(spark) as read:
            ours = answer(job)
        with changed(spark, OFF | UNADAPTED):
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
