"""What order is worth: queries of the paths that a table is sorted by, on the same events.

    python -m benchmarks.sorted_queries [--events 500000] [--rounds 7]

Three tables: unsorted, each file sorted (`append(order_by=)`), and sorted across files as well
(`set_clustering`, `cluster`). All by `Table.sql`, in turns.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import variantlake as vl
from benchmarks import documents
from benchmarks.local_queries import ORDER, clustered, loaded
from benchmarks.queries import QUERIES
from benchmarks.report import in_turns, table, timed

KIND, OPERATION, COLLECTION, DID = (f"event:{path[2:]}::string" for path in ORDER)
ASKED = {name: query.text for name, query in QUERIES.items() if name.startswith("JSONBench")} | {
    "count by kind and operation": f"SELECT {KIND} AS k, {OPERATION} AS o, count(*) AS n "
    "FROM {t} GROUP BY 1, 2",
    "count deletions by collection": f"SELECT {COLLECTION} AS c, count(*) AS n FROM {{t}} "
    f"WHERE {KIND} = 'commit' AND {OPERATION} = 'delete' GROUP BY 1",
    "a range of collections": f"SELECT count(*) AS n, max({DID}) AS d FROM {{t}} "
    f"WHERE {COLLECTION} >= 'app.bsky.graph.block' AND {COLLECTION} < 'app.bsky.graph.g'",
    "the first ten": f"SELECT {DID} AS d FROM {{t}} ORDER BY {KIND}, {DID} LIMIT 10",
}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as scratch:
        source = Path(scratch) / "events.ndjson"
        documents.write("events", source, options.events)
        tables = _tables(Path(scratch), source)
        rows = [_row(name, text, tables, options.rounds) for name, text in ASKED.items()]
    print(table([f"{options.events:,} events", *tables], rows))


def _tables(folder: Path, source: Path) -> dict[str, vl.Table]:
    return {
        "unsorted": loaded(folder / "unsorted", source),
        "sorted files": loaded(folder / "sorted", source, ORDER),
        "clustered": clustered(folder / "clustered", source),
    }


def _row(name: str, text: str, tables: dict[str, vl.Table], rounds: int) -> list[str]:
    asked = text.format(t="t")
    ways: dict[str, Callable[[], float]] = {
        each: partial(timed, partial(_answer, opened, asked)) for each, opened in tables.items()
    }
    times = in_turns(rounds, ways)
    first = times["unsorted"].median
    cells = [f"{first * 1000:.1f} ms"]
    for each in list(tables)[1:]:
        median = times[each].median
        cells.append(f"{median * 1000:.1f} ms, {first / median:.1f}×")
    print(name, *cells, sep=" | ", flush=True)
    return [name, *cells]


def _answer(opened: vl.Table, text: str) -> object:
    return opened.sql(text).to_arrow()


if __name__ == "__main__":
    main()
