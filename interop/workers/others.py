"""Engines that give Arrow or Python rows: `python -m interop.workers.others ENGINE`.

A VARIANT comes from most of them as the struct of its column chunks; the harness decodes it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from interop.protocol import Absent, offered, serve
from interop.values import canonical, pairs

Rows = list[dict[str, Any]]


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _from_arrow(table: Any) -> Rows:
    """The rows of a pyarrow Table, or of what is one by its stream, in the order of `id`."""
    pa = _module("pyarrow")
    table = table if isinstance(table, pa.Table) else pa.table(table)
    maps = {field.name for field in table.schema if pa.types.is_map(field.type)}
    return _canonical(sorted(table.to_pylist(), key=lambda row: row["id"]), maps)


def _canonical(rows: Rows, maps: set[str]) -> Rows:
    return [
        {
            name: pairs(value) if name in maps and value is not None else canonical(value)
            for name, value in row.items()
        }
        for row in rows
    ]


class DeltaLake:
    """delta-rs by its Python package, and DataFusion inside of it."""

    def read_table(self, path: str) -> Rows:
        """By delta-rs's own query engine, which knows deletion vectors and column mapping."""
        deltalake = _module("deltalake")
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
        return _from_arrow(query.execute("SELECT * FROM t").read_all())

    def create(self, path: str, ddl: str, variants: bool) -> None:  # noqa: ARG002 - of one shape
        """An empty table of the columns of `interop.kinds.ROW`."""
        _module("deltalake").write_deltalake(path, _arrow([], variants))

    def append(self, path: str, rows: Rows) -> None:
        """Append rows."""
        _module("deltalake").write_deltalake(path, _arrow(rows, "event" in rows[0]), mode="append")

    def delete(self, path: str, condition: str) -> None:
        """Delete the rows under a condition."""
        _module("deltalake").DeltaTable(path).delete(condition)

    def update(self, path: str, assignment: str, condition: str) -> None:
        """Change the rows under a condition."""
        name, _, text = assignment.partition(" = ")
        _module("deltalake").DeltaTable(path).update(updates={name: text}, predicate=condition)


def _arrow(rows: Rows, variants: bool) -> Any:
    if variants:
        raise NotImplementedError("no way to write VARIANT")
    pa = _module("pyarrow")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
    return pa.Table.from_pylist(rows, schema)


class DataFusion:
    """DataFusion over delta-rs's table provider, and over files."""

    def read_table(self, path: str) -> Rows:
        """The table is registered as a provider."""
        context = _module("datafusion").SessionContext()
        context.register_table("t", _module("deltalake").DeltaTable(path))
        return _from_arrow(context.sql("SELECT * FROM t").to_arrow_table())

    def read_files(self, path: str) -> Rows:
        """Its own Parquet reader."""
        context = _module("datafusion").SessionContext()
        return _from_arrow(context.read_parquet(path).to_arrow_table())


class Polars:
    """Polars's own Delta reader, and its own Parquet reader."""

    def read_table(self, path: str) -> Rows:
        """`scan_delta`, collected."""
        return self._rows(_module("polars").scan_delta(path).collect())

    def read_files(self, path: str) -> Rows:
        """`read_parquet`."""
        return self._rows(_module("polars").read_parquet(f"{path}/*.parquet"))

    def create(self, path: str, ddl: str, variants: bool) -> None:  # noqa: ARG002 - of one shape
        """An empty table of the columns of `interop.kinds.ROW`."""
        self._frame([], variants).write_delta(path)

    def append(self, path: str, rows: Rows) -> None:
        """Append rows."""
        self._frame(rows, "event" in rows[0]).write_delta(path, mode="append")

    @staticmethod
    def _rows(frame: Any) -> Rows:
        maps = {name for name, kind in frame.schema.items() if str(kind).startswith("Map")}
        return _canonical(sorted(frame.to_dicts(), key=lambda row: row["id"]), maps)

    @staticmethod
    def _frame(rows: Rows, variants: bool) -> Any:
        if variants:
            raise NotImplementedError("no way to write VARIANT")
        polars = _module("polars")
        schema = {"id": polars.Int64, "name": polars.String, "price": polars.Float64}
        return polars.DataFrame(rows, schema=schema)


class Daft:
    """Daft, which plans on delta-rs and reads files itself."""

    def read_table(self, path: str) -> Rows:
        """`read_deltalake`."""
        return _from_arrow(_module("daft").read_deltalake(path).to_arrow())

    def read_files(self, path: str) -> Rows:
        """`read_parquet`."""
        return _from_arrow(_module("daft").read_parquet(f"{path}/*.parquet").to_arrow())

    def create(self, path: str, ddl: str, variants: bool) -> None:  # noqa: ARG002 - of one shape
        """An empty table of the columns of `interop.kinds.ROW`."""
        _module("daft").from_arrow(_arrow([], variants)).write_deltalake(path)

    def append(self, path: str, rows: Rows) -> None:
        """Append rows."""
        frame = _module("daft").from_arrow(_arrow(rows, "event" in rows[0]))
        frame.write_deltalake(path, mode="append")


class DuckDB:
    """DuckDB by its own Parquet reader, and by its delta extension if it can be had."""

    def __init__(self) -> None:
        self.connection = _module("duckdb").connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def read_table(self, path: str) -> Rows:
        """`delta_scan` of the extension."""
        try:
            self.connection.execute("INSTALL delta")
            self.connection.execute("LOAD delta")
        except Exception as error:
            raise Absent("DuckDB's delta extension cannot be fetched") from error
        return self._rows(f"delta_scan('{path}')")

    def read_files(self, path: str) -> Rows:
        """`read_parquet`."""
        return self._rows(f"read_parquet('{path}/*.parquet')")

    def write_files(self, path: str, rows: Rows) -> None:
        """`COPY` of rows whose JSON text becomes VARIANT."""
        self.connection.execute("CREATE OR REPLACE TABLE t (id BIGINT, event VARIANT)")
        values = [(row["id"], row["event"]) for row in rows]
        self.connection.executemany("INSERT INTO t VALUES (?, ?::JSON::VARIANT)", values)
        self.connection.execute(f"COPY t TO '{path}/part.parquet'")

    def _rows(self, source: str) -> Rows:
        described = self.connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        kinds = {row[0]: row[1] for row in described}
        texts = ", ".join(
            f'"{name}"::JSON::VARCHAR AS "{name}"' if kind == "VARIANT" else f'"{name}"'
            for name, kind in kinds.items()
        )
        found = self.connection.execute(f"SELECT {texts} FROM {source} ORDER BY id").fetchall()
        return [
            {
                name: _duck(kind, value)
                for (name, kind), value in zip(kinds.items(), row, strict=True)
            }
            for row in found
        ]


def _duck(kind: str, value: Any) -> Any:
    if kind == "VARIANT":
        return {"variant": value}
    if kind.startswith("MAP") and value is not None:
        return pairs(value)
    return canonical(value)


class PyArrow:
    """PyArrow reads files."""

    def read_files(self, path: str) -> Rows:
        """`pyarrow.parquet.read_table`."""
        return _from_arrow(_module("pyarrow.parquet").read_table(path))


class PyIceberg:
    """PyIceberg's reader of files: the schema that it makes of a file, and the rows of that."""

    def read_files(self, path: str) -> Rows:
        """As `add_files` sees a file: its Arrow schema becomes Iceberg's, which selects columns."""
        dataset = _module("pyarrow.dataset").dataset(path)
        # No public function makes a schema of a file that no Iceberg table has.
        convert = _module("pyiceberg.io.pyarrow")._pyarrow_to_schema_without_ids  # noqa: SLF001
        names = [field.name for field in convert(dataset.schema, format_version=3).fields]
        return _from_arrow(dataset.to_table(names))


class ChDB:
    """ClickHouse inside of a process."""

    def read_table(self, path: str) -> Rows:
        """`deltaLakeLocal`."""
        return self._rows(f"deltaLakeLocal('{path}')")

    def read_files(self, path: str) -> Rows:
        """`file`."""
        return self._rows(f"file('{path}/*.parquet', Parquet)")

    def _rows(self, source: str) -> Rows:
        import io

        settings = "session_timezone = 'UTC', output_format_arrow_string_as_string = 0"
        query = f"SELECT * FROM {source} ORDER BY id SETTINGS {settings}"
        answer = io.BytesIO(_module("chdb").query(query, "Arrow").bytes())
        rows = _from_arrow(_module("pyarrow").ipc.open_file(answer).read_all())
        return [{name: _text(value) for name, value in row.items()} for row in rows]


def _text(value: Any) -> Any:
    """ClickHouse's String is text and bytes alike: text if it can be."""
    if isinstance(value, dict) and set(value) == {"hex"}:
        try:
            return bytes.fromhex(value["hex"]).decode()
        except UnicodeDecodeError:
            return value
    return value


class Sail:
    """Sail: a server of Spark Connect without Spark."""

    def __init__(self) -> None:
        server = _module("pysail.spark").SparkConnectServer(port=0)
        server.start(background=True)
        _, port = server.listening_address
        from interop.workers.spark import Spark

        class Client(Spark):
            def __init__(self) -> None:
                self.server = server  # it ends when nobody refers to it
                sql = _module("pyspark.sql")
                self.session = sql.SparkSession.builder.remote(
                    f"sc://localhost:{port}"
                ).getOrCreate()
                self.session.conf.set("spark.sql.session.timeZone", "UTC")

            def create(self, path: str, ddl: str, variants: bool) -> None:
                properties = "'delta.enableVariantShredding' = 'true'" if variants else "'a' = 'b'"
                self.session.sql(
                    f"CREATE TABLE t{abs(hash(path))} ({ddl}) USING DELTA LOCATION '{path}' "
                    f"TBLPROPERTIES ({properties})"
                )

        self.client = Client()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


ENGINES: dict[str, Callable[[], Any]] = {
    "deltalake": DeltaLake,
    "datafusion": DataFusion,
    "polars": Polars,
    "daft": Daft,
    "duckdb": DuckDB,
    "pyarrow": PyArrow,
    "pyiceberg": PyIceberg,
    "chdb": ChDB,
    "pysail": Sail,
}


if __name__ == "__main__":
    serve(lambda: offered(ENGINES[sys.argv[1]]()))
