"""Values of a small joined side skip files of the other one; the answer is unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.spark.layouts import changed, rows
from tests.spark.query.test_reading import executed
from tests.spark.rule.door import Door, accelerated, lake_of
from variantlake.spark.lake import Lake, connect
from variantlake.spark.query.plans import join_values
from variantlake.spark.rule import planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILES = 6
IDS = "(VALUES (103), (307), (NULL), (9999)) AS i(id)"
SKIPS = {
    # How many files of the events are read.
    "inner": ("SELECT e.k, i.id FROM {e} e JOIN {i} ON e.event:id::int = i.id", 2),
    "turned": ("SELECT e.k FROM {i} JOIN {e} e ON i.id = e.event:id::int AND e.k > 0", 2),
    "semi": ("SELECT k FROM {e} e LEFT SEMI JOIN {i} ON e.event:id::int = i.id", 2),
    "column": ("SELECT k FROM {e} JOIN {i} ON k = i.id", 2),
    "right": ("SELECT e.k, i.id FROM {e} e RIGHT JOIN {i} ON e.event:id::int = i.id", 2),
    "nothing": ("SELECT k FROM {e} e JOIN {i} ON e.event:id::int = i.id AND i.id IS NULL", 0),
    "no-rows": ("SELECT k FROM {e} JOIN (SELECT id FROM {i} WHERE id < 0) ON k = id", 0),
    "table": (
        """SELECT count(*) FROM {e} e JOIN (SELECT event:id::int AS id FROM {s} WHERE k < 9) s
           ON e.event:id::int = s.id""", 1,
    ),
    # Rows without a match are in the answer, or the values are not known to stay.
    "left": ("SELECT e.k, i.id FROM {e} e LEFT JOIN {i} ON e.event:id::int = i.id", 6),
    "anti": ("SELECT count(*) FROM {e} e LEFT ANTI JOIN {i} ON e.event:id::int = i.id", 6),
    "full": ("SELECT count(*) FROM {e} e FULL JOIN {i} ON e.event:id::int = i.id", 6),
    "limit": (
        "SELECT count(*) FROM {e} JOIN (SELECT id FROM {i} ORDER BY id LIMIT 9) ON k = id", 6
    ),
    "limited": (
        "SELECT count(*) FROM (SELECT * FROM {e} ORDER BY k LIMIT 600) e JOIN {i} ON k = i.id", 6
    ),
    "time": (
        "SELECT count(*) FROM {e} JOIN (SELECT id FROM {i} WHERE now() > '2020-01-01') ON k = id",
        2,
    ),
    "many": ("SELECT count(*) FROM {e} e JOIN range(90000) i ON e.event:id::bigint = i.id", 6),
}  # fmt: skip

OF_COLUMNS = ("column", "nothing", "no-rows", "limit", "limited", "time")
"""Queries of Delta tables that are left to Spark, or that give no rows as it sees at once."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("joined")

    def make(name: str, starts: range, rows_of_file: int) -> str:
        made = vl.Table.create(folder / name, "event VARIANT, k INT")
        for start in starts:
            numbers = range(start, start + rows_of_file)
            texts = [json.dumps({"id": i, "text": f"{i * 7919:x}" * 20}) for i in numbers]
            data = pa.table({"event": texts, "k": pa.array(numbers, pa.int32())})
            made.refresh().append(data, json_columns=["event"])
        return f"delta.`{made.uri}`"

    events = make("events", range(0, FILES * 100, 100), 100)
    return {"e": events, "s": make("small", range(5, 6), 5), "i": IDS}


@pytest.fixture(scope="module", params=["lake", "rule"])
def lake(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Lake]:
    if request.param == "lake":
        yield connect(spark)
        return
    with accelerated(spark):
        yield lake_of(spark)


@pytest.mark.rule(18)
@pytest.mark.parametrize("name", SKIPS)
def test_rule_18_values_of_a_joined_side_skip_where_rows_without_a_match_are_dropped(
    lake: Lake, tables: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_values, "WORTH_BYTES", 0)
    text, read = SKIPS[name]
    query = text.format(**tables)
    reports: list[dict[str, Any]] = lake.explain(query).to_dict()["tables"]
    events = [report for report in reports if report["files"]["total"] == FILES]
    if not isinstance(lake, Door) or name not in OF_COLUMNS:
        assert [report["files"]["read"] for report in events] == [read]
        if read:  # else Spark may see it at once
            assert bool(events[0]["joined"]) == (read < FILES)
    found = rows(lake.sql(query))
    monkeypatch.setattr(planner, "MIN_FILES", FILES + 1)
    assert found == rows(lake.sql(query))


def test_the_values_are_pushed_into_the_files(
    spark: SparkSession, lake: Lake, tables: dict[str, str]
) -> None:
    query = "SELECT e.k FROM {e} e JOIN {i} ON e.event:id::bigint = i.id"
    with changed(spark, {"spark.sql.maxMetadataStringLength": "10000"}):
        plan = executed(lake.sql(query.replace("{i}", "(VALUES (103L)) AS i(id)").format(**tables)))
    assert "EqualTo(event.typed_value.id.typed_value,103)" in plan
