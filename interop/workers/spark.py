"""Spark, with Delta Spark or alone: `python -m interop.workers.spark [PACKAGE]`."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from typing import Any

from interop.protocol import offered, serve
from interop.values import canonical, pairs


class Spark:
    """A session, and what it does with a table."""

    def __init__(self, package: str) -> None:
        sql: Any = importlib.import_module("pyspark.sql")
        self.place = tempfile.mkdtemp(prefix="variantlake-interop-")
        options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        builder = (
            sql.SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "1g")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "1")  # of VACUUM
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", self.place)
            .config("spark.log.level", "OFF")
            .config("spark.databricks.delta.snapshotPartitions", "1")
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={self.place} {options}")
        )
        if package:
            builder = (
                builder.config("spark.jars.packages", package)
                .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
                .config(
                    "spark.sql.catalog.spark_catalog",
                    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                )
            )
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.session = builder.getOrCreate()

    def read_table(self, path: str) -> Any:
        """The rows of a Delta table in the order of `id`."""
        return self._rows(self.session.read.format("delta").load(path))

    def read_files(self, path: str) -> Any:
        """The rows of Parquet files in the order of `id`."""
        return self._rows(self.session.read.parquet(path))

    def write_files(self, path: str, rows: list[dict[str, Any]]) -> None:
        """Parquet files of rows whose JSON text becomes VARIANT."""
        values = [(row["id"], row["event"]) for row in rows]
        frame = self.session.createDataFrame(values, "id BIGINT, event STRING")
        frame = frame.selectExpr("id", "parse_json(event) AS event").coalesce(1)
        frame.write.mode("overwrite").parquet(path)

    def _rows(self, frame: Any) -> Any:
        kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        texts = [
            f"to_json(`{name}`) AS `{name}`" if kind == "variant" else f"`{name}`"
            for name, kind in kinds.items()
        ]
        return [
            {name: _value(kinds[name], row[name]) for name in kinds}
            for row in frame.orderBy("id").selectExpr(*texts).collect()
        ]

    def create(self, path: str, ddl: str, variants: bool) -> None:
        """An empty Delta table."""
        shredding = " TBLPROPERTIES ('delta.enableVariantShredding' = 'true')" if variants else ""
        self.session.sql(f"CREATE TABLE delta.`{path}` ({ddl}) USING delta{shredding}")

    def append(self, path: str, rows: list[dict[str, Any]]) -> None:
        """Rows of the columns that `interop.kinds.ROW` has; `event` comes as JSON text."""
        names = list(rows[0])
        texts = ["parse_json(event) AS event" if name == "event" else name for name in names]
        ddl = "id BIGINT, name STRING, price DOUBLE, event STRING"
        chosen = ", ".join(part for part in ddl.split(", ") if part.split()[0] in names)
        values = [tuple(row[part.split()[0]] for part in chosen.split(", ")) for row in rows]
        frame = self.session.createDataFrame(values, chosen).selectExpr(*texts)
        frame.write.format("delta").mode("append").save(path)

    def delete(self, path: str, condition: str) -> None:
        """Delete the rows under a condition."""
        self.session.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")

    def update(self, path: str, assignment: str, condition: str) -> None:
        """Change the rows under a condition."""
        self.session.sql(f"UPDATE delta.`{path}` SET {assignment} WHERE {condition}")


def _value(kind: str, value: Any) -> Any:
    if kind == "variant":
        return {"variant": value}
    if value is not None and kind.startswith("map<"):
        return pairs(value)
    # A timestamp with a zone comes as a local time: the session's zone is UTC, and so is TZ.
    if value is not None and kind == "timestamp":
        return {"timestamp": value.isoformat(" ", "microseconds") + "Z"}
    return canonical(value)


if __name__ == "__main__":
    serve(lambda: offered(Spark("".join(sys.argv[1:]))))
