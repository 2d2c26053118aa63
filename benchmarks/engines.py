"""The other engines, each with its best settings, behind one interface for the benchmarks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO

import duckdb
from interop.engines import ENGINES, environment
from pyspark.sql import DataFrame, SparkSession

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.jars.packages": DELTA_PACKAGE,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "4g",
    "spark.sql.parquet.compression.codec": "zstd",
    # Delta Spark's best setting: shredded files with statistics of the paths
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.inferShreddingSchema": "true",
    "spark.databricks.delta.variantShredding.collectVariantDataSkippingStats": "true",
    "spark.databricks.delta.variantShredding.parseFooterForStats": "true",
    "spark.databricks.delta.stats.limitPerVariant": "1000",
}


def peer_python(name: str) -> Path:
    """The Python of an engine's environment below .work/interop, created if there is none.

    Raises interop.engines.Died if a package cannot be had.
    """
    return environment(next(engine for engine in ENGINES if engine.name == name))


def spark_session(cores: int = 2, memory: str = "4g") -> SparkSession:
    """One Spark session with Delta Spark, for both sides."""
    builder = SparkSession.builder.master(f"local[{cores}]").appName("variantlake benchmark")
    for key, value in {**SETTINGS, "spark.driver.memory": memory}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def delta_table(spark: SparkSession, table: Path) -> None:
    """Create an empty shredded table by Delta Spark."""
    shutil.rmtree(table, ignore_errors=True)
    spark.sql(
        f"CREATE TABLE delta.`{table}` (event VARIANT) USING DELTA "
        "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
    )


def delta_append(frame: DataFrame, table: Path) -> None:
    """Write a DataFrame with one VARIANT column `event` to a new table, by Delta Spark."""
    delta_table(frame.sparkSession, table)
    frame.write.format("delta").mode("append").save(str(table))


class DuckDb:
    """An in-memory DuckDB."""

    def __init__(self, cores: int) -> None:
        self._connection = duckdb.connect(config={"threads": cores})

    def to_parquet(self, source: Path, file: Path) -> None:
        """Convert NDJSON to one Parquet file, which DuckDB shreds by itself."""
        file.unlink(missing_ok=True)
        self._connection.execute(
            f"COPY (SELECT json::VARIANT AS event FROM read_ndjson_objects('{source}'))"
            f" TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
        )

    def rebuild(self, folder: Path) -> None:
        """Read every Variant of a folder's files as a DuckDB value."""
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE rebuilt AS SELECT event FROM '{folder}/*.parquet'"
        )
        self._connection.execute("DROP TABLE rebuilt")

    def json_text(self, folder: Path) -> int:
        """Read every Variant of a folder's files as JSON text; returns the bytes of all."""
        query = f"SELECT sum(strlen(event::JSON::VARCHAR)) FROM '{folder}/*.parquet'"
        found = self._connection.execute(query).fetchone()
        return int(found[0]) if found else 0


class Worker:
    """A process in another environment that answers each line with a line of JSON."""

    def __init__(self, python: str | Path, script: str, environment: dict[str, str]) -> None:
        """Start `script`, a file of this folder."""
        self._process = subprocess.Popen(
            [python, Path(__file__).with_name(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_plain_environment() | environment,
        )

    def ask(self, line: str) -> dict[str, str]:
        """The answer to a line. Raises RuntimeError for an error, and if the process has ended."""
        send, receive = _pipes(self._process)
        try:
            send.write(line + "\n")
            send.flush()
            answered = receive.readline()
        except BrokenPipeError:
            answered = ""
        if not answered:
            raise RuntimeError("the process ended without an answer")
        answer: dict[str, str] = json.loads(answered)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


class Sail(Worker):
    """A Sail server in a separate process, with its own packages."""

    def __init__(self, cores: int) -> None:
        threads = {"TOKIO_WORKER_THREADS": str(cores)}
        super().__init__(peer_python("pysail"), "sail_worker.py", threads)
        self.ask("{}")  # until it is up

    def to_table(self, source: Path, table: Path) -> float:
        """Convert NDJSON to a shredded Delta table; returns the seconds."""
        shutil.rmtree(table, ignore_errors=True)
        request = {"source": str(source), "table": str(table)}
        return float(self.ask(json.dumps(request))["seconds"])


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process has no pipes")
    return process.stdin, process.stdout


def _plain_environment() -> dict[str, str]:
    """Our environment variables without those that lead another Python to our packages."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    kept.pop("PYTHONPATH", None)
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return kept
