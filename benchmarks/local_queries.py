"""JSONBench's queries without Spark, beside DuckDB, Polars and chDB, all on the same events.

    python -m benchmarks.local_queries [--events 500000] [--rounds 7] [--no-duckdb]

Ours is `Table.sql` on a Delta table, unsorted and clustered by the paths that JSONBench's own
definition of chDB's table sorts by. DuckDB has the same Parquet files as its own VARIANT, Polars a
Parquet file of plain columns that somebody extracted before, chDB JSONBench's table, merged to one
sorted part, and one of a JSON column alone. `--no-duckdb` saves minutes a round.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import polars as pl
from interop.engines import Died

import variantlake as vl
from benchmarks import documents
from benchmarks.engines import Worker, peer_python
from benchmarks.queries import CORES, QUERIES, _duckdb_paths
from benchmarks.report import Runs, Section, finish, in_turns, parser, timed

ORDER = ("$.kind", "$.commit.operation", "$.commit.collection", "$.did")
FILE_BYTES = 16 << 20
"""Of a clustered table: so that half a million events are several files."""
PLAIN = ("kind", "commit.operation", "commit.collection", "did", "time_us")
CREATED = "data.kind = 'commit' AND data.commit.operation = 'create'"
POSTED = f"{CREATED} AND data.commit.collection = 'app.bsky.feed.post'"
CHDB = {
    "JSONBench 1": "SELECT data.commit.collection AS c, count() FROM d GROUP BY c",
    "JSONBench 2": "SELECT data.commit.collection AS c, count(), uniqExact(data.did) FROM d "
    f"WHERE {CREATED} GROUP BY c",
    "JSONBench 3": "SELECT data.commit.collection AS c, "
    "toHour(fromUnixTimestamp64Micro(data.time_us)) AS h, count() FROM d "
    f"WHERE {CREATED} AND data.commit.collection IN ('app.bsky.feed.post', "
    "'app.bsky.feed.repost', 'app.bsky.feed.like') GROUP BY c, h",
    "JSONBench 4": "SELECT data.did AS who, min(data.time_us) AS first FROM d "
    f"WHERE {POSTED} GROUP BY who ORDER BY first, who LIMIT 3",
    "JSONBench 5": "SELECT data.did AS who, max(data.time_us) - min(data.time_us) AS span FROM d "
    f"WHERE {POSTED} GROUP BY who ORDER BY span DESC, who LIMIT 3",
}


class ChDB(Worker):
    """A process of another environment that answers queries."""

    def __init__(self, source: Path) -> None:
        super().__init__(peer_python("chdb"), "chdb_worker.py", {})
        self.ask(str(source))

    def seconds(self, query: str) -> float:
        """How long the query took there."""
        return float(self.ask(query)["seconds"])


OURS, CLUSTERED = "Variantlake", "Variantlake, clustered"
DUCKDB, POLARS = "DuckDB's VARIANT", "Polars, plain columns"
CHDB_TABLE, CHDB_JSON = "chDB, JSONBench's table", "chDB, JSON alone"


def main() -> None:
    """Run and print."""
    options = parser(__doc__, events=500_000, rounds=7)
    options.add_argument("--duckdb", action=argparse.BooleanOptionalAction, default=True)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as scratch:
        source = Path(scratch) / "events.ndjson"
        documents.write("events", source, asked.events)
        section = _run(Path(scratch), source, asked.rounds, with_duckdb=asked.duckdb)
    section.inputs = [f"{asked.events:,} events"]
    finish(section, asked)


def _run(folder: Path, source: Path, rounds: int, *, with_duckdb: bool) -> Section:
    tables = {OURS: loaded(folder / "ours", source), CLUSTERED: clustered(folder / "c", source)}
    duck = duckdb.connect(config={"threads": CORES})
    duck.execute("SET TimeZone = 'UTC'")
    duck.execute("CREATE MACRO timestamp_micros(x) AS make_timestamp(x)")
    own = folder / "duckdb.parquet"
    if with_duckdb:
        duck.execute(
            f"COPY (SELECT json::VARIANT AS event FROM read_ndjson_objects('{source}')) TO '{own}'"
        )
    plain = folder / "plain.parquet"
    columns = ", ".join(f"event:{path}::{_type(path)} AS `{path}`" for path in PLAIN)
    pl.DataFrame(tables[OURS].sql(f"SELECT {columns} FROM t")).write_parquet(plain)
    section = Section((OURS, CLUSTERED, DUCKDB, POLARS, CHDB_TABLE, CHDB_JSON))
    try:
        chdb: ChDB | None = ChDB(source)
        missing = {}
    except (Died, RuntimeError) as error:
        chdb = None
        missing = {each: Runs(failure=f"no: {error}") for each in (CHDB_TABLE, CHDB_JSON)}
    for name, other in CHDB.items():
        text = QUERIES[name].text
        ways: dict[str, Callable[[], float]] = {}
        for engine, opened in tables.items():
            ways[engine] = partial(timed, partial(_local, opened, text.format(t="t")))
        if with_duckdb:
            query = _duckdb_paths(text.format(t=f"read_parquet('{own}')"))
            ways[DUCKDB] = partial(timed, partial(_duckdb, duck, query))
        ways[POLARS] = partial(timed, partial(_polars, plain, _on_columns(text)))
        if chdb is not None:
            ways[CHDB_TABLE] = partial(chdb.seconds, other)
            ways[CHDB_JSON] = partial(chdb.seconds, _of_json(other))
        section.add(name, in_turns(rounds, ways) | missing)
    if chdb is not None:
        chdb.close()
    return section


def loaded(place: Path, source: Path, order: tuple[str, ...] = ()) -> vl.Table:
    """A table of the events, each file sorted by the paths of `order`."""
    vl.Table.create(place, "event VARIANT").append(vl.ndjson(source), order_by=order)
    return vl.Table.open(place)


def clustered(place: Path, source: Path) -> vl.Table:
    """A table of the events, sorted by `ORDER` across its files."""
    opened = loaded(place, source)
    opened.set_clustering(*ORDER)
    opened.cluster(target_file_size=FILE_BYTES)
    # An open table stays at its version.
    return vl.Table.open(place)


def _type(path: str) -> str:
    return "bigint" if path == "time_us" else "string"


def _on_columns(text: str) -> str:
    """The query of a table of columns, as Polars writes it."""
    for path in PLAIN:
        text = text.replace(f"event:{path}::{_type(path)}", f'"{path}"')
    text = text.replace('hour(timestamp_micros("time_us"))', '("time_us" / 3600000000) % 24')
    return text.format(t="t")


def _of_json(text: str) -> str:
    """A query of chDB's table whose paths have no declared type."""
    for path in PLAIN:
        declared = "Int64" if path == "time_us" else "String"
        text = text.replace(f"data.{path}", f"data.{path}.:{declared}")
    return text.replace("FROM d", "FROM j")


def _local(opened: vl.Table, text: str) -> object:
    return opened.sql(text).to_arrow()


def _duckdb(connection: duckdb.DuckDBPyConnection, text: str) -> object:
    return connection.sql(text).to_arrow_table()


def _polars(plain: Path, text: str) -> object:
    return pl.SQLContext(t=pl.scan_parquet(plain)).execute(text).collect()


if __name__ == "__main__":
    main()
