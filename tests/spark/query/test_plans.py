"""`lake.sql` is `spark.sql` with names of ours: one rule plans both, and what is made of them."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed, rows
from tests.spark.rule.door import accelerated
from variantlake.spark.lake import Lake, connect
from variantlake.spark.rule import relations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FILES, ROWS = 3, 4


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Iterator[Lake]:
    vl.spark.register(spark)
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield connect(spark)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    shredding = {"event": "kind STRING, n BIGINT"}
    folder = tmp_path_factory.mktemp("plans") / "t"
    made = vl.Table.create(folder, "id BIGINT, event VARIANT", shredding=shredding)
    for file in range(FILES):
        ids = [file * ROWS + row for row in range(ROWS)]
        texts = [json.dumps({"kind": f"k{file}", "n": n}) for n in ids]
        made.refresh().append(pa.table({"id": ids, "event": texts}), json_columns=["event"])
    return str(folder)


def optimized(frame: DataFrame) -> str:
    java: Any = frame
    plan = str(java._jdf.queryExecution().optimizedPlan().toString())
    return re.sub(r"#\d+L?", "", plan)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, event:n::int FROM {t} WHERE event:kind::string = 'k1'",
        "SELECT event:kind::string AS k, max(event:n::bigint) FROM {t} WHERE id > 4 GROUP BY 1",
        "SELECT a.id FROM {t} a JOIN {t} b ON a.event:n::bigint = b.id WHERE b.event:n::int < 3",
        "WITH c AS (SELECT event e FROM {t}) SELECT e:kind::string FROM c ORDER BY e:n::int",
        "SELECT id FROM {t} WHERE id IN (SELECT event:n::bigint FROM {t} WHERE id < 4)",
    ],
)
def test_a_text_has_one_plan_whoever_runs_it(
    spark: SparkSession, lake: Lake, table: str, query: str
) -> None:
    text = query.format(t=f"delta.`{table}`")
    ours = lake.sql(text)
    assert "typed_value" in optimized(ours)
    assert optimized(ours) == optimized(spark.sql(text))


def test_what_is_made_of_a_query_is_planned_too(lake: Lake, table: str) -> None:
    kept = lake.sql(f"SELECT * FROM delta.`{table}`").where("event:kind::string = 'k2'")
    (scan,) = lake.explain(kept).tables
    assert scan.scan.read_files == 1
    assert kept.groupBy().count().collect()[0][0] == ROWS


def test_a_query_of_places_reads_columns_all_the_same(lake: Lake, table: str) -> None:
    text = "SELECT id FROM {t} TABLESAMPLE (100 PERCENT) WHERE event:kind::string = 'k1'"
    text += " AND rand() < 2"
    (scan,) = lake.explain(text.format(t=f"delta.`{table}`")).tables
    assert not scan.whole
    found = lake.sql(text.format(t=f"delta.`{table}`"))
    assert sorted(row.id for row in found.collect()) == [4, 5, 6, 7]


def test_rows_that_a_source_writes_come_from_columns(
    lake: Lake, table: str, tmp_path: Path
) -> None:
    frame = lake.sql(f"SELECT id FROM delta.`{table}` WHERE event:kind::string = 'k1'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relations.TableRelation, "rows", None)  # which would read all of the table
        frame.write.format("variantlake").mode("append").save(str(tmp_path / "made"))
    assert rows(lake.read(tmp_path / "made")) == rows(frame)


def test_a_table_that_a_query_needs_no_row_of_is_explained(lake: Lake, table: str) -> None:
    (scan,) = lake.explain(f"SELECT event FROM delta.`{table}` WHERE false").tables
    assert scan.scan.read_files == 0
    assert scan.table == f"delta.`{table}`"


def test_with_the_switch_off_a_query_reads_the_table_as_it_is(
    spark: SparkSession, lake: Lake, table: str
) -> None:
    text = f"SELECT id FROM delta.`{table}` WHERE event:kind::string = 'k1'"
    with changed(spark, {"spark.variantlake.enabled": "false"}):
        (scan,) = lake.explain(text).tables
        assert (scan.scan.read_files, scan.whole) == (FILES, ("event",))
        assert len(lake.sql(text).collect()) == ROWS


def test_what_a_plan_reads_goes_with_it(spark: SparkSession, lake: Lake, table: str) -> None:
    before = len(relations._relations)
    frame = lake.sql(f"SELECT id FROM delta.`{table}`")
    assert len(relations._relations) == before + 1
    assert frame.count() == FILES * ROWS
    del frame
    java: Any = spark
    for _ in range(50):
        gc.collect()
        java._jvm.java.lang.System.gc()
        java._jvm.java.lang.System.runFinalization()
        if len(relations._relations) <= before:
            return
    pytest.fail("the relation is still there")
