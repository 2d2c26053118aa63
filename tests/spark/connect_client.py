"""A client of Spark Connect: runs queries and appends, as JSON says. A process of its own."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import variantlake as vl
from tests.spark.layouts import rows


def main() -> None:
    """Work from stdin, what came of it to stdout, both as JSON."""
    work = json.load(sys.stdin)
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    lake = vl.spark.connect(spark)
    done = [append(spark, lake, load) for load in work.get("appends", ())]
    answers = queried(lake, work) if "queries" in work else {}
    sys.stdout.write(json.dumps({"appends": done, **answers}))
    spark.stop()


def append(spark: SparkSession, lake: Any, load: dict[str, Any]) -> Any:
    """The rows of a query into a table: rows and bad rows, or the error."""
    try:
        result = lake.append(spark.sql(load["query"]), load["table"], **load["options"])
    except vl.VariantLakeError as error:
        return f"{type(error).__name__}: {error}"
    return [result.version, result.rows, result.bad_rows]


def queried(lake: Any, work: dict[str, Any]) -> dict[str, Any]:
    """For each query the rows, or the error."""
    found: list[Any] = []
    for query in work["queries"]:
        try:
            found.append(dict(rows(lake.sql(query))))
        except vl.VariantLakeError as error:
            found.append(f"{type(error).__name__}: {error.message}")
    read = dict(rows(lake.read(work["table"])))
    named = lake.sql("SELECT count(*) AS n FROM t", tables={"t": work["table"]}).collect()[0][0]
    report = lake.explain(work["queries"][0]).to_dict()
    return {"rows": found, "read": read, "n": named, "explain": report}


if __name__ == "__main__":
    main()
