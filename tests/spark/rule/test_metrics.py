"""What Spark's own pages show of our scans: files and bytes, read and skipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.spark.layouts import changed
from tests.spark.rule.test_rule import OFF, make
from variantlake.spark.lake import connect
from variantlake.spark.rule import row_groups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

READ, READ_BYTES = "number of files read", "size of files read"
SKIPPED, SKIPPED_BYTES = "number of files skipped", "size of files skipped"
ROWS = "number of output rows"
GROUPS, SKIPPED_GROUPS = "number of row groups read", "number of row groups skipped"
SETTINGS = {"adaptive": {}, "interpreted": {"spark.sql.codegen.wholeStage": "false"}}


def shown(spark: SparkSession) -> list[dict[str, str]]:
    """The metrics of each scan of the last execution, by their names, as the SQL tab has them."""
    java: Any = spark
    java.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = java._jsparkSession.sharedState().statusStore()
    execution = store.executionsList().last().executionId()
    values = store.executionMetrics(execution)
    nodes = store.planGraph(execution).allNodes()
    found = []
    for node in (nodes.apply(at) for at in range(nodes.size())):
        if not node.name().startswith("Scan variantlake"):
            continue
        metrics = node.metrics()
        known = [metrics.apply(at) for at in range(metrics.size())]
        texts = {each.name(): values.get(each.accumulatorId()) for each in known}
        found.append({name: text.get() for name, text in texts.items() if text.isDefined()})
    return found


def in_kibibytes(size: int) -> str:
    return f"{size / 1024:.1f} KiB"


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_scan_tells_what_it_skips(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    at_once = mock.Mock(submit=lambda count, *given: count(*given))
    monkeypatch.setattr(row_groups, "counting", at_once)
    lake = connect(spark)
    table = make(tmp_path / "t")
    query = f"SELECT id, event:n::int FROM delta.`{table}` WHERE event:kind::string = 'k2'"
    with changed(spark, SETTINGS[settings]):
        rows = lake.sql(query).collect()
        (found,) = shown(spark)
        explained = lake.explain(query).tables[0].scan
        joined = lake.table(table).alias("a").join(lake.table(table).alias("b"), "id")
        joined.where("a.event:kind::string = 'k1' AND b.event:n::int >= 0").select("id").collect()
        both = shown(spark)
    assert (len(rows), found[ROWS]) == (8, "10")
    assert (found[READ], found[SKIPPED]) == ("1", "3")
    assert explained.read_files == 1
    assert (found[GROUPS], found[SKIPPED_GROUPS]) == ("1", "0")
    assert found[READ_BYTES] == in_kibibytes(explained.read_bytes)
    assert found[SKIPPED_BYTES] == in_kibibytes(explained.total_bytes - explained.read_bytes)
    assert sorted((each[READ], each[SKIPPED]) for each in both) == [("1", "3"), ("4", "0")]


def test_a_scan_tells_which_row_groups_it_skips(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = mock.Mock(submit=lambda count, *given: count(*given))
    monkeypatch.setattr(row_groups, "counting", at_once)
    lake = connect(spark)
    table = make(tmp_path / "t", properties={"variantlake.rowGroupRows": "2"})
    for condition, groups in {
        "event:n::int = 24": ("1", "4"),
        "event:n::int BETWEEN 15 AND 22": ("5", "5"),
        "event:kind::string = 'k1'": ("5", "0"),
    }.items():
        rows = lake.sql(f"SELECT id FROM delta.`{table}` WHERE {condition}").collect()
        (found,) = shown(spark)
        assert (found[GROUPS], found[SKIPPED_GROUPS]) == groups, condition
        assert 0 < len(rows) <= 2 * int(groups[0])


def test_without_the_rule_spark_shows_its_own(spark: SparkSession, tmp_path: Path) -> None:
    lake = connect(spark)
    table = make(tmp_path / "t")
    with changed(spark, OFF):
        lake.sql(f"SELECT id FROM delta.`{table}` WHERE id < 5").collect()
        assert all(SKIPPED not in each or each[SKIPPED] == "0" for each in shown(spark))
