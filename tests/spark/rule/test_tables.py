"""`lake.table` and the data source as DataFrames that the rule plans, and what they are without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.rule.test_aggregates import is_begun
from tests.spark.rule.test_rule import OFF, SCHEMA, SHREDDING, make, rows_of
from tests.strategies import MORE
from variantlake.spark.lake import Lake, connect
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.rule.planner import RulePlanner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "plainly")]


@pytest.fixture(scope="module")
def plainly(spark: SparkSession) -> Iterator[None]:
    with changed(spark, {PUSHDOWN: "false"}):
        yield
        vl.spark.decelerate(spark)


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """`ev`, and `odd` with partitions, mapped columns, deleted rows and columns of other types."""
    folder = tmp_path_factory.mktemp("tables")
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    odd = vl.Table.create(
        folder / "odd",
        f"{SCHEMA}, c CHAR(4), s STRUCT<a: INT NOT NULL>",
        shredding=SHREDDING,
        partition_by=["part"],
        properties=properties,
    )
    for file in range(4):
        rows = rows_of(file)
        rows = rows.append_column("c", pa.array(["ab  "] * rows.num_rows))
        structs = pa.array([{"a": file}] * rows.num_rows, pa.struct([("a", pa.int32())]))
        odd.refresh().append(rows.append_column("s", structs), json_columns=["event"])
    odd.refresh().delete("id IN (3, 14)")
    return {"ev": make(folder / "ev"), "odd": str(folder / "odd")}


def rows(frame: DataFrame) -> Counter[str]:
    return Counter(map(str, frame.collect()))


def files_read(lake: Lake, frame: DataFrame) -> int | None:
    found = lake.explain(frame).to_dict()["tables"]
    return sum(table["files"]["read"] for table in found) if found else None


def uses(table: DataFrame) -> dict[str, DataFrame]:
    """What is made of a table, all of which the rule reads."""
    kind = F.expr("event:kind::string")
    kept = table.where("event:kind::string = 'k2'")
    return {
        "all": table.selectExpr("*", "to_json(event)").drop("event"),
        "paths": kept.select("id", kind.alias("kind"), "part"),
        "grouped": table.where("event:n::int > 5").groupBy(kind.alias("k")).agg(F.max("id")),
        "joined": kept.alias("a").join(table.alias("b"), "id").selectExpr("id", "b.event:n::int"),
        "union": kept.select("id").union(table.select("id")),
        "plain columns": table.where("id > 25").select("part", "id"),
        "count": table.agg(F.count("*")),
        "places": table.select("id", F.monotonically_increasing_id() >= 0),
        "ordered": table.orderBy(F.expr("event:n::int").desc_nulls_last()).limit(2).select("id"),
    }


@pytest.mark.parametrize("name", ["ev", "odd"])
def test_a_table_gives_the_same_rows_with_the_rule_and_without(
    spark: SparkSession, lake: Lake, tables: dict[str, str], name: str
) -> None:
    native = uses(lake.read(tables[name]))
    table = lake.table(tables[name])
    assert table.schema == lake.read(tables[name]).schema
    assert table.sparkSession is spark
    for at, (use, frame) in enumerate(uses(table).items()):
        if MORE == 1 and at % 2 != (name == "odd"):
            continue
        right = rows(native[use])
        assert rows(frame) == right, use
        with changed(spark, OFF):
            assert rows(frame.select("*")) == right, use
    assert files_read(lake, uses(table)["paths"]) == 1
    assert files_read(lake, uses(table)["plain columns"]) == 2
    assert is_begun(uses(table)["count"])


def test_a_table_outlives_the_rule(
    spark: SparkSession, lake: Lake, tables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = lake.table(tables["odd"]).where("event:kind::string = 'k1' AND c = 'ab'")
    assert files_read(lake, kept) == 1
    vl.spark.decelerate(spark)
    assert kept.count() == 7
    assert planner_of(spark) is None
    again = lake.table(tables["odd"]).where("event:kind::string = 'k1'")

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("made to fail")

    monkeypatch.setattr(RulePlanner, "_open", fail)
    with pytest.warns(UserWarning, match="left as Spark runs it"):
        assert again.count() == 7


def test_the_rule_of_a_table_leaves_others_to_spark(
    spark: SparkSession, lake: Lake, tables: dict[str, str]
) -> None:
    vl.spark.decelerate(spark)
    lake.table(tables["ev"])
    others = spark.read.format("delta").load(tables["ev"]).where("event:kind::string = 'k1'")
    assert files_read(lake, others) is None
    vl.spark.accelerate(spark)
    assert files_read(lake, others) == 1


def test_versions_and_views(spark: SparkSession, lake: Lake, tables: dict[str, str]) -> None:
    older = lake.table(tables["ev"], 2)
    assert older.count() == 20
    assert files_read(lake, older.where("event:n::int < 100")) == 2
    assert lake.table(f"{tables['ev']}@v1").count() == 10
    lake.table(tables["ev"]).createOrReplaceTempView("of_a_table")
    text = "SELECT event:n::int FROM of_a_table WHERE event:kind::string = 'k3'"
    assert files_read(lake, spark.sql(text)) == 1
    assert spark.sql(text).count() == 8
    assert lake.table("of_a_table").count() == 40


def test_the_data_source_is_planned_too(
    spark: SparkSession, lake: Lake, tables: dict[str, str]
) -> None:
    vl.spark.accelerate(spark)
    table = spark.read.format("variantlake").load(tables["odd"])
    made, native = uses(table), uses(lake.read(tables["odd"]))
    for use in ("all", "grouped", "joined"):
        assert rows(made[use]) == rows(native[use]), use
    assert files_read(lake, made["paths"]) == 1
    assert is_begun(made["count"])
    older = spark.read.format("variantlake").option("versionAsOf", 2).load(tables["ev"])
    assert files_read(lake, older.where("event:n::int < 100")) == 2
    some = spark.read.format("variantlake").option("columns", "id").load(tables["ev"])
    assert files_read(lake, some) is None
    assert some.count() == 40


def test_an_accelerated_session_knows_the_format(
    spark: SparkSession, lake: Lake, tables: dict[str, str]
) -> None:
    session = spark.newSession()
    sources = cast("Any", session)._jsparkSession.sessionState().dataSourceManager()
    assert not sources.dataSourceExists("variantlake")
    vl.spark.accelerate(session)
    registered = sources.lookupDataSource("variantlake")
    read = session.read.format("variantlake")
    assert files_read(lake, read.load(tables["ev"]).where("event:kind::string = 'k1'")) == 1
    vl.spark.accelerate(session)
    assert registered.equals(sources.lookupDataSource("variantlake"))
    vl.spark.decelerate(session)
    assert session.read.format("variantlake").load(tables["ev"]).count() == 40


def test_what_is_written_by_the_format_is_read_by_the_rule(
    spark: SparkSession, tables: dict[str, str], tmp_path: Path
) -> None:
    """Delta Spark fails at its tables with deletion vectors here: it looks at no such statement."""
    vl.spark.accelerate(spark)
    planner = planner_of(spark)
    assert planner is not None
    target = make(tmp_path / "t")
    kept = spark.read.format("delta").load(tables["odd"]).where("event:kind::string = 'k1'")
    ids = f"SELECT id FROM delta.`{tables['odd']}` WHERE event:n::int < 15"
    kept.createOrReplaceTempView("kept")
    some = spark.sql(f"SELECT id, part, event FROM kept WHERE id IN ({ids})")
    with planner.explaining() as planned:
        some.write.format("variantlake").mode("append").save(target)
    assert [each.plan.read_files for each in planned] == [1, 2]
    with planner.explaining() as planned:
        own = spark.read.format("delta").load(target).where("event:kind::string = 'k1'")
        own.write.format("variantlake").mode("overwrite").save(target)
    assert [each.plan.read_files for each in planned] == [2]
    found = Counter(vl.Table.open(target).scan("id").to_arrow()["id"].to_pylist())
    assert found == Counter([10, 11, 12, 13, *range(10, 17), 19])


def test_a_table_overwrites_what_it_was_read_of(lake: Lake, tmp_path: Path) -> None:
    location = make(tmp_path / "t")
    lake.overwrite(location, lake.table(location).where("event:kind::string = 'k1'"))
    assert lake.table(location).count() == 8


def test_a_view_of_the_data_source_cannot_be_changed_as_without_the_rule(
    spark: SparkSession, tables: dict[str, str]
) -> None:
    vl.spark.accelerate(spark)
    spark.read.format("variantlake").load(tables["ev"]).createOrReplaceTempView("of_source")
    kept = "event:kind::string = 'k1'"
    for statement in (
        "DELETE FROM of_source WHERE id = 3",
        f"DELETE FROM of_source WHERE {kept}",
        f"DELETE FROM of_source WHERE id IN (SELECT id FROM of_source WHERE {kept})",
    ):
        said = []
        for settings in ({}, OFF):
            with changed(spark, settings), pytest.raises(PySparkException) as caught:
                spark.sql(statement)
            said.append(caught.value.getCondition())
        assert said[0] == said[1], statement
