"""Queries and appends through a real Spark Connect server: right, from columns, skipping files."""

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
QUERIES = {
    "columns": "SELECT event:id::bigint AS i, k FROM {t} WHERE p = 'first' AND k > 3",
    "unnamed": """
        SELECT upper(event:kind::string), (event:n.x::bigint), count(*) FROM {t} GROUP BY 1, 2""",
    "cte": """
        WITH c AS (
            SELECT event:id::bigint, (SELECT max(b.event:t::bigint) FROM {t} b) AS m FROM {t})
        SELECT '{{é😀}}' AS `}}`, c.id + 1, m FROM c -- {{event:id}}
        WHERE c.id < 5""",
    "join": """
        SELECT cast(a.event:id AS bigint) i, try_variant_get(b.event, '$.kind', 'int') FROM {t} a
        JOIN {t} b ON a.event:id::bigint = b.event:id::bigint - 100
        WHERE CASE WHEN a.event:kind::string = 'good' THEN a.event:t::smallint > 0 END""",
    "star": "SELECT * FROM {t} e WHERE e.event:id::bigint = 105 AND '{{}}' <> '}}'",
    "beside": "SELECT event:id::bigint, count(event) AS n FROM {t} GROUP BY 1",
    "union": "SELECT event:id::bigint AS i FROM {t} UNION ALL SELECT event:t::bigint FROM {t}",
}
READ_BY_COLUMNS = ("columns", "unnamed", "cte", "join", "union")
OTHERS = {
    "version": "SELECT count(*) AS n FROM {t} VERSION AS OF 0",
    "time": "SELECT count(event:id::int) AS n FROM {t} TIMESTAMP AS OF '2200-01-01'",
    "view": "CREATE OR REPLACE TEMP VIEW mine AS SELECT event:id::bigint AS i FROM {t}",
    "of-view": "SELECT count(i) FROM mine",
    "nope": "SELECT nope FROM {t}",
}


GROUPED = """
    WITH chosen AS (
        SELECT event:kind::string AS kind, event:id::bigint AS n, k FROM judge_connect
        WHERE event:id::bigint < 105),
    sums AS (SELECT kind, sum(n) AS s FROM chosen GROUP BY kind)
    SELECT kind, s, n, k, n * 2 AS twice FROM sums JOIN chosen USING (kind)
"""
"""What the client makes of a DataFrame with paths."""


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
    texts = {name: query.format(t=f"delta.`{table}`") for name, query in (QUERIES | OTHERS).items()}
    found = client({"queries": texts, "explain": list(QUERIES), "table": table})
    with changed(spark, {PUSHDOWN: "false"}):
        for name, query in QUERIES.items():
            theirs = spark.sql(query.format(t="judge_connect"))
            assert found["rows"][name] == dict(rows(theirs)), name
            assert found["columns"][name] == theirs.columns, name
        assert found["read"] == dict(rows(spark.sql("SELECT event, k, p FROM judge_connect")))
        grouped = dict(rows(spark.sql(GROUPED)))
    assert found["grouped"] == [grouped, grouped]
    assert all(path["physical"] for path in found["paths"])
    for name, report in found["explain"].items():
        physical = any(path["physical"] for scan in report["tables"] for path in scan["paths"])
        assert physical == (name in READ_BY_COLUMNS), (name, report)
        assert physical or all(scan["whole_variants"] for scan in report["tables"]), name
    assert found["rows"]["version"] == {"(79,)": 1}
    assert found["rows"]["of-view"] == {"(75,)": 1}
    assert found["rows"]["nope"].startswith("InvalidQuery: [UNRESOLVED_COLUMN")
    assert found["n"] == 79
    assert found["left"] == 1, "the view under CREATE VIEW, and none of a query that is gone"
    assert found["settings"] == [], "changed in the user's session"
    (scan,) = found["explain"]["columns"]["tables"]
    assert scan["files"] == {"total": 4, "read": 1, "skipped": 3}
    spark.catalog.dropTempView("judge_connect")
