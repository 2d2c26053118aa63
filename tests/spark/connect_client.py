"""A client of Spark Connect: reads queries as JSON, writes their rows. A process of its own."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import variantlake as vl
from tests.spark.layouts import rows


def main() -> None:
    """Queries from stdin as a list of texts; for each the rows, or the error, as JSON."""
    work = json.load(sys.stdin)
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    lake = vl.spark.connect(spark)
    found: list[Any] = []
    for query in work["queries"]:
        try:
            found.append(dict(rows(lake.sql(query))))
        except vl.VariantLakeError as error:
            found.append(f"{type(error).__name__}: {error.message}")
    read = dict(rows(lake.read(work["table"])))
    named = lake.sql("SELECT count(*) AS n FROM t", tables={"t": work["table"]}).collect()[0][0]
    report = lake.explain(work["queries"][0]).to_dict()
    sys.stdout.write(json.dumps({"rows": found, "read": read, "n": named, "explain": report}))
    spark.stop()


if __name__ == "__main__":
    main()
