"""Scans by our kernels inside of Spark tasks: the rows are the judge's, and few are rebuilt."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, PythonException

import variantlake as vl
from tests.parquet.write.test_table_writer import of
from tests.spark.layouts import (
    SHAPES,
    changed,
    judge,
    make,
    rows,
)
from tests.spark.query.test_sql import QUERIES, assert_same
from variantlake.planning import late_materialization
from variantlake.spark.lake import Lake, connect
from variantlake.spark.rule import planner
from variantlake.spark.scan.dataframe import scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


FOUND_FIRST = {
    "star": QUERIES["star"],
    "whole": QUERIES["whole"],
    "functions": QUERIES["functions-of-variants"],
    "limit": """
        SELECT * FROM {t} WHERE event:kind::string = 'good'
        ORDER BY event:id::bigint, k LIMIT 3""",
    "sub-variant": "SELECT event:n FROM {t} WHERE event:id::bigint IN (5, 107, 205)",
    "native-path": "SELECT event:arr[0]::string a, k FROM {t} WHERE event:t::bigint > 1008",
    "ordinary-column": "SELECT event, k + 1 FROM {t} WHERE k = 3",
    "or": "SELECT event FROM {t} WHERE event:id::bigint = 4 OR event:kind::string = 'ugly'",
    "null": "SELECT event, k FROM {t} WHERE event:kind::string IS NULL",
    "guard": """
        SELECT event FROM {t}
        WHERE event:kind::string = 'ugly' AND event:price::decimal(10, 2) > 3""",
    "guard-of-mixed": """
        SELECT event FROM {t} WHERE event:id::bigint < 3 AND event:mixed::bigint = 2""",
    "join": """
        SELECT a.event, b.k FROM {t} a JOIN {t} b ON a.event:id::bigint = b.event:id::bigint + 1
        WHERE b.event:kind::string = 'bad' AND a.k < 9""",
    "exists": """
        SELECT event FROM {t} a WHERE event:kind::string = 'bad' AND EXISTS
            (SELECT 1 FROM {t} b WHERE b.k = a.k AND b.event:kind::string = 'ugly')""",
    "window": """
        SELECT event, row_number() OVER (PARTITION BY k ORDER BY event:id::bigint) FROM {t}
        WHERE event:t::bigint < 1110""",
    "rollup": """
        SELECT p, k, max(to_json(event)), grouping_id() FROM {t}
        WHERE event:id::bigint < 5 GROUP BY ROLLUP(p, k)""",
    "unpivot": """
        SELECT n, v, to_json(event) FROM (SELECT * FROM {t} WHERE event:id::bigint < 5)
            UNPIVOT (v FOR n IN (k))""",
    "distinct": """
        SELECT DISTINCT to_json(event) FROM {t} WHERE startswith(event:kind::string, 'go')""",
}


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are worth the workers here."""
    monkeypatch.setattr(late_materialization, "MIN_BYTES", 0)


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    found = {}
    for name, shape in SHAPES.items():
        found[name] = make(spark, tmp_path_factory.mktemp("lake") / "a table", shape)
        judge(spark, f"judge_{name}", shape)
    yield found
    for name in SHAPES:
        spark.catalog.dropTempView(f"judge_{name}")


def executed(frame: DataFrame) -> str:
    java: Any = frame._jdf
    return str(java.queryExecution().executedPlan().toString())


@pytest.mark.rule(14)
@pytest.mark.parametrize("name", FOUND_FIRST)
def test_rule_14_rows_that_are_found_first_are_those_of_the_judge(
    spark: SparkSession, lake: Lake, tables: dict[str, str], name: str
) -> None:
    query = FOUND_FIRST[name]
    assert "MapInArrow" in executed(lake.sql(query.format(t=f"delta.`{tables['mixed']}`")))
    assert_same(spark, lake, tables["mixed"], "mixed", query)


@pytest.mark.parametrize("name", ["guard", "join", "window"])
def test_they_are_where_all_files_are_read_by_kernels(
    spark: SparkSession, lake: Lake, tables: dict[str, str], name: str
) -> None:
    assert_same(spark, lake, tables["physical"], "physical", FOUND_FIRST[name])


@pytest.mark.parametrize("name", ["guard", "guard-of-mixed", "null"])
def test_they_are_without_ansi(
    spark: SparkSession, lake: Lake, tables: dict[str, str], name: str
) -> None:
    with changed(spark, {"spark.sql.ansi.enabled": "false"}):
        assert_same(spark, lake, tables["mixed"], "mixed", FOUND_FIRST[name])


def test_explain_says_who_reads_and_by_what_rows_are_found(
    lake: Lake, tables: dict[str, str]
) -> None:
    table = f"delta.`{tables['mixed']}`"
    query = f"SELECT event FROM {table} WHERE event:kind::string IN ('good', 'ugly')"
    report = lake.explain(query)
    (scan,) = report.to_dict()["tables"]
    # By the log, all rows of the third file fulfil it.
    found = {"predicate": "event:kind::string IN ('good', 'ugly')", "files": 2}
    assert scan["rows_found_by"] == [found]
    (whole,) = scan["paths"]
    assert (whole["path"], whole["whole"], whole["kernels"]) == ("event", 4, 2)
    assert "in 2 files by our kernels" in str(report)


# --- What Spark cannot read -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd_types(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made_of_odd_types(tmp_path_factory.mktemp("odd") / "t")


def made_of_odd_types(path: Path) -> str:
    """Two files; in the first TIME and UUID are columns, which Spark's Variants do not have."""
    made = vl.Table.create(
        path,
        "event VARIANT, k INT, p STRING, s STRUCT<v: VARIANT>",
        partition_by=["p"],
        shredding={"event": "id BIGINT, at TIME, u UUID"},
    )
    for start, odd in ((0, True), (10, False)):
        documents = []
        for i in range(start, start + 10):
            document: dict[str, Any] = {"id": i, "kind": f"k{i % 3}"}
            if odd and i % 2:
                document |= {"at": dt.time(1, 2, i), "u": uuid.UUID(int=i)}
            documents.append(document)
        variants = of(*documents)
        made.append(
            pa.table(
                {
                    "event": variants,
                    "k": pa.array(range(start, start + 10), pa.int32()),
                    "p": ["a"] * 5 + [None] * 5,
                    "s": pa.StructArray.from_arrays([of(*documents)], ["v"]),
                }
            )
        )
    return str(made.snapshot.store.uri)


@pytest.mark.rule(10)
def test_rule_10_variants_that_spark_cannot_read_are_rebuilt(lake: Lake, odd_types: str) -> None:
    for frame in (
        lake.read(odd_types),
        lake.sql(f"SELECT * FROM delta.`{odd_types}`"),
        lake.sql(f"SELECT * FROM delta.`{odd_types}` WHERE event:kind::string >= 'k0'"),
    ):
        found = frame.selectExpr(
            "event:id::int", "event:kind::string", "k", "p", "s.v:id::int", "event:id::string"
        ).collect()
        assert sorted(tuple(row) for row in found) == sorted(
            (i, f"k{i % 3}", i, "a" if i % 10 < 5 else None, i, str(i)) for i in range(20)
        )


@pytest.mark.rule(10)
def test_rule_10_spark_gets_the_values_that_it_does_not_know(lake: Lake, odd_types: str) -> None:
    """What Spark makes of them is Spark's: it fails by name, in these rows alone."""
    plain = f"SELECT to_json(event) AS j FROM delta.`{odd_types}` WHERE event:id::int % 2 = 0"
    assert lake.sql(plain).count() == 10
    (row,) = lake.sql(f"SELECT event FROM delta.`{odd_types}` WHERE event:id::int = 3").collect()
    assert vl.Variant(row.event.metadata, row.event.value).to_python()["u"] == uuid.UUID(int=3)


@pytest.mark.rule(10)
def test_rule_10_variants_with_fields_beside_them_are_rebuilt(lake: Lake, tmp_path: Path) -> None:
    """A file of another writer: names with `_` in front may stand in the group, for Spark not."""
    made = vl.Table.create(tmp_path / "t", "event VARIANT, p INT, __vl_c0 INT", partition_by=["p"])
    variants: Any = of({"id": 1}, {"id": 2})
    fields = [variants.field(0), variants.field(1), pa.array([7, 8], pa.int32())]
    group = pa.StructArray.from_arrays(fields, [*variants.type.names, "_x"])
    file = tmp_path / "t" / "other.parquet"
    pq.write_table(pa.table({"event": group, "__vl_c0": pa.array([3, 4], pa.int32())}), file)
    size = file.stat().st_size
    add = {"path": file.name, "size": size, "modificationTime": 0, "dataChange": True}
    commit = json.dumps({"add": add | {"partitionValues": {"p": "5"}}})
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(commit, encoding="utf-8")
    for frame in (lake.read(made.uri), lake.sql(f"SELECT * FROM delta.`{made.uri}`")):
        found = frame.selectExpr("event:id::int", "p", "__vl_c0").collect()
        assert sorted(map(tuple, found)) == [(1, 5, 3), (2, 5, 4)]


# --- Errors ---------------------------------------------------------------------------------------


def test_a_column_left_out_by_mistake_is_said_to_be_our_fault(
    lake: Lake, odd_types: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave_out(*args: Any, needed: Any, **rest: Any) -> DataFrame:
        assert "k" in needed
        return scan(*args, needed=needed - {"k"}, **rest)

    monkeypatch.setattr(planner, "scan", leave_out)
    query = "SELECT k, event FROM {}"
    with pytest.raises(PySparkException, match=r"not of the query: column k .*lake\.read"):
        lake.sql(query.format(f"delta.`{odd_types}`")).collect()
    lake.read(odd_types).createOrReplaceTempView("every_column")  # the way that the error names
    try:
        assert len(lake.sql(query.format("every_column")).collect()) == 20
    finally:
        spark.catalog.dropTempView("every_column")


def test_an_error_of_a_task_names_the_file(lake: Lake, tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path / "t", "event VARIANT", shredding={"event": "id BIGINT"})
    lines = [json.dumps({"id": i, "text": "x" * 50}) for i in range(100)]
    made.append(pa.table({"event": lines}), json_columns=["event"])
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    frame = lake.sql(f"SELECT event FROM delta.`{tmp_path / 't'}` WHERE event:id::int = 7")
    with pytest.raises(PythonException, match="MalformedFile") as caught:
        frame.collect()
    assert file.name in str(caught.value)


@pytest.mark.rule(14)
@pytest.mark.parametrize(
    "condition",
    [
        "CAST(ts AS DATE) = DATE '2024-01-01'",
        "CAST(amount AS DECIMAL(10, 2)) = 1.24",
        "CAST(amount AS DOUBLE) = 1.2350D",
        "CAST(k AS DECIMAL(20, 2)) = 3.00",
        "CAST(k AS DOUBLE) IN (3.0D, 4.0D)",
    ],
)
def test_rule_14_casts_of_ordinary_columns_find_the_rows_that_spark_finds(
    spark: SparkSession, lake: Lake, tmp_path: Path, condition: str
) -> None:
    """A date is one of the session's zone, and a cast to fewer digits rounds."""
    table = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"""CREATE TABLE {table} USING delta
            TBLPROPERTIES ('delta.enableVariantShredding'='true') AS
            SELECT int(id) AS k, timestamp_micros(1704067200000000 + (id - 12) * 3600000000) AS ts,
                CAST(1.2300 + id / 2000 AS DECIMAL(10, 4)) AS amount,
                parse_json(concat('{{"id":', id, '}}')) AS event FROM range(0, 48, 1, 1)"""
    )
    query = f"SELECT event, k FROM {table} WHERE {condition}"
    with changed(spark, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
        assert rows(lake.sql(query)) == rows(spark.sql(query)) != []
