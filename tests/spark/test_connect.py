"""Queries and appends through a real Spark Connect server: right, though it shows no plans."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from tests import corpora
from tests.spark.layouts import (
    CLEAN,
    MIXED,
    OTHER_TYPES,
    PUSHDOWN,
    UNSHREDDED,
    Shape,
    changed,
    judge,
    make,
    rows,
)
from variantlake.delta.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SHAPE = Shape((CLEAN, OTHER_TYPES, UNSHREDDED, MIXED), partitioned=True)
QUERIES = [
    "SELECT event:id::bigint AS i, k FROM {t} WHERE p = 'first' AND k > 3",
    "SELECT event:kind::string AS kind, count(*) AS n FROM {t} GROUP BY 1 ORDER BY 1",
    "SELECT * FROM {t} e WHERE e.event:id::bigint = 105 AND '{{}}' <> '}}'",
    "WITH c AS (SELECT event, k FROM {t}) SELECT a.k FROM c a JOIN c b USING (k) WHERE a.k < 2",
    "SELECT count(*) AS n FROM {t} VERSION AS OF 0",
    "SELECT nope FROM {t}",
]


def client(work: dict[str, Any]) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if "SPARK_" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_client"],
        input=json.dumps(work),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=corpora.REPOSITORY,
        env=environment | {"PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return found


ROWS = """
    SELECT id AS n, IF(id % 7 = 0, NULL, parse_json(concat('{"a": ', id, ', "b": "x"}'))) AS event,
      concat('{"c": ', id, IF(id = 10, '', '}')) AS other
    FROM range(0, 1000, 1, 3)"""


def test_appends_of_a_connect_client(spark: SparkSession, tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc_status") is None:
        corpora.missing("pyspark[connect]")
    table = str(tmp_path / "t")
    vl.Table.create(table, "n BIGINT, event VARIANT, other VARIANT")
    texts = {"json_columns": ["other"]}
    good = f"SELECT * FROM ({ROWS}) WHERE n <> 10"
    loads = [
        {"query": good, "table": table, "options": texts | {"load_id": "one"}},
        {"query": good, "table": table, "options": texts | {"load_id": "one"}},
        {"query": ROWS, "table": table, "options": texts},
        {"query": ROWS, "table": table, "options": texts | {"mode": "null"}},
        {"query": ROWS, "table": table, "options": {}},
        {"query": f"{ROWS} WHERE id < 0", "table": table, "options": texts},
    ]
    found = client({"appends": loads})["appends"]
    assert found[:2] == [[1, 999, 0], [1, 0, 0]]
    assert found[2].startswith("InvalidJson: ")
    assert found[3] == [2, 1000, 1]
    assert found[4].startswith("InvalidSchema: ")
    assert found[5] == [2, 0, 0]
    stored = spark.read.format("delta").load(table)
    columns = ["n", "to_json(event) AS event", "to_json(other) AS other"]
    wanted = spark.sql(ROWS).selectExpr(*columns[:2], "to_json(try_parse_json(other)) AS other")
    twice = wanted.union(wanted.where("n <> 10"))
    mine, theirs = (
        sorted((tuple(row) for row in frame.collect()), key=str)
        for frame in (stored.selectExpr(*columns), twice)
    )
    assert mine == theirs
    schema = Snapshot.load(table).properties["variantlake.shredding.event"]
    assert "a" in schema
    assert "b" in schema


def test_queries_of_a_connect_client(spark: SparkSession, tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc_status") is None:
        corpora.missing("pyspark[connect]")
    table = make(spark, tmp_path / "a {b} table", SHAPE)
    judge(spark, "judge_connect", SHAPE)
    texts = [query.format(t=f"delta.`{table}`") for query in QUERIES]
    found = client({"queries": texts, "table": table})
    with changed(spark, {PUSHDOWN: "false"}):
        for query, theirs in zip(QUERIES[:4], found["rows"], strict=False):
            assert theirs == dict(rows(spark.sql(query.format(t="judge_connect")))), query
        assert found["read"] == dict(rows(spark.sql("SELECT event, k, p FROM judge_connect")))
    assert found["rows"][4] == {"(79,)": 1}
    assert found["n"] == 79
    assert found["rows"][5].startswith("InvalidQuery: [UNRESOLVED_COLUMN")
    (scan,) = found["explain"]["tables"]
    assert scan["files"] == {"total": 4, "read": 1, "skipped": 3}
    assert "natively" in scan["note"]
    spark.catalog.dropTempView("judge_connect")
