"""How each engine is asked for each feature: `python -m interop.workers.features ENGINE [PACKAGE]`.

A probe that an engine has no call for is not there: the harness then says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from interop.protocol import Absent, serve
from interop.workers.others import ENGINES, _module

_ROWS = """parse_json(concat('{{"n":', id, ',"kind":"k"}}')) FROM range(1000)"""
MAKE = (
    "CREATE TABLE {t} (id BIGINT, event VARIANT) USING delta{at}{properties}",
    f"INSERT INTO {{t}} SELECT id, {_ROWS}",
)
SHRED = " TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
MERGE = (
    "MERGE INTO {t} AS t USING (SELECT 1L AS id, 'x' AS name UNION ALL SELECT 7L, 'y') AS s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
SPARK = {
    "variants": tuple(each.replace("{properties}", "") for each in MAKE),
    "shredding": tuple(each.replace("{properties}", SHRED) for each in MAKE),
    "path": ("SELECT sum(variant_get(event, '$.n', 'bigint')) FROM {t}",),
    "path-column": ("SELECT sum(variant_get(event, '$.n', 'bigint')) FROM {t}",),
    "path-skip": ("SELECT count(*) FROM {t} WHERE variant_get(event, '$.n', 'bigint') < 50",),
    "skip": ("SELECT count(name) FROM {t} WHERE id < 50",),
    "version": ("SELECT count(*) FROM {t} VERSION AS OF 1",),
    "delete": ("DELETE FROM {t} WHERE id = 1",),
    "update": ("UPDATE {t} SET name = 'new' WHERE id = 1",),
    "merge": (MERGE,),
    "path-delete": ("DELETE FROM {t} WHERE variant_get(event, '$.n', 'bigint') = 1",),
    "vector": ("DELETE FROM {t} WHERE id = 1",),
    "restore": ("RESTORE TABLE {t} TO VERSION AS OF 1",),
    "compact": ("OPTIMIZE {t}",),
    "path-cluster": ("OPTIMIZE {t} ZORDER BY (event.n)",),
    "vacuum": ("VACUUM {t}",),
    "add-column": ("ALTER TABLE {t} ADD COLUMNS (more STRING)",),
    "rename-column": ("ALTER TABLE {t} RENAME COLUMN name TO title",),
}
"""Statements of Spark and of Sail; of most the last row's first value is the answer."""

QUERIES = {
    "path": "SELECT sum({path}) AS n FROM {t}",
    "path-column": "SELECT sum({path}) AS n FROM {t}",
    "path-skip": "SELECT count(*) AS n FROM {t} WHERE {path} < 50",
    "skip": "SELECT count(name) AS n FROM {t} WHERE id < 50",
}
Probe = Callable[[str], Any]


def of_spark(engine: Any, *, is_sail: bool) -> dict[str, Probe]:
    """SQL, and what has no SQL. The probes refer to the engine: without it Sail's server ends."""

    def run(statements: tuple[str, ...]) -> Probe:
        def probe(path: str) -> Any:
            rows: list[Any] = []
            table, at = (_name(path), f" LOCATION '{path}'") if is_sail else (f"delta.`{path}`", "")
            if is_sail and statements[0][:6] != "CREATE":  # Sail writes tables by their names alone
                engine.session.sql(f"CREATE TABLE {table} USING delta{at}")
            for statement in statements:
                rows = engine.session.sql(statement.format(t=table, at=at)).collect()
            return rows[0][0] if rows and isinstance(rows[0][0], int) else None

        return probe

    def changes(path: str) -> int:
        reader = engine.session.read.format("delta").option("readChangeFeed", "true")
        frame = reader.option("startingVersion", 3).load(path)
        return int(frame.where("_change_type = 'delete'").count())

    if not is_sail:
        engine.session.conf.set("spark.sql.variant.writeShredding.enabled", "true")
        engine.session.conf.set("spark.sql.variant.inferShreddingSchema", "true")
        prefix = "spark.databricks.delta.variantShredding"
        engine.session.conf.set(f"{prefix}.collectVariantDataSkippingStats", "true")
    return {name: run(statements) for name, statements in SPARK.items()} | {"changes": changes}


def _number(rows: Any) -> int:
    return int(next(iter(rows[0].values())))


def of_deltalake() -> dict[str, Probe]:
    """delta-rs by its Python package."""
    deltalake = _module("deltalake")
    pa = _module("pyarrow")

    def query(text: str) -> Probe:
        def probe(path: str) -> int:
            builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
            table = pa.table(builder.execute(text).read_all())
            return _number(table.to_pylist())

        return probe

    def table(path: str, **options: Any) -> Any:
        return deltalake.DeltaTable(path, **options)

    def merge(path: str) -> None:
        source = pa.table({"id": pa.array([1, 7], pa.int64()), "name": ["x", "y"]})
        merger = table(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def changes(path: str) -> int:
        rows = pa.table(table(path).load_cdf(starting_version=3).read_all()).to_pylist()
        return sum(row["_change_type"] == "delete" for row in rows)

    def add(path: str) -> None:
        field = deltalake.Field("more", deltalake.schema.PrimitiveType("string"))
        table(path).alter.add_columns([field])

    return _queries(query, "event['n']") | {
        "version": lambda path: table(path, version=1).to_pyarrow_dataset().count_rows(),
        "delete": lambda path: _none(table(path).delete("id = 1")),
        "path-delete": lambda path: _none(table(path).delete("event['n'] = 1")),
        "vector": lambda path: _none(table(path).delete("id = 1")),
        "update": lambda path: _none(table(path).update({"name": "'new'"}, predicate="id = 1")),
        "merge": merge,
        "changes": changes,
        "restore": lambda path: _none(table(path).restore(1)),
        "compact": lambda path: _none(table(path).optimize.compact()),
        "path-cluster": lambda path: _none(table(path).optimize.z_order(["event.n"])),
        "vacuum": lambda path: _none(table(path).vacuum(dry_run=False, full=True)),
        "checkpoint": lambda path: _none(table(path).create_checkpoint()),
        "add-column": add,
    }


def _none(_: object) -> None:
    return None


def _queries(query: Callable[[str], Probe], path: str, table: str = "t") -> dict[str, Probe]:
    return {
        name: query(text.replace("{path}", path).replace("{t}", table))
        for name, text in QUERIES.items()
    }


def of_datafusion() -> dict[str, Probe]:
    """DataFusion over delta-rs's provider."""
    datafusion, deltalake = _module("datafusion"), _module("deltalake")

    def query(text: str, **options: Any) -> Probe:
        def probe(path: str) -> int:
            context = datafusion.SessionContext()
            context.register_table("t", deltalake.DeltaTable(path, **options))
            return _number(context.sql(text).to_arrow_table().to_pylist())

        return probe

    return _queries(query, "event['n']") | {"version": query("SELECT count(*) FROM t", version=1)}


def of_frames(scan: Callable[..., Any], count: Callable[[Any], int], name: str) -> dict[str, Probe]:
    """Polars and Daft: frames over a scan."""
    col = _module(name).col

    def path_of() -> Any:
        event = col("event")
        return event.struct.field("n") if name == "polars" else event["n"]

    def total(path: str) -> int:
        rows = scan(path).select(path_of().sum().alias("n")).collect()
        return int(rows.to_dicts()[0]["n"] if name == "polars" else rows.to_pylist()[0]["n"])

    def keep(path: str, condition: Any) -> int:
        frame = scan(path)
        return count(frame.filter(condition) if name == "polars" else frame.where(condition))

    return {
        "path": total,
        "path-column": total,
        "path-skip": lambda path: keep(path, path_of() < 50),
        "skip": lambda path: keep(path, col("id") < 50),
        "version": lambda path: count(scan(path, version=1)),
    }


def of_polars() -> dict[str, Probe]:
    """Polars's `scan_delta` and `write_delta`."""
    polars = _module("polars")

    def merge(path: str) -> None:
        frame = polars.DataFrame({"id": [1, 7], "name": ["x", "y"]})
        options = {"predicate": "t.id = s.id", "source_alias": "s", "target_alias": "t"}
        merger = frame.write_delta(path, mode="merge", delta_merge_options=options)
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    frames = of_frames(polars.scan_delta, lambda frame: int(frame.collect().height), "polars")
    return frames | {"merge": merge}


def of_daft() -> dict[str, Probe]:
    """Daft's `read_deltalake`."""
    daft = _module("daft")
    return of_frames(daft.read_deltalake, lambda frame: int(frame.count_rows()), "daft")


def of_chdb() -> dict[str, Probe]:
    """ClickHouse's `deltaLakeLocal`."""
    import json

    def query(text: str) -> Probe:
        def probe(path: str) -> int:
            source = f"deltaLakeLocal('{path}')"
            answer = str(_module("chdb").query(text.replace("TABLE", source), "JSONEachRow"))
            return int(next(iter(json.loads(answer.splitlines()[0]).values())))

        return probe

    return _queries(query, "event.n", "TABLE")


def of_duckdb() -> dict[str, Probe]:
    """DuckDB's delta extension."""
    connection = _module("duckdb").connect()

    def query(text: str) -> Probe:
        def probe(path: str) -> int:
            try:
                connection.execute("INSTALL delta")
                connection.execute("LOAD delta")
            except Exception as error:
                raise Absent("DuckDB's delta extension cannot be fetched") from error
            found = connection.execute(text.replace("TABLE", f"delta_scan('{path}')")).fetchone()
            return int(found[0])

        return probe

    return _queries(query, "event.n::BIGINT", "TABLE")


def of_variantlake() -> dict[str, Probe]:
    """Ourselves, without Spark."""
    import pyarrow as pa

    import variantlake as vl

    def table(path: str) -> vl.Table:
        return vl.Table.open(path)

    def make(path: str) -> None:
        rows = pa.table(
            {
                "id": pa.array(range(1000), pa.int64()),
                "event": [f'{{"n":{n},"kind":"k"}}' for n in range(1000)],
            }
        )
        vl.Table.create(path, "id BIGINT, event VARIANT").append(rows, json_columns=["event"])

    def query(text: str) -> Probe:
        return lambda path: _number(table(path).sql(text).to_arrow().to_pylist())

    def merge(path: str) -> None:
        source = pa.table({"id": pa.array([1, 7], pa.int64()), "name": ["x", "y"]})
        table(path).merge(source, "t.id = s.id")

    def cluster(path: str) -> None:
        table(path).set_clustering("event:n::bigint")
        table(path).cluster()

    def changes(path: str) -> int:
        rows = table(path).changes(3).to_arrow().to_pylist()
        return sum(row["_change_type"] == "delete" for row in rows)

    return _queries(query, "event:n::bigint") | {
        "variants": make,
        "shredding": make,
        "version": lambda path: vl.Table.open(path, 1).scan().to_arrow().num_rows,
        "delete": lambda path: _none(table(path).delete("id = 1")),
        "path-delete": lambda path: _none(table(path).delete("event:n::bigint = 1")),
        "vector": lambda path: _none(table(path).delete("id = 1")),
        "update": lambda path: _none(table(path).update({"name": "new"}, "id = 1")),
        "merge": merge,
        "changes": changes,
        "restore": lambda path: _none(table(path).restore(1)),
        "compact": lambda path: _none(table(path).optimize()),
        "path-cluster": cluster,
        "vacuum": lambda path: _none(table(path).vacuum()),
        "checkpoint": lambda path: _none(table(path).checkpoint()),
        "add-column": lambda path: _none(table(path).add_column("more STRING")),
        "rename-column": lambda path: _none(table(path).rename_column("name", "title")),
    }


def _name(path: str) -> str:
    return "t_" + path.rpartition("/")[2].replace("-", "_")


def probes(engine: str, package: str = "") -> dict[str, Probe]:
    """The probes of an engine."""
    if engine == "spark":
        from interop.workers.spark import Spark

        return of_spark(Spark(package), is_sail=False)
    if engine == "pysail":
        return of_spark(ENGINES["pysail"](), is_sail=True)
    return {
        "deltalake": of_deltalake,
        "datafusion": of_datafusion,
        "polars": of_polars,
        "daft": of_daft,
        "chdb": of_chdb,
        "duckdb": of_duckdb,
        "variantlake": of_variantlake,
    }[engine]()


if __name__ == "__main__":
    serve(lambda: probes(*sys.argv[1:]))
