"""What the rule asks of Python for some queries, kept as text: to read it needs no JVM.

`python -m tests.spark.query.plans.recorded_plans` asks a real Spark for the plans of `QUERIES` and
writes `data/plans.json.gz`; run it after a change of `PlanDump.java` or of the queries. The queries
read two tables of ours: `e` and `f`, each with the columns of `SCHEMA`.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from variantlake.spark.query.plans.catalyst import Node, node_of

RECORD = Path(__file__).parent / "data" / "plans.json.gz"
SCHEMA = "event VARIANT, day DATE, n INT, name STRING, s STRUCT<a: INT, v: VARIANT>"
TABLES = ("e", "f")

QUERIES: Mapping[str, str] = {
    "a path compared": "SELECT n FROM e WHERE event:kind::string = 'commit'",
    "variant_get and try": (
        "SELECT variant_get(event, '$.a.b', 'int'), try_variant_get(event, '$.c', 'date') FROM e"
    ),
    "a path under NOT, OR and IN": (
        "SELECT n FROM e WHERE NOT (event:a::int > 3 OR event:b::string IN ('x', 'y'))"
    ),
    "LIKE with a prefix, a whole text, a tail": (
        "SELECT n FROM e WHERE event:a::string LIKE 'ab%' AND event:b::string LIKE 'ab' "
        "AND event:c::string LIKE 'a%b'"
    ),
    "NULL tests and null-safe equality": (
        "SELECT n FROM e WHERE event:a::int IS NULL AND event:b::int IS NOT NULL "
        "AND event:c::int <=> 3"
    ),
    "BETWEEN": "SELECT n FROM e WHERE event:t::bigint BETWEEN 10 AND 20",
    "a constant folded": "SELECT n FROM e WHERE day >= DATE'2024-01-30' + INTERVAL 2 DAYS",
    "a rand() is unknown": "SELECT n FROM e WHERE event:a::double < rand() AND n > 1",
    "a function is unknown": "SELECT n FROM e WHERE upper(name) = 'X' AND n > 1",
    "a boolean path": "SELECT n FROM e WHERE event:ok::boolean",
    "a field of a struct": "SELECT n FROM e WHERE s.a = 1",
    "a condition above a LIMIT": "SELECT * FROM (SELECT n FROM e LIMIT 5) WHERE n = 1",
    "a condition above an aggregate": (
        "SELECT * FROM (SELECT n, count(*) AS c FROM e GROUP BY n) WHERE n = 1"
    ),
    "HAVING": "SELECT n, count(*) FROM e WHERE n > 0 GROUP BY n HAVING n = 1",
    "a condition above a window": (
        "SELECT * FROM (SELECT n, row_number() OVER (ORDER BY n) AS r FROM e) WHERE n = 1"
    ),
    "a condition above DISTINCT": "SELECT * FROM (SELECT DISTINCT n FROM e) WHERE n = 1",
    "a condition above a UNION": (
        "SELECT * FROM (SELECT n FROM e UNION ALL SELECT n FROM f) WHERE n = 1"
    ),
    "a condition through a subquery": (
        "SELECT * FROM (SELECT event:kind::string AS kind, n FROM e) WHERE kind = 'x'"
    ),
    "a condition through a sort": "SELECT n FROM (SELECT n FROM e ORDER BY n) WHERE n = 1",
    "an inner join": "SELECT e.n FROM e JOIN f ON e.n = f.n AND e.n > 1 WHERE f.n < 9",
    "a left join": "SELECT e.n FROM e LEFT JOIN f ON f.n > 1 AND e.n > 2 WHERE e.n < 9 AND f.n < 8",
    "a right join": "SELECT e.n FROM e RIGHT JOIN f ON e.n > 1 WHERE e.n < 9 AND f.n < 8",
    "a full join": "SELECT e.n FROM e FULL JOIN f ON e.n = f.n AND e.n > 1 WHERE e.n < 9",
    "a semi join": "SELECT n FROM e LEFT SEMI JOIN f ON e.n = f.n AND f.n > 1 AND e.n > 2",
    "an anti join": "SELECT n FROM e LEFT ANTI JOIN f ON e.n = f.n AND f.n > 1 WHERE e.n > 2",
    "a cross join": "SELECT e.n FROM e CROSS JOIN f WHERE e.n = 1 AND f.n = 2",
    "a CTE read once": "WITH c AS (SELECT n FROM e) SELECT n FROM c WHERE n = 1",
    "a CTE read twice": (
        "WITH c AS (SELECT n FROM e) SELECT x.n FROM c x JOIN c y ON x.n = y.n WHERE x.n = 1"
    ),
    "a subquery in WHERE": "SELECT n FROM e WHERE n IN (SELECT n FROM f WHERE n > 3)",
    "EXISTS": "SELECT n FROM e WHERE EXISTS (SELECT event FROM f WHERE f.n = e.n AND f.n > 3)",
    "a scalar subquery": "SELECT n FROM e WHERE n = (SELECT max(n) FROM f WHERE n > 3)",
    "a whole Variant": "SELECT event FROM e WHERE event:a::int = 1",
    "a whole Variant and a path": "SELECT event, event:a::int FROM e",
    "a path of a path": "SELECT event:a::variant FROM e WHERE event:b::int = 1",
    "a Variant under GROUP BY of its path": "SELECT event:k::string, count(*) FROM e GROUP BY 1",
    "a path in ORDER BY": "SELECT n FROM e ORDER BY event:k::string",
    "an unnamed path keeps its name": (
        "SELECT event:a::int, variant_get(event, '$.b', 'int') FROM e"
    ),
    "a Variant in a UNION": "SELECT event FROM e UNION ALL SELECT event FROM f",
    "a Variant of a struct": "SELECT s.v:a::int FROM e WHERE s.v:b::int = 1",
    "an alias of a table": "SELECT x.event:a::int FROM e AS x WHERE x.event:b::string = 'y'",
    "a cast of a column": "SELECT n FROM e WHERE n > 30.5D",
    "a cast between strings and numbers": "SELECT n FROM e WHERE name = 3",
    "constants of each kind": (
        "SELECT n FROM e WHERE event:a::timestamp > TIMESTAMP'2024-01-01 00:00:00' "
        "AND event:b::decimal(9,2) < 1.5 AND event:c::double >= 2.5D AND event:d::binary = X'01FF'"
    ),
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A query's optimized plan, and the names that its relations have there, with their tables."""

    text: str
    plan: Node
    names: Mapping[str, str]


@cache
def _record() -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(gzip.decompress(RECORD.read_bytes()))
    return found


def recorded(name: str) -> Recorded:
    """The plan of a query by its name in `QUERIES`. Raises KeyError if it was not recorded."""
    entry = _record()[name]
    _check(entry, QUERIES[name])
    names = entry["names"]
    assert isinstance(names, dict)
    return Recorded(QUERIES[name], _tree(entry["plan"]), names)


def _check(entry: Mapping[str, object], text: str) -> None:
    assert entry["text"] == text, "record again: python -m tests.spark.query.plans.recorded_plans"


def _tree(document: object) -> Node:
    assert isinstance(document, dict)
    return node_of(document)


def main() -> None:
    """Ask Spark for the plans of all queries and write them down."""
    from pyspark.sql import SparkSession

    import variantlake as vl
    from variantlake.spark.rule.planner import RulePlanner
    from variantlake.spark.rule.relations import relation_of

    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    )
    lake = vl.spark.connect(spark)
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            vl.Table.create(f"{folder}/{name}", SCHEMA)
            lake.table(f"{folder}/{name}").createOrReplaceTempView(name)
        asked: list[Any] = []
        planner: Any = RulePlanner
        planner._answer = lambda _, request, __: asked.append(request)
        record: dict[str, dict[str, object]] = {}
        for name, text in QUERIES.items():
            frame: Any = spark.sql(text)
            frame._jdf.queryExecution().optimizedPlan()
            if not asked:
                sys.stdout.write(f"nothing is read by {name!r}\n")
                continue
            request = asked.pop()
            names = {
                each["name"]: Path(relation_of(each["relation"]).table.location).name
                for each in request["relations"]
            }
            record[name] = {"text": text, "plan": request["plan"], "names": names}
    packed = gzip.compress(json.dumps(record, separators=(",", ":")).encode(), mtime=0)
    RECORD.write_bytes(packed)
    spark.stop()
    sys.stdout.write(f"{len(record)} texts, {len(packed):,} bytes\n")


if __name__ == "__main__":
    main()
