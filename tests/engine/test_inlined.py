"""Queries of a query in FROM or WITH: the same as one of the table, and Spark's rows and names."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

import variantlake as vl
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.engine.text import read_query
from variantlake.errors import InvalidQuery, UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "id INT, kind STRING, event VARIANT"
SAME = {
    (
        "SELECT name, count(*) AS n FROM (SELECT event:user.name::string AS name FROM t) "
        "GROUP BY name"
    ): (
        "SELECT event:user.name::string AS name, count(*) AS n FROM t GROUP BY "
        "event:user.name::string"
    ),
    (
        "SELECT x.id FROM (SELECT id, event:n::int + 1 AS m FROM t e WHERE e.kind = 'a') "
        "AS x WHERE x.m > 2 OR id < 1"
    ): "SELECT id FROM t WHERE kind = 'a' AND (event:n::int + 1 > 2 OR id < 1)",
    (
        "WITH t2 AS (SELECT * FROM t WHERE id > 1) SELECT kind, max(id) AS m FROM t2 "
        "GROUP BY 1 HAVING max(id) > 3 ORDER BY m DESC LIMIT 2"
    ): (
        "SELECT kind, max(id) AS m FROM t WHERE id > 1 GROUP BY kind HAVING max(id) > 3 "
        "ORDER BY m DESC LIMIT 2"
    ),
    "SELECT u:name::string AS n FROM (SELECT event:user AS u FROM t) ORDER BY n": (
        "SELECT event:user.name::string AS n FROM t ORDER BY n"
    ),
    "SELECT * FROM (SELECT upper(A) AS Up, a FROM (SELECT kind AS a FROM t) x) y": (
        "SELECT upper(kind) AS Up, kind AS a FROM t"
    ),
}
REFUSED = [
    ("SELECT id AS id FROM (SELECT kind FROM t)", "'id', a column"),
    ("SELECT n FROM (SELECT count(*) AS n FROM t)", "groups of a query in FROM"),
    ("SELECT n FROM (SELECT id AS n FROM t GROUP BY id)", "GROUP of a query"),
    ("SELECT id FROM (SELECT id FROM t LIMIT 3)", "LIMIT of a query"),
    ("SELECT id FROM (SELECT DISTINCT id FROM t)", "DISTINCT of a query"),
    ("SELECT id FROM (SELECT id FROM t UNION ALL SELECT id FROM t)", "this query in FROM"),
    ("SELECT a.id FROM (SELECT id FROM t) a JOIN t b ON a.id = b.id", "JOINS"),
    ("SELECT upper(a) AS kind FROM (SELECT kind AS a FROM t) ORDER BY kind", "'kind', a column"),
    ("SELECT upper(a) AS a FROM (SELECT kind AS a FROM t) ORDER BY a", "another column"),
    ("SELECT p:x::int AS x FROM (SELECT event:a::string AS p FROM t)", "a path of an expression"),
    ("SELECT a FROM (SELECT id AS a, id AS b FROM t) GROUP BY b", "two names of one column"),
    ("SELECT q.event.id FROM (SELECT event FROM t) q", "q.event"),
    ("SELECT c FROM (SELECT id FROM t) AS x(c)", "this query in FROM"),
    ("WITH a AS (SELECT id FROM t), b AS (SELECT id FROM a) SELECT id FROM b", "WITH"),
    ("WITH a AS (SELECT id FROM t) SELECT id FROM t", "WITH"),
    ("SELECT a IS NOT NULL FROM (SELECT kind AS a FROM t)", "without a name"),
]
WRONG = [
    ("SELECT id FROM (SELECT kind FROM t)", "has no column 'id'"),
    ("SELECT kind FROM (SELECT kind FROM t) WHERE id > 1", "has no column 'id'"),
    ("SELECT n FROM (SELECT id AS n, kind AS N FROM t)", "one name"),
    ("SELECT id FROM (SELECT id, nothing FROM t)", "nothing"),
    ("SELECT id FROM (SELECT id FROM nowhere)", "nowhere"),
]


def parsed(text: str) -> object:
    return read_query(text, {"t": parse_table_ddl(DDL)})


@pytest.mark.parametrize(("nested", "flat"), SAME.items())
def test_a_query_of_a_query_is_one_of_the_table(nested: str, flat: str) -> None:
    with patch.object(time, "time_ns", return_value=0):
        assert parsed(nested) == parsed(flat)


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_has_no_such_form_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(UnsupportedFeature, match=message):
        parsed(text)


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_names_that_the_inner_query_does_not_have_are_none(text: str, message: str) -> None:
    with pytest.raises(InvalidQuery, match=message):
        parsed(text)


OF_SPARK = [
    *SAME,
    "SELECT m, Id FROM (SELECT event:n::double AS m, id FROM t) WHERE m IS NULL OR m < 3",
    "SELECT count(*), count(m), max(m), min(Kind) FROM (SELECT event:n::int AS m, kind FROM t)",
    "SELECT u::string, x.u:name::string FROM (SELECT event:user AS u FROM t) x",
    "SELECT one, count(*) AS n FROM (SELECT 1 AS one, kind FROM t) GROUP BY one, kind",
    "SELECT CASE WHEN k = 'a' THEN m ELSE -1 END AS z FROM (SELECT kind k, id * 2 m FROM t)",
    "SELECT upper(k) AS k, m + 1 AS m FROM (SELECT kind AS k, id AS m FROM t) WHERE m > 3",
    "SELECT count(DISTINCT k) FROM (SELECT kind AS k FROM t WHERE id > 1) WHERE k <> 'b'",
]


@pytest.mark.spark
def test_they_give_sparks_rows_and_names(spark: SparkSession, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", DDL)
    kinds = ["a", "b", None, "c"]
    users = [{"name": "u1"}, "text", None, {"name": 7}]
    table.append(
        [
            {"id": n, "kind": kinds[n % 4], "event": {"n": n % 5 or None, "user": users[n % 4]}}
            for n in range(24)
        ]
    )
    vl.spark.connect(spark).table(table.uri).createOrReplaceTempView("t")
    try:
        for text in OF_SPARK:
            ours, theirs = table.sql(text).to_arrow(), spark.sql(text)
            assert ours.column_names == theirs.columns, text
            rows = [tuple(row.values()) for row in ours.to_pylist()]
            assert Counter(rows) == Counter(map(tuple, theirs.collect())), text
    finally:
        spark.catalog.dropTempView("t")
