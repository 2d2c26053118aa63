"""Runs in chDB's own environment: loads the events of the file that stdin names, then queries.

A request is one line of text; the answer is one line with `seconds` or `error`. The table `d` is
JSONBench's own definition: typed paths, and the order that its queries use. The table `j` knows
nothing of the documents.
"""

from __future__ import annotations

import json
import sys
import time

TABLES = {
    "d": """
CREATE TABLE d (data JSON(max_dynamic_paths = 0, kind LowCardinality(String),
  commit.operation LowCardinality(String), commit.collection LowCardinality(String),
  did String, time_us UInt64))
ENGINE = MergeTree ORDER BY (data.kind, data.commit.operation, data.commit.collection, data.did,
  fromUnixTimestamp64Micro(data.time_us))
""",
    "j": "CREATE TABLE j (data JSON) ENGINE = MergeTree ORDER BY tuple()",
}


def main() -> None:
    """Load, say so, and answer until stdin ends."""
    from chdb import session  # type: ignore[import-not-found]

    chdb = session.Session()
    source = sys.stdin.readline().strip()
    chdb.query("CREATE DATABASE IF NOT EXISTS b")
    chdb.query("USE b")
    for name, definition in TABLES.items():
        chdb.query(definition)
        chdb.query(f"INSERT INTO {name} SELECT json AS data FROM file('{source}', JSONAsObject)")
        chdb.query(f"OPTIMIZE TABLE {name} FINAL")
    print(json.dumps({"rows": str(chdb.query("SELECT count() FROM d")).strip()}), flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        try:
            chdb.query(line)
            answer: dict[str, object] = {"seconds": time.perf_counter() - started}
        except Exception as error:  # noqa: BLE001 - whatever it is, the other side prints it
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
