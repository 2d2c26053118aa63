"""Queries through a real Spark Connect server: right, with files skipped, though read natively."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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
