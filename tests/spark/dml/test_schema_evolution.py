"""MERGE with schema evolution gives what Delta Spark's gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import variantlake as vl
from tests.spark.dml.twins import Twins
from tests.spark.layouts import changed
from variantlake.errors import UnsupportedFeature
from variantlake.spark.rule.accelerate import planner_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

SETUP = (
    """CREATE TABLE {t} (id INT, n INT DEFAULT 7, v STRING, st STRUCT<a: INT>) USING delta
        TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',
        'delta.enableChangeDataFeed' = 'true',
        'delta.feature.allowColumnDefaults' = 'supported')""",
    "INSERT INTO {t} (id, n, v) VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')",
)
UPDATE, INSERT = "WHEN MATCHED THEN UPDATE SET", "WHEN NOT MATCHED THEN INSERT"
BOTH = (f"{UPDATE} *", f"{INSERT} *")


def evolving(source: str, *clauses: str) -> str:
    start = "MERGE WITH SCHEMA EVOLUTION INTO {t} t"
    return f"{start} USING ({source}) s ON t.id = s.id {' '.join(clauses)}"


MERGES = (
    # Columns of the table that the source lacks: they stay, or have their default.
    evolving("SELECT explode(array(1, 9)) AS id, 1.5D AS score", *BOTH),
    # Clauses name what is added, and compute with it.
    evolving(
        "SELECT 2 AS id, 'q' AS word, 5 AS other", f"{UPDATE} word = concat(s.word, t.v)"
    ),
    evolving("SELECT 77 AS id, 'q' AS verb, 5 AS x", f"{INSERT} (id, verb) VALUES (78, s.verb)"),
    evolving("SELECT 3 AS id, 'q' AS noun", f"{UPDATE} nouns = s.noun"),
    # Nothing is added.
    evolving("SELECT 9 AS id, 'q' AS lost", "WHEN MATCHED THEN DELETE"),
    # No row matches: the column comes nevertheless.
    evolving("SELECT 300 AS id, 'q' AS nothing", f"{UPDATE} *"),
    # Names in letters of other cases, other types of columns that are there.
    evolving("SELECT 2 AS ID, 21L AS N, true AS Flag", *BOTH),
    evolving("SELECT 2 AS id, 'no' AS n, true AS flag", *BOTH),
    evolving("SELECT 3 AS id, named_struct('a', 1) AS st, array(1) AS items, NULL AS none", *BOTH),
)  # fmt: skip


def test_columns_are_added_as_by_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    twins = Twins.create(lake, spark, tmp_path, *SETUP)
    twins.agree(*MERGES)
    deeper = evolving("SELECT 1 AS id, named_struct('a', 1, 'b', 2) AS st", *BOTH)
    twins.agree(deeper, by_delta=True)
    lake.sql(deeper.format(t=twins.ours), commit_properties={"job": "nightly"})
    more = deeper.replace("'b', 2", "'b', 2, 'c', 3")
    lake.sql(more.format(t=twins.ours), commit_properties="by day")
    (newest, before) = vl.Table.open(twins.folder / "ours").history(2)
    assert str(newest.info["engineInfo"]).startswith("Apache-Spark")
    assert newest.info["userMetadata"] == "by day"
    assert before.commit_properties == {"job": "nightly"}
    assert spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None) is None
    for text in (deeper, more):
        spark.sql(text.format(t=twins.theirs))
    twins.agree("UPDATE {t} SET st.a = 1 WHERE id = 1")
    with changed(spark, {"spark.databricks.delta.schema.autoMerge.enabled": "true"}):
        twins.agree(
            evolving("SELECT 1 AS id, 'auto' AS auto", *BOTH).replace("WITH SCHEMA EVOLUTION", "")
        )
    twins.same_by_us()
    planner = planner_of(spark)
    assert planner is None or not planner.warnings


def test_the_verb_adds_columns(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path / "t", "id BIGINT, st STRUCT<a: INT>")
    table.append([{"id": 1}])
    rows = spark.sql("""SELECT id, parse_json('{"n": 1}') AS event FROM range(1, 3)""")
    on = "t.id = s.id"
    planned = lake.merge(table.uri, rows, on, merge_schema=True, dry_run=True)
    assert (planned.rows_updated, planned.rows_inserted) == (1, 1)
    assert [field.name for field in table.refresh().schema.fields] == ["id", "st"]
    done = lake.merge(table.uri, rows, on, merge_schema=True, commit_properties={"job": "x"})
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    builder = lake.merge_builder(
        table.uri, rows.selectExpr("id", "id * 2 AS n"), on, merge_schema=True
    )
    assert builder.when_matched_update_all("s.id = 2").execute().rows_updated == 1
    found = table.refresh().scan("id, event:n::int AS k, n").to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [
        {"id": 1, "k": 1, "n": None},
        {"id": 2, "k": 1, "n": 4},
    ]
    deeper = rows.selectExpr("id", "named_struct('b', 1) AS st")
    with pytest.raises(UnsupportedFeature, match="st would change"):
        lake.merge(table.uri, deeper, on, merge_schema=True, dry_run=True)
