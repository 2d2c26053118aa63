"""A client of Spark Connect that has nothing of this package: a process of its own.

Stdin is JSON: the server, and queries by name, each of which runs in several sessions at once.
Stdout is what each session found, with the rule, and the last one without it too.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions

SESSIONS = 3


class Absent:
    """A finder of modules for which this package is not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] == "variantlake":
            raise ModuleNotFoundError(name)


def frame_of(spark: SparkSession, query: dict[str, str]) -> DataFrame:
    """A SELECT; or a table of our format, and what is done with it."""
    if "load" not in query:
        return spark.sql(query["sql"])
    table = spark.read.format("variantlake").load(query["load"])
    return table.where(query["where"]).groupBy(query["by"]).agg(functions.max("id"))


def found_by(
    remote: str, queries: dict[str, dict[str, str]], settings: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Rows and plans of a session of its own, by `spark.variantlake.enabled` and by query."""
    spark = SparkSession.builder.remote(remote).create()
    found: dict[str, dict[str, Any]] = {}
    for enabled in settings:
        spark.conf.set("spark.variantlake.enabled", enabled)
        for name, query in queries.items():
            if "first" in query:
                spark.sql(query["first"])
            frame = frame_of(spark, query)
            shown: Any = frame
            plan = shown._explain_string()  # what `frame.explain()` prints
            rows = sorted(map(str, frame.collect()))
            found.setdefault(enabled, {})[name] = {"rows": rows, "plan": plan}
    spark.stop()
    return found


def main() -> None:
    """See above."""
    assert "variantlake" not in sys.modules
    sys.meta_path.insert(0, Absent())
    remote, queries = json.loads(sys.stdin.read())
    with ThreadPoolExecutor(SESSIONS) as sessions:
        asked = [sessions.submit(found_by, remote, queries, ("true",)) for _ in range(SESSIONS - 1)]
        asked.append(sessions.submit(found_by, remote, queries, ("false", "true")))
        sys.stdout.write(json.dumps([each.result() for each in asked]))


if __name__ == "__main__":
    main()
