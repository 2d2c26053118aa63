"""The main job without Spark, with an installed package alone: makes a table where it is run."""

from __future__ import annotations

import sys
import time
from pathlib import Path

started = time.perf_counter()
import variantlake as vl  # noqa: E402 - the import is timed as well


def main() -> None:
    """Load, query, and say how long that took."""
    lines = (f'{{"n": {n}, "kind": "{("even", "odd")[n % 2]}"}}\n' for n in range(1000))
    Path("events.ndjson").write_text("".join(lines), encoding="utf-8")
    table = vl.Table.create("table", "event VARIANT")
    table.append(vl.ndjson("events.ndjson"))
    found = vl.Table.open("table").scan("event:kind::string AS kind", "event:n::bigint >= 998")
    kinds = found.to_arrow()["kind"].to_pylist()
    if kinds != ["even", "odd"]:
        sys.exit(f"{kinds} is not what was loaded")
    seconds = time.perf_counter() - started
    if loaded := {"numba", "llvmlite", "pyspark"} & set(sys.modules):
        sys.exit(f"loaded: {loaded}")
    sys.stdout.write(f"{seconds:.2f} s from the import to the first row\n")


if __name__ == "__main__":
    main()
