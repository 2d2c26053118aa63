"""Runs in Sail's own environment: loads NDJSON into shredded Delta tables as asked on stdin.

A request is one line, {} or {"source": ..., "table": ...}; the answer is one line with `seconds`
or `error`.
"""

from __future__ import annotations

import json
import sys
import time
import warnings


def main() -> None:
    """Start a server and a session, and answer until stdin ends."""
    warnings.simplefilter("ignore")
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer(port=0)
    server.start(background=True)
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        started = time.perf_counter()
        try:
            if request:
                spark.sql(
                    f"CREATE TABLE loaded_{number} (event VARIANT) USING DELTA "
                    f"LOCATION '{request['table']}' "
                    "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
                )
                frame = spark.read.text(request["source"]).selectExpr("parse_json(value) AS event")
                frame.write.format("delta").mode("append").save(request["table"])
            answer: dict[str, object] = {"seconds": time.perf_counter() - started}
        except Exception as error:  # noqa: BLE001 - whatever it is, the other side prints it
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
